package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// filtered sends the reads of a body through a filter and ends it.
func filtered(reads [][]byte, whole bool) (out []byte, u *UsageFilter) {
	u = NewUsageFilter()
	for _, r := range reads {
		out = append(out, u.Feed(r)...)
	}
	return append(out, u.End(whole)...), u
}

// filter is filtered for a body that comes as a whole, byte by byte, in two at many places, and in pieces: all must give the
// same.
func filter(t *testing.T, body string) (string, []exchange.Intervention) {
	t.Helper()
	whole, u := filtered([][]byte{[]byte(body)}, true)
	for i := 0; i <= len(body); i += 1 + len(body)/400 { // a long body is cut at some places of each event
		checkSplit(t, whole, u, [][]byte{[]byte(body[:i]), []byte(body[i:])})
	}
	for _, pieces := range splits([]byte(body)) {
		checkSplit(t, whole, u, pieces)
	}
	checkRemovals(t, body, string(whole), u)
	return string(whole), u.Notes()
}

// timingsBack is what a filter may add to a finish event.
var timingsBack = regexp.MustCompile(`,"timings":\{[^{}]*\}\}(\r?\n\r?\n)$`)

// checkSplit holds that a split changes nothing, but for timings whose finish event had gone.
func checkSplit(t *testing.T, whole []byte, w *UsageFilter, pieces [][]byte) {
	t.Helper()
	got, u := filtered(pieces, true)
	if !w.judge.moved {
		if !bytes.Equal(got, whole) {
			t.Fatalf("split in %d: got\n%s\nwant\n%s", len(pieces), got, whole)
		}
	} else if !u.judge.moved && !bytes.Contains(got, []byte(`"timings"`)) {
		got = withoutTimings(got)
		if !bytes.Equal(got, withoutTimings(whole)) {
			t.Fatalf("split in %d: got\n%s\nwant\n%s", len(pieces), got, whole)
		}
	}
	if d := cmp.Diff(w.judge.removals, u.judge.removals); d != "" {
		t.Fatalf("split in %d: %s", len(pieces), d)
	}
}

func withoutTimings(b []byte) []byte {
	var out []byte
	for _, block := range bytes.SplitAfter(b, []byte("\n\n")) {
		out = append(out, timingsBack.ReplaceAll(block, []byte("}$1"))...)
	}
	return out
}

// checkRemovals holds that the notes alone tell what the client got: the body without the bytes they name.
func checkRemovals(t *testing.T, body, got string, u *UsageFilter) {
	t.Helper()
	if u.judge.more > 0 || u.judge.moved {
		return
	}
	want, at := "", int64(0)
	for _, v := range u.judge.removals {
		want += body[at:v.Offset]
		at = v.Offset + v.Length
	}
	if want += body[at:]; got != want {
		t.Fatalf("got\n%s\nthe notes give\n%s", got, want)
	}
}

// event patterns of the reference: a text search that knows nothing of the filter.
var (
	noChoices = regexp.MustCompile(`"choices": ?\[\]`)
	withUsage = regexp.MustCompile(`"usage": ?\{`)
)

// without is the body without the events that match all of the patterns.
func without(body string, patterns ...*regexp.Regexp) (rest string, removed int) {
	sep := "\n\n"
	if strings.Contains(body, "\r\n\r\n") {
		sep = "\r\n\r\n"
	}
next:
	for _, block := range strings.SplitAfter(body, sep) {
		for _, p := range patterns {
			if !p.MatchString(block) {
				rest += block
				continue next
			}
		}
		removed++
	}
	return rest, removed
}

