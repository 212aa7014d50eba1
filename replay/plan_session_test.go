package replay

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestEachTargetHasItsSessionHeader holds that a target's own header is sent to it alone, that one that was asked for
// goes to all, and that turns share a value while conversations, repeats and targets do not.
func TestEachTargetHasItsSessionHeader(t *testing.T) {
	w := many(3, 0, 1)
	w.Items[1].Conversation, w.Items[2].Conversation, w.Items[2].Turn = "talk", "talk", 1
	two := []string{"a", "b"}
	o := PlanOptions{Loop: LoopClosed, Targets: two, TargetSessions: []string{"X-A", ""}, Repeats: 2, Salt: "s"}
	p := planOf(t, w, o)
	o.SessionHeader = "X-All"
	all := planOf(t, w, o)
	o.SessionHeader, o.TargetSessions = "", nil
	plain := planOf(t, w, o)
	if p.Hash == plain.Hash || all.Hash == p.Hash {
		t.Error("the hash does not cover session headers")
	}
	values := map[string]bool{}
	sent := func(p *Plan, name string) (with, without int) {
		for i := range p.jobs {
			j, first := &p.jobs[i], ""
			for turn := range j.turns {
				q, err := p.draft(j, turn)
				if err != nil {
					t.Fatal(err)
				}
				v, ok := exchange.HeaderValue(q.headers, name)
				if !ok {
					without++
					continue
				}
				with++
				if turn == 0 {
					first = v
				}
				if v != first || turn == 0 && values[v] {
					t.Errorf("turn %d of %s says %q", turn, j.talkName(), v)
				}
				values[v] = true
			}
		}
		return with, without
	}
	if with, without := sent(p, "X-A"); with != 6 || without != 6 {
		t.Errorf("%d requests have the header of target a, %d do not", with, without)
	}
	clear(values)
	if with, without := sent(all, "X-All"); with != 12 || without != 0 {
		t.Errorf("%d requests have the header of all, %d do not", with, without)
	}
	if _, err := NewPlan(w, PlanOptions{Loop: LoopClosed, Targets: two, TargetSessions: []string{"X"}}); err == nil {
		t.Error("one header for two targets was taken")
	}
}
