package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func planOf(t *testing.T, w *Workload, o PlanOptions) *Plan {
	t.Helper()
	if o.Targets == nil {
		o.Targets = []string{"engine"}
	}
	p, err := NewPlan(w, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanRefusesWhatMakesNoSense(t *testing.T) {
	one := []string{"engine"}
	untimed := many(2, 0, 1)
	untimed.Items[1].At = AtUnknown
	talk := many(2, 0, 1)
	for i := range talk.Items {
		talk.Items[i].Conversation, talk.Items[i].Turn, talk.Items[i].Target = "c", i, "/v1/completions"
	}
	for want, tc := range map[string]struct {
		w *Workload
		o PlanOptions
	}{
		"nothing to send":        {&Workload{}, PlanOptions{Loop: LoopClosed, Targets: one}},
		"no target":              {many(1, 0, 1), PlanOptions{Loop: LoopClosed}},
		"below 0":                {many(1, 0, 1), PlanOptions{Loop: LoopClosed, Targets: one, Warmup: -1}},
		"arrivals are":           {many(1, 0, 1), PlanOptions{Loop: LoopRate, Rate: 1, Targets: one, Arrivals: "burst"}},
		"a rate is":              {many(1, 0, 1), PlanOptions{Loop: LoopRate, Rate: math.NaN(), Targets: one}},
		"a speed is":             {many(1, 0, 1), PlanOptions{Loop: LoopRecorded, Speed: -1, Targets: one}},
		"does not say when":      {untimed, PlanOptions{Loop: LoopRecorded, Speed: 1, Targets: one}},
		"for one target":         {many(1, 0, 1), PlanOptions{Loop: LoopRecorded, Speed: 1, Targets: []string{"a", "b"}}},
		"no loop":                {many(1, 0, 1), PlanOptions{Targets: one}},
		"live history is for ch": {talk, PlanOptions{Loop: LoopClosed, Targets: one, LiveHistory: true}},
	} {
		_, err := NewPlan(tc.w, tc.o)
		if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := NewPlan(untimed, PlanOptions{Loop: LoopRecorded, Targets: one}); err != nil {
		t.Errorf("at once needs no instants: %v", err)
	}
}

func TestPlanHashCoversWhatIsSent(t *testing.T) {
	base := PlanOptions{Loop: LoopRate, Rate: 5, Nonce: true, Salt: "one"}
	want := planOf(t, many(5, 0, 1), base).Hash
	if !strings.HasPrefix(want, PlanScheme) {
		t.Errorf("hash %q", want)
	}
	base.Salt = "two"
	if got := planOf(t, many(5, 0, 1), base).Hash; got != want {
		t.Error("another run of the same plan has another hash")
	}
	set, err := ParseSet("temperature=0")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *PlanOptions){
		"rate": func(o *PlanOptions) { o.Rate = 6 }, "arrivals": func(o *PlanOptions) { o.Arrivals = ArrivalsPoisson },
		"repeats": func(o *PlanOptions) { o.Repeats = 2 }, "model": func(o *PlanOptions) { o.Changes.Model = "m" },
		"edit": func(o *PlanOptions) { o.Changes.Edits = []Edit{set} }, "requests": func(o *PlanOptions) { o.MaxRequests = 4 },
		"nonce": func(o *PlanOptions) { o.Nonce = false }, "targets": func(o *PlanOptions) { o.Targets = []string{"a", "b"} },
	} {
		o := base
		change(&o)
		if planOf(t, many(5, 0, 1), o).Hash == want {
			t.Errorf("%s is not in the hash", name)
		}
	}
	if planOf(t, many(5, 0, 2), base).Hash == want {
		t.Error("the requests are not in the hash")
	}
}

func TestMaxRequestsCutsConversations(t *testing.T) {
	w := many(6, 0, 1)
	for i := range w.Items {
		w.Items[i].Conversation, w.Items[i].Turn = fmt.Sprint(i/3), i%3
	}
	p := planOf(t, w, PlanOptions{Loop: LoopClosed, MaxRequests: 7, Repeats: 3, Targets: []string{"a", "b"}})
	if p.Requests != 7 || p.Items != 3 || len(p.jobs) != 6 {
		t.Fatalf("%d requests of %d items in %d jobs", p.Requests, p.Items, len(p.jobs))
	}
	if last := p.jobs[5]; len(last.turns) != 1 || last.repeat != 1 || last.item(0, 0).Turns != 1 || last.item(0, 0).Conversation != "" {
		t.Errorf("the last one is %+v", last.item(0, 0))
	}
}

func TestWavesOfTargetsAreWhole(t *testing.T) {
	p := planOf(t, many(5, 0, 1), PlanOptions{Loop: LoopWaves, Concurrency: 2, Targets: []string{"a", "b"}, Seed: 3})
	if len(p.jobs) != 10 {
		t.Fatalf("%d jobs", len(p.jobs))
	}
	for wave := 1; wave <= 6; wave++ {
		var ids []string
		target := -1
		for _, j := range p.jobs {
			if j.wave != wave {
				continue
			}
			if target >= 0 && j.target != target {
				t.Errorf("wave %d has two targets", wave)
			}
			target = j.target
			ids = append(ids, j.turns[0].ID)
		}
		if want := [][]string{{"r0", "r1"}, {"r2", "r3"}, {"r4"}}[(wave-1)/2]; !slices.Equal(ids, want) {
			t.Errorf("wave %d is %v, want %v", wave, ids, want)
		}
	}
}

func TestPoissonArrivals(t *testing.T) {
	at := poissonInstants(20_000, 50, 9)
	if !slices.IsSorted(at) || !slices.Equal(at, poissonInstants(20_000, 50, 9)) || slices.Equal(at, poissonInstants(20_000, 50, 10)) {
		t.Error("instants are not in order, or do not follow from the seed")
	}
	if rate := 20_000 / at[len(at)-1].Seconds(); math.Abs(rate-50) > 1.5 {
		t.Errorf("%g a second, want 50", rate)
	}
	mean, square := 0.0, 0.0
	for i := 1; i < len(at); i++ {
		gap := (at[i] - at[i-1]).Seconds()
		mean, square = mean+gap, square+gap*gap
	}
	n := float64(len(at) - 1)
	mean, square = mean/n, square/n
	if spread := math.Sqrt(square-mean*mean) / mean; math.Abs(spread-1) > 0.05 {
		t.Errorf("gaps vary by %g of their mean, want 1", spread)
	}
}

func TestInstantsOfAnOutOfOrderWorkload(t *testing.T) {
	items := []Item{{At: 3 * time.Second}, {At: 0}, {At: time.Second}}
	at, period := recordedInstants(items, 1, 0)
	if !slices.Equal(at, []time.Duration{3 * time.Second, 0, time.Second}) || period != 4500*time.Millisecond {
		t.Errorf("%v, period %s", at, period)
	}
	if at, period := recordedInstants(nil, 1, 0); len(at) != 0 || period != 0 {
		t.Errorf("%v, %s of nothing", at, period)
	}
	if at, period := recordedInstants(items[:1], 2, 0); at[0] != 0 || period != 0 {
		t.Errorf("%v, %s of one", at, period)
	}
}

func TestCheckFindsWhatCannotBeChanged(t *testing.T) {
	w := many(3, 0, 1)
	w.Items[1].Body = []byte(`{"model":"sim"}`)
	w.Items[2].Body = nil
	if err := planOf(t, w, PlanOptions{Loop: LoopClosed}).Check(); err != nil {
		t.Errorf("nothing is to be changed: %v", err)
	}
	err := planOf(t, w, PlanOptions{Loop: LoopClosed, Nonce: true}).Check()
	if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), "r1") {
		t.Errorf("err = %v", err)
	}
}
