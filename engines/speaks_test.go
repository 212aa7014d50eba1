package engines

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire"
)

func TestWhatEnginesSpeak(t *testing.T) {
	c, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[string]map[wire.Dialect]bool{
		"anthropic": {wire.DialectAnthropic: true, wire.DialectChat: false},
		"gemini":    {wire.DialectGemini: true, wire.DialectChat: false},
		"ollama":    {wire.DialectOllama: true, wire.DialectChat: true, wire.DialectGemini: false},
		"openai":    {wire.DialectChat: true, wire.DialectAnthropic: false},
		"generic":   {wire.DialectGemini: true},
	} {
		p, _ := c.Lookup(engine)
		for d, understands := range want {
			if p.Understands(d) != understands {
				t.Errorf("%s understands %s: %t", engine, d, !understands)
			}
		}
	}
	err = c.Add([]byte(`{"schema":1,"id":"x","name":"X","kind":"server","speaks":["esperanto"]}`))
	if err == nil || !strings.Contains(err.Error(), `no dialect "esperanto"`) {
		t.Errorf("err = %v", err)
	}
}
