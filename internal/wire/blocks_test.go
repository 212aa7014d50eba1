package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnthropicIndexTwice holds what blocks come to that stand under an index which another block had: the later one has
// the index for itself.
func TestAnthropicIndexTwice(t *testing.T) {
	start := func(i int, block string) string {
		return fmt.Sprintf(`content_block_start "index":%d,"content_block":{%s}`, i, block)
	}
	call := func(i int, id, name string) string {
		return start(i, fmt.Sprintf(`"type":"tool_use","id":%q,"name":%q,"input":{}`, id, name))
	}
	delta := func(i int, field, text string) string {
		return fmt.Sprintf(`content_block_delta "index":%d,"delta":{%q:%q}`, i, field, text)
	}
	args := func(i int, text string) string { return delta(i, "partial_json", text) }
	stop := func(i int) string { return fmt.Sprintf(`content_block_stop "index":%d`, i) }
	use := func(i int, id, name, args string) ToolCall {
		return ToolCall{Index: i, ID: id, Type: "tool_use", Name: name, Arguments: args}
	}
	for _, tc := range []struct {
		name   string
		events []string
		want   Choice
	}{
		{"two calls", []string{call(0, "t0", "f"), args(0, `{"a":1}`), stop(0), call(0, "t1", "g"), args(0, `{"b":`), args(0, `2}`), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `{"a":1}`), use(1, "t1", "g", `{"b":2}`)}}},
		{"calls without input", []string{call(0, "t0", "f"), stop(0), call(0, "t1", "f"), stop(0), call(0, "t2", "f"), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `{}`), use(1, "t1", "f", `{}`), use(2, "t2", "f", `{}`)}}},
		{"calls without ids", []string{call(0, "", "f"), args(0, `{"a":1}`), stop(0), call(0, "", "f"), args(0, `{"b":2}`), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "", "f", `{"a":1}`), use(1, "", "f", `{"b":2}`)}}},
		{"no end in between", []string{call(0, "t0", "f"), args(0, `{"a":1}`), call(0, "t1", "g"), args(0, `{"b":2}`), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `{"a":1}`), use(1, "t1", "g", `{"b":2}`)}}},
		{"the same call opens again", []string{call(0, "t0", "f"), call(0, "t0", "f"), args(0, `{"a":1}`), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `{"a":1}`)}}},
		{"the next index is used too", []string{call(0, "t0", "f"), args(0, `[0]`), stop(0), call(0, "t1", "f"), args(0, `[1]`), stop(0), call(1, "t2", "f"), args(1, `[2]`), stop(1), call(1, "t3", "f"), args(1, `[3]`), stop(1)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `[0]`), use(1, "t1", "f", `[1]`), use(2, "t2", "f", `[2]`), use(3, "t3", "f", `[3]`)}}},
		{"the next index is in use", []string{call(0, "t0", "f"), call(1, "t1", "f"), stop(0), call(0, "t2", "f"), args(1, `[1]`), args(0, `[2]`), stop(0), stop(1)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `{}`), use(1, "t1", "f", `[1]`), use(2, "t2", "f", `[2]`)}}},
		{"a call of before, under another index", []string{call(0, "t0", "f"), stop(0), call(0, "t1", "g"), stop(0), call(0, "t0", "f"), args(0, `[0]`), stop(0)},
			Choice{ToolCalls: []ToolCall{use(0, "t0", "f", `[0]`), use(1, "t1", "g", `{}`)}}},
		{"blocks of every kind", []string{
			start(0, `"type":"thinking","thinking":""`), delta(0, "thinking", "Hm"), stop(0), start(0, `"type":"text","text":""`), delta(0, "text", "a"), stop(0),
			call(0, "t0", "f"), args(0, `[0]`), stop(0), start(0, `"type":"text","text":"b"`), delta(0, "text", "c"), stop(0),
			start(0, `"type":"thinking","thinking":""`), delta(0, "thinking", "!"), stop(0), call(0, "t1", "g"), args(0, `[1]`), stop(0)},
			Choice{Text: "abc", Reasoning: "Hm!", ToolCalls: []ToolCall{use(0, "t0", "f", `[0]`), use(1, "t1", "g", `[1]`)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, converse(tc.events...).Choice0()); d != "" {
				t.Errorf("content (-want +got):\n%s", d)
			}
		})
	}
}

