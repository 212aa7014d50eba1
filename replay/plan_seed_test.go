package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestRepeatsThatSampleHaveSeedsOfTheirOwn plays each request in three repeats to two targets and looks at the seeds.
func TestRepeatsThatSampleHaveSeedsOfTheirOwn(t *testing.T) {
	set, err := ParseSet("seed=9")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		target, body string
		o            PlanOptions
		at           string    // path of the seed; "" where the request must stay as it is
		want         []float64 // by repeat; nil for three different ones
	}{
		"temperature":          {target: "/v1/chat/completions", body: `{"temperature":0.7}`, at: "seed"},
		"its own seed":         {target: "/v1/chat/completions", body: `{"temperature":0.7,"seed":41}`, at: "seed", want: []float64{41, 42, 43}},
		"a seed alone":         {target: "/v1/completions", body: `{"seed":1}`, at: "seed", want: []float64{1, 2, 3}},
		"an odd seed":          {target: "/v1/completions", body: `{"seed":-1}`, at: "seed"}, // -1 is random for llama.cpp
		"greedy":               {target: "/v1/chat/completions", body: `{"temperature":0,"seed":41}`},
		"nothing said":         {target: "/v1/chat/completions", body: `{"model":"m"}`},
		"ollama":               {target: "/api/chat", body: `{"options":{"temperature":1}}`, at: "options.seed"},
		"gemini":               {target: "/v1beta/models/m:generateContent", body: `{"generationConfig":{"temperature":1}}`, at: "generationConfig.seed"},
		"sglang":               {target: "/generate", body: `{"sampling_params":{"temperature":1}}`, at: "sampling_params.sampling_seed"},
		"llama.cpp":            {target: "/completion", body: `{"temperature":1}`, at: "seed"},
		"no seed in anthropic": {target: "/v1/messages", body: `{"temperature":1}`},
		"not JSON":             {target: "/v1/chat/completions", body: `temperature`},
		"kept":                 {target: "/v1/chat/completions", body: `{"temperature":0.7}`, o: PlanOptions{KeepSeed: true}},
		"set by the user":      {target: "/v1/chat/completions", body: `{"temperature":0.7}`, o: PlanOptions{Changes: Changes{Edits: []Edit{set}}}, at: "seed", want: []float64{9, 9, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			it := asked("q", 0, tc.body)
			it.Target = tc.target
			o := tc.o
			o.Loop, o.Repeats, o.Targets, o.Salt = LoopClosed, 3, []string{"a", "b"}, name
			p := planOf(t, &Workload{Items: []Item{it}}, o)
			got := map[int]float64{} // by repeat
			for i := range p.jobs {
				j := &p.jobs[i]
				q, err := p.draft(j, 0)
				if err != nil {
					t.Fatal(err)
				}
				if tc.at == "" {
					if string(q.body) != tc.body {
						t.Errorf("sent as %s", q.body)
					}
					continue
				}
				seed, ok := jsonBody(q.body).numberAt(tc.at)
				if before, known := got[j.repeat]; !ok || known && before != seed {
					t.Errorf("repeat %d has the seed %v, %v; another target %v", j.repeat, seed, ok, before)
				}
				got[j.repeat] = seed
				if tc.want != nil && seed != tc.want[j.repeat] {
					t.Errorf("repeat %d has the seed %v, want %v", j.repeat, seed, tc.want[j.repeat])
				}
				own := strings.Contains(tc.body, `"seed":`) && j.repeat == 0 && tc.want != nil
				if !own && !tellsField(q.notes, tc.at) {
					t.Errorf("repeat %d does not tell its seed: %+v", j.repeat, q.notes)
				}
			}
			if tc.at != "" && tc.want == nil && !allDiffer(got) {
				t.Errorf("seeds %v", got)
			}
		})
	}
}

func allDiffer(seeds map[int]float64) bool {
	seen := map[float64]bool{}
	for _, seed := range seeds {
		seen[seed] = true
	}
	return len(seen) == len(seeds)
}

// tellsField reports whether the notes of a request tell that the field at a path was set.
func tellsField(notes []exchange.Intervention, at string) bool {
	return slices.ContainsFunc(notes, func(n exchange.Intervention) bool {
		return n.Kind == KindFieldSet && n.Where == exchange.SideEngine && n.Name == at
	})
}

// TestWhatIsSentOnceKeepsItsSeed holds that no seed is made up for a single take, and that a plan's hash tells the rule.
func TestWhatIsSentOnceKeepsItsSeed(t *testing.T) {
	once := asked("q", 0, `{"temperature":0.7}`)
	p := planOf(t, &Workload{Items: []Item{once}}, PlanOptions{Loop: LoopClosed})
	if q, err := p.draft(&p.jobs[0], 0); err != nil || string(q.body) != string(once.Body) {
		t.Errorf("what is sent once is sent as it is: %s, %v", q.body, err)
	}
	o := PlanOptions{Loop: LoopClosed, Repeats: 2}
	own := planOf(t, &Workload{Items: []Item{once}}, o).Hash
	o.KeepSeed = true
	if planOf(t, &Workload{Items: []Item{once}}, o).Hash == own {
		t.Error("the plan's hash does not tell whether seeds are kept")
	}
}
