package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func finishChat(body string, whole bool) *Transcript {
	p := NewParser(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"})
	p.Feed([]byte(body), 0)
	return p.Finish(whole)
}

// TestUndispatchedLastBlock holds the rule for a clean end without the last blank line.
func TestUndispatchedLastBlock(t *testing.T) {
	first := stream(delta(`{"content":"a"}`))
	last := `data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop","token_ids":[1]}],"usage":{"prompt_tokens":3,"completion_tokens":2},"timings":{"cache_n":1}}`
	for _, end := range []string{"", "\n", "\r"} {
		tr := finishChat(first+last+end, true)
		if !tr.UnterminatedLast || tr.TruncatedTail || !tr.DialectEnd || tr.Usage == nil || *tr.Usage.Completion != 2 || tr.Timings == nil {
			t.Errorf("clean end %q: %+v", end, tr)
		}
		if len(tr.Events) != 1 || tr.Choice0().Text != "a" || tr.TokenIDs != 0 {
			t.Errorf("clean end %q: an undispatched block became an event or content: %+v", end, tr)
		}
		if tr := finishChat(first+last+end, false); tr.UnterminatedLast || !tr.TruncatedTail || tr.Usage != nil || tr.DialectEnd {
			t.Errorf("broken end %q: %+v", end, tr)
		}
	}
}

func TestUndispatchedLastBlockOfOtherKinds(t *testing.T) {
	first := stream(delta(`{"content":"a"}`))
	if tr := finishChat(first+`data: {"choices":[`, true); tr.UnterminatedLast || !tr.TruncatedTail || tr.ParseErrors != 0 {
		t.Errorf("cut inside the value: %+v", tr)
	}
	if tr := finishChat(first+"data: {\"error\":\"m\"}\n", true); tr.Error == nil || tr.FinishNorm != normError {
		t.Errorf("error in the last block: %+v", tr)
	}
	if tr := finishChat(stream(finishChunk)+"data: [DONE]\n", true); tr.Terminator != doneMark || tr.TruncatedTail || len(tr.Events) != 1 {
		t.Errorf("[DONE] in the last block: %+v", tr)
	}
}

func TestGarbageBetweenEvents(t *testing.T) {
	tr := say(stream(delta(`{"content":"a"}`), "oops", "null", "12", `"x"`, "[1]", `{"choices":7}`, `{"choices":[7,{"index":0,"delta":3}]}`, delta(`{"content":["x",{"type":"text"}]}`), finishChunk, "[DONE]"))
	if tr.ParseErrors != 1 || !tr.DialectEnd || tr.Error != nil || tr.Choice0().Text != "a" || len(tr.Events) != 11 {
		t.Errorf("%d parse errors, end %v, error %v, text %q, %d events", tr.ParseErrors, tr.DialectEnd, tr.Error, tr.Choice0().Text, len(tr.Events))
	}
}

func TestReasoningCountsOnce(t *testing.T) {
	tr := say(stream(delta(`{"reasoning_content":"a","reasoning":"a"}`), delta(`{"reasoning":"b","content":""}`), delta(`{"thinking":"c","reasoning":null}`)))
	if got := tr.Choice0().Reasoning; got != "abc" {
		t.Errorf("reasoning %q", got)
	}
	whole := sayAt(Info{Path: "/v1/completions", ContentType: "application/json"}, `{"choices":[{"text":"t","reasoning":"r","reasoning_content":"r","finish_reason":"stop"}]}`)
	if c := whole.Choice0(); c.Reasoning != "r" || c.Text != "t" {
		t.Errorf("completions: %+v", c)
	}
}

func TestDeltaAndMessageSayTheSame(t *testing.T) {
	tr := say(stream(`{"choices":[{"delta":{"content":"a"},"message":{"content":"a"}}]}`, `{"choices":[{"delta":null,"message":{"content":"b"}}]}`))
	if got := tr.Choice0().Text; got != "ab" {
		t.Errorf("text %q", got)
	}
}

func TestUsagePlaces(t *testing.T) {
	usage := func(p, c int) string { return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d}`, p, c) }
	chunk := func(text, usage string) string {
		return `{"choices":[{"index":0,"delta":{"content":"` + text + `"}}],"usage":` + usage + `}`
	}
	running := func(tr *Transcript) (out []int64) {
		for _, e := range tr.Events {
			out = append(out, e.Running)
		}
		return out
	}
	cut := say(stream(chunk("", usage(5, 0)), chunk("a", usage(5, 1)), chunk("b", usage(5, 3))))
	if u := cut.Usage; !u.Partial || *u.Completion != 3 || u.Events != 3 {
		t.Errorf("a running count that never ended: %+v", u)
	}
	if d := cmp.Diff([]int64{0, 1, 3}, running(cut)); d != "" {
		t.Errorf("running counts (-want +got):\n%s", d)
	}
	zeros := say(stream(chunk("a", usage(0, 0)), chunk("b", "null"), finishChunk, `{"choices":[],"usage":`+usage(5, 2)+`}`))
	if d := cmp.Diff([]int64{-1, -1, -1, 2}, running(zeros)); d != "" {
		t.Errorf("zeros beside content are no counts (-want +got):\n%s", d)
	}
	if u := zeros.Usage; u.Partial || *u.Prompt != 5 || u.Events != 2 || u.Cached != nil {
		t.Errorf("last usage: %+v", u)
	}
	odd := say(stream(`{"usage":{"prompt_tokens":12.0,"completion_tokens":-1,"prompt_cache_hit_tokens":4,"cache_creation_input_tokens":2,"reasoning_tokens":1.5}}`, `{"usage":{}}`, `{"usage":7}`))
	if u := odd.Usage; *u.Prompt != 12 || u.Completion != nil || *u.Cached != 4 || *u.CacheCreation != 2 || u.Reasoning != nil || u.Events != 1 {
		t.Errorf("odd usage: %+v", u)
	}
}

func TestTokensPerEvent(t *testing.T) {
	tr := say(stream(
		`{"choices":[{"delta":{"content":"ab"},"token_ids":[1,2],"logprobs":{"content":[{},{}]}}]}`,
		`{"choices":[{"delta":{"content":"c"},"logprobs":{"content":[{}],"refusal":null}}]}`,
		`{"choices":[{"delta":{"content":""},"token_ids":[]}]}`,
		`{"choices":[{"delta":{"content":"d"},"token_ids":null,"logprobs":null}]}`,
		`{"choices":[{"delta":{}}],"tokens":[7,8,9],"__verbose":{"tokens":[]}}`,
	))
	var got []int
	for _, e := range tr.Events {
		got = append(got, e.Tokens)
	}
	if d := cmp.Diff([]int{2, 1, 0, -1, 3}, got); d != "" {
		t.Errorf("tokens (-want +got):\n%s", d)
	}
	if tr.TokenIDs != 5 || tr.LogprobEntries != 3 {
		t.Errorf("%d token ids, %d log-probability entries", tr.TokenIDs, tr.LogprobEntries)
	}
}

func TestExtrasAreVerbatimAndBounded(t *testing.T) {
	tr := say(stream(
		`{"choices":[], "x" : { "a": 1.50 , "b":"\u00e9" } ,"n":null,"timings":{"predicted_n":1},"service_tier":"default"}`,
		`{"choices":[],"timings":{"predicted_n":2,"s":"} \" ]"}}`,
	))
	want := map[string]json.RawMessage{
		"x": json.RawMessage(`{ "a": 1.50 , "b":"\u00e9" }`), "timings": json.RawMessage(`{"predicted_n":2,"s":"} \" ]"}`),
		"service_tier": json.RawMessage(`"default"`),
	}
	if d := cmp.Diff(want, tr.Extras); d != "" {
		t.Errorf("extras (-want +got):\n%s", d)
	}
	if *tr.Timings.DecodeN != 2 {
		t.Errorf("timings %+v", tr.Timings)
	}
	var many strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&many, `"k%d":1,`, i)
	}
	tr = say(stream(`{` + many.String() + `"big":"` + strings.Repeat("x", maxExtraBytes) + `"}`))
	if len(tr.Extras) != maxExtras || tr.ExtrasOmitted != 200_001-maxExtras {
		t.Errorf("%d extras kept, %d omitted", len(tr.Extras), tr.ExtrasOmitted)
	}
}

// TestSnapshotStays holds that a snapshot is what was known when it was taken, whatever comes after.
func TestSnapshotStays(t *testing.T) {
	p := NewParser(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"})
	var snaps []*Transcript
	var copies []string
	for i := range 300 {
		p.Feed([]byte(stream(fmt.Sprintf(`{"id":"i","choices":[{"delta":{"content":"%d ","tool_calls":[{"index":0,"function":{"arguments":"%d"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":%d},"timings":{"predicted_n":%d}}`, i, i, i, i))), i)
		s := p.Snapshot()
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		snaps, copies = append(snaps, s), append(copies, string(b))
	}
	end := p.Finish(true)
	for i, s := range snaps {
		if b, _ := json.Marshal(s); string(b) != copies[i] {
			t.Fatalf("snapshot %d changed", i)
		}
		if len(s.Events) != i+1 || s.Terminator != "" || *s.Timings.DecodeN != int64(i) {
			t.Fatalf("snapshot %d: %d events, terminator %q", i, len(s.Events), s.Terminator)
		}
	}
	if last := snaps[len(snaps)-1]; last.Choice0().Text != end.Choice0().Text || end.Terminator != "eof" {
		t.Errorf("the end says %q, the last snapshot %q", end.Choice0().Text, last.Choice0().Text)
	}
}

func exchangeOf(body exchange.Body, sizes ...int) *exchange.Exchange {
	x := &exchange.Exchange{End: exchange.EndEOF}
	x.Request.Target = "/v1/chat/completions"
	x.Response.Status, x.Response.Body = 200, body
	x.Response.Headers = []exchange.Header{{Name: "content-type", Value: "text/event-stream"}}
	for i, s := range sizes {
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: int64(i), Size: s})
	}
	return x
}

// TestParseCutsAsTheReadsWere covers reads that bring framing only, chunks of memory that are not the reads, bodies
// without reads and bodies that were not kept whole.
func TestParseCutsAsTheReadsWere(t *testing.T) {
	a, b := stream(delta(`{"content":"a"}`)), stream(finishChunk)
	reads := func(tr *Transcript) (out []int) {
		for _, e := range tr.Events {
			out = append(out, e.Read)
		}
		return out
	}
	body := exchange.Body{Size: int64(len(a + b)), Kept: int64(len(a + b)), Chunks: [][]byte{[]byte(a[:5]), []byte(a[5:] + b[:3]), []byte(b[3:])}}
	for _, tc := range []struct {
		name  string
		body  exchange.Body
		sizes []int
		want  []int
	}{
		{"one read an event", body, []int{len(a), len(b)}, []int{0, 1}},
		{"reads without body bytes", body, []int{0, len(a), 0, 0, len(b), 0}, []int{1, 4}},
		{"a read in the middle", body, []int{len(a) - 1, 2, len(b) - 1}, []int{1, 2}},
		{"no reads", body, nil, []int{0, 0}},
		{"reads that do not reach", body, []int{0, 10}, []int{1, 1}},
		{"one chunk", exchange.NewBody([]byte(a + b)), []int{len(a) + 1, len(b) - 1}, []int{0, 1}},
	} {
		tr := Parse(exchangeOf(tc.body, tc.sizes...))
		if d := cmp.Diff(tc.want, reads(tr)); d != "" || !tr.DialectEnd {
			t.Errorf("%s: end %v, reads (-want +got):\n%s", tc.name, tr.DialectEnd, d)
		}
	}
	cut := exchange.Body{Size: int64(len(a + b)), Kept: int64(len(a)) + 20, Chunks: [][]byte{[]byte(a + b[:20])}}
	if tr := Parse(exchangeOf(cut, len(a), len(b))); tr.DialectEnd || !tr.TruncatedTail || len(tr.Events) != 1 {
		t.Errorf("a body that was not kept whole: %+v", tr)
	}
	if tr := Parse(exchangeOf(exchange.Body{})); tr.Framing != FramingNone || tr.Terminator != "eof" || tr.Events != nil {
		t.Errorf("no body: %+v", tr)
	}
}

func TestHugeValuesAreNotTakenApart(t *testing.T) {
	pad := strings.Repeat(" ", maxValue)
	tr := say(stream(`{"choices":[{"delta":{"content":"a"}}],"x":"`+pad+`"}`, `{"x":"`+pad, delta(`{"content":"b"}`), finishChunk))
	if tr.Oversized != 1 || tr.ParseErrors != 1 || tr.Choice0().Text != "b" || !tr.DialectEnd {
		t.Errorf("%d oversized, %d parse errors, text %q", tr.Oversized, tr.ParseErrors, tr.Choice0().Text)
	}
	if tr := say(stream(delta(`{"content":"` + strings.Repeat("x", 2<<20) + `"}`))); len(tr.Choice0().Text) != 2<<20 {
		t.Errorf("a text of 2 MiB came out as %d bytes", len(tr.Choice0().Text))
	}
}

func TestOtherFormatUnderADialectsPath(t *testing.T) {
	tr := sayAt(Info{Path: "/api/chat", ContentType: "text/event-stream"}, "data: {\"type\":\"text-delta\",\"delta\":\"a\"}\n\nx\n\ndata: {\n\n")
	if tr.Dialect != DialectNone || tr.Framing != FramingSSE || len(tr.Events) != 2 || tr.ParseErrors != 1 || len(tr.Choices) != 0 {
		t.Errorf("events under Ollama's path: %+v", tr)
	}
	html := sayAt(Info{Path: "/v1/chat/completions", ContentType: "text/html"}, "<html>")
	if html.Framing != FramingOpaque || html.Terminator != "eof" || html.DialectEnd || html.Dialect != DialectChat {
		t.Errorf("a web page: %+v", html)
	}
}

func TestOllamaWithoutDoneReasonIsComplete(t *testing.T) {
	lines := `{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{"b":1}}},{"function":{"name":"f","arguments":{}}}]},"logprobs":[{}]}` + "\n" + `{"done":true,"eval_count":1}`
	tr := sayAt(Info{Path: "/api/chat", ContentType: "application/x-ndjson"}, lines)
	want := []ToolCall{{Index: 0, Name: "f", Arguments: `{"b":1}`}, {Index: 1, Name: "f", Arguments: "{}"}}
	if d := cmp.Diff(want, tr.Choice0().ToolCalls); d != "" {
		t.Errorf("whole calls (-want +got):\n%s", d)
	}
	if !tr.DialectEnd || tr.FinishReason != nil || tr.LogprobEntries != 1 || tr.Usage.Prompt != nil || *tr.Timings.DecodeN != 1 {
		t.Errorf("%+v", tr)
	}
	whole := sayAt(Info{Path: "/api/generate", ContentType: "application/json"}, `{"model":"m","response":"a","thinking":"t","done":true,"done_reason":"stop","total_duration":5000000}`)
	if whole.Terminator != "json" || whole.Choice0().Reasoning != "t" || *whole.Timings.TotalMS != 5 || whole.FinishNorm != normStop {
		t.Errorf("%+v", whole)
	}
	if _, ok := whole.Extras["total_duration"]; !ok {
		t.Errorf("extras %s", whole.Extras)
	}
}

func TestDeepNestingIsGarbageNotTrouble(t *testing.T) {
	deep := bytes.Repeat([]byte("["), 100_000)
	tr := say(stream(`{"choices":` + string(deep) + `}`))
	if tr.ParseErrors != 1 {
		t.Errorf("%d parse errors", tr.ParseErrors)
	}
	big := bytes.Repeat([]byte(`{"a":`), 400_000)
	if tr := sayAt(Info{Path: "/x", ContentType: "application/json"}, string(big)); !tr.TruncatedTail {
		t.Error("an open value is not truncated")
	}
}

// TestBrokenFields covers fields cut short, of the wrong type or out of range: each is absent, none is trouble.
func TestBrokenFields(t *testing.T) {
	var got []string
	for _, s := range []string{`{"a":1,"b":[1,{"c":"]"}],"d":"x\"}","e":-1.5e3}`, `{}`, ` { "a" : 1 } `, `{"a"`, `{"a":`, `{"a":}`, `{"a":1 "b":2}`, `{"a\`, `{"a":[1`, `{1:2}`, `[1]`, ``, `{`, `{"a":1]`} {
		var fields []string
		eachField([]byte(s), func(k, v []byte) { fields = append(fields, string(k)+"="+string(v)) })
		got = append(got, strings.Join(fields, " "))
	}
	want := []string{`a=1 b=[1,{"c":"]"}] d="x\"}" e=-1.5e3`, "", "a=1", "", "", "", "a=1", "", "a=[1", "", "", "", "", "a=1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}

	tr := say(stream(
		`{"choices":[{"delta":{"content":[{"type":"refusal","refusal":"no"},{"type":"thinking","thinking":"hm"},{"type":"thinking","thinking":null},7]}}]}`,
		`{"choices":[],"timings":7,"metrics":{"queue_time_ms":1e999,"tokens_per_second":"Indeterminate"},"telemetry":{"device":3}}`,
		`{"choices":[],"usage":{"input_tokens":2,"output_tokens":3,"input_tokens_details":{"cached_tokens":1},"cache_read_input_tokens":9}}`,
	))
	if c := tr.Choice0(); c.Refusal != "no" || c.Reasoning != "hm" || c.Text != "" {
		t.Errorf("parts: %+v", c)
	}
	if tr.Timings != nil || tr.ParseErrors != 0 || *tr.Usage.Prompt != 2 || *tr.Usage.Cached != 1 {
		t.Errorf("timings %+v, %d parse errors, usage %+v", tr.Timings, tr.ParseErrors, tr.Usage)
	}

	lines := sayAt(Info{Path: "/api/chat", ContentType: "application/x-ndjson"}, "7\n{\"prompt_cache_hit_tokens\":1,\"prompt_eval_count\":2}\n{\"message\":3}")
	if len(lines.Events) != 3 || *lines.Usage.Cached != 1 || !lines.Usage.Partial || lines.ParseErrors != 0 {
		t.Errorf("%+v", lines)
	}
}

// TestQuietBlockAddsNoToolCall holds that an undispatched block adds no content of any kind.
func TestQuietBlockAddsNoToolCall(t *testing.T) {
	tr := finishChat("data: "+delta(`{"tool_calls":[{"id":"a","function":{"name":"f"}}],"refusal":"r","reasoning":"t"}`), true)
	if c := tr.Choice0(); !tr.UnterminatedLast || len(c.ToolCalls) != 0 || c.Refusal != "" || c.Reasoning != "" {
		t.Errorf("%+v", c)
	}
}
