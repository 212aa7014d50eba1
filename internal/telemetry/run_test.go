package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// TestCasesOfAGate holds the tree of a gate: run, case, exchanges. A case lasts from the first exchange asked for it to the
// last, whichever is measured first; a turn belongs to its conversation; warm-ups belong to no case.
func TestCasesOfAGate(t *testing.T) {
	r := newRig(t, nil)
	run := r.NewRun()
	ask := func(item exchange.PlanItem, after time.Duration) exchange.ID {
		x := wholeAnswer()
		x.ID, x.Mode, x.Item = exchange.NewID(wall()), "gate", &item
		x.Timeline.Wall = x.Timeline.Wall.Add(after)
		run.Trace(x.ID, "", nil, false)
		r.Measured(x, measure.Analyze(x))
		r.Stored(&exchange.Summary{ID: x.ID, State: exchange.StateStored})
		return x.ID
	}
	long := strings.Repeat("x", 5000)
	below := map[exchange.ID]string{
		ask(exchange.PlanItem{Item: "a"}, time.Second):                "case a",
		ask(exchange.PlanItem{Item: "a"}, 0):                          "case a",
		ask(exchange.PlanItem{Item: "c/1", Conversation: "c"}, 0):     "case c",
		ask(exchange.PlanItem{Item: "c/2", Conversation: "c"}, 0):     "case c",
		ask(exchange.PlanItem{Item: "warmup", Warmup: true}, 0):       "benchproxy gate",
		ask(exchange.PlanItem{Item: long + "\x1b[2J"}, 2*time.Second): "case " + long[:maxTitle-5] + "…",
	}
	run.End(&exchange.Run{ID: "R", Mode: "gate", State: exchange.RunComplete})
	r.Close()
	names := map[string]string{}
	var cases []string
	for _, s := range r.to.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
		if strings.HasPrefix(s.Name, "case ") {
			cases = append(cases, s.Name)
		}
		if s.Name == "case a" {
			a := attrsOf(s.Attributes)
			if d := cmp.Diff(map[string]string{ourCase: "a", ourRun: "R", ourExchanges: "2"}, a); d != "" {
				t.Errorf("the case (-want +got)\n%s", d)
			}
			if !s.StartTime.Equal(wall().Add(time.Duration(ms))) || s.EndTime.Sub(s.StartTime) != time.Second+83*time.Millisecond {
				t.Errorf("it lasts from %s to %s", s.StartTime, s.EndTime)
			}
		}
	}
	if len(cases) != 3 {
		t.Errorf("the cases are %d", len(cases))
	}
	for _, s := range r.to.GetSpans() {
		if id := attrsOf(s.Attributes)[ourRecord]; id != "" && names[s.Parent.SpanID().String()] != below[exchange.ID(id)] {
			t.Errorf("%s is below %.80s, want %.80s", id, names[s.Parent.SpanID().String()], below[exchange.ID(id)])
		}
	}
	if i := slices.Index(cases, "case a"); i < 0 {
		t.Errorf("there is no case a in %.80q", cases)
	}
}
