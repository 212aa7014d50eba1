package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// converse parses an event stream of /v1/messages.
func converse(events ...string) *Transcript {
	return sayAt(Info{Path: "/v1/messages", ContentType: "text/event-stream"}, typed(events...))
}

const (
	opened  = `message_start "message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}`
	stopped = `message_delta "delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}`
)

// TestAnthropicBlocks holds the kinds of the blocks of a message, streamed.
func TestAnthropicBlocks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		kinds  string
		want   Choice
	}{
		{"text in the block that opens", []string{`content_block_start "index":0,"content_block":{"type":"text","text":"He"}`, `content_block_delta "index":0,"delta":{"type":"text_delta","text":"y"}`}, "tt", Choice{Text: "Hey"}},
		{"thinking and its signature", []string{
			`content_block_start "index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`, `content_block_delta "index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}`,
			`content_block_delta "index":0,"delta":{"type":"signature_delta","signature":"c2ln"}`, `content_block_stop "index":0`, `ping `}, ".r...", Choice{Reasoning: "Hm"}},
		{"redacted thinking", []string{`content_block_start "index":0,"content_block":{"type":"redacted_thinking","data":"eA=="}`}, ".", Choice{}},
		{"citation", []string{`content_block_delta "index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}`}, ".", Choice{}},
		{"a call without input", []string{`content_block_start "index":1,"content_block":{"type":"tool_use","id":"t","name":"now","input":{}}`,
			`content_block_delta "index":1,"delta":{"type":"input_json_delta","partial_json":""}`, `content_block_stop "index":1`}, "c..",
			Choice{ToolCalls: []ToolCall{{Index: 1, ID: "t", Type: "tool_use", Name: "now", Arguments: "{}"}}}},
		{"a call that was cut before its input", []string{`content_block_start "index":1,"content_block":{"type":"tool_use","id":"t","name":"now","input":{}}`}, "c",
			Choice{ToolCalls: []ToolCall{{Index: 1, ID: "t", Type: "tool_use", Name: "now"}}}},
		{"input in the block that opens, again in deltas", []string{`content_block_start "index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":1}}`,
			`content_block_delta "index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}`, `content_block_delta "index":0,"delta":{"type":"input_json_delta","partial_json":" 1}"}`}, "ccc",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "tool_use", Name: "f", Arguments: `{"a": 1}`}}}},
		{"two calls in turn", []string{`content_block_start "index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}`,
			`content_block_start "index":1,"content_block":{"type":"tool_use","id":"u","name":"f","input":{}}`,
			`content_block_delta "index":1,"delta":{"partial_json":"[1]"}`, `content_block_delta "index":0,"delta":{"partial_json":"[0]"}`}, "cccc",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "tool_use", Name: "f", Arguments: "[0]"}, {Index: 1, ID: "u", Type: "tool_use", Name: "f", Arguments: "[1]"}}}},
		{"a tool of the engine's and its result", []string{`content_block_start "index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`,
			`content_block_delta "index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"q\"}"}`,
			`content_block_start "index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"text","text":"x"}]}`}, "cc.",
			Choice{ToolCalls: []ToolCall{{ID: "s", Type: "server_tool_use", Name: "web_search", Arguments: `{"query":"q"}`}}}},
		{"deltas of blocks nobody opened", []string{`content_block_delta "index":7,"delta":{"type":"text_delta","text":"a"}`, `content_block_delta "delta":{"type":"input_json_delta","partial_json":"{}"}`}, "tc",
			Choice{Text: "a", ToolCalls: []ToolCall{{Arguments: "{}"}}}},
		{"junk", []string{`content_block_start `, `content_block_start "index":"x","content_block":[]`, `content_block_delta "delta":7`, `content_block_delta "index":-3,"delta":{"text":{},"thinking":1,"partial_json":[]}`,
			`content_block_stop "index":{}`, `content_block_stop `, `message_start "message":"x"`, `message_delta "delta":[],"usage":7`, `vast "delta":{}`}, ".........", Choice{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := converse(tc.events...)
			if d := cmp.Diff(tc.want, tr.Choice0()); d != "" || tr.ParseErrors != 0 || tr.Error != nil {
				t.Errorf("%d parse errors, error %v, content (-want +got):\n%s", tr.ParseErrors, tr.Error, d)
			}
			if got := kindsOf(tr); got != tc.kinds {
				t.Errorf("kinds %s, want %s", got, tc.kinds)
			}
		})
	}
}

