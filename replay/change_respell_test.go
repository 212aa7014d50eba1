package replay

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// spelledAs are endpoints of engines, by their built-in profiles, that are asked as recorded.
func spelledAs(t *testing.T, names ...string) []bridge.Endpoint {
	t.Helper()
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var out []bridge.Endpoint
	for _, name := range names {
		p, ok := catalog.Lookup(name)
		if !ok {
			t.Fatalf("there is no profile of %s", name)
		}
		e := bridge.EndpointOf(wire.DialectNone, p)
		e.Known = bridge.SpellingsOf(catalog.Profiles())
		out = append(out, e)
	}
	return out
}

// TestEachTargetIsAskedAsItSpells sends one workload to several engines: the bytes outside of what is respelled stay, what
// the user sets comes after, and the plan is the same for all.
func TestEachTargetIsAskedAsItSpells(t *testing.T) {
	it := asked("r", 0, `{ "model":"sim", "chat_template_kwargs": {"enable_thinking": false}, "stream":true, "n_predict": 12, "messages":[{"role":"user","content":"q é"}] }`)
	o := PlanOptions{Loop: LoopClosed, Targets: []string{"llamacpp", "tensorsharp", "openai"}}
	o.Changes.Bridges = spelledAs(t, o.Targets...)
	o.Changes.Edits = []Edit{mustSet(t, "temperature=0")}
	want := []string{
		`{ "model":"sim", "chat_template_kwargs": {"enable_thinking": false}, "stream":true, "n_predict": 12, "messages":[{"role":"user","content":"q é"}],"temperature":0 }`,
		`{ "model":"sim", "stream":true, "messages":[{"role":"user","content":"q é"}],"max_tokens":12,"think":false,"temperature":0 }`,
		`{ "model":"sim", "stream":true, "messages":[{"role":"user","content":"q é"}],"max_completion_tokens":12,"reasoning_effort":"none","temperature":0 }`,
	}
	rig{engine: steady}.play(t, &Workload{Items: []Item{it}}, o, func(t *testing.T, p *played) {
		if p.err != nil {
			t.Fatal(p.err)
		}
		if err := p.plan.Check(); err != nil {
			t.Error(err)
		}
		for i, records := range p.records {
			x := records.measured()[0]
			if diff := cmp.Diff(want[i], string(x.Request.Body.Bytes())); diff != "" {
				t.Errorf("%s: %s", o.Targets[i], diff)
			}
			respelled := 0
			for _, n := range x.Interventions {
				if n.Kind == KindRespelled {
					respelled++
				}
			}
			if wanted := min(i, 1) * 2; respelled != wanted || p.plan.Respelled(i) != min(i, 1) {
				t.Errorf("%s: %d respelled, %d of the plan", o.Targets[i], respelled, p.plan.Respelled(i))
			}
		}
	})
	alike := o
	alike.Changes.Bridges = nil
	if a, b := planOf(t, &Workload{Items: []Item{it}}, o), planOf(t, &Workload{Items: []Item{it}}, alike); a.Hash != b.Hash {
		t.Error("another spelling is another plan")
	}
	o.Changes.Bridges[1].Dialect = wire.DialectAnthropic
	if a, b := planOf(t, &Workload{Items: []Item{it}}, o), planOf(t, &Workload{Items: []Item{it}}, alike); a.Hash == b.Hash {
		t.Error("another dialect is the same plan")
	}
}

func mustSet(t *testing.T, text string) Edit {
	t.Helper()
	e, err := ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestWhatHasNoSpellingIsRefused holds for what a target has no word for, and that what is no JSON is sent as it is.
func TestWhatHasNoSpellingIsRefused(t *testing.T) {
	o := PlanOptions{Loop: LoopClosed, Targets: []string{"o"}, Changes: Changes{Bridges: spelledAs(t, "ollama")}}
	w := &Workload{Items: []Item{asked("a", 0, `{"repeat_penalty":1.1}`), asked("b", 0, `{"repetition_penalty":1.2,"think":true}`), asked("c", 0, `{"think":`)}}
	err := planOf(t, w, o).Check()
	want := `plan workload: usage: not all that is asked for can be said to the target:
  repeat_penalty: ollama has no such option, for o (item a)
  repetition_penalty: ollama has no such option, for o (item b)`
	if !errors.Is(err, ErrLossy) || err.Error() != want {
		t.Errorf("err = %v", err)
	}
	o.Changes.Lossy = true
	p := planOf(t, w, o)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for i, body := range []string{`{}`, `{"reasoning_effort":"medium"}`, `{"think":`} {
		if d, err := p.draft(&p.jobs[i], 0); err != nil || string(d.body) != body {
			t.Errorf("%v: %s, want %s", err, d.body, body)
		}
	}
}

// TestConversationsInEveryPair records a conversation with a tool in each dialect and sends it in each: the second turn
// holds the answer of now and its ids, and no id of the recording.
func TestConversationsInEveryPair(t *testing.T) {
	for _, from := range bridge.Dialects() {
		w := toolTalk()
		for i := range w.Items {
			it := &w.Items[i]
			if from == wire.DialectChat {
				continue
			}
			said, err := bridge.Translate(wire.DialectChat, it.Target, it.Body, bridge.Endpoint{Dialect: from}, "")
			if err != nil {
				t.Fatal(err)
			}
			it.Target, it.Body = said.Target, said.Body
			it.identify(it.Body)
		}
		for _, to := range bridge.Dialects() {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				o := spokenTo(to)
				o.LiveHistory = true
				rig{engine: steady}.play(t, w, o, func(t *testing.T, p *played) {
					if r := p.report(t); r.Items.Complete != 1 || r.Items.Requests != 2 {
						t.Fatalf("items %+v", r.Items)
					}
					xs := p.records[0].measured()
					body := string(xs[1].Request.Body.Bytes())
					if strings.Contains(body, "call_recorded") || !strings.Contains(body, "sunny") || wire.DialectOf(xs[1].Request.Target) != to {
						t.Errorf("the second turn has %s", body)
					}
					turns := bridge.Turns(to, xs[1].Request.Body.Bytes())
					if len(turns) != 3 || len(turns[1].Calls) != 1 || len(turns[2].Results) != 1 || turns[1].Calls[0].ID == "" || turns[2].Results[0].ID != turns[1].Calls[0].ID {
						t.Errorf("turns %+v", turns)
					}
					for _, n := range xs[1].Interventions {
						if n.Kind == KindNotCarried && n.Where == exchange.SideEngine {
							t.Errorf("lost: %+v", n)
						}
					}
				})
			})
		}
	}
}
