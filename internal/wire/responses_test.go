package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typed is an event stream of values with a type, each under its SSE name. An event is its type, a blank, and the
// fields that follow the type.
func typed(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		kind, fields, _ := strings.Cut(e, " ")
		if fields != "" {
			fields = "," + fields
		}
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
	}
	return b.String()
}

// respond parses an event stream of the Responses dialect whose types lack their first word.
func respond(events ...string) *Transcript {
	for i := range events {
		events[i] = "response." + events[i]
	}
	return sayAt(Info{Path: "/v1/responses", ContentType: "text/event-stream"}, typed(events...))
}

// kindsOf writes the kinds of each event: t text, r reasoning, x refusal, c call, m media, . none.
func kindsOf(tr *Transcript) string {
	var b strings.Builder
	for _, e := range tr.Events {
		n := b.Len()
		for i, k := range []Kind{KindText, KindReasoning, KindRefusal, KindTool, KindMedia} {
			if e.Kinds&k != 0 {
				b.WriteByte("trxcm"[i])
			}
		}
		if b.Len() == n {
			b.WriteByte('.')
		}
	}
	return b.String()
}

const (
	msgWhole  = `{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}`
	callWhole = `{"type":"function_call","id":"f1","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`
)

func completed(items ...string) string {
	return `completed "response":{"status":"completed","output":[` + strings.Join(items, ",") + `]}`
}

// once is a stream that tells its content several times.
type once struct {
	name   string
	events []string
	text   string
	calls  []ToolCall
	kinds  string
}