// TestAnthropicUsage holds that the counts are cumulative, each field by itself, and that the prompt is all three inputs.
func TestAnthropicUsage(t *testing.T) {
	i64 := func(n int64) *int64 { return &n }
	start := func(u string) string { return `message_start "message":{"id":"m","usage":{` + u + `}}` }
	const block, delta = `content_block_start "index":0,"content_block":{"type":"text","text":""}`, `content_block_delta "index":0,"delta":{"type":"text_delta","text":"a"}`
	last := func(u string) string { return `message_delta "delta":{"stop_reason":"end_turn"},"usage":{` + u + `}` }
	for _, tc := range []struct {
		name   string
		events []string
		want   *Usage
	}{
		{"split over two events", []string{start(`"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":1`), last(`"output_tokens":9`)},
			&Usage{Prompt: i64(28), Completion: i64(9), Cached: i64(20), CacheCreation: i64(3), Events: 2}},
		{"told late", []string{start(`"input_tokens":0,"output_tokens":0`), last(`"input_tokens":5,"output_tokens":9`)}, &Usage{Prompt: i64(5), Completion: i64(9), Events: 2}},
		{"a zero for what is not known", []string{start(`"input_tokens":5,"output_tokens":1`), last(`"input_tokens":0,"output_tokens":9`)}, &Usage{Prompt: i64(5), Completion: i64(9), Events: 2}},
		{"nulls", []string{start(`"input_tokens":5,"cache_read_input_tokens":null,"output_tokens":1`), last(`"input_tokens":null,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}`)},
			&Usage{Prompt: i64(5), Completion: i64(9), Reasoning: i64(4), Events: 2}},
		{"in the middle", []string{start(`"input_tokens":5,"output_tokens":1`), `message_delta "delta":{},"usage":{"output_tokens":4}`}, &Usage{Prompt: i64(5), Completion: i64(4), Events: 2, Partial: true}},
		{"at the start alone", []string{start(`"input_tokens":5,"output_tokens":1`), `message_delta "delta":{"stop_reason":"end_turn"}`, `message_stop `}, &Usage{Prompt: i64(5), Completion: i64(1), Events: 1, Partial: true, Opening: true}},
		{"at the end alone", []string{`message_start "message":{}`, last(`"output_tokens":9`)}, &Usage{Completion: i64(9), Events: 1}},
		{"none", []string{`message_start "message":{"usage":null}`, last(``), `message_stop `}, nil},
		{"beyond all bounds", []string{start(`"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"output_tokens":-1`)},
			&Usage{Prompt: i64(9223372036854775807), Cached: i64(9223372036854775807), Events: 1, Partial: true, Opening: true}},
		{"an empty answer", []string{start(`"input_tokens":5,"output_tokens":1`), last(`"output_tokens":0`)}, &Usage{Prompt: i64(5), Completion: i64(0), Events: 2}},
		{"an empty block", []string{start(`"input_tokens":5,"output_tokens":1`), block, last(`"input_tokens":0,"output_tokens":0`)}, &Usage{Prompt: i64(5), Completion: i64(0), Events: 2}},
		{"zeros behind content", []string{start(`"input_tokens":5,"output_tokens":1`), block, delta, last(`"output_tokens":0`)}, &Usage{Prompt: i64(5), Completion: i64(1), Events: 2, Partial: true, Opening: true}},
		{"zeros behind a count", []string{start(`"input_tokens":5,"output_tokens":1`), delta, `message_delta "delta":{},"usage":{"output_tokens":4}`, last(`"output_tokens":0`)},
			&Usage{Prompt: i64(5), Completion: i64(4), Events: 3}},
		{"the end tells the prompt alone", []string{start(`"input_tokens":0,"output_tokens":1`), delta, last(`"input_tokens":5`)}, &Usage{Prompt: i64(5), Completion: i64(1), Events: 2, Partial: true, Opening: true}},
		{"content behind a count", []string{start(`"input_tokens":5,"output_tokens":1`), `message_delta "delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}`, delta},
			&Usage{Prompt: i64(5), Completion: i64(4), Events: 2, Partial: true}},
		{"all is in the event that opens", []string{`message_start "message":{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":9}}`}, &Usage{Prompt: i64(5), Completion: i64(9), Events: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, converse(tc.events...).Usage); d != "" {
				t.Errorf("usage (-want +got):\n%s", d)
			}
		})
	}
}

