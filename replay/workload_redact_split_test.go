package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// stream is how a dialect brings a text piece by piece: in the answer, and in the arguments of a tool call.
type stream struct {
	name, path, contentType string
	begin, end              string
	piece                   func(s string) string
	last                    func(s string) string // the last piece where it stands elsewhere; nil as the others
}

// inString is a text inside of a string of JSON.
func inString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

// sse is an event of an event stream whose data has the text at %s.
func sse(form string) func(string) string {
	return func(s string) string { return "data: " + fmt.Sprintf(form, inString(s)) + "\n\n" }
}

func line(form string) func(string) string {
	return func(s string) string { return fmt.Sprintf(form, inString(s)) + "\n" }
}

// streams are all dialects that bring an answer in pieces.
var streams = []stream{
	{name: "chat text", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd, piece: sse(`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`)},
	{name: "chat reasoning", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd, piece: sse(`{"choices":[{"index":0,"delta":{"reasoning":"%s"}}]}`)},
	{name: "chat refusal", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd, piece: sse(`{"choices":[{"index":0,"delta":{"refusal":"%s"}}]}`)},
	{name: "chat tool arguments", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd,
		begin: `data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}]}` + "\n\n",
		piece: sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}}]}`)},
	{name: "chat tool arguments without an index", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd,
		piece: sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"%s"}}]}}]}`)},
	{name: "chat function call", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd, piece: sse(`{"choices":[{"index":0,"delta":{"function_call":{"arguments":"%s"}}}]}`)},
	{name: "completions", path: "/v1/completions", contentType: eventStream, piece: sse(`{"choices":[{"index":0,"text":"%s"}]}`)},
	{name: "messages text", path: "/v1/messages", contentType: eventStream, begin: `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
		piece: sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`)},
	{name: "messages thinking", path: "/v1/messages", contentType: eventStream, piece: sse(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"%s"}}`)},
	{name: "messages tool input", path: "/v1/messages", contentType: eventStream,
		begin: `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}` + "\n\n",
		piece: sse(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"%s"}}`)},
	{name: "responses text", path: "/v1/responses", contentType: eventStream, piece: sse(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"%s"}`)},
	{name: "responses arguments", path: "/v1/responses", contentType: eventStream,
		begin: `data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"m","call_id":"c","name":"f","arguments":""}}` + "\n\n",
		piece: sse(`{"type":"response.function_call_arguments.delta","item_id":"m","output_index":0,"delta":"%s"}`)},
	{name: "gemini text", path: "/v1beta/models/m:streamGenerateContent?alt=sse", contentType: eventStream, piece: sse(`{"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"index":0}]}`)},
	{name: "ollama chat", path: "/api/chat", contentType: "application/x-ndjson", piece: line(`{"model":"m","message":{"role":"assistant","content":"%s"},"done":false}`), end: `{"done":true}` + "\n"},
	{name: "ollama thinking", path: "/api/chat", contentType: "application/x-ndjson", piece: line(`{"model":"m","message":{"role":"assistant","content":"","thinking":"%s"},"done":false}`)},
	{name: "ollama generate", path: "/api/generate", contentType: "application/x-ndjson", piece: line(`{"model":"m","response":"%s","done":false}`)},
	{name: "llama.cpp", path: "/completion", contentType: eventStream, piece: sse(`{"index":0,"content":"%s","stop":false}`)},
	{name: "sglang", path: "/generate", contentType: eventStream, piece: sse(`{"text":"%s","meta_info":{"id":"x"}}`)},
	{name: "messages that begin in the start of a block", path: "/v1/messages", contentType: eventStream,
		piece: sse(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"%s"}}`),
		last:  sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`)},
	{name: "chat that ends in a message", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd,
		piece: sse(`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`), last: sse(`{"choices":[{"index":0,"message":{"content":"%s"}}]}`)},
	{name: "an index that comes later", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd,
		piece: sse(`{"choices":[{"delta":{"content":"%s"}}]}`), last: sse(`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`)},
	{name: "a list of texts", path: "/v1/chat/completions", contentType: eventStream, end: chatEnd,
		piece: sse(`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"%s"}]}}]}`), last: sse(`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`)},
}

