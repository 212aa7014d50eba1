package sim

import (
	"errors"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestDisguiseAnswersProbesAndLeavesGenerationAlone(t *testing.T) {
	all := Disguises()
	if len(all) < 10 || !slices.IsSorted(all) {
		t.Fatalf("disguises %q: want at least ten, sorted", all)
	}
	for _, engine := range all {
		h, err := Disguise(engine, `m"1`)
		if err != nil {
			t.Errorf("%s: %v", engine, err)
			continue
		}
		if s := h(Request{Method: "GET", Target: "/v1/models?x=1"}); s == nil || s.Status != 200 {
			t.Errorf("%s lists no models: %+v", engine, s)
		}
		if s := h(Request{Method: "POST", Target: "/v1/chat/completions"}); s != nil {
			t.Errorf("%s answers a chat itself", engine)
		}
	}
}

func TestDisguiseAnswersOtherPaths(t *testing.T) {
	for engine, want := range map[string]int{"vllm": 404, "tensorsharp": 200} {
		h, err := Disguise(engine, "m")
		if err != nil {
			t.Fatal(err)
		}
		if s := h(Request{Method: "GET", Target: "/nothing"}); s.Status != want {
			t.Errorf("%s answers an unknown path with %d, want %d", engine, s.Status, want)
		}
	}
}

func TestDisguiseRefusesAnUnknownEngine(t *testing.T) {
	if _, err := Disguise("../probes/vllm", "m"); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("got %v, want a usage error", err)
	}
}