// TestUsageFilterOnVectors holds that of every written stream of chat and completions exactly the events of usage alone
// are removed, however the stream is cut.
func TestUsageFilterOnVectors(t *testing.T) {
	streams, events := 0, 0
	for _, v := range wiretest.Vectors(t) {
		if d := DialectOf(v.Path()); d != DialectChat && d != DialectCompletions || !strings.Contains(v.ContentType, "event-stream") {
			continue
		}
		streams++
		t.Run(v.Name(), func(t *testing.T) {
			want, n := without(string(v.Body), noChoices, withUsage)
			if v.File == "litellm-chat-usage-nonempty-choices.txt" {
				want, n = without(string(v.Body), regexp.MustCompile(`"delta":\{\}\}\],"usage"`))
			}
			got, notes := filter(t, string(v.Body))
			if strings.HasPrefix(v.File, "llamacpp") || strings.HasPrefix(v.File, "strata") {
				got, want = string(withoutTimings([]byte(got))), string(withoutTimings([]byte(want)))
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			removed := 0
			for _, note := range notes {
				if note.Kind == "response_removed" {
					removed++
				}
			}
			if removed != n {
				t.Errorf("%d removals are noted, want %d", removed, n)
			}
			events += n
		})
	}
	if streams < 30 || events < 20 {
		t.Fatalf("only %d streams with %d events of usage", streams, events)
	}
	t.Logf("%d streams, %d events of usage", streams, events)
}

// TestUsageFilterOnCaptures does the same with real answers, in the reads they came in. Every finish event gets its
// timings back: the server writes both events at once.
func TestUsageFilterOnCaptures(t *testing.T) {
	removed, moved := 0, 0
	for _, c := range wiretest.Captures(t) {
		x := c.Exchange()
		if d := DialectOf(x.Request.Target); d != DialectChat && d != DialectCompletions || c.Facts.DataLines <= 0 {
			continue
		}
		body := x.Response.Body.Bytes()
		var reads [][]byte
		rest := body
		for _, r := range x.Timeline.Reads {
			reads, rest = append(reads, rest[:r.Size]), rest[r.Size:]
		}
		got, u := filtered(append(reads, rest), c.Whole)
		want, n := without(string(body), noChoices, withUsage)
		if string(withoutTimings(got)) != string(withoutTimings([]byte(want))) || len(u.judge.removals) != n {
			t.Errorf("%s: %d removals, want %d; got\n%s", c.ID(), len(u.judge.removals), n, got)
		}
		removed += n
		if u.judge.moved {
			moved++
		}
		if len(u.judge.lost) > 0 {
			t.Errorf("%s: lost %v", c.ID(), u.judge.lost)
		}
	}
	if removed < 20 || moved < 15 {
		t.Errorf("%d events were removed, %d streams got their timings back", removed, moved)
	}
	t.Logf("%d events removed, %d streams got their timings back", removed, moved)
}

// varying are the values that differ between two answers of one server.
var varying = regexp.MustCompile(`("(?:id|created|model)":)[^,}]*|(":)[-0-9.e]+`)

// lastEvents are the last n events of a stream without what differs between two answers.
func lastEvents(b []byte, n int) string {
	blocks := strings.SplitAfter(strings.TrimRight(string(b), "\n"), "\n\n")
	tail := strings.Join(blocks[max(len(blocks)-n, 0):], "")
	return varying.ReplaceAllString(strings.ReplaceAll(tail, `"length"`, `"stop"`), "${1}${2}0")
}

// TestUsageFilterGivesWhatWouldHaveCome holds a filtered answer of real servers against one of the same server that was
// not asked for usage.
func TestUsageFilterGivesWhatWouldHaveCome(t *testing.T) {
	for _, pair := range [][2]string{
		{"llama-server/chat-stream-usage", "llama-server/connection-close-stream"},
		{"llama-server/conc4-0", "llama-server/chat-stream-tools-cut"},
		{"ollama/v1-chat-stream-usage", "ollama/v1-chat-stream"},
	} {
		asked, _ := filtered([][]byte{wiretest.LoadCapture(t, pair[0]).Exchange().Response.Body.Bytes()}, true)
		unasked := wiretest.LoadCapture(t, pair[1]).Exchange().Response.Body.Bytes()
		if d := cmp.Diff(lastEvents(unasked, 2), lastEvents(asked, 2)); d != "" {
			t.Errorf("%s: (-%s +filtered)\n%s", pair[0], pair[1], d)
		}
	}
}

// FuzzUsageFilter: however a body is cut, the client gets the body without the bytes the notes name, and only whole
// events that say nothing but usage are named.
func FuzzUsageFilter(f *testing.F) {
	for _, v := range wiretest.Vectors(f) {
		if DialectOf(v.Path()) == DialectChat && len(v.Body) < 4<<10 {
			f.Add(v.Body, uint64(1))
		}
	}
	for i, c := range framings {
		f.Add([]byte(c.body), uint64(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 7))
		var pieces [][]byte
		for rest := body; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 40))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		broken, _ := filtered(pieces, false)
		got, u := filtered(pieces, true)
		checkRemovals(t, string(body), string(got), u)
		if len(broken) < len(got) {
			t.Fatalf("a broken body gave %d bytes, a whole one %d", len(broken), len(got))
		}
		for _, v := range u.judge.removals {
			if part := body[v.Offset : v.Offset+v.Length]; !bytes.Contains(part, []byte(`"usage"`)) {
				t.Fatalf("removed %q", part)
			}
		}
		if !u.judge.moved {
			whole, w := filtered([][]byte{body}, true)
			if !w.judge.moved && !bytes.Equal(whole, got) {
				t.Fatalf("whole %q, in pieces %q", whole, got)
			}
		}
		again, _ := filtered([][]byte{got}, true)
		if len(u.judge.removals) == 0 && !bytes.Equal(again, got) {
			t.Fatalf("a second filter removed from %q", got)
		}
	})
}