// said is all that an answer tells, joined as its dialect is read, escapes of arguments undone.
func said(x *exchange.Exchange) string {
	var b strings.Builder
	for _, c := range wire.Parse(x).Choices {
		b.WriteString(c.Text + "\n" + c.Reasoning + "\n" + c.Refusal + "\n")
		for _, call := range c.ToolCalls {
			b.WriteString(call.Arguments + "\n")
			var v any
			if json.Unmarshal([]byte(call.Arguments), &v) == nil {
				fmt.Fprintf(&b, "%v\n", v)
			}
		}
	}
	return b.String()
}

// TestNoDialectTellsASecret cuts secrets in every dialect, at one place or another: what is left of the answer tells none of it,
// and sizes, reads and stamps stay.
func TestNoDialectTellsASecret(t *testing.T) {
	for _, word := range []string{"sk-test-0123456789", `pä"ss\wörd/9`, "日本語の鍵です"} {
		r := masker(t, RedactOptions{Texts: []string{word}})
		arguments, err := json.Marshal(map[string]string{"k": "it is " + word})
		if err != nil {
			t.Fatal(err)
		}
		ascii := strings.NewReplacer("ä", `\u00e4`, "ö", `\u00F6`, "日", `\u65e5`, "本", `\u672c`, "/", `\/`).Replace(string(arguments))
		for _, form := range []string{"it is " + word + ".", string(arguments), ascii} {
			for _, s := range streams {
				for cut := range form {
					if cut%3 != len(s.name)%3 { // all of them take long under the race detector
						continue
					}
					text := []rune(form[:cut])
					rest, last := []rune(form[cut:]), s.last
					if last == nil {
						last = s.piece
					}
					half := len(text) / 2
					parts := []string{s.begin, s.piece(string(text[:half])), s.piece(string(text[half:])), last(string(rest)), s.end}
					holdsNoSecret(t, r, s, word, parts)
				}
			}
		}
	}
}

func holdsNoSecret(t *testing.T, r *Redactor, s stream, word string, parts []string) {
	t.Helper()
	x := recorded(0, "{}", s.contentType, parts...)
	x.Request.Target = s.path
	got, masked, withheld := r.exchange(x)
	told := said(got)
	for n := range []rune(word) {
		if part := string([]rune(word)[n:min(n+5, len([]rune(word)))]); len([]rune(part)) == 5 && strings.Contains(told, part) {
			t.Fatalf("%s: %q is told by\n%s\nof\n%s", s.name, part, told, strings.Join(parts, ""))
		}
	}
	if masked == 0 && withheld == 0 {
		t.Fatalf("%s: nothing was masked in\n%s", s.name, strings.Join(parts, ""))
	}
	if d := cmp.Diff(x.Timeline, got.Timeline, cmp.AllowUnexported(exchange.Mark{})); d != "" || got.Response.Body.Size != x.Response.Body.Size {
		t.Fatalf("%s: %s, %d bytes became %d", s.name, d, x.Response.Body.Size, got.Response.Body.Size)
	}
	if withheld > 0 {
		if s.last == nil {
			t.Fatalf("%s: the body was withheld, though all pieces stand in one place:\n%s", s.name, strings.Join(parts, ""))
		}
		if got.State != exchange.StateTruncated || got.Response.Body.Kept != 0 {
			t.Fatalf("%s: a body that was withheld is %+v", s.name, got.Response.Body)
		}
		return
	}
	before, after := wire.Parse(x), wire.Parse(got)
	if d := cmp.Diff(before.Events, after.Events); d != "" || before.ParseErrors != after.ParseErrors {
		t.Fatalf("%s: events changed:\n%s", s.name, d)
	}
}