// TestAnthropicEnds holds the stop reasons, and that a tool the engine runs itself does not make a stop one for tools.
func TestAnthropicEnds(t *testing.T) {
	server := `content_block_start "index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`
	for _, tc := range []struct{ reason, norm string }{
		{"end_turn", normStop}, {"stop_sequence", normStop}, {"pause_turn", normStop}, {"max_tokens", normLength}, {"tool_use", normTools},
		{"refusal", normFiltered}, {"model_context_window_exceeded", normLength}, {"some new one", ""},
	} {
		tr := converse(opened, server, `message_delta "delta":{"stop_reason":"`+tc.reason+`"}`, `message_stop `)
		if tr.FinishNorm != tc.norm || *tr.FinishReason != tc.reason || !tr.DialectEnd || tr.Terminator != "message_stop" {
			t.Errorf("%q is %q, end %v, terminator %q", tc.reason, tr.FinishNorm, tr.DialectEnd, tr.Terminator)
		}
	}
	if tr := converse(opened, stopped); !tr.DialectEnd || tr.Terminator != "eof" || tr.ID != "msg" || tr.Model != "m" {
		t.Errorf("a stop reason without message_stop: end %v, terminator %q, id %q, model %q", tr.DialectEnd, tr.Terminator, tr.ID, tr.Model)
	}
	if tr := converse(opened, `message_stop `); !tr.DialectEnd || tr.FinishReason != nil {
		t.Errorf("message_stop without a stop reason: end %v", tr.DialectEnd)
	}
	if tr := converse(opened); tr.DialectEnd {
		t.Error("an answer that was cut counts as ended")
	}
	for _, events := range [][]string{{`error "error":{"type":"overloaded_error","message":"m"}`, stopped, `message_stop `}, {stopped, `message_stop `, `error "error":{"type":"overloaded_error","message":"m"}`}} {
		if tr := converse(events...); tr.DialectEnd || tr.FinishNorm != normError || tr.Error == nil || tr.Error.Type != "overloaded_error" {
			t.Errorf("an error beside an end: %+v, end %v", tr.Error, tr.DialectEnd)
		}
	}
	bad := sayAt(Info{Path: "/v1/messages", ContentType: "application/json", Status: 529}, `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`)
	if d := cmp.Diff(&Error{"m", "overloaded_error", "", whereHTTPStatus}, bad.Error); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	extra := converse(opened, stopped, `message_stop "amazon-bedrock-invocationMetrics":{"inputTokenCount":5}`)
	if len(extra.Extras) != 1 {
		t.Errorf("extras %s", extra.Extras)
	}
}

// TestAnthropicNamesAlone holds a stream whose values leave their type to the SSE name.
func TestAnthropicNamesAlone(t *testing.T) {
	tr := sayAt(Info{Path: "/v1/messages", ContentType: "text/event-stream"},
		"event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"text\":\"a\"}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {}\n\n")
	if tr.Choice0().Text != "a" || tr.FinishNorm != normStop || tr.Terminator != "message_stop" {
		t.Errorf("text %q, finish %q, terminator %q", tr.Choice0().Text, tr.FinishNorm, tr.Terminator)
	}
}

// FuzzAnthropicStreamIsItsMessage holds that the events of a message come to the same as the message in one piece,
// however they are cut.
func FuzzAnthropicStreamIsItsMessage(f *testing.F) {
	for seed := range uint64(16) {
		f.Add("Hello|wörld||!", seed)
	}
	f.Fuzz(func(t *testing.T, joined string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := &script{r: r}
		events, blocks := []string{opened}, []string{}
		for i, text := range strings.Split(strings.ToValidUTF8(joined, "?"), "|") {
			kind := r.IntN(3)
			if kind == 2 {
				text = `{"a":` + quote(text) + `}`
			}
			field := [...]string{"text", "thinking", "partial_json"}[kind]
			events = append(events, fmt.Sprintf(`content_block_start "index":%d,"content_block":%s`, i, [...]string{
				`{"type":"text","text":""}`, `{"type":"thinking","thinking":""}`, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"f","input":{}}`, i)}[kind]))
			for _, p := range s.pieces(text) {
				events = append(events, fmt.Sprintf(`content_block_delta "index":%d,"delta":{%q:%s}`, i, field, quote(p)))
			}
			events = append(events, fmt.Sprintf(`content_block_stop "index":%d`, i), `ping `)
			blocks = append(blocks, [...]string{
				`{"type":"text","text":` + quote(text) + `}`, `{"type":"thinking","thinking":` + quote(text) + `}`,
				fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"f","input":%s}`, i, text)}[kind])
		}
		events = append(events, stopped, `message_stop `)
		whole := sayAt(Info{Path: "/v1/messages", ContentType: "application/json"},
			`{"id":"msg","type":"message","model":"m","content":[`+strings.Join(blocks, ",")+`],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":9}}`)
		body := typed(events...)
		p := NewParser(Info{Path: "/v1/messages", ContentType: "text/event-stream"})
		for i, piece := range cutAt([]byte(body), seed) {
			p.Feed(piece, i)
		}
		told := p.Finish(true)
		if d := cmp.Diff(whole.Choices, told.Choices); d != "" || told.ParseErrors != 0 || whole.FinishNorm != told.FinishNorm {
			t.Fatalf("(-whole +told) by\n%s\n%s", body, d)
		}
		told.Usage.Events = 1
		if d := cmp.Diff(whole.Usage, told.Usage); d != "" {
			t.Fatalf("usage (-whole +told):\n%s", d)
		}
	})
}
