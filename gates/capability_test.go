package gates

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestCapabilities holds that a lack is what an engine says in so many words, of that capability.
func TestCapabilities(t *testing.T) {
	refusal := func(status int, message string) *exchange.Exchange {
		return spoken{status: status, body: `{"error":{"message":` + text(message) + `}}`}.exchange()
	}
	for name, c := range map[string]struct {
		x             *exchange.Exchange
		tools, images bool
	}{
		"no tools":           {refusal(400, "registry.ollama.ai/library/x does not support tools"), true, false},
		"no images":          {refusal(500, "image input is not supported - hint: you may need to provide the mmproj"), false, true},
		"out of memory":      {refusal(500, "out of memory"), false, false},
		"one tool":           {refusal(400, "tool get_weather: the schema keyword pattern is not supported"), false, false},
		"tools, but 503":     {refusal(503, "this model does not support tools"), false, false},
		"an answer about it": {spoken{content: "this model does not support tools", finish: "stop"}.exchange(), false, false},
	} {
		if got := Refuses(c.x, "tools") != ""; got != c.tools {
			t.Errorf("%s: tools refused: %v", name, got)
		}
		if got := Refuses(c.x, "images") != ""; got != c.images {
			t.Errorf("%s: images refused: %v", name, got)
		}
	}
	if Refuses(refusal(400, "does not support tools"), "") != "" {
		t.Error("nothing in particular is refused")
	}
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"\"tools\" and \"image_url\""}]}`:               "",
		`{"messages":[],"tools":[{"type":"function"}]}`:                                        "tools",
		`{"messages":[],"tools":[]}`:                                                           "",
		`{"messages":[{"content":[{"type":"text"},{"type":"image_url"}]},{"content":null}]}`:   "images",
		`{"messages":[{"content":"look","images":["aGk="]}]}`:                                  "images",
		`{"messages":[{"content":[{"type":"input_audio"},{"type":"image_url"}]}],"tools":[1]}`: "tools images audio",
		`[]`: "", `no JSON`: "",
	} {
		if got := strings.Join(Asks([]byte(body)), " "); got != want {
			t.Errorf("%s asks for %q, want %q", body, got, want)
		}
	}
	for says, want := range map[string]string{
		"audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj": "audio",
		"At most 0 audio(s) may be provided in one request.":                                             "audio",
		"this model does not support audio":                                                              "audio",
		"the audio is longer than 30 s":                                                                  "",
		"image input is not supported":                                                                   "",
	} {
		x := refusal(400, says)
		x.Request.Body = exchange.NewBody([]byte(`{"messages":[{"content":[{"type":"input_audio"}]}]}`))
		if name, why := Lacks(x); name != want || (why == "") != (want == "") || want != "" && !strings.HasPrefix(why, "the engine takes no audio: ") {
			t.Errorf("%q lacks %q: %q", says, name, why)
		}
	}
	for gate, want := range map[string]string{"tool_use": "tools", "agent_turns": "tools", "vision": "images", "agentic": "", "near_tie": ""} {
		if got := Needs([]exchange.Check{{Gate: "usage_present"}, {Gate: gate}}); got != want {
			t.Errorf("%s needs %q, want %q", gate, got, want)
		}
	}
}
