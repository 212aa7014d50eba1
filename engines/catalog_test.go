package engines

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestBuiltinProfiles holds that every engine of the design has a profile, and that what one says of itself can be used.
func TestBuiltinProfiles(t *testing.T) {
	want := []string{"anthropic", "foundry", "gemini", "generic", "halogen", "litellm", "llamacpp", "lmstudio", "loom", "ninfer", "ollama", "onnx",
		"openai", "opencode", "prism", "sglang", "sim", "strata", "tabbyapi", "tensorfold", "tensorsharp", "vllm"}
	var got []string
	for _, p := range builtin(t).Profiles() {
		got = append(got, p.ID)
		if len(p.Notes) == 0 && p.Kind != KindHosted {
			t.Errorf("%s has no notes", p.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

// TestAvoidedPathsAreNotReadLater holds that the order of proofs reaches an engine with a forbidden path by an earlier one.
func TestAvoidedPathsAreNotReadLater(t *testing.T) {
	for _, p := range builtin(t).Profiles() {
		if len(p.Avoid) > 0 && len(p.Recognize.Namespace) == 0 && len(p.Recognize.Headers) == 0 {
			t.Errorf("%s avoids %q, and nothing before the names it gives proves it", p.ID, p.Avoid)
		}
	}
}

// TestMetricRanksAreDistinct holds that a scrape with names of several engines has one verdict.
func TestMetricRanksAreDistinct(t *testing.T) {
	var order []string
	ranked := slices.DeleteFunc(builtin(t).Profiles(), func(p Profile) bool { return p.Recognize.Rank == 0 })
	slices.SortFunc(ranked, func(a, b Profile) int { return a.Recognize.Rank - b.Recognize.Rank })
	for i, p := range ranked {
		order = append(order, p.ID)
		if i > 0 && p.Recognize.Rank == ranked[i-1].Recognize.Rank {
			t.Errorf("%s and %s share rank %d", p.ID, ranked[i-1].ID, p.Recognize.Rank)
		}
	}
	if diff := cmp.Diff([]string{"halogen", "tensorfold", "strata", "vllm", "sglang", "llamacpp"}, order); diff != "" {
		t.Errorf("order of namespaces (-want +got):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	c := builtin(t)
	for name, want := range map[string]string{"llama.cpp": "llamacpp", "LLAMA_CPP": "llamacpp", "vLLM": "vllm", "prism-local": "prism", "nobody": ""} {
		if p, ok := c.Lookup(name); p.ID != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", name, p.ID, ok, want)
		}
	}
}

func TestAddReplacesAndExtends(t *testing.T) {
	c := builtin(t)
	own := `{"schema":1,"id":"ours","name":"Ours","kind":"server","recognize":{"namespaces":["ours:"],"rank":5},"requests":{}}`
	vllm := `{"schema":1,"id":"vllm","name":"vLLM of ours","aliases":["house"],"kind":"server","recognize":{},"requests":{"usage":"always"}}`
	for _, raw := range []string{own, vllm} {
		if err := c.Add([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	if p, ok := c.Lookup("house"); !ok || p.Name != "vLLM of ours" || len(c.Profiles()) != 23 {
		t.Errorf("got %+v, %v of %d profiles", p, ok, len(c.Profiles()))
	}
	s := &server{answers: map[string]played{"/metrics": {status: 200, body: "vllm:x 1\nours:y 2\n"}}}
	if d, err := c.Identify(t.Context(), s, base, Options{}); err != nil || d.Engine != "ours" {
		t.Errorf("got %q, %v", d.Engine, err)
	}
}

func TestAddRefuses(t *testing.T) {
	for name, change := range map[string]string{
		"an unknown key":          `"colour":"red"`,
		"another schema":          `"schema":2`,
		"no id":                   `"id":""`,
		"a reserved id":           `"id":"unknown"`,
		"an upper-case id":        `"id":"X"`,
		"no name":                 `"name":""`,
		"an unknown kind":         `"kind":"toy"`,
		"hosted without a host":   `"kind":"hosted"`,
		"somebody else's alias":   `"aliases":["llama.cpp"]`,
		"a namespace, no rank":    `"recognize":{"namespaces":["x:"]}`,
		"an unknown place":        `"recognize":{"declared":[{"in":"wall","name":"x"}]}`,
		"a name of two words":     `"recognize":{"declared":[{"in":"server","name":"x y"}]}`,
		"an unknown want":         `"recognize":{"shapes":[{"paths":["/x"],"any_of":[[{"key":"a","type":"odd"}]]}]}`,
		"a shape without a path":  `"recognize":{"shapes":[{"paths":[],"any_of":[]}]}`,
		"a document without path": `"recognize":{"native":[{"path":"x"}]}`,
		"an avoided document":     `"avoid":["/x"],"recognize":{"version":{"path":"/x","key":"v"}}`,
		"an unknown field":        `"metadata":[{"field":"mood","path":"/x"}]`,
		"an avoided read":         `"avoid":["/x"],"metadata":[{"field":"window","path":"/x"}]`,
		"an unknown conversion":   `"metadata":[{"field":"window","path":"/x","as":"magic"}]`,
		"an unknown usage":        `"requests":{"usage":"maybe"}`,
		"thinking as a word":      `"requests":{"thinking":{"on":"yes","off":null}}`,
		"logprobs as a list":      `"requests":{"logprobs":[1]}`,
		"launch without program":  `"launch":{"program":"","args":[],"port":1,"busy":"next"}`,
		"launch on no port":       `"launch":{"program":"x","args":[],"port":0,"busy":"next"}`,
		"unload without method":   `"unload":{"method":"","path":"/x"}`,
		"an avoided ready check":  `"avoid":["/x"],"ready":{"path":"/x"}`,
	} {
		fields := map[string]json.RawMessage{"schema": []byte("1"), "id": []byte(`"ours"`), "name": []byte(`"Ours"`), "kind": []byte(`"server"`),
			"recognize": []byte("{}"), "requests": []byte("{}")}
		if err := json.Unmarshal([]byte("{"+change+"}"), &fields); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		c := builtin(t)
		if err := c.Add(raw); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: got %v, want a usage error", name, err)
		}
		if len(c.Profiles()) != 22 {
			t.Errorf("%s left %d profiles", name, len(c.Profiles()))
		}
	}
	for _, raw := range []string{"", "{}{}", "[]", strings.Repeat("[", 100)} {
		if err := builtin(t).Add([]byte(raw)); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q: got %v, want a usage error", raw, err)
		}
	}
}
