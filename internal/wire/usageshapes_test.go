package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	tokenEvent  = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`
	finishEvent = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageData   = `{"choices":[],"usage":{"completion_tokens":1}}`
)

// framings are streams with one event of usage, and what is to be left of each.
var framings = []struct{ name, body, want string }{
	{"LF", tokenEvent + "\n\ndata: " + usageData + "\n\ndata: [DONE]\n\n", tokenEvent + "\n\ndata: [DONE]\n\n"},
	{"CRLF", tokenEvent + "\r\n\r\ndata: " + usageData + "\r\n\r\ndata: [DONE]\r\n\r\n", tokenEvent + "\r\n\r\ndata: [DONE]\r\n\r\n"},
	{"CR", tokenEvent + "\r\rdata: " + usageData + "\r\rdata: [DONE]\r\r", tokenEvent + "\r\rdata: [DONE]\r\r"},
	{"mixed", tokenEvent + "\r\n\ndata: " + usageData + "\n\r\ndata: [DONE]\r\n\r", tokenEvent + "\r\n\ndata: [DONE]\r\n\r"},
	{"no space", "data:" + usageData + "\n\ndata:x\n\n", "data:x\n\n"},
	{"byte order mark", "\ufeffdata: " + usageData + "\n\n" + tokenEvent + "\n\n", "\ufeff" + tokenEvent + "\n\n"},
	{"pings around", ": p\n\ndata: " + usageData + "\n\n: q\n\n", ": p\n\n: q\n\n"},
	{"comment before", ": p\ndata: " + usageData + "\n\n" + tokenEvent + "\n\n", ": p\n\n" + tokenEvent + "\n\n"},
	{"comment before, CRLF", ": p\r\ndata: " + usageData + "\r\n\r\n", ": p\r\n\r\n"},
	{"comment inside", "data: " + usageData + "\n: p\n\n", "data: " + usageData + "\n: p\n\n"},
	{"event name and id", "event: message\nid: 7\ndata: " + usageData + "\n\ndata: x\n\n", "data: x\n\n"},
	{"retry", "retry: 7\ndata: " + usageData + "\n\ndata: x\n\n", "retry: 7\ndata: " + usageData + "\n\ndata: x\n\n"},
	{"several data lines", "data: {\"choices\":[],\ndata: \"usage\":{}}\n\ndata: x\n\n", "data: x\n\n"},
	{"extra blank lines", "\n\n\ndata: " + usageData + "\n\n\n\ndata: x\n\n", "\n\n\n\n\ndata: x\n\n"},
	{"unterminated at the end", tokenEvent + "\n\ndata: " + usageData, tokenEvent + "\n\n"},
	{"one line end at the end", tokenEvent + "\n\ndata: " + usageData + "\n", tokenEvent + "\n\n"},
	{"unterminated behind a comment", ": p\ndata: " + usageData, ": p\n"},
	{"unterminated, something else", tokenEvent, tokenEvent},
	{"spaces in JSON", `data: {"choices" : [ ] , "usage" : { } }` + "\n\n", ""},
	{"NDJSON", usageData + "\n" + usageData + "\n", usageData + "\n" + usageData + "\n"},
	{"plain JSON", usageData, usageData},
	{"nothing", "", ""},
}

func TestUsageFilterFramings(t *testing.T) {
	for _, c := range framings {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := filter(t, c.body); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUsageFilterPlaces holds where usage may stand: each stream is a list of payloads, and removed are the places of those
// that the client does not get.
func TestUsageFilterPlaces(t *testing.T) {
	const (
		finish0 = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		finish1 = `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`
		usage   = `"usage":{"prompt_tokens":1}`
	)
	cases := map[string]struct {
		payloads []string
		removed  []int
		kept     string // reason of what is kept, "" for none
	}{
		"after finish":                 {[]string{finish0, `{"choices":[],` + usage + `}`, "[DONE]"}, []int{1}, ""},
		"before finish":                {[]string{`{"choices":[],` + usage + `}`, finish0}, []int{0}, ""},
		"behind DONE":                  {[]string{finish0, "[DONE]", `{"choices":[],` + usage + `}`}, []int{2}, ""},
		"never":                        {[]string{finish0, "[DONE]"}, nil, ""},
		"in the finish event":          {[]string{`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage + `}`}, nil, "finish_reason_inside"},
		"with the last text":           {[]string{`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],` + usage + `}`}, nil, "content_inside"},
		"with the role":                {[]string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],` + usage + `}`}, nil, "content_inside"},
		"with log-probabilities":       {[]string{finish0, `{"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"token":"a"}]}}],` + usage + `}`}, nil, "content_inside"},
		"with token ids":               {[]string{finish0, `{"choices":[{"index":0,"delta":{},"token_ids":[1]}],` + usage + `}`}, nil, "content_inside"},
		"with a choice of another age": {[]string{finish0, `{"choices":["x"],` + usage + `}`}, nil, "content_inside"},
		"empty choice":                 {[]string{finish0, `{"choices":[{"index":0,"delta":{"content":"","role":null,"tool_calls":[]},"finish_reason":""}],` + usage + `}`}, []int{1}, ""},
		"empty choice, completions":    {[]string{`{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`, `{"choices":[{"index":0,"text":"","finish_reason":null,"logprobs":null}],` + usage + `}`}, []int{1}, ""},
		"empty choice too early":       {[]string{`{"choices":[{"index":0,"delta":{"content":""}}],` + usage + `}`, finish0}, nil, "finish_not_seen"},
		"empty choice of the other":    {[]string{finish0, `{"choices":[{"index":1,"delta":{}}],` + usage + `}`}, nil, "finish_not_seen"},
		"one for each choice":          {[]string{finish0, `{"choices":[],` + usage + `}`, finish1, `{"choices":[],` + usage + `}`}, []int{1, 3}, ""},
		"one for both choices":         {[]string{finish0, finish1, `{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{}}],` + usage + `}`}, []int{2}, ""},
		"two in a row":                 {[]string{finish0, `{"choices":[],` + usage + `}`, `{"choices":[],` + usage + `}`}, []int{1, 2}, ""},
		"null":                         {[]string{`{"choices":[],"usage":null}`, `{"choices":[],"prompt_filter_results":[1]}`}, nil, "usage_null"},
		"beside an error":              {[]string{`{"choices":[],"error":{"message":"m"},` + usage + `}`}, nil, "error_inside"},
		"no choices":                   {[]string{`{"type":"message",` + usage + `}`, `{"choices":null,` + usage + `}`}, nil, "no_choices"},
		"elsewhere":                    {[]string{`{"choices":[],"x_groq":{` + usage + `}}`, `{"choices":[],"usage":7}`, `{"":[{"finish_reason":"x"}]}`, `{"choices":{},"finish_reason":"x"}`, `[{"choices":[],` + usage + `}]`, `{"choices":[],` + usage}, nil, ""},
		"spoken of":                    {[]string{`{"choices":[{"index":0,"delta":{"content":"\"usage\":{} \"choices\":[]"}}]}`}, nil, ""},
	}
	for name, c := range cases {
		body, want := "", ""
		for i, p := range c.payloads {
			body += "data: " + p + "\n\n"
			if len(c.removed) == 0 || c.removed[0] != i {
				want += "data: " + p + "\n\n"
			} else {
				c.removed = c.removed[1:]
			}
		}
		got, notes := filter(t, body)
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		kept := ""
		for _, n := range notes {
			if n.Kind == "event_kept" {
				kept += n.Reason
			}
		}
		if kept != c.kept {
			t.Errorf("%s: kept for %q, want %q", name, kept, c.kept)
		}
	}
}

