package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// The prompt of most tests has 13 tokens, so generated token n stands at place 13 + n.
const (
	labPrompt = "tell me of the sea and the sun over the long road home"
	labPlace  = 13
	labAsk    = `{"prompt":"` + labPrompt + `","n_predict":8,"temperature":0,"n_probs":5,"return_tokens":true}`
)

// lab is an engine that is asked without a network: what it answers is sealed at once, on a clock of its own.
type lab struct {
	t    testing.TB
	toy  sim.Handler
	name string
	n    int
	at   time.Time
	// spoil changes what was answered to a need; nil for nothing.
	spoil func(exchange.Need, *exchange.Exchange)
}

func newLab(t testing.TB, name string, o sim.ToyOptions) *lab {
	return &lab{t: t, toy: sim.NewToy(o).Handler(), name: name, at: time.Unix(1_800_000_000, 0).UTC()}
}

// ask sends requests at once; each is under way until all are answered.
func (l *lab) ask(asks ...exchange.Need) (xs []*exchange.Exchange) {
	l.t.Helper()
	var done []func()
	for _, n := range asks {
		l.n++
		s := l.toy(sim.Request{Method: n.Method, Target: n.Path, Body: n.Body})
		done = append(done, func() { s.Done(sim.Record{}) })
		var answer []byte
		for _, step := range s.Steps {
			answer = append(answer, step.Data...)
		}
		x := &exchange.Exchange{
			ID: exchange.NewID(l.at.Add(time.Duration(l.n) * time.Second)), Identity: exchange.Identity{Engine: "llamacpp", Version: l.name}, Harness: "test",
			Request:  exchange.Request{Method: n.Method, Target: n.Path, Body: exchange.NewBody(n.Body)},
			Response: exchange.Response{Status: s.Status, Headers: s.Headers, Body: exchange.NewBody(answer)},
			End:      exchange.EndEOF, State: exchange.StateStored,
		}
		tl := &x.Timeline
		tl.Wall = l.at
		tl.SendStart, tl.HeaderRead, tl.FirstRead, tl.LastRead, tl.BodyEnd = exchange.MarkAt(1000), exchange.MarkAt(2000), exchange.MarkAt(2000), exchange.MarkAt(2000), exchange.MarkAt(2000)
		tl.Reads = []exchange.Read{{At: 2000, Size: len(answer)}}
		if l.spoil != nil {
			l.spoil(n, x)
		}
		xs = append(xs, x)
	}
	for _, d := range done {
		d()
	}
	l.at = l.at.Add(time.Minute)
	return xs
}

// one sends one request.
func (l *lab) one(path, body string) *exchange.Exchange {
	l.t.Helper()
	return l.ask(exchange.Need{Method: "POST", Path: path, Body: []byte(body)})[0]
}

// golden is a recording of the engine.
func (l *lab) golden(path, body string, turn int) *exchange.Golden {
	l.t.Helper()
	g, err := GoldenOf(l.one(path, body), Recording{ID: exchange.ID("G-" + l.name + fmt.Sprint(l.n)), Weights: "sha256:aa", Concurrency: 1, Turn: turn})
	if err != nil {
		l.t.Fatal(err)
	}
	return g
}

// settle judges until nothing more is needed, asking the engines as a runner would. needs are all that were asked for.
func settle(t *testing.T, c *exchange.Case, check exchange.Check, reference, candidate *lab) (v exchange.Verdict, needs exchange.Needs) {
	t.Helper()
	for range 10 {
		v, more, err := Judge(Prepare(c), check)
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			return v, needs
		}
		if v.Status != exchange.VerdictNotRun {
			t.Fatalf("%s while answers are missing", v.Status)
		}
		needs = append(needs, more...)
		for i := 0; i < len(more); {
			k := i + 1
			for more[i].Wave != "" && k < len(more) && more[k].Wave == more[i].Wave {
				k++
			}
			of := reference
			if more[i].Party == exchange.Candidate {
				of = candidate
			}
			if of == nil {
				c.Replies = append(c.Replies, exchange.Reply{Need: more[i].ID, Reason: "nobody to ask"})
			} else {
				for n, x := range of.ask(more[i:k]...) {
					c.Replies = append(c.Replies, exchange.Reply{Need: more[i+n].ID, Exchange: x})
				}
			}
			i = k
		}
	}
	t.Fatal("the gate never has enough")
	return v, needs
}

// checkOf is a check with the weights of the lab.
func checkOf(gate string, params map[string]any) exchange.Check {
	all := map[string]any{"weights": "sha256:aa"}
	for k, v := range params {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return exchange.Check{Gate: gate, Params: raw}
}

// nearOf reads the detail of a near-tie verdict.
func nearOf(t *testing.T, v exchange.Verdict) (d nearDetail) {
	t.Helper()
	if err := json.Unmarshal(v.Detail, &d); err != nil || len(d.Turns) == 0 {
		t.Fatalf("detail %s: %v", v.Detail, err)
	}
	return d
}

// nudged is a toy of the lab's model with one place that differs.
func nudged(place int, gaps map[sim.Numerics]float64) sim.ToyOptions {
	return sim.ToyOptions{Seed: 1, Nudges: []sim.Nudge{{At: labPlace + place, Gaps: gaps}}}
}

type gaps = map[sim.Numerics]float64

func refusedField(err error) string {
	var e *exchange.Error
	if !errors.As(err, &e) || !errors.Is(err, exchange.ErrMiss) {
		return "not refused: " + fmt.Sprint(err)
	}
	return Refused(err)
}

func hold(t *testing.T, what string, v exchange.Verdict, status exchange.VerdictStatus, reason string) {
	t.Helper()
	if v.Status != status || !strings.Contains(v.Reason, reason) {
		t.Errorf("%s: %s: %s\nwant %s with %q", what, v.Status, v.Reason, status, reason)
	}
}
