package telemetry

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/measure"
)

// FuzzContent holds: whatever a request and an answer are, the texts told of them are JSON, and every attribute is of valid
// characters.
func FuzzContent(f *testing.F) {
	f.Add(askBody, delta(`{"content":"a"}`))
	f.Add(`{"messages":[{"content":[1,{"text":"x"},"y"],"tool_calls":[{"function":{"arguments":{}}}]}],"tools":[{}],"system":["s"]}`, `{"choices":[{"message":{"content":"\ud800"}}]}`)
	f.Add(`{"prompt":["a",2],"reasoning":"x","options":{"seed":"s"},"stop":[1]}`, "{")
	f.Fuzz(func(t *testing.T, body, event string) {
		x := streamed(body, strings.ReplaceAll(event, "\n", " "))
		a := measure.Analyze(x)
		for _, kv := range contentOf(x, a) {
			text := kv.Value.AsString()
			if !utf8.ValidString(text) || kv.Key != aiTools && !json.Valid([]byte(text)) {
				t.Fatalf("%s is %q", kv.Key, text)
			}
		}
		for _, kv := range clientSpan(x, a).attrs {
			if !utf8.ValidString(kv.Value.String()) {
				t.Fatalf("%s is %q", kv.Key, kv.Value.String())
			}
		}
	})
}