// TestErrorField holds that a field of the stream named error is an error where its value tells one, and is ignored as any
// unknown field elsewhere.
func TestErrorField(t *testing.T) {
	const (
		line    = `error: {"code":500,"message":"m","type":"server_error"}`
		content = `data: {"content":"a","stop":false}` + "\n\n"
		end     = `data: {"content":"","stop":true,"stopped_eos":true,"tokens_predicted":1,"tokens_evaluated":2}` + "\n\n"
	)
	told := &Error{"m", "server_error", "500", whereEvent}
	for _, tc := range []struct {
		name, body string
		want       *Error
		text       string
	}{
		{"alone", line + "\n\n", told, ""},
		{"in the answer", content + line + "\n\n" + content + end, told, "aa"},
		{"first", line + "\r\n\r\n" + content + end, told, "a"},
		{"no space", content + `error:{"error":{"message":"m","code":500,"type":"server_error"}}` + "\n\n" + end, told, "a"},
		{"beside data", content + "event: x\n" + content[:len(content)-1] + line + "\n\n" + end, told, "a"},
		{"its text alone", content + "error: {\"error\":\"m\"}\n\n" + end, &Error{"m", "", "", whereEvent}, "a"},
		{"before a later one", line + "\n\n" + `data: {"error":{"message":"n"}}` + "\n\n", told, ""},
		{"no blank line", content + line, told, "a"},
		{"text", content + "error: it broke\n\n" + end, nil, "a"},
		{"no JSON", content + "error: {\"message\":\"m\"\n\n" + end, nil, "a"},
		{"no object", content + "error: [1]\n\nerror: null\n\nerror: \"m\"\n\nerror:\n\nerror\n\n" + end, nil, "a"},
		{"an object that tells none", content + `error: {"x":{"message":"m"}}` + "\n\n" + `error: {"error":null,"message":""}` + "\n\n" + end, nil, "a"},
		{"another field", content + `errors: {"message":"m"}` + "\n\n" + ` error: {"message":"m"}` + "\n\n" + end, nil, "a"},
		{"beside data, and no error", "error: none\n" + content + end, nil, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{len(tc.body), 1} {
				p, read := NewParser(Info{Path: "/completion", ContentType: "text/event-stream"}), 0
				for piece := range slices.Chunk([]byte(tc.body), size) {
					p.Feed(piece, read)
					read++
				}
				tr := p.Finish(true)
				if d := cmp.Diff(tc.want, tr.Error); d != "" || tr.ParseErrors != 0 || tr.Dialect != DialectLlamaCpp {
					t.Errorf("%d parse errors, dialect %q, error (-want +got):\n%s", tr.ParseErrors, tr.Dialect, d)
				}
				if tr.Choice0().Text != tc.text || tr.DialectEnd != (tc.want == nil) || tc.want != nil && tr.FinishNorm != normError {
					t.Errorf("text %q, end %v, finish %q", tr.Choice0().Text, tr.DialectEnd, tr.FinishNorm)
				}
			}
		})
	}
	whole := sayAt(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"}, stream("xxx")+line+"\n\n")
	if whole.Error == nil || whole.ParseErrors != 1 {
		t.Errorf("behind garbage: error %v, %d parse errors", whole.Error, whole.ParseErrors)
	}
}

// TestNullsInACall holds that a call whose parts are null, one by one, is read as one that lacks them: usage, function, its
// name, its arguments, the id and the call itself.
func TestNullsInACall(t *testing.T) {
	tr := say(stream(
		`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":null}}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[null,{"index":0,"id":"a","function":null}]}}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":"f","arguments":null}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":null,"function":{"name":null,"arguments":"{}"}}]}}]}`,
		finishChunk, `{"choices":null,"usage":{"prompt_tokens":null,"completion_tokens":3}}`, "[DONE]"))
	calls := tr.Choice0().ToolCalls
	if len(calls) != 1 || calls[0].ID != "a" || calls[0].Name != "f" || calls[0].Arguments != "{}" || tr.ParseErrors != 0 {
		t.Errorf("%+v, %d parse errors", calls, tr.ParseErrors)
	}
}
