package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// framed is what a framer made of a body.
type framed struct {
	Framing  Framing
	Frames   []Frame
	Comments int
	Cut      bool
}

// frame runs a framer over pieces, each a read of its own.
func frame(contentType string, pieces ...[]byte) framed {
	var out framed
	f := NewFramer(contentType, func(fr Frame) {
		fr.Name, fr.Data = bytes.Clone(fr.Name), bytes.Clone(fr.Data)
		out.Frames = append(out.Frames, fr)
	})
	for i, b := range pieces {
		f.Feed(b, i)
	}
	out.Cut = f.Finish(true)
	out.Framing, out.Comments = f.Framing(), f.Comments()
	return out
}

func frameText(contentType, body string) framed { return frame(contentType, []byte(body)) }

func payloads(f framed) (out []string) {
	for _, fr := range f.Frames {
		s := string(fr.Data)
		if fr.Name != nil {
			s = string(fr.Name) + "=" + s
		}
		out = append(out, s)
	}
	return out
}

func TestSSEGrammar(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
		comments   int
		cut        bool
	}{
		{"LF", "data: a\n\ndata: b\n\n", []string{"a", "b"}, 0, false},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, 0, false},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, 0, false},
		{"mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\ndata: d\n\n", []string{"a", "b", "c", "d"}, 0, false},
		{"no space", "data:a\n\n", []string{"a"}, 0, false},
		{"only one space goes", "data:  a \n\n", []string{" a "}, 0, false},
		{"lines are joined", "data: a\ndata:\ndata: b\n\n", []string{"a\n\nb"}, 0, false},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}, 0, false},
		{"a later mark is part of a field", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"a"}, 0, false},
		{"comments", ": hi\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []string{"a\nb"}, 3, false},
		{"event names", "event: x\ndata: a\n\nevent:\ndata: b\n\ndata: c\n\n", []string{"x=a", "=b", "c"}, 0, false},
		{"other fields", "id: 7\nretry: 9\nfoo\ndata: a\n\n", []string{"a"}, 0, false},
		{"no data", "event: x\nid: 1\n\n\n\n", nil, 0, false},
		{"empty data is no event", "data:\n\ndata\n\ndata: \n\n", nil, 0, false},
		{"data without colon", "data\ndata: a\n\n", []string{"\na"}, 0, false},
		{"prefix is not a field", "database: a\n\n", nil, 0, false},
		{"unterminated block", "data: a\n\ndata: b\n", []string{"a"}, 0, true},
		{"unterminated line", "data: a\n\ndata: b", []string{"a"}, 0, true},
		{"half a field name", "data: a\n\nda", []string{"a"}, 0, true},
		{"unterminated comment", "data: a\n\n: pi", []string{"a"}, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := frameText("text/event-stream; charset=utf-8", tc.body)
			if d := cmp.Diff(tc.want, payloads(got)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if got.Comments != tc.comments || got.Cut != tc.cut {
				t.Errorf("%d comments, cut %v; want %d, %v", got.Comments, got.Cut, tc.comments, tc.cut)
			}
		})
	}
}

// TestCREndsAnEventAtOnce holds that an event is not held back for a LF that may never come.
func TestCREndsAnEventAtOnce(t *testing.T) {
	got := frame("text/event-stream", []byte("data: a\r\n\r"), []byte("\ndata: b\r\r"), []byte("data: c\n\n"))
	want := []Frame{
		{Start: 0, End: 10, Read: 0, Data: []byte("a")},
		{Start: 11, End: 20, Read: 1, Data: []byte("b")},
		{Start: 20, End: 29, Read: 2, Data: []byte("c")},
	}
	if d := cmp.Diff(want, got.Frames); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
}

