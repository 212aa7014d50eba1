package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// steady is an engine whose answers of 10 tokens take 190 ms.
var steady = sim.Config{Options: sim.Options{TTFT: 100 * time.Millisecond, DecodeTPS: 100, Answer: 10}}

func TestClosedLoopKeepsSoManyRunning(t *testing.T) {
	rig{engine: steady}.play(t, many(12, 0, 10), PlanOptions{Loop: LoopClosed, Concurrency: 4}, func(t *testing.T, p *played) {
		r := p.report(t)
		want := exchange.ItemCounts{Planned: 12, Complete: 12, Requests: 12}
		if r.Items != want || r.Incomplete != "" || r.Invalid != "" || r.Schedule != nil {
			t.Errorf("items %+v, incomplete %q, invalid %q", r.Items, r.Incomplete, r.Invalid)
		}
		xs := p.records[0].measured()
		for i, x := range xs {
			if got, want := offsets(xs)[i], time.Duration(i/4)*190*time.Millisecond; got != want {
				t.Errorf("request %d was sent after %s, want %s", i, got, want)
			}
			if x.Timeline.Intended.Happened() {
				t.Error("a closed loop plans no instants")
			}
			if x.Item == nil || x.Item.Item != strings.TrimPrefix(string(x.Origin.Exchange), "recorded-") || x.Item.Turns != 1 {
				t.Errorf("item %+v of %+v", x.Item, x.Origin)
			}
		}
	})
}

func TestOpenLoopSendsAtItsInstants(t *testing.T) {
	o := PlanOptions{Loop: LoopRate, Rate: 50}
	rig{engine: steady}.play(t, many(100, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		s := r.Schedule
		if r.Invalid != "" || s.Sent != 100 || *s.LagMS.Max != 0 || math.Abs(*s.AchievedRate-50) > 1e-6 {
			t.Errorf("invalid %q, schedule %+v", r.Invalid, s)
		}
		if *s.SentMS.P99 != *s.IntendedMS.P99 || *s.SentMS.P50 != 190 || *s.IntendedTTFT.P50 != 100 {
			t.Errorf("latency %g and %g ms, first token %g", *s.SentMS.P50, *s.IntendedMS.P99, *s.IntendedTTFT.P50)
		}
		if s.PeakInFlight != 10 {
			t.Errorf("%d at once, want 190 ms of 50 a second", s.PeakInFlight)
		}
		for i, at := range offsets(p.records[0].measured()) {
			if at != time.Duration(i)*20*time.Millisecond {
				t.Fatalf("request %d was sent after %s", i, at)
			}
		}
	})
}

// A sender that may have four requests running offers 50 a second to an engine that takes 175 ms for each: the latency
// from the send hides what the one from the plan shows, and the run is no evidence.
func TestOpenLoopThatCannotBeKept(t *testing.T) {
	engine := sim.Config{Options: sim.Options{TTFT: 100 * time.Millisecond, DecodeTPS: 200, Answer: 16}}
	o := PlanOptions{Loop: LoopRate, Rate: 50, Concurrency: 4}
	rig{engine: engine}.play(t, many(1000, 0, 16), o, func(t *testing.T, p *played) {
		r := p.report(t)
		s := r.Schedule
		if math.Abs(*s.AchievedRate-22.9) > 2 || math.Abs(*s.SentMS.P99-180) > 30 || *s.IntendedMS.P99 < 10_000 || *s.LagMS.P99 < 10_000 {
			t.Errorf("rate %g, latency %g from sent, %g from planned, lag %g", *s.AchievedRate, *s.SentMS.P99, *s.IntendedMS.P99, *s.LagMS.P99)
		}
		if !strings.HasPrefix(r.Invalid, "schedule_not_met") || r.Incomplete != "" || s.PeakInFlight != 4 {
			t.Errorf("invalid %q, incomplete %q, %d at once", r.Invalid, r.Incomplete, s.PeakInFlight)
		}
	})
}

