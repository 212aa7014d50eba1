package engines

import (
	"net/http"
	"slices"
	"testing"
)

// TestAPathThatMakesAnEngineWork holds when /health, which makes SGLang generate and LiteLLM ask its models, is asked: only
// of a server that is neither, or when nothing else proved anything and nobody is disturbed.
func TestAPathThatMakesAnEngineWork(t *testing.T) {
	locked := played{status: http.StatusUnauthorized, body: `{"error":"no key"}`}
	strata := jsonBody(`{"service":"strata"}`)
	prism := jsonBody(`{"active_model":"m","active_device":"cpu"}`)
	listing := jsonBody(`{"object":"list","data":[{"id":"m","owned_by":"me"}]}`)
	for name, c := range map[string]struct {
		answers map[string]played
		label   string
		traffic bool
		engine  string
		asked   bool
	}{
		"sglang by its listing":                    {answers: map[string]played{"/v1/models": jsonBody(`{"object":"list","data":[{"id":"m","owned_by":"sglang"}]}`)}, engine: "sglang"},
		"sglang by its metrics":                    {answers: map[string]played{"/metrics": {status: 200, body: "sglang:num_running_reqs 1\n"}}, engine: "sglang"},
		"sglang by the user":                       {label: "sglang", engine: "sglang"},
		"a locked server that has answered others": {answers: map[string]played{"/v1/models": locked, "/health": strata}, traffic: true, engine: Unknown},
		"a locked server, quiet":                   {answers: map[string]played{"/v1/models": locked, "/health": strata}, engine: "strata", asked: true},
		"a locked server that proves itself by /props": {answers: map[string]played{"/v1/models": locked, "/health": strata,
			"/props": jsonBody(`{"build_info":"b1-abc"}`)}, engine: "llamacpp"},
		"a listing of another, which has answered others": {answers: map[string]played{"/v1/models": listing, "/health": prism}, traffic: true,
			engine: "prism", asked: true},
		"no listing at all":               {answers: map[string]played{"/health": strata}, traffic: true, engine: "strata", asked: true},
		"a shape behind a locked listing": {answers: map[string]played{"/v1/models": locked, "/health": prism}, engine: "prism", asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: c.answers}
			d := identify(t, s, Options{Label: c.label, Traffic: func() bool { return c.traffic }})
			if d.Engine != c.engine {
				t.Errorf("engine %q (%s), want %q", d.Engine, d.Evidence, c.engine)
			}
			health, props := slices.Index(s.asked, "/health"), slices.Index(s.asked, "/props")
			if (health >= 0) != c.asked {
				t.Errorf("asked %q", s.asked)
			}
			if c.answers["/v1/models"].status == http.StatusUnauthorized && c.asked && health < props {
				t.Errorf("it was not asked last: %q", s.asked)
			}
		})
	}
}

// TestNoProfileReadsWhatItAvoids holds that the list of a profile binds everything the profile itself asks for.
func TestNoProfileReadsWhatItAvoids(t *testing.T) {
	avoiding := 0
	for _, p := range builtin(t).Profiles() {
		for _, path := range p.Avoid {
			avoiding++
			q := p
			q.Metadata = append(slices.Clone(p.Metadata), Read{Field: "version", Path: path, At: "version"})
			if q.check() == nil {
				t.Errorf("%s may read %s, which it avoids", p.ID, path)
			}
			q = p
			q.Ready = &Ready{Path: path}
			if q.check() == nil {
				t.Errorf("%s may wait on %s, which it avoids", p.ID, path)
			}
		}
	}
	if avoiding < 3 {
		t.Errorf("%d paths are avoided", avoiding)
	}
}