// TestUsageFilterHoldsNoMoreThanAnEvent holds what each read gives to the client at once.
func TestUsageFilterHoldsNoMoreThanAnEvent(t *testing.T) {
	usage := `data: {"choices":[],"usage":{"completion_tokens":1}}` + "\n\n"
	long := "data: " + strings.Repeat("x", maxHeld)
	steps := []struct{ in, out string }{
		{"data: a\n\n", "data: a\n\n"}, {"data: b\n\ndata", "data: b\n\n"}, {": c\n", ""}, {"\n", "data: c\n\n"},
		{": pi", ": pi"}, {"ng\n", "ng\n"}, {"\n", "\n"}, {"d", ""}, {"one\n", "done\n"}, {"\n", "\n"},
		{usage[:20], ""}, {usage[20:], ""}, {usage + "data: d\n\n", "data: d\n\n"},
		{`{"error":`, `{"error":`}, {"1}\n\n", "1}\n\n"}, {"retry: 1\n", "retry: 1\n"}, {"data: e", "data: e"}, {"\n\n", "\n\n"},
		{long[:maxHeld], ""}, {long[maxHeld:], long}, {"yy", "yy"}, {"\n", "\n"}, {"data: z", "data: z"}, {"\n\n", "\n\n"}, {"data: f\r", ""}, {"\r", "data: f\r\r"}, {"\ndata: g\r\n\r\n", "\ndata: g\r\n\r\n"},
	}
	u := NewUsageFilter()
	for i, s := range steps {
		if got := string(u.Feed([]byte(s.in))); got != s.out {
			t.Errorf("read %d: %.60q gives %.60q, want %.60q", i, s.in, got, s.out)
		}
	}
	if got := string(u.End(true)); got != "" {
		t.Errorf("the end gives %q", got)
	}
	if notes := fmt.Sprint(len(u.Notes())); notes != "2" {
		t.Errorf("%s notes", notes)
	}
}

// BenchmarkUsageFilter is the cost of one event that passes.
func BenchmarkUsageFilter(b *testing.B) {
	for name, event := range map[string]string{
		"token":      `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n",
		"usage null": `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			u, data := NewUsageFilter(), []byte(event)
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if len(u.Feed(data)) != len(data) {
					b.Fatal("held")
				}
			}
		})
	}
}