// TestRecordedInstants is field report RR-35 too: an instant belongs to its request, not to the worker that sends it.
func TestRecordedInstants(t *testing.T) {
	w := many(4, 0, 10)
	for i, at := range []time.Duration{0, 100, 5100, 5200} {
		w.Items[i].At = at * time.Millisecond
	}
	for name, tc := range map[string]struct {
		o    PlanOptions
		want []time.Duration // ms
	}{
		"as recorded":   {PlanOptions{Speed: 1}, []time.Duration{0, 100, 5100, 5200}},
		"twice as fast": {PlanOptions{Speed: 2}, []time.Duration{0, 50, 2550, 2600}},
		"half as fast":  {PlanOptions{Speed: 0.5}, []time.Duration{0, 200, 10200, 10400}},
		"at once":       {PlanOptions{Speed: 0}, []time.Duration{0, 0, 0, 0}},
		"short pauses":  {PlanOptions{Speed: 1, MaxGap: time.Second}, []time.Duration{0, 100, 1100, 1200}},
		"four workers":  {PlanOptions{Speed: 1, Concurrency: 4}, []time.Duration{0, 100, 5100, 5200}},
		"twice":         {PlanOptions{Speed: 1, MaxGap: time.Second, Repeats: 2}, []time.Duration{0, 100, 1100, 1200, 1600, 1700, 2700, 2800}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Loop = LoopRecorded
			rig{engine: steady}.play(t, w, tc.o, func(t *testing.T, p *played) {
				if r := p.report(t); r.Invalid != "" || r.Schedule.Sent != len(tc.want) {
					t.Errorf("invalid %q, %+v", r.Invalid, r.Schedule)
				}
				for i, at := range offsets(p.records[0].measured()) {
					if at != tc.want[i]*time.Millisecond {
						t.Errorf("request %d was sent after %s, want %d ms", i, at, tc.want[i])
					}
				}
			})
		})
	}
}

func TestWavesBeginTogether(t *testing.T) {
	engine := steady
	engine.Slots = 2 // so that answers end at different times
	o := PlanOptions{Loop: LoopWaves, Concurrency: 4}
	rig{engine: engine}.play(t, many(10, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		if len(r.Waves) != 3 || r.Waves[0].Streams != 4 || r.Waves[2].Streams != 2 || r.Waves[0].PeakLive != 2 || r.Waves[2].Wave != "w3" {
			t.Fatalf("waves %+v", r.Waves)
		}
		for i, x := range p.records[0].measured() {
			want := time.Duration(i/4) * 380 * time.Millisecond
			if got := offsets(p.records[0].measured())[i]; got != want || x.Wave != fmt.Sprintf("w%d", i/4+1) {
				t.Errorf("request %d of wave %s was sent after %s, want %s", i, x.Wave, got, want)
			}
		}
		// Two pairs of 10 tokens: 36 tokens from the first token at 100 ms to the last at 380 ms; they are never all at it.
		w := r.Waves[0].Figures
		if got := w[measure.AggregateDecodeTPS].Value; math.Abs(got-36/0.28) > 0.1 {
			t.Errorf("aggregate %g", got)
		}
		if why := w[measure.SteadyTPS].Reason; why != measure.ReasonNotTogether {
			t.Errorf("steady %+v", w[measure.SteadyTPS])
		}
	})
}

func TestFailedMemberVoidsItsWaveOnly(t *testing.T) {
	w := many(4, 0, 10)
	w.Items[1].Headers = append(w.Items[1].Headers, exchange.Header{Name: "X-Sim", Value: "status=400"})
	rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopWaves, Concurrency: 2}, func(t *testing.T, p *played) {
		r := p.report(t)
		if r.Items.Failed != 1 || r.Items.Complete != 3 || r.Incomplete != "" {
			t.Errorf("items %+v, %q", r.Items, r.Incomplete)
		}
		if f := r.Waves[0].Figures[measure.BatchTPS]; f.Present() || f.Reason != measure.ReasonMemberFailed || r.Waves[0].Failed != 1 {
			t.Errorf("first wave %+v", r.Waves[0])
		}
		if f := r.Waves[1].Figures[measure.SteadyTPS]; !f.Present() {
			t.Errorf("second wave %+v", r.Waves[1])
		}
	})
}

