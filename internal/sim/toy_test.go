package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// toyReply are the parts of a toy's answers that the tests look at.
type toyReply struct {
	Content string
	Tokens  []int
	Timings struct {
		Cached int `json:"cache_n"`
		Draft  int `json:"draft_n"`
	}
	Probs []struct {
		ID  int
		Top []struct {
			ID      int
			Logprob float64
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

func askToy(t *testing.T, toy *Toy, body string) (r toyReply) {
	t.Helper()
	status, raw := toy.answer(Request{Method: "POST", Target: "/completion", Body: []byte(body)})
	if err := json.Unmarshal(raw, &r); err != nil || status != 200 {
		t.Fatalf("status %d, %v: %s", status, err, raw)
	}
	return r
}

const toyQuestion = `{"prompt":"tell me of the sea and the sun over the long road home","n_predict":8,"temperature":0,"n_probs":5,"return_tokens":true}`

func TestToyIsItsSeed(t *testing.T) {
	one, two, other := NewToy(ToyOptions{Seed: 1}), NewToy(ToyOptions{Seed: 1}), NewToy(ToyOptions{Seed: 2})
	a, b, c := askToy(t, one, toyQuestion), askToy(t, two, toyQuestion), askToy(t, other, toyQuestion)
	if len(a.Tokens) != 8 || !slices.Equal(a.Tokens, b.Tokens) || slices.Equal(a.Tokens, c.Tokens) {
		t.Errorf("%v, %v, of another seed %v", a.Tokens, b.Tokens, c.Tokens)
	}
	again := askToy(t, one, toyQuestion)
	if a.Timings.Cached != 0 || again.Timings.Cached != 12 || !slices.Equal(a.Tokens, again.Tokens) {
		t.Errorf("cold %d, warm %d cached", a.Timings.Cached, again.Timings.Cached)
	}
	if got := one.tokens(a.Content); !slices.Equal(got, a.Tokens) {
		t.Errorf("the text has tokens %v, not %v", got, a.Tokens)
	}
}

// TestToyNudges holds that a nudge shows at its place under its numerics and nowhere else.
func TestToyNudges(t *testing.T) {
	const at = 13 + 3
	toy := NewToy(ToyOptions{Seed: 1, Drafts: true, Nudges: []Nudge{{At: at, Gaps: map[Numerics]float64{
		NumericsDrafted: -0.5, NumericsBatch: 0.75, NumericsMicro: 0.25, NumericsDecode: 1.5}}}})
	plain := askToy(t, NewToy(ToyOptions{Seed: 1}), toyQuestion)
	drafted := askToy(t, toy, toyQuestion)
	decoded := askToy(t, toy, strings.Replace(toyQuestion, `"n_predict"`, `"draft":false,"n_predict"`, 1))
	if drafted.Timings.Draft == 0 || decoded.Timings.Draft != 0 {
		t.Errorf("drafted %d and %d", drafted.Timings.Draft, decoded.Timings.Draft)
	}
	if !slices.Equal(drafted.Tokens[:3], plain.Tokens[:3]) || drafted.Tokens[3] == plain.Tokens[3] || !slices.Equal(decoded.Tokens, plain.Tokens) {
		t.Errorf("plain %v, drafted %v, decoded %v", plain.Tokens, drafted.Tokens, decoded.Tokens)
	}
	gap := func(r toyReply, i int) float64 { return r.Probs[i].Top[0].Logprob - r.Probs[i].Top[1].Logprob }
	if g := gap(decoded, 3); g < 1.49 || g > 1.51 {
		t.Errorf("decoded gap %v", g)
	}
	ids := append(toy.tokens("tell me of the sea and the sun over the long road home"), plain.Tokens[:3]...)
	score := func(n int, cache string) toyReply {
		raw, _ := json.Marshal(ids[:n])
		return askToy(t, toy, `{"prompt":`+string(raw)+`,"n_predict":1,"temperature":0,"n_probs":5,"draft":false,"cache_prompt":`+cache+`}`)
	}
	if g := gap(score(at, "false"), 0); g < 0.74 || g > 0.76 {
		t.Errorf("batch gap %v", g)
	}
	score(8, "false")
	if r := score(at, "true"); gap(r, 0) < 0.24 || gap(r, 0) > 0.26 || r.Timings.Cached != 8 {
		t.Errorf("micro gap %v with %d cached", gap(r, 0), r.Timings.Cached)
	}
}

// TestToyDraws holds that seeds draw from the list.
func TestToyDraws(t *testing.T) {
	toy := NewToy(ToyOptions{Seed: 1})
	first := map[int]int{}
	for i := range 400 {
		raw, _ := json.Marshal(map[string]any{"prompt": "a b c", "n_predict": 1, "temperature": 1, "seed": i, "return_tokens": true})
		first[askToy(t, toy, string(raw)).Tokens[0]]++
	}
	best := toy.list(toy.tokens("a b c"), nil)[0].id
	if n := first[best]; n < 250 || n > 340 {
		t.Errorf("the first choice with probability 0.74 came %d times of 400", n)
	}
}

func TestToyServer(t *testing.T) {
	toy := NewToy(ToyOptions{Seed: 1, Limit: 50})
	_, addr := start(t, Config{Handler: toy.Handler(), Bare: true})
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := http.Post("http://"+addr+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	for _, c := range []struct {
		path, body, want string
		status           int
	}{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"temperature":0,"logprobs":true,"top_logprobs":3,"max_tokens":2}`, `"prompt_tokens":3,"completion_tokens":2`, 200},
		{"/apply-template", `{"messages":[{"role":"user","content":"hi"}]}`, ` hi `, 200},
		{"/tokenize", `{"content":"sea sun"}`, `"piece":" sea"`, 200},
		{"/completion", `{"prompt":"` + strings.Repeat("sea ", 51) + `"}`, "exceed_context_size_error", 400},
		{"/completion", `{"prompt":{}}`, "must be a text", 400},
		{"/completion", `nonsense`, "invalid_request_error", 400},
		{"/nowhere", `{}`, "not_found_error", 404},
	} {
		status, body := post(c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
	resp, err := http.Get("http://" + addr + "/v1/models")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("models: %v", err)
	}
	resp.Body.Close()
}
