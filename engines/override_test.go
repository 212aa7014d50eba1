package engines

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestOverrideWithNothing holds that every profile survives the way through its own JSON.
func TestOverrideWithNothing(t *testing.T) {
	c := builtin(t)
	for _, p := range c.Profiles() {
		if err := c.Override(p.ID, []byte(`{}`)); err != nil {
			t.Error(err)
		}
		same, _ := c.Lookup(p.ID)
		if diff := cmp.Diff(valueOf(t, p), valueOf(t, same)); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", p.ID, diff)
		}
	}
}

func valueOf(t *testing.T, p Profile) any {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return decodeJSON(b)
}

func TestOverride(t *testing.T) {
	c := builtin(t)
	before, _ := c.Lookup("vllm")
	patch := `{"name":"our vLLM","avoid":["/stats"],"ready":{"note":"slow"},"launch":null,"requests":{"usage":"always"}}`
	if err := c.Override("VLLM", []byte(patch)); err != nil {
		t.Fatal(err)
	}
	after, _ := c.Lookup("vllm")
	if after.Name != "our vLLM" || after.Requests.Usage != "always" || after.Launch != nil || after.Ready.Note != "slow" || len(after.Avoid) != 1 {
		t.Errorf("got %+v", after)
	}
	if before.Ready.Path != after.Ready.Path || len(before.Metadata) != len(after.Metadata) || len(after.Requests.Limit) == 0 {
		t.Error("what was not said did not stay")
	}
	if err := c.Override("ours", []byte(`{"name":"Ours","kind":"server","recognize":{"declared":[{"in":"owned_by","name":"ours"}]}}`)); err != nil {
		t.Fatal(err)
	}
	s := &server{answers: map[string]played{"/v1/models": jsonBody(`{"object":"list","data":[{"id":"m","owned_by":"ours"}]}`)}}
	if d, err := c.Identify(t.Context(), s, base, Options{}); err != nil || d.Engine != "ours" {
		t.Errorf("an engine of one's own is %q, %v", d.Engine, err)
	}
}

func TestOverrideRefuses(t *testing.T) {
	for patch, says := range map[string]string{
		`{"recognise":{}}`:                       `there is no key "recognise" in engines.vllm; there are aliases, avoid,`,
		`{"ready":{"url":"/x"}}`:                 `there is no key "url" in engines.vllm.ready; there are key, loading, note, path`,
		`{"metadata":[{"field":"speed"}]}`:       `there is no field "speed"`,
		`{"id":"other"}`:                         `cannot become "other"`,
		`{"avoid":["/v1/models"]}`:               "cannot be read at",
		`{"aliases":["ollama"]}`:                 "both called",
		`{"schema":9}`:                           "schema 9",
		`{"requests":{"thinking":{"on":"yes"}}}`: "is not an object to merge",
		`[]`:                                     "cannot unmarshal",
		`{"name":"x"`:                            "unexpected end",
	} {
		c := builtin(t)
		err := c.Override("vllm", []byte(patch))
		if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", patch, err, says)
		}
		if p, _ := c.Lookup("vllm"); p.Name != "vLLM" || p.Ready.Path != "/health" {
			t.Errorf("%s: the catalog changed", patch)
		}
	}
	if err := builtin(t).Override("new", []byte(`{"kind":"server"}`)); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), "has no name") {
		t.Errorf("a new engine without a name: %v", err)
	}
}