func TestConversationsKeepTheirOrderAndStop(t *testing.T) {
	w := &Workload{Name: "talks"}
	for turn := range 3 {
		for _, talk := range []string{"a", "b"} {
			it := asked(fmt.Sprint(talk, turn), 0, chatBody(fmt.Sprint(talk, turn), 10))
			it.Conversation, it.Turn = talk, turn
			if talk == "b" && turn == 1 {
				it.Headers = append(it.Headers, exchange.Header{Name: "X-Sim", Value: "fault=reset@3"})
			}
			w.Items = append(w.Items, it)
		}
	}
	rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopClosed, Concurrency: 8, SessionHeader: "X-Talk", Nonce: true, Salt: "s"}, func(t *testing.T, p *played) {
		r := p.report(t)
		want := exchange.ItemCounts{Planned: 2, Complete: 1, Partial: 1, Requests: 5}
		if r.Items != want || r.Incomplete != "" {
			t.Errorf("items %+v, want %+v; %q", r.Items, want, r.Incomplete)
		}
		next, begins := map[string]int{}, map[string]bool{}
		for _, x := range p.records[0].measured() {
			prompt := promptOf(x)
			nonce, rest, ok := strings.Cut(prompt, "] ")
			if !ok || rest != fmt.Sprint(x.Item.Conversation, next[x.Item.Conversation]) || x.Item.Turn != next[x.Item.Conversation] || x.Item.Turns != 3 {
				t.Errorf("turn %+v says %q", x.Item, prompt)
			}
			next[x.Item.Conversation]++
			begins[nonce] = true
		}
		if len(begins) != 2 {
			t.Errorf("%d nonces for two conversations: %v", len(begins), slices.Collect(maps.Keys(begins)))
		}
	})
}

func TestTargetsTakeTurns(t *testing.T) {
	o := PlanOptions{Loop: LoopClosed, Concurrency: 1, Targets: []string{"a", "b"}, Seed: 7, Warmup: 2}
	rig{engine: steady}.play(t, many(20, 0, 10), o, func(t *testing.T, p *played) {
		if p.err != nil {
			t.Fatal(p.err)
		}
		first := 0
		for i := range 20 {
			a, b := p.records[0].measured()[i], p.records[1].measured()[i]
			if promptOf(a) != promptOf(b) {
				t.Errorf("pair %d: %q and %q", i, promptOf(a), promptOf(b))
			}
			if sentAt(a).Before(sentAt(b)) {
				first++
			}
		}
		if first < 4 || first > 16 {
			t.Errorf("a went first in %d of 20 pairs", first)
		}
		for i := range 2 {
			if r := p.driver.Report(i); r.Items.Complete != 20 || r.Items.Warmups != 2 || r.Items.Requests != 20 {
				t.Errorf("target %d: %+v", i, r.Items)
			}
		}
	})
}

func TestWarmupsHaveTheFormOfTheFirstRequestAndAnotherNonce(t *testing.T) {
	o := PlanOptions{Loop: LoopRate, Rate: 10, Warmup: 3, Nonce: true, Salt: "run"}
	rig{engine: steady}.play(t, many(5, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		if r.Items.Warmups != 3 || r.Items.Requests != 5 || r.Schedule.Planned != 5 || *r.Schedule.LagMS.Max != 0 {
			t.Errorf("items %+v, schedule %+v", r.Items, r.Schedule)
		}
		nonces := map[string]bool{}
		var size int64
		for _, x := range p.records[0].xs {
			nonce, rest, _ := strings.Cut(promptOf(x), " ")
			nonces[nonce] = true
			if x.Item.Warmup && rest != "question 0" {
				t.Errorf("warm-up asks %q", rest)
			}
			if size == 0 {
				size = x.Request.Body.Size
			}
			if size != x.Request.Body.Size {
				t.Errorf("sizes %d and %d", size, x.Request.Body.Size)
			}
			i := slices.IndexFunc(x.Interventions, func(v exchange.Intervention) bool { return v.Kind == KindNonce })
			if i < 0 || x.Interventions[i].Name != "messages[0].content" || !strings.HasPrefix(promptOf(x), x.Interventions[i].To) {
				t.Errorf("the record does not tell the nonce: %+v", x.Interventions)
			}
		}
		if len(nonces) != 8 {
			t.Errorf("%d nonces for 8 requests", len(nonces))
		}
	})
}

