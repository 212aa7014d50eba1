package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// made is a whole answer of llama.cpp in its own words.
func made(request, body string) *exchange.Exchange {
	return spoken{target: "/completion", request: request, body: body}.exchange()
}

const madeBody = `{"content":"ab","tokens":[1,2],"stop":true,"stop_type":"limit","tokens_predicted":2,"tokens_evaluated":4,` +
	`"timings":{"cache_n":3,"prompt_n":1,"predicted_n":2},"generation_settings":{"speculative.types":"none"},"completion_probabilities":[` +
	`{"id":1,"token":"a","bytes":[97],"logprob":-0.5,"top_logprobs":[{"id":1,"token":"a","bytes":[97],"logprob":-0.5},{"id":5,"token":"","bytes":[195],"logprob":-1}]},` +
	`{"id":2,"token":"b","bytes":[98],"logprob":-0.25,"top_logprobs":[{"id":2,"token":"b","bytes":[98],"logprob":-0.25}]}]}`

const madeAsk = `{"prompt":[9,8,7,6],"temperature":0,"seed":3,"repeat_penalty":1.0,"top_p":0.9,"n_probs":5,"n_predict":2}`

func TestGoldenOf(t *testing.T) {
	x := made(madeAsk, madeBody)
	x.Identity = exchange.Identity{Engine: "llamacpp", Version: "b1"}
	g, err := GoldenOf(x, Recording{ID: "G", Weights: "sha256:aa", Concurrency: 2, Turn: 1, Variant: "-ub 8"})
	if err != nil {
		t.Fatal(err)
	}
	want := exchange.Conditions{Cache: exchange.CacheWarm, CachedTokens: new(int64), Concurrency: 2, Temperature: new(float64), Seed: new(int64), Drafting: new(bool), Variant: "-ub 8"}
	*want.CachedTokens, *want.Seed = 3, 3
	if d := cmp.Diff(want, g.Conditions); d != "" {
		t.Errorf("conditions (-want +got)\n%s", d)
	}
	if g.Basis != BasisLogprobs || !g.Spelled || g.Source != x.ID || g.Turn != 1 || g.Engine.Version != "b1" || *g.PromptTokens != 4 || len(g.PromptIDs) != 4 || g.Finish != "length" {
		t.Errorf("%+v", g)
	}
	if d := cmp.Diff(`{"temperature":0}`, string(g.Sampling)); d != "" {
		t.Errorf("sampling (-want +got)\n%s", d)
	}
	if len(g.Tokens) != 2 || g.Tokens[0].Top[1].Spelling() != "\xc3" || g.Key == "" || !strings.HasPrefix(g.Digest, "sha256:") {
		t.Errorf("%+v", g.Tokens)
	}
	if err := CheckGolden(g); err != nil {
		t.Error(err)
	}
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var back exchange.Golden
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(g, &back); d != "" {
		t.Errorf("through JSON (-before +after)\n%s", d)
	}
}

func TestGoldenOfText(t *testing.T) {
	x := spoken{content: "forty-two", thought: "hm", finish: "stop"}.exchange()
	g, err := GoldenOf(x, Recording{ID: "G", Unnamed: true})
	if err != nil || g.Basis != BasisText || g.Text != "forty-two" || g.Reasoning != "hm" || g.Cache != exchange.CacheUnknown || g.Drafting != nil || g.Temperature != nil {
		t.Fatalf("%+v, %v", g, err)
	}
	// Equal text is a match; another cannot be judged.
	x.Timeline.Wall = g.Made
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{x}, Goldens: []*exchange.Golden{g}}
	unknown := ownCheck("near_tie", map[string]any{"unknown_weights": true})
	v, _ := settle(t, c, unknown, nil, nil)
	hold(t, "equal", v, exchange.VerdictOK, "")
	c.Exchanges[0] = spoken{content: "forty-three", thought: "hm", finish: "stop", request: `{"model":"other","messages":[{"role":"user","content":"?"}],"temperature":0}`}.exchange()
	v, _ = settle(t, c, unknown, nil, nil)
	hold(t, "sampling", v, exchange.VerdictIncomparable, "temperature is not named in the golden and 0 in the subject")
	g.Sampling = []byte(`{"temperature":0}`)
	v, _ = settle(t, c, unknown, nil, nil)
	hold(t, "another text", v, exchange.VerdictIncomparable, "the texts part at byte 10, and the golden has no tokens")
	v, _ = settle(t, c, ownCheck("text_divergence", map[string]any{"unknown_weights": true}), nil, nil)
	hold(t, "another text", v, exchange.VerdictFail, "parts from golden G")
}