func checkOnce(t *testing.T, cases []once) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tr := respond(tc.events...)
			if got := kindsOf(tr); got != tc.kinds || tr.Choice0().Text != tc.text || tr.ParseErrors != 0 {
				t.Errorf("text %q, kinds %s, want %q, %s", tr.Choice0().Text, got, tc.text, tc.kinds)
			}
			if d := cmp.Diff(tc.calls, tr.Choice0().ToolCalls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

// TestResponsesTextsCountOnce holds that a text which comes several times counts the first time, whatever names it.
func TestResponsesTextsCountOnce(t *testing.T) {
	checkOnce(t, []once{
		{"deltas, and three repetitions", []string{
			`output_item.added "output_index":0,"item":{"type":"message","id":"m1","content":[]}`,
			`content_part.added "item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}`,
			`output_text.delta "item_id":"m1","output_index":0,"content_index":0,"delta":"Hel"`,
			`output_text.delta "item_id":"m1","output_index":0,"content_index":0,"delta":"lo"`,
			`output_text.done "item_id":"m1","output_index":0,"content_index":0,"text":"Hello"`,
			`content_part.done "item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hello"}`,
			`output_item.done "output_index":0,"item":` + msgWhole, completed(msgWhole),
		}, "Hello", nil, "..tt...."},
		{"the id changes with every event", []string{
			`output_item.added "output_index":0,"item":{"type":"message","id":"a","content":[]}`,
			`output_text.delta "item_id":"b","output_index":0,"delta":"Hello"`,
			`output_text.done "item_id":"c","output_index":0,"text":"Hello"`,
			`output_item.done "output_index":0,"item":{"type":"message","id":"d","content":[{"type":"output_text","text":"Hello"}]}`,
			completed(strings.Replace(msgWhole, "m1", "e", 1)),
		}, "Hello", nil, ".t..."},
		{"no id, no place", []string{
			`output_text.delta "delta":"Hel"`, `output_text.delta "delta":"lo"`, `output_text.done "text":"Hello"`,
			`output_item.done "item":{"type":"message","content":[{"type":"output_text","text":"Hello"}]}`,
			completed(`{"type":"message","content":[{"type":"output_text","text":"Hello"}]}`),
		}, "Hello", nil, "tt..."},
		{"places in the deltas alone", []string{
			`output_text.delta "item_id":"m1","content_index":0,"delta":"Hello"`, `output_text.done "item_id":"m1","text":"Hello"`, completed(msgWhole),
		}, "Hello", nil, "t.."},
		{"two parts without a place", []string{
			`output_text.delta "item_id":"m1","delta":"Hel"`, `output_text.delta "item_id":"m1","delta":"lo"`,
			completed(`{"type":"message","id":"m1","content":[{"type":"output_text","text":"Hel"},{"type":"output_text","text":"lo"}]}`),
		}, "Hello", nil, "tt."},
		{"first at the end of the text", []string{`output_text.done "item_id":"m1","content_index":0,"text":"Hello"`, completed(msgWhole)}, "Hello", nil, "t."},
		{"first at the end of the part", []string{`content_part.done "item_id":"m1","content_index":0,"part":{"type":"output_text","text":"Hello"}`, completed(msgWhole)}, "Hello", nil, "t."},
		{"first at the end of the item", []string{`output_item.done "item":` + msgWhole, completed(msgWhole)}, "Hello", nil, "t."},
		{"first in the final response", []string{completed(msgWhole)}, "Hello", nil, "t"},
		{"the final response twice", []string{completed(msgWhole), completed(msgWhole)}, "Hello", nil, "t."},
		{"a second part that was never streamed", []string{
			`output_text.delta "item_id":"m1","content_index":0,"delta":"Hel"`,
			completed(`{"type":"message","id":"m1","content":[{"type":"output_text","text":"Hel"},{"type":"output_text","text":"lo"}]}`),
		}, "Hello", nil, "tt"},
		{"an item that was never streamed", []string{
			`output_text.delta "item_id":"m0","content_index":0,"delta":"Oh. "`,
			completed(`{"type":"message","id":"m0","content":[{"type":"output_text","text":"Oh. "}]}`, msgWhole),
		}, "Oh. Hello", nil, "tt"},
		{"two messages that say the same", []string{completed(msgWhole, strings.Replace(msgWhole, "m1", "m2", 1))}, "HelloHello", nil, "t"},
		{"two messages that say the same, streamed, ids changed", []string{
			`output_text.delta "item_id":"a","output_index":0,"delta":"Hello"`, `output_text.delta "item_id":"b","output_index":1,"delta":"Hello"`,
			completed(msgWhole, strings.Replace(msgWhole, "m1", "m2", 1)),
		}, "HelloHello", nil, "tt."},
	})
}

// TestResponsesCallsCountOnce holds the same of tool calls.
func TestResponsesCallsCountOnce(t *testing.T) {
	call := ToolCall{ID: "c1", Type: "function_call", Name: "f", Arguments: `{"a":1}`}
	at := func(i int, c ToolCall) ToolCall { c.Index = i; return c }
	checkOnce(t, []once{
		{"a call in pieces", []string{
			`output_item.added "output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"f","arguments":""}`,
			`function_call_arguments.delta "item_id":"f1","output_index":0,"delta":"{\"a\""`,
			`function_call_arguments.delta "item_id":"f1","output_index":0,"delta":":1}"`,
			`function_call_arguments.done "item_id":"f1","output_index":0,"name":"f","arguments":"{\"a\":1}"`,
			`output_item.done "output_index":0,"item":` + callWhole, completed(callWhole),
		}, "", []ToolCall{call}, "ccc..."},
		{"a call whose pieces go by its call id", []string{
			`output_item.added "item":{"type":"function_call","call_id":"c1","name":"f","arguments":""}`,
			`function_call_arguments.delta "item_id":"c1","delta":"{\"a\":1}"`,
			`output_item.done "item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`, completed(callWhole),
		}, "", []ToolCall{call}, "cc.."},
		{"a call whose pieces go by an unknown id", []string{
			`output_item.added "item":{"type":"function_call","call_id":"c1","name":"f"}`,
			`function_call_arguments.delta "item_id":"x","delta":"{\"a\""`, `function_call_arguments.delta "item_id":"x","delta":":1}"`, completed(callWhole),
		}, "", []ToolCall{call}, "ccc."},
		{"a call that is first shown whole", []string{`output_item.done "output_index":0,"item":` + callWhole, completed(callWhole)}, "", []ToolCall{call}, "c."},
		{"a call whose ids all change", []string{
			`output_item.added "output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"f"}`,
			`function_call_arguments.delta "item_id":"f2","output_index":0,"delta":"{\"a\":1}"`,
			`output_item.done "output_index":0,"item":{"type":"function_call","id":"f3","call_id":"c3","name":"f","arguments":"{\"a\":1}"}`,
			completed(`{"type":"function_call","id":"f4","call_id":"c4","name":"f","arguments":"{\"a\":1}"}`),
		}, "", []ToolCall{call}, "cc.."},
		{"two calls at one place", []string{
			`output_item.done "output_index":0,"item":` + callWhole,
			`output_item.done "output_index":0,"item":{"type":"function_call","id":"f2","call_id":"c2","name":"f","arguments":"{\"a\":2}"}`,
		}, "", []ToolCall{call, {Index: 1, ID: "c2", Type: "function_call", Name: "f", Arguments: `{"a":2}`}}, "cc"},
		{"the same call twice", []string{completed(callWhole, strings.NewReplacer("f1", "f2", "c1", "c2").Replace(callWhole))}, "",
			[]ToolCall{call, {Index: 1, ID: "c2", Type: "function_call", Name: "f", Arguments: `{"a":1}`}}, "c"},
		{"two calls in turn, then a text", []string{
			`output_item.added "output_index":1,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"f"}`,
			`output_item.added "output_index":2,"item":{"type":"function_call","id":"f2","call_id":"c2","name":"g"}`,
			`function_call_arguments.delta "output_index":2,"delta":"{}"`, `function_call_arguments.delta "output_index":1,"delta":"{\"a\":1}"`,
			`output_text.delta "output_index":3,"delta":"Hello"`,
		}, "Hello", []ToolCall{at(1, call), {Index: 2, ID: "c2", Type: "function_call", Name: "g", Arguments: "{}"}}, "cccct"},
		{"deltas of items nobody announced", []string{
			`function_call_arguments.delta "item_id":"f1","delta":"{"`, `function_call_arguments.delta "item_id":"f2","delta":"["`,
			`function_call_arguments.delta "item_id":"f1","delta":"}"`,
		}, "", []ToolCall{{Arguments: "{}"}, {Index: 1, Arguments: "["}}, "ccc"},
	})
}

// TestResponsesKinds holds the kinds of content that come in deltas, and that what their tools answer is none.
func TestResponsesKinds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		kinds  string
		want   Choice
	}{
		{"refusal", []string{`refusal.delta "item_id":"m","content_index":0,"delta":"No"`, `refusal.done "item_id":"m","content_index":0,"refusal":"No"`,
			`output_item.done "item":{"type":"message","id":"m","content":[{"type":"refusal","refusal":"No"}]}`}, "x..", Choice{Refusal: "No"}},
		{"reasoning text", []string{`reasoning_text.delta "item_id":"r","content_index":0,"delta":"Hm"`, `reasoning_text.done "item_id":"r","content_index":0,"text":"Hm"`,
			completed(`{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}`)}, "r..", Choice{Reasoning: "Hm"}},
		{"reasoning that is listed as its summary", []string{`reasoning_text.delta "item_id":"r","delta":"Hm"`,
			completed(`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"Hm"}]}`)}, "r.", Choice{Reasoning: "Hm"}},
		{"reasoning parts", []string{`content_part.added "item_id":"r","part":{"type":"reasoning_text","text":""}`, `reasoning_text.delta "item_id":"r","delta":"Hm"`,
			`content_part.done "item_id":"r","part":{"type":"reasoning_text","text":"Hm"}`}, ".r.", Choice{Reasoning: "Hm"}},
		{"summary", []string{`reasoning_summary_part.added "item_id":"r","summary_index":0,"part":{"type":"summary_text","text":""}`,
			`reasoning_summary_text.delta "item_id":"r","summary_index":0,"delta":"A"`, `reasoning_summary_text.delta "item_id":"r","summary_index":1,"delta":"B"`,
			completed(`{"type":"reasoning","id":"r","summary":[{"text":"A"},{"text":"B"}]}`)}, ".rr.", Choice{Reasoning: "AB"}},
		{"older reasoning", []string{`reasoning.delta "item_id":"r","delta":{"text":"Hm"}`}, "r", Choice{Reasoning: "Hm"}},
		{"encrypted reasoning", []string{`output_item.done "item":{"type":"reasoning","id":"r","summary":[],"encrypted_content":"x"}`}, ".", Choice{}},
		{"custom tool", []string{`output_item.added "output_index":0,"item":{"type":"custom_tool_call","id":"t","call_id":"c","name":"sql","input":""}`,
			`custom_tool_call_input.delta "item_id":"t","delta":"SELECT"`, `custom_tool_call_input.done "item_id":"t","input":"SELECT"`}, "cc.",
			Choice{ToolCalls: []ToolCall{{ID: "c", Type: "custom_tool_call", Name: "sql", Arguments: "SELECT"}}}},
		{"MCP", []string{`output_item.added "output_index":0,"item":{"type":"mcp_call","id":"t","name":"roll","server_label":"d"}`,
			`mcp_call_arguments.delta "item_id":"t","delta":"{}"`, `mcp_call_arguments.done "item_id":"t","arguments":"{}"`, `mcp_call.completed "item_id":"t"`,
			`output_item.done "output_index":0,"item":{"type":"mcp_call","id":"t","name":"roll","arguments":"{}","output":"4"}`}, "cc...",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "mcp_call", Name: "roll", Arguments: "{}"}}}},
		{"code interpreter", []string{`output_item.added "output_index":0,"item":{"type":"code_interpreter_call","id":"t","code":"","outputs":null}`,
			`code_interpreter_call_code.delta "item_id":"t","delta":"1+1"`, `code_interpreter_call_code.done "item_id":"t","code":"1+1"`,
			`output_item.done "output_index":0,"item":{"type":"code_interpreter_call","id":"t","code":"1+1","outputs":[{"logs":"2"}]}`}, "cc..",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "code_interpreter_call", Name: "code_interpreter", Arguments: "1+1"}}}},
		{"shell", []string{`output_item.added "output_index":0,"item":{"type":"shell_call","id":"t","call_id":"c"}`,
			`shell_call_command.delta "item_id":"t","delta":"l"`, `shell_call_command.delta "item_id":"t","delta":"s"`, `shell_call_command.done "item_id":"t","command":"ls"`,
			`shell_call_output_content.delta "item_id":"t","delta":"x"`,
			`output_item.done "output_index":0,"item":{"type":"shell_call","id":"t","call_id":"c","action":{"commands":["ls"]}}`}, "ccc...",
			Choice{ToolCalls: []ToolCall{{ID: "c", Type: "shell_call", Name: "shell", Arguments: `{"commands":["ls"]}`}}}},
		{"web search", []string{`output_item.added "output_index":0,"item":{"type":"web_search_call","id":"t","status":"in_progress"}`, `web_search_call.searching "item_id":"t"`,
			`output_item.done "output_index":0,"item":{"type":"web_search_call","id":"t","action":{"type":"search","query":"q"}}`}, "c.c",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "web_search_call", Name: "web_search", Arguments: `{"type":"search","query":"q"}`}}}},
		{"outputs of tools", []string{`output_item.done "item":{"type":"function_call_output","call_id":"c","output":"x"}`, `output_item.done "item":{"type":"mcp_list_tools","tools":[]}`}, "..", Choice{}},
		{"picture", []string{`image_generation_call.partial_image "item_id":"t","partial_image_b64":"aGk="`,
			`output_item.done "output_index":0,"item":{"type":"image_generation_call","id":"t","result":"aGk="}`,
			completed(`{"type":"image_generation_call","id":"t","result":"aGk="}`)}, "mcm.",
			Choice{ToolCalls: []ToolCall{{ID: "t", Type: "image_generation_call", Name: "image_generation"}}}},
		{"sound", []string{`audio.delta "delta":"aGk="`, `audio.transcript.delta "delta":"Hi"`, `audio.transcript.done `, `audio.done `}, "mt..", Choice{Text: "Hi"}},
		{"empty and absent", []string{`output_text.delta "delta":""`, `output_text.delta "delta":null`, `output_text.delta `, `function_call_arguments.delta "delta":7`}, "...c",
			Choice{ToolCalls: []ToolCall{{Arguments: "7"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := respond(tc.events...)
			got := tr.Choice0()
			got.FinishReason = nil
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("content (-want +got):\n%s", d)
			}
			if k := strings.ReplaceAll(kindsOf(tr), "cm", "M"); k != strings.ReplaceAll(tc.kinds, "cm", "M") {
				t.Errorf("kinds %s, want %s", k, tc.kinds)
			}
		})
	}
}

// TestResponsesCallsHaveTheirPlaceInTheOutput holds that a call has one index, streamed or not: its place among the items.
func TestResponsesCallsHaveTheirPlaceInTheOutput(t *testing.T) {
	thought := `{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"hm"}]}`
	second := strings.NewReplacer("f1", "f2", "c1", "c2").Replace(callWhole)
	output := thought + "," + callWhole + "," + msgWhole + "," + second
	whole := sayAt(Info{Path: "/v1/responses", ContentType: "application/json"}, `{"object":"response","status":"completed","output":[`+output+`]}`)
	events := []string{}
	for i, item := range []string{thought, callWhole, msgWhole, second} {
		events = append(events, fmt.Sprintf(`output_item.done "output_index":%d,"item":%s`, i, item))
	}
	streamed, last := respond(append(events, completed(thought, callWhole, msgWhole, second))...), respond(completed(thought, callWhole, msgWhole, second))
	for name, tr := range map[string]*Transcript{"plain": whole, "streamed": streamed, "in the last event alone": last} {
		calls := tr.Choice0().ToolCalls
		if len(calls) != 2 || calls[0].Index != 1 || calls[1].Index != 3 {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}
