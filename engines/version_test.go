package engines

import "testing"

// TestVersionAloneProvesNothing holds what a /version document is worth: many servers have one.
func TestVersionAloneProvesNothing(t *testing.T) {
	listed := func(owner string) played {
		return jsonBody(`{"object":"list","data":[{"id":"m","object":"model","owned_by":"` + owner + `"}]}`)
	}
	for name, tc := range map[string]struct {
		version, models played
		want            string
	}{
		"a version and its name":         {jsonBody(`{"version":"0.11.2"}`), listed("vllm"), "vllm"},
		"its name without a version":     {played{status: 404}, listed("vllm"), "vllm"},
		"a version and no listing":       {jsonBody(`{"version":"0.11.2"}`), played{status: 404}, Unknown},
		"a version and nobody's listing": {jsonBody(`{"version":"0.11.2"}`), jsonBody(`{"data":[{"id":"m"}]}`), Unknown},
		"a version of somebody else's":   {jsonBody(`{"version":"0.11.2"}`), listed("sglang"), "sglang"},
		"a gateway's listing":            {jsonBody(`{"version":"1"}`), listed("openai"), Unknown},
		"a number":                       {jsonBody(`{"version":3}`), jsonBody(`{"data":[{"id":"m"}]}`), Unknown},
		"more than a version":            {jsonBody(`{"version":"1.2","name":"my gateway"}`), jsonBody(`{"data":[{"id":"m"}]}`), Unknown},
	} {
		s := &server{answers: map[string]played{"/version": tc.version, "/v1/models": tc.models}}
		if d := identify(t, s, Options{}); d.Engine != tc.want {
			t.Errorf("%s: %s, want %s (%s)", name, d.Engine, tc.want, d.Evidence)
		}
	}
	doc := Document{Path: "/version", Key: "version", Only: true}
	for body, want := range map[string]bool{
		`{"version":"1"}`: true, `{"version":1}`: false, `{"version":null}`: false, `{"version":""}`: false,
		`{"version":"1","build":"x"}`: false, `{"build":"x"}`: false, `"1"`: false, `[{"version":"1"}]`: false,
	} {
		a := &answer{path: "/version", status: 200, body: []byte(body), doc: decodeJSON([]byte(body))}
		if _, ok := doc.match(a); ok != want {
			t.Errorf("%s: %v, want %v", body, ok, want)
		}
	}
}
