package gates

import (
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
	for gate, want := range map[string]string{"tool_use": "tools", "agent_turns": "tools", "vision": "images", "agentic": "", "near_tie": ""} {
		if got := Needs([]exchange.Check{{Gate: "usage_present"}, {Gate: gate}}); got != want {
			t.Errorf("%s needs %q, want %q", gate, got, want)
		}
	}
}