func TestUsageFilterNotes(t *testing.T) {
	timed := `data: {"choices":[],"usage":{},"timings":{"n":1},"telemetry":{"a":1},"metrics":null}` + "\n\n"
	note := func(kind, name, to, reason string) exchange.Intervention {
		return exchange.Intervention{Kind: kind, Where: exchange.SideClient, Name: name, To: to, Reason: reason}
	}
	removed := func(offset, length int) exchange.Intervention {
		v := note("response_removed", "usage", "", "usage_requested")
		v.Offset, v.Length = int64(offset), int64(length)
		return v
	}
	finish := finishEvent + "\n\n"

	u := NewUsageFilter()
	got := string(u.Feed([]byte(finish + timed)))
	if want := finishEvent[:len(finishEvent)-1] + `,"timings":{"n":1}}` + "\n\n"; got != want {
		t.Errorf("in one read: got %q, want %q", got, want)
	}
	if d := cmp.Diff([]exchange.Intervention{removed(len(finish), len(timed)),
		note("field_moved", "timings", "the finish event", "sent_with_usage"), note("field_removed", "telemetry", "", "sent_with_usage")}, u.Notes()); d != "" {
		t.Error(d)
	}

	u = NewUsageFilter()
	if got := string(u.Feed([]byte(finish))) + string(u.Feed([]byte(timed))); got != finish {
		t.Errorf("in two reads: got %q", got)
	}
	if d := cmp.Diff([]exchange.Intervention{removed(len(finish), len(timed)),
		note("field_removed", "telemetry", "", "sent_with_usage"), note("field_removed", "timings", "", "sent_with_usage")}, u.Notes()); d != "" {
		t.Error(d)
	}

	const more = 5
	u = NewUsageFilter()
	if got := string(u.Feed([]byte(strings.Repeat("data: "+usageData+"\r\n\r\n", maxRemovals+more) + "x"))); got != "x" {
		t.Errorf("got %q", got)
	}
	notes := u.Notes()
	if len(notes) != maxRemovals+1 || notes[maxRemovals] != note("response_removed", "usage", fmt.Sprintf("%d more events", more), "usage_requested") {
		t.Errorf("%d notes, the last is %+v", len(notes), notes[len(notes)-1])
	}
}
