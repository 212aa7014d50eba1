package replay

import (
	"math"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// TestFieldReportAX32 asks an engine of two slots for four streams at once: its aggregate rate is that of two, and the
// concurrency that was reached stands beside it. Field report AX-22 is TestOpenLoopThatCannotBeKept.
func TestFieldReportAX32(t *testing.T) {
	engine := sim.Config{Options: sim.Options{TTFT: 100 * time.Millisecond, DecodeTPS: 50, Answer: 50}, Slots: 2}
	rig{engine: engine}.play(t, many(4, 0, 50), PlanOptions{Loop: LoopWaves, Concurrency: 4}, func(t *testing.T, p *played) {
		wave := p.report(t).Waves[0]
		if got := wave.Figures[measure.AggregateDecodeTPS]; !got.Present() || math.Abs(got.Value-99) > 5 || wave.PeakLive != 2 || wave.Streams != 4 {
			t.Errorf("aggregate %+v of %d streams, %d decoded at once; want about 99 of 4 and 2", got, wave.Streams, wave.PeakLive)
		}
		for i, x := range p.records[0].measured() {
			if f := measure.Analyze(x).Figures[measure.DecodeTPS]; math.Abs(f.Value-50) > 0.5 {
				t.Errorf("stream %d decodes %g a second", i, f.Value)
			}
		}
	})
}

// TestSilenceIsNotSentAgain holds that an engine which takes a request and then says nothing more is not asked again: it
// may be at work on it.
func TestSilenceIsNotSentAgain(t *testing.T) {
	for name, fault := range map[string]string{"before the first event": "fault=stall@0", "inside the body": "fault=stall@4"} {
		t.Run(name, func(t *testing.T) {
			w := many(2, 0, 10)
			w.Items[0].Headers = append(w.Items[0].Headers, exchange.Header{Name: "X-Sim", Value: fault})
			r := rig{engine: steady}
			r.play(t, w, PlanOptions{Loop: LoopClosed}, func(t *testing.T, p *played) {
				rep := p.driver.Report(0)
				xs := p.records[0].measured()
				if len(xs) != 2 || rep.Items.Requests != 2 || rep.Items.Retries != 0 || rep.Items.Failed != 1 || rep.Items.Complete != 1 {
					t.Errorf("%d exchanges, items %+v", len(xs), rep.Items)
				}
				if xs[0].End != exchange.EndTimeout {
					t.Errorf("the silent one ended as %s", xs[0].End)
				}
			})
		})
	}
}