func TestOtherFramings(t *testing.T) {
	for _, tc := range []struct {
		name, contentType, body string
		framing                 Framing
		want                    []string
		cut                     bool
	}{
		{"lines", "application/x-ndjson", "{\"a\":1}\r\n\n  \n{\"a\":2}", FramingNDJSON, []string{`{"a":1}`, `{"a":2}`}, false},
		{"last line cut", "application/x-ndjson", "{\"a\":1}\n{\"a\":", FramingNDJSON, []string{`{"a":1}`}, true},
		{"a bad line does not hurt the next", "application/x-ndjson", "{{\n{\"a\":2}\n", FramingNDJSON, []string{"{{", `{"a":2}`}, false},
		{"lines of words", "application/jsonl", "true\nnull", FramingNDJSON, []string{"true", "null"}, false},
		{"one value", "application/json", " {\"a\": \"}\\\"]\"}\n\n", FramingJSON, []string{`{"a": "}\"]"}`}, false},
		{"one number", "application/json", "12", FramingJSON, []string{"12"}, false},
		{"one text", "application/json", `"a]"`, FramingJSON, []string{`"a]"`}, false},
		{"one value cut", "application/json", `{"a": "}`, FramingJSON, nil, true},
		{"values after each other", "application/json", "{\"a\":1}\n{\"a\":2}", FramingNDJSON, []string{`{"a":1}`, `{"a":2}`}, false},
		{"noise after the value", "application/json", "{\"a\":1} ok", FramingJSON, []string{`{"a":1}`}, false},
		{"array", "application/json", "[{\"a\":1}\r\n,\r\n{\"a\":[2]},3 , \"x\"]\n", FramingJSONArray, []string{`{"a":1}`, `{"a":[2]}`, "3", `"x"`}, false},
		{"array cut inside", "application/json", `[{"a":1},{"a"`, FramingJSONArray, []string{`{"a":1}`}, true},
		{"array cut between", "application/json", `[{"a":1},`, FramingJSONArray, []string{`{"a":1}`}, true},
		{"empty array", "application/json", `[]`, FramingJSONArray, nil, false},
		{"value with a byte order mark", "application/json", "\xef\xbb\xbf{}", FramingJSON, []string{"{}"}, false},
		{"problem type", "application/problem+json", "{}", FramingJSON, []string{"{}"}, false},

		{"events as text", "text/plain", "data: a\n\n", FramingSSE, []string{"a"}, false},
		{"events as JSON", "application/json", "event: x\ndata: a\n\n", FramingSSE, []string{"x=a"}, false},
		{"events as lines", "application/x-ndjson", "data: a\n\n", FramingSSE, []string{"a"}, false},
		{"comment as text", "", ": hi\n\ndata: a\n\n", FramingSSE, []string{"a"}, false},
		{"value as events", "text/event-stream", `{"error":"x"}`, FramingJSON, []string{`{"error":"x"}`}, false},
		{"value as text", "text/plain", `{"error":"x"}`, FramingJSON, []string{`{"error":"x"}`}, false},
		{"web page", "text/html", "<html>data: a\n\n</html>", FramingOpaque, nil, false},
		{"web page as JSON", "application/json", "<html>", FramingOpaque, nil, false},
		{"text", "text/plain", "dat", FramingOpaque, nil, false},
		{"sound that begins like JSON", "audio/mpeg", "{}", FramingOpaque, nil, false},
		{"white space only", "text/event-stream", "\n\n", FramingSSE, nil, false},
		{"nothing", "text/event-stream", "", FramingNone, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := frameText(tc.contentType, tc.body)
			if got.Framing != tc.framing || got.Cut != tc.cut {
				t.Errorf("framing %q, cut %v; want %q, %v", got.Framing, got.Cut, tc.framing, tc.cut)
			}
			if d := cmp.Diff(tc.want, payloads(got)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

// TestLargeEventIsOneEvent holds that lines have no bound, and that a large event in small reads costs no more than
// its size: with a rescan per read this would take minutes.
func TestLargeEventIsOneEvent(t *testing.T) {
	body := []byte("data: \"" + strings.Repeat("x", 4<<20) + "\"\r\rdata: 2\n\n")
	got := frame("text/event-stream", slices.Collect(slices.Chunk(body, 100))...)
	if len(got.Frames) != 2 || len(got.Frames[0].Data) != 4<<20+2 {
		t.Fatalf("%d frames", len(got.Frames))
	}
}

// TestStreamWithoutLFIsLinear holds that searching for a LF that is not there is not repeated for each CR.
func TestStreamWithoutLFIsLinear(t *testing.T) {
	body := bytes.Repeat([]byte("data: a\r\r"), 400_000)
	if got := frame("text/event-stream", body); len(got.Frames) != 400_000 {
		t.Fatalf("%d frames", len(got.Frames))
	}
}

// cutAt cuts a body at random places that follow from the seed.
func cutAt(body []byte, seed uint64) (pieces [][]byte) {
	r := rand.New(rand.NewPCG(seed, 7))
	for rest := body; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(1+r.IntN(40)))
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
	}
	return pieces
}

var fuzzTypes = []string{"text/event-stream", "application/x-ndjson", "application/json", "text/plain", ""}

func addSeeds(f *testing.F, add func(body []byte, contentType string)) {
	for _, v := range wiretest.Vectors(f) {
		add(v.Body, v.ContentType)
	}
	for _, s := range []string{"data: a\r\n\r\n:\r\rdata:b\n\n", "[1 , {\"a\":\"\\\"\"}]", "{}\n{}\r\n\n", "\xef\xbb\xbf: x\n\ndata\n\n", "ret", "{\"a\":1}x"} {
		add([]byte(s), "")
	}
}

// FuzzFramesAndGaps holds that frames, and the gaps between them, are the input: they lie in order, cover it byte for
// byte, are the same for any split, name the read that completed them, and each stands for itself: a frame framed
// alone is that one event, a gap framed alone is none.
func FuzzFramesAndGaps(f *testing.F) {
	addSeeds(f, func(body []byte, contentType string) {
		f.Add(body, uint8(max(0, slices.Index(fuzzTypes, contentType))), uint64(1))
	})
	f.Fuzz(func(t *testing.T, body []byte, typ uint8, seed uint64) {
		contentType := fuzzTypes[int(typ)%len(fuzzTypes)]
		pieces := cutAt(body, seed)
		whole, split := frame(contentType, body), frame(contentType, pieces...)
		checkFrameReads(t, split.Frames, pieces)
		for i := range split.Frames {
			split.Frames[i].Read = 0
		}
		if d := cmp.Diff(whole, split); d != "" {
			t.Fatalf("the split changes the frames (-whole +split):\n%s", d)
		}
		var rebuilt []byte
		at := int64(0)
		for _, fr := range append(whole.Frames, Frame{Start: int64(len(body)), End: int64(len(body))}) {
			if fr.Start < at || fr.End < fr.Start || fr.End > int64(len(body)) {
				t.Fatalf("frame [%d, %d) after %d of %d", fr.Start, fr.End, at, len(body))
			}
			gap, raw := body[at:fr.Start], body[fr.Start:fr.End]
			checkAlone(t, whole.Framing, gap, raw, fr)
			rebuilt = append(append(rebuilt, gap...), raw...)
			at = fr.End
		}
		if !bytes.Equal(rebuilt, body) {
			t.Fatal("frames and gaps are not the input")
		}
	})
}

// checkFrameReads holds that a frame's read brought its last byte. A number or a word is the exception: the byte after
// it completes it.
func checkFrameReads(t *testing.T, frames []Frame, pieces [][]byte) {
	t.Helper()
	for _, fr := range frames {
		before := int64(0)
		for _, p := range pieces[:fr.Read] {
			before += int64(len(p))
		}
		after := before + int64(len(pieces[fr.Read]))
		if fr.End > after || fr.End < before {
			t.Fatalf("frame [%d, %d) is said to be completed by bytes [%d, %d)", fr.Start, fr.End, before, after)
		}
	}
}

// checkAlone frames a gap and the frame after it on their own.
func checkAlone(t *testing.T, framing Framing, gap, raw []byte, want Frame) {
	t.Helper()
	var fresh func() splitter
	switch framing {
	case FramingSSE:
		fresh = func() splitter { return &sseSplitter{past: true} }
	case FramingNDJSON, FramingJSON, FramingJSONArray:
		if !bytes.Contains(raw, want.Data) {
			t.Fatalf("payload %q does not stand in %q", want.Data, raw)
		}
		return
	default:
		return
	}
	for f := fresh(); ; {
		s, ok := f.next(gap)
		if !ok {
			break
		}
		if s.event {
			t.Fatalf("gap %q holds an event", gap)
		}
		gap = gap[s.end:]
	}
	if len(raw) == 0 {
		return
	}
	s, ok := fresh().next(raw)
	if !ok || !s.event || s.start != 0 || s.end != len(raw) || !bytes.Equal(s.data, want.Data) || !bytes.Equal(s.name, want.Name) {
		t.Fatalf("frame %q alone gives %+v, want payload %q", raw, s, want.Data)
	}
}

// FuzzParse holds that parsing never panics, and that a split changes nothing but the reads of the events.
func FuzzParse(f *testing.F) {
	paths := []string{
		"/v1/chat/completions", "/v1/completions", "/api/chat", "/v1/other",
		"/v1/responses", "/v1/messages", "/v1beta/models/m:streamGenerateContent", "/v1/embeddings",
		"/completion", "/generate", "/api/v1/chat",
	}
	codings := []string{"", "", "", "", "", "gzip", "deflate", "br", "zstd"}
	addSeeds(f, func(body []byte, contentType string) {
		for i := range paths {
			f.Add(body, uint8(i), uint8(0), uint64(3))
		}
	})
	for _, c := range codings[5:] {
		f.Add(encode(f, c, []byte("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")), uint8(0), uint8(slices.Index(codings, c)), uint64(5))
	}
	f.Fuzz(func(t *testing.T, body []byte, path, coding uint8, seed uint64) {
		info := Info{
			Path:            paths[int(path)%len(paths)],
			ContentType:     fuzzTypes[int(seed%5)],
			ContentEncoding: codings[int(coding)%len(codings)],
			Status:          200 + int(seed%2)*200,
		}
		run := func(pieces ...[]byte) *Transcript {
			p := NewParser(info)
			for i, b := range pieces {
				p.Feed(b, i)
			}
			return p.Finish(seed%3 != 0)
		}
		whole, split := run(body), run(cutAt(body, seed)...)
		if d := cmp.Diff(withoutReads(whole), withoutReads(split)); d != "" {
			t.Fatalf("the split changes the transcript (-whole +split):\n%s", d)
		}
	})
}
