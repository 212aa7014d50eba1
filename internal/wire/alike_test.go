package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// bothWays parses a body twice: as it is always done, and with every event taken apart. It reports how many events were
// read by their likeness to another.
func bothWays(t *testing.T, info Info, pieces ...[]byte) (alike int) {
	t.Helper()
	parse := func(p *Parser) *Transcript {
		for i, b := range pieces {
			p.Feed(b, i)
			if len(p.last.gaps) > 0 {
				alike++
			}
		}
		return p.Finish(true)
	}
	plain := NewParser(info)
	plain.last.unlike = maxUnlike
	want := parse(plain)
	if alike > 0 {
		t.Fatal("the other way looked at likeness too")
	}
	if d := cmp.Diff(want, parse(NewParser(info))); d != "" {
		t.Errorf("%s: events that are alike read otherwise (-each +alike):\n%s", info.Path, d)
	}
	return alike
}

// TestAlikeEventsReadAsTheirPatternDid holds that looking at what is new in an event gives what taking it apart gives, for
// every written and every captured answer.
func TestAlikeEventsReadAsTheirPatternDid(t *testing.T) {
	vectors, captures := wiretest.Vectors(t), wiretest.Captures(t)
	if len(vectors) < 80 || len(captures) < 100 {
		t.Fatalf("%d vectors, %d captures", len(vectors), len(captures))
	}
	alike := 0
	for _, v := range vectors {
		alike += bothWays(t, Info{Path: v.Path(), Status: v.Status, ContentType: v.ContentType}, bytes.SplitAfter(v.Body, []byte("\n"))...)
	}
	for _, c := range captures {
		info := InfoOf(c.Exchange())
		alike += bothWays(t, info, bytes.SplitAfter(c.Body, []byte("\n"))...)
	}
	if alike < 1000 {
		t.Errorf("only %d times was there a pattern", alike)
	}
}

// alikeStreams are events of which each dialect has many, TEXT and NUMBER stand for what differs.
var alikeStreams = []struct {
	path, event string
}{
	{"/v1/chat/completions", `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}],"created":1}`},
	{"/v1/chat/completions", `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"TEXT"}}]}`},
	{"/v1/completions", `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"TEXT","logprobs":null}]}`},
	{"/v1/messages", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"TEXT\"}}"},
	{"/v1/responses", `data: {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"TEXT","sequence_number":NUMBER}`},
	{"/v1/responses", `data: {"sequence_number":NUMBER,"type":"response.reasoning_text.delta","item_id":"i","delta":"TEXT"}`},
	{"/api/chat", `{"model":"m","created_at":"2026-01-02T03:04:05.00NUMBERZ","message":{"role":"assistant","content":"TEXT"},"done":false}`},
	{"/api/v1/chat", "event: message.delta\ndata: {\"type\":\"message.delta\",\"content\":\"TEXT\"}"},
	{"/api/chat", `data: {"token":"TEXT"}`},
	{"/api/generate", `{"model":"m","created_at":"2026-01-02T03:04:05.00NUMBERZ","response":"TEXT","done":false}`},
}

// writeAlike is such an event with a text and a number.
func writeAlike(event, text string, number int) string {
	return strings.NewReplacer("TEXT", text, "NUMBER", strconv.Itoa(number)).Replace(event)
}

// framingOf is how such an event ends, and the content type of a stream of them.
func framingOf(event string) (end, contentType string) {
	if strings.HasPrefix(event, "{") {
		return "\n", "application/x-ndjson"
	}
	return "\n\n", "text/event-stream"
}

// TestDialectsHaveAlikeEvents holds that the second event of a kind is the last one that is taken apart, with escapes in
// the text or without.
func TestDialectsHaveAlikeEvents(t *testing.T) {
	texts := []string{"first", "se cond", "dritté", `a\nb`, `\"`, `\\`, `{\"x\":[`, "x"}
	for _, s := range alikeStreams {
		end, contentType := framingOf(s.event)
		info := Info{Path: s.path, ContentType: contentType}
		p, pieces := NewParser(info), [][]byte(nil)
		for i, text := range texts {
			e := writeAlike(s.event, text, i) + end
			pieces = append(pieces, []byte(e))
			p.Feed([]byte(e), i)
			if i == 0 && len(p.last.gaps) == 0 {
				t.Errorf("%s: nothing was kept of %s", s.path, e)
			}
			if !bytes.Contains(p.last.data, []byte("first")) {
				t.Errorf("%s: event %d was taken apart: %s", s.path, i, e)
			}
		}
		if n := bothWays(t, info, pieces...); n != len(texts) {
			t.Errorf("%s: a pattern at %d of %d events", s.path, n, len(texts))
		}
	}
}

// TestNoPatternOfWhatDoesMore holds that an event is taken apart when it, or the one before it, does more than add a text.
func TestNoPatternOfWhatDoesMore(t *testing.T) {
	for _, event := range []string{
		`{"choices":[{"delta":{"content":"same","reasoning":"same"}}]}`,
		`{"choices":[{"delta":{"content":"content"}}]}`, // the key is the same string
		`{"choices":[{"delta":{"content":"e\u0073cape"}}],"model":"escape"}`,
		`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{}]}}]}`,
		`{"choices":[{"delta":{"content":"a"},"token_ids":[]}]}`,
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		`{"choices":[{"delta":{"content":"a"}}],"timings":{"predicted_n":1}}`,
		`{"choices":[{"delta":{"content":"a"}},{"index":1,"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"content":"a","audio":{"data":"b"}}}]}`,
		`{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"type":"function"}]}}]}`,
		`{"choices":[{"delta":{"content":""}}]}`,
	} {
		p := NewParser(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"})
		p.Feed([]byte("data: "+event+"\n\n"), 0)
		if len(p.last.gaps) > 0 {
			t.Errorf("kept %s", event)
		}
	}
}

// TestUnlikeEventsEndTheSearch holds that a stream whose events differ elsewhere does not pay for patterns to its end.
func TestUnlikeEventsEndTheSearch(t *testing.T) {
	p := NewParser(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"})
	for i := range 20 {
		p.Feed(fmt.Appendf(nil, "data: {\"created\":%d,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", i), i)
	}
	if p.last.unlike != maxUnlike || len(p.last.gaps) > 0 {
		t.Errorf("%d in a row, %d gaps", p.last.unlike, len(p.last.gaps))
	}
}

// FuzzAlikeEvents holds that both ways of reading agree on any events, however they break off or differ.
func FuzzAlikeEvents(f *testing.F) {
	for i := range alikeStreams {
		f.Add(uint8(i), "a|b c|d\\n|\"|\\u00e9|\\|", uint64(i))
		f.Add(uint8(i), "content|index|delta|:|,|m|0|first|stop", uint64(i+1))
	}
	f.Fuzz(func(t *testing.T, which uint8, joined string, seed uint64) {
		s := alikeStreams[int(which)%len(alikeStreams)]
		r := rand.New(rand.NewPCG(seed, 11))
		end, contentType := framingOf(s.event)
		var pieces [][]byte
		for i, text := range strings.Split(joined, "|") {
			e := []byte(writeAlike(s.event, text, i) + end)
			if r.IntN(8) == 0 { // damage
				e = slices.Insert(e, r.IntN(len(e)), `"\{}:,x0 `[r.IntN(9)])
			}
			pieces = append(pieces, e)
		}
		pieces = append(pieces, []byte("data: [DONE]\n\n"), pieces[0])
		bothWays(t, Info{Path: s.path, ContentType: contentType}, pieces...)
	})
}
