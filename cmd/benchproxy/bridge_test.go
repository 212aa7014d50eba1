package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// TestHowATargetIsSpokenTo covers who decides: the flag, the target of the config, the engine.
func TestHowATargetIsSpokenTo(t *testing.T) {
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	all := []wire.Dialect{wire.DialectChat, wire.DialectCompletions, wire.DialectResponses, wire.DialectAnthropic, wire.DialectGemini, wire.DialectOllama}
	for name, tc := range map[string]struct {
		to, dialect, engine string
		want                wire.Dialect
		kept                []wire.Dialect // of all, those that are not translated
	}{
		"nothing is known":            {"", "", "", "", all},
		"the engine has one":          {"", "", "anthropic", wire.DialectAnthropic, []wire.Dialect{wire.DialectCompletions, wire.DialectAnthropic}}, // completions are tried
		"the engine has several":      {"", "", "ollama", wire.DialectChat, []wire.Dialect{wire.DialectChat, wire.DialectCompletions, wire.DialectResponses, wire.DialectAnthropic, wire.DialectOllama}},
		"the target says":             {"", "gemini", "ollama", wire.DialectGemini, []wire.Dialect{wire.DialectGemini}},
		"of a dialect only it speaks": {"", "tensorsharp", "tensorsharp", "", all},
		"the flag says":               {"anthropic", "gemini", "ollama", wire.DialectAnthropic, []wire.Dialect{wire.DialectAnthropic}},
		"the flag says nothing":       {"recorded", "gemini", "anthropic", "", all},
		"all of OpenAI's":             {"openai", "", "openai", wire.DialectChat, []wire.Dialect{wire.DialectChat, wire.DialectCompletions, wire.DialectResponses}},
		"what the engine has of it":   {"openai", "", "prism", wire.DialectChat, []wire.Dialect{wire.DialectChat}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := catalog.Lookup(tc.engine)
			s := bridgeSettings{to: tc.to, catalog: catalog}
			e := s.endpoint(upstream{dialect: tc.dialect}, p)
			var kept []wire.Dialect
			for _, d := range all {
				if !e.Translates(d) {
					kept = append(kept, d)
				}
			}
			if e.Dialect != tc.want || !cmp.Equal(kept, tc.kept) {
				t.Errorf("%q, keeps %v; want %q, %v", e.Dialect, kept, tc.want, tc.kept)
			}
		})
	}
}

// TestKeysGoWhereTheyAreRead holds that a gateway of Messages gets a key in both headers, and Gemini in its own alone.
func TestKeysGoWhereTheyAreRead(t *testing.T) {
	bearer := []exchange.Header{{Name: "X-Org", Value: "o"}, {Name: "Authorization", Value: "Bearer k"}}
	for name, tc := range map[string]struct {
		have   []exchange.Header
		spoken []wire.Dialect
		want   []exchange.Header
	}{
		"chat":               {bearer, []wire.Dialect{wire.DialectChat}, bearer},
		"messages":           {bearer, []wire.Dialect{wire.DialectAnthropic}, append(bearer[:2:2], exchange.Header{Name: "x-api-key", Value: "k"})},
		"messages and chat":  {bearer, []wire.Dialect{wire.DialectAnthropic, wire.DialectChat}, append(bearer[:2:2], exchange.Header{Name: "x-api-key", Value: "k"})},
		"gemini":             {bearer, []wire.Dialect{wire.DialectGemini}, []exchange.Header{{Name: "X-Org", Value: "o"}, {Name: "x-goog-api-key", Value: "k"}}},
		"gemini and chat":    {bearer, []wire.Dialect{wire.DialectGemini, wire.DialectChat}, bearer},
		"another scheme":     {[]exchange.Header{{Name: "authorization", Value: "Basic x"}}, []wire.Dialect{wire.DialectAnthropic}, []exchange.Header{{Name: "authorization", Value: "Basic x"}}},
		"one of its own":     {[]exchange.Header{{Name: "Authorization", Value: "Bearer k"}, {Name: "X-Api-Key", Value: "other"}}, []wire.Dialect{wire.DialectAnthropic}, []exchange.Header{{Name: "Authorization", Value: "Bearer k"}, {Name: "X-Api-Key", Value: "other"}}},
		"without any header": {nil, []wire.Dialect{wire.DialectAnthropic}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := credentialsFor(func() []exchange.Header { return tc.have }, tc.spoken)()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if credentialsFor(nil, []wire.Dialect{wire.DialectAnthropic}) != nil {
		t.Error("no key became one")
	}
}