func TestNobodyThere(t *testing.T) {
	rig{engine: steady, dead: true}.play(t, many(50, 0, 10), PlanOptions{Loop: LoopClosed, Concurrency: 1}, func(t *testing.T, p *played) {
		if !errors.Is(p.err, exchange.ErrUnreachable) {
			t.Errorf("err = %v", p.err)
		}
		r := p.driver.Report(0)
		if n := len(p.records[0].xs); n != firstLinks || r.Items.Failed != firstLinks || r.Items.Unsent != 50-firstLinks || r.Incomplete == "" {
			t.Errorf("%d exchanges, %+v, %q", n, r.Items, r.Incomplete)
		}
	})
}

func TestSignalCutsWhatRuns(t *testing.T) {
	stop := errors.New("ended by signal: interrupt")
	w := many(10, 0, 10)
	w.Items[4].Headers = append(w.Items[4].Headers, exchange.Header{Name: "X-Sim", Value: "fault=stall@3"})
	r := rig{engine: steady, until: 2 * time.Second, why: stop}
	r.play(t, w, PlanOptions{Loop: LoopClosed, Concurrency: 1, Duration: time.Hour}, func(t *testing.T, p *played) {
		if !errors.Is(p.err, stop) {
			t.Errorf("err = %v", p.err)
		}
		r := p.driver.Report(0)
		want := exchange.ItemCounts{Planned: 10, Complete: 4, Broken: 1, Unsent: 5, Requests: 5}
		if r.Items != want || !strings.Contains(r.Incomplete, "6 of 10 items did not end: ended by signal") {
			t.Errorf("items %+v, incomplete %q", r.Items, r.Incomplete)
		}
	})
}

// TestSignalBeforeTheFirstSend holds that a run which was ended before it began says by what.
func TestSignalBeforeTheFirstSend(t *testing.T) {
	for _, warmup := range []int{0, 1} {
		plan, err := NewPlan(many(3, 0, 10), PlanOptions{Loop: LoopClosed, Concurrency: 1, Warmup: warmup, Targets: []string{"engine"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancelCause(t.Context())
		end(errors.New("ended by signal: interrupt"))
		d := NewDriver(plan, []Target{{}})
		if err := d.Run(ctx); err == nil || err.Error() != "ended by signal: interrupt" {
			t.Errorf("err = %v", err)
		}
		if r := d.Report(0); r.Incomplete != "3 of 3 items did not end: ended by signal: interrupt" {
			t.Errorf("incomplete %q", r.Incomplete)
		}
	}
}

func TestDurationEndsSending(t *testing.T) {
	o := PlanOptions{Loop: LoopRate, Rate: 10, Duration: time.Second}
	rig{engine: steady}.play(t, many(100, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		if r.Items.Complete != 10 || r.Items.Unsent != 90 || r.Incomplete != "" || r.Invalid != "" || r.Schedule.Planned != 10 {
			t.Errorf("items %+v, %+v, %q %q", r.Items, r.Schedule, r.Incomplete, r.Invalid)
		}
	})
	o.Concurrency = 1 // 5 a second
	rig{engine: steady}.play(t, many(100, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		if r.Items.Complete != 6 || !strings.Contains(r.Invalid, "4 planned requests were not sent") || r.Schedule.Planned != 10 {
			t.Errorf("items %+v, %+v, %q", r.Items, r.Schedule, r.Invalid)
		}
	})
}