// TestRefusedAnswers holds that what is no reference is refused by the name of the field.
func TestRefusedAnswers(t *testing.T) {
	on := true
	drafted := strings.Replace(madeBody, `"predicted_n":2`, `"predicted_n":2,"draft_n":7,"draft_n_accepted":5`, 1)
	zeros := `{"content":"abc","tokens":[1,2,3],"stop":true,"stop_type":"limit","tokens_predicted":3,"completion_probabilities":[` +
		`{"id":1,"token":"a","logprob":-0.5},{"id":2,"token":"b","logprob":0.0},{"id":3,"token":"c","logprob":0.0}]}`
	post := strings.NewReplacer(`"logprob"`, `"prob"`, `"top_logprobs"`, `"top_probs"`, "-", "").Replace(madeBody)
	legacy := `{"content":"a","stop":true,"stopped_limit":true,"tokens_predicted":1,"completion_probabilities":[{"content":"a","probs":[{"tok_str":"a","prob":0.5}]}]}`
	cut := made(madeAsk, madeBody)
	cut.State = exchange.StateTruncated
	for field, test := range map[string]struct {
		x *exchange.Exchange
		r Recording
	}{
		"outcome":              {spoken{target: "/completion", request: madeAsk, body: madeBody, end: exchange.EndShort, status: 500}.exchange(), Recording{Weights: "w"}},
		"record":               {cut, Recording{Weights: "w"}},
		"path":                 {spoken{target: "/v1/embeddings", body: `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":1}}`}.exchange(), Recording{Weights: "w"}},
		"choices":              {spoken{body: `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":"b"},"finish_reason":"stop"}]}`}.exchange(), Recording{Weights: "w"}},
		"drafting":             {made(madeAsk, drafted), Recording{Weights: "w"}},
		"drafting, stated":     {made(madeAsk, madeBody), Recording{Weights: "w", Drafting: &on}},
		"drafting, by zeros":   {made(madeAsk, zeros), Recording{Weights: "w"}},
		"weights":              {made(madeAsk, madeBody), Recording{}},
		"log-probability":      {made(madeAsk, post), Recording{Weights: "w"}},
		"log-probability, old": {made(strings.Replace(madeAsk, `"temperature":0`, `"temperature":0.8`, 1), legacy), Recording{Weights: "w"}},
	} {
		_, err := GoldenOf(test.x, test.r)
		want, _, _ := strings.Cut(field, ",")
		if got := refusedField(err); got != want {
			t.Errorf("%s: %s: %v", field, got, err)
		}
	}
	if _, err := GoldenOf(made(madeAsk, legacy), Recording{Weights: "w"}); err != nil {
		t.Errorf("an old build at temperature 0: %v", err)
	}
}

func TestSamplingFields(t *testing.T) {
	for request, want := range map[string]string{
		`{"temperature":0.0,"top_p":0.5,"seed":1,"max_tokens":4,"model":"m"}`:               `{"temperature":0}`,
		`{"temperature":0.7,"top_p":0.5,"seed":1,"top_k":-1}`:                               `{"seed":1,"temperature":0.7,"top_p":0.5}`,
		`{"options":{"temperature":0,"repeat_penalty":1.1}}`:                                `{"repeat_penalty":1.1,"temperature":0}`,
		`{"generationConfig":{"topK":1,"stopSequences":["x"]}}`:                             `{"stop":["x"],"temperature":0}`,
		`{"repetition_penalty":1.0,"presence_penalty":0,"response_format":{"type":"text"}}`: `{}`,
		`nonsense`: `{}`,
	} {
		x := &exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody([]byte(request))}}
		if got := string(askedFor(x).sampling()); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	one := &exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody([]byte(`{"model":"a","messages":[1],"temperature":0,"stream":true,"max_tokens":9}`))}}
	two := &exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody([]byte(`{"messages":[1],"n_predict":3,"logprobs":true}`))}}
	other := &exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody([]byte(`{"messages":[2]}`))}}
	if a, b, c := askedFor(one).promptDigest(), askedFor(two).promptDigest(), askedFor(other).promptDigest(); a != b || a == c {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

func TestNeedle(t *testing.T) {
	reference := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.8}))
	g := reference.golden("/completion", labAsk, 0)
	code := strings.Fields(g.Text)[3] // the word at the nudged place
	for name, test := range map[string]struct {
		gap    float64
		expect string
		golden bool
		status exchange.VerdictStatus
		reason string
	}{
		"found":                   {1, code, true, exchange.VerdictOK, ""},
		"missed by both":          {-1, "no such word", true, exchange.VerdictOK, ""},
		"missed":                  {-1, code, true, exchange.VerdictFail, "the reference finds it, and turn 1 parts"},
		"missed, no golden":       {-1, code, false, exchange.VerdictFail, "no reference that misses it too"},
		"found, without a golden": {1, code, false, exchange.VerdictOK, ""},
	} {
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: test.gap})).one("/completion", labAsk)}}
		if test.golden {
			c.Goldens = []*exchange.Golden{g}
		}
		v, _ := settle(t, c, checkOf("needle", map[string]any{"expect": []string{test.expect}}), reference, nil)
		hold(t, name, v, test.status, test.reason)
	}
	near := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 0.4}))
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1})).one("/completion", labAsk)}, Goldens: []*exchange.Golden{near.golden("/completion", labAsk, 0)}}
	lacking := &exchange.Case{ID: "c", Exchanges: c.Exchanges}
	v, _ := settle(t, lacking, checkOf("needle", map[string]any{"expect": []string{"nowhere"}}), nil, nil)
	hold(t, "no reference", v, exchange.VerdictFail, "no reference that misses it too")
	v, _ = settle(t, lacking, checkOf("needle", map[string]any{"expect": []string{"nowhere"}, "reference": true}), nil, nil)
	hold(t, "no golden of the reference", v, exchange.VerdictIncomparable, "no golden that tells whether the reference finds it")
	v, _ = settle(t, c, checkOf("needle", map[string]any{"expect": []string{code}}), near, nil)
	hold(t, "missed on a near-tie", v, exchange.VerdictOK, "")
	if !strings.Contains(string(v.Detail), `"found":false,`) || !strings.Contains(string(v.Detail), `"reference_found":true`) {
		t.Errorf("%s", v.Detail)
	}
	for _, params := range []map[string]any{nil, {"expect": []string{""}}, {"expect": []string{"a"}, "re_recordings": 99}} {
		if _, _, err := Judge(Prepare(c), checkOf("needle", params)); err == nil {
			t.Errorf("%v is taken", params)
		}
	}
}

func TestOverLimit(t *testing.T) {
	long := `{"prompt":"` + strings.Repeat("sea ", 60) + `","n_predict":2,"temperature":0}`
	l := newLab(t, "cand", sim.ToyOptions{Seed: 1, Limit: 50})
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{l.one("/completion", long)}}
	v, needs := settle(t, c, ownCheck("over_limit", nil), nil, l)
	hold(t, "clean", v, exchange.VerdictOK, "")
	if len(needs) != 1 || needs[0].Method != "GET" || needs[0].Path != "/v1/models" {
		t.Errorf("%+v", needs)
	}
	c.Replies = nil
	v, _ = settle(t, c, ownCheck("over_limit", map[string]any{"health": "/health"}), nil, nil)
	hold(t, "gone after", v, exchange.VerdictFail, "does not answer after it: nobody to ask")

	cut := newLab(t, "cand", sim.ToyOptions{Seed: 1})
	v, _ = settle(t, &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{cut.one("/completion", long)}}, ownCheck("over_limit", nil), nil, cut)
	hold(t, "answered", v, exchange.VerdictFail, "is answered with 200, of which it read 60 tokens")
	for reason, x := range map[string]*exchange.Exchange{
		"gets status 500":                    spoken{status: 500, body: `{"error":{"message":"no"}}`}.exchange(),
		"no error object":                    spoken{status: 400, body: `too long`}.exchange(),
		"did not come to its end":            spoken{status: 400, body: `{"error":{"message":"no"}}`, end: exchange.EndShort}.exchange(),
		"there is no answer: upstream_error": spoken{body: "x", status: -1, end: exchange.EndConnectFailed}.exchange(),
	} {
		if x.Response.Status < 0 {
			x.Response = exchange.Response{}
		}
		v, _ := settle(t, &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{x}}, ownCheck("over_limit", nil), nil, l)
		hold(t, reason, v, exchange.VerdictFail, reason)
	}
}

func TestVision(t *testing.T) {
	reference, candidate := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 0.4})), newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	g := reference.golden("/completion", labAsk, 0)
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{g}}
	v, needs := settle(t, c, checkOf("vision", nil), nil, nil)
	hold(t, "near-tie", v, exchange.VerdictOK, "")
	if len(needs) != 0 {
		t.Errorf("%+v", needs)
	}
	*g.PromptTokens = 12
	v, _ = settle(t, c, checkOf("vision", nil), nil, nil)
	hold(t, "tokens", v, exchange.VerdictFail, "the prompt has 13 tokens, and the reference's 12")
	far := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.2})).golden("/completion", labAsk, 0)
	c.Goldens = []*exchange.Golden{far}
	v, needs = settle(t, c, checkOf("vision", nil), nil, nil)
	hold(t, "no views save it", v, exchange.VerdictFail, "gap 1.200, bar 1.000")
	if len(needs) != 0 {
		t.Errorf("%+v", needs)
	}
}
