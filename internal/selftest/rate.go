package selftest

import (
	"context"
	"errors"
	"time"
)

// Search says how the highest event rate is looked for: from a rate up by doubling until the proxy does not keep up, then
// halfway between the last two rates, Refine times.
type Search struct {
	Streams int           `json:"streams"`
	From    float64       `json:"from"` // events a second, all streams together
	To      float64       `json:"to"`   // where the search ends in any case
	Play    time.Duration `json:"play_ns"`
	Refine  int           `json:"refine"`
}

// What ended the search for the highest event rate.
const (
	LimitProxy  = "proxy"  // through the proxy events came late; directly they did not
	LimitDriver = "driver" // they came late directly too: the machine has no room for more
	LimitEngine = "engine" // the scripted engine fell behind its own plan
	LimitStall  = "stall"  // the proxy's own record shows a write that stalled
	LimitSearch = "search" // nothing did: the search goes no further
)

// stallMS is from when a write of the proxy counts as stalled, as in the flag write_stalled of internal/measure.
const stallMS = 100

// RateStep is one rate that was tried.
type RateStep struct {
	Asked   float64  `json:"asked"`    // events a second
	Reached float64  `json:"reached"`  // that the engine wrote
	LagMS   float64  `json:"lag_ms"`   // from the plan to the last event of the latest stream at the client
	KeptUp  bool     `json:"kept_up"`  // the lag is below a tenth of the play
	Limit   string   `json:"limit"`    // whose lag it is; "" when it kept up
	StallMS *float64 `json:"stall_ms"` // longest time of a read in the proxy, by its record; null when there is no record

	ids []string // of the requests
}

// tries is how often a rate is played before it counts as too high: one late goroutine must not end the search.
const tries = 2

// search looks for the highest rate.
func (r *runner) search(ctx context.Context) (steps []RateStep, err error) {
	s := r.cfg.Plan.Search
	if s.Streams == 0 {
		return nil, nil
	}
	good, bad := 0.0, 0.0
	for rate := s.From; rate <= s.To && bad == 0; rate *= 2 {
		step, err := r.try(ctx, rate)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
		if step.KeptUp {
			good = rate
		} else {
			bad = rate
		}
	}
	for range s.Refine {
		if good == 0 || bad == 0 {
			break
		}
		step, err := r.try(ctx, (good+bad)/2)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
		if step.KeptUp {
			good = step.Asked
		} else {
			bad = step.Asked
		}
	}
	return steps, nil
}

// try plays one rate through the proxy, and directly when it does not keep up.
func (r *runner) try(ctx context.Context, rate float64) (step RateStep, err error) {
	for range tries {
		if step, err = r.playRate(ctx, proxied, rate); err != nil || step.KeptUp || step.Limit == LimitEngine {
			return step, err
		}
	}
	alone, err := r.playRate(ctx, direct, rate)
	switch {
	case err != nil:
	case alone.KeptUp:
		step.Limit = LimitProxy
	default:
		step.Limit = LimitDriver
	}
	return step, err
}

// playRate plays one rate once.
func (r *runner) playRate(ctx context.Context, way string, rate float64) (RateStep, error) {
	s := r.cfg.Plan.Search
	l := Level{Streams: s.Streams, Answers: 1, Rate: rate / float64(s.Streams), together: true}
	l.Tokens = max(2, int(l.Rate*s.Play.Seconds()))
	got, err := r.driver.play(ctx, way, l)
	if err != nil {
		return RateStep{}, err
	}
	if err := r.settle(ctx); err != nil {
		return RateStep{}, err
	}
	step := judgeRate(got, s.Play/10)
	step.Asked = rate
	if way == proxied {
		for i := range got {
			step.ids = append(step.ids, got[i].id)
			r.kept[got[i].id] = kept{}
		}
	}
	return step, nil
}

// judgeRate reads from a play whether every stream was with its client in time, and if not whether the engine was late
// already.
func judgeRate(got []answer, bound time.Duration) (step RateStep) {
	var first, last, lag, engine int64
	events := 0
	for i := range got {
		came := newArrivals(got[i].seen)
		for _, w := range got[i].truth.Writes {
			_, at, ok := came.of(w.Body)
			if !w.Token || !ok {
				continue
			}
			if events++; first == 0 || w.Wall < first {
				first = w.Wall
			}
			last = max(last, w.Wall)
			lag = max(lag, at-w.Wall+w.At-w.Plan)
			engine = max(engine, w.At-w.Plan)
		}
	}
	if last > first {
		step.Reached = float64(events-1) / (float64(last-first) / float64(time.Second))
	}
	step.LagMS = float64(lag) / float64(time.Millisecond)
	step.KeptUp = events > 0 && lag < int64(bound)
	if !step.KeptUp && (events == 0 || engine >= int64(bound)/2) {
		step.Limit = LimitEngine
	}
	return step
}

var errNoRate = errors.New("no rate was tried")

// Rate is the highest event rate without a stall.
type Rate struct {
	EventsPerSecond *float64   `json:"events_per_s"` // that the engine wrote; null when even the lowest rate stalled
	Streams         int        `json:"streams"`
	Limit           string     `json:"limit"` // what stands against more
	Steps           []RateStep `json:"steps"`
}

// best is the highest rate of steps that stalled nowhere, and what stands against more.
func best(steps []RateStep, streams int) (Rate, error) {
	if len(steps) == 0 {
		return Rate{}, errNoRate
	}
	out := Rate{Streams: streams, Limit: LimitSearch, Steps: steps}
	least := 0.0 // lowest rate that failed
	for i := range steps {
		s := &steps[i]
		if s.KeptUp && s.StallMS != nil && *s.StallMS >= stallMS {
			s.KeptUp, s.Limit = false, LimitStall
		}
		if !s.KeptUp && (least == 0 || s.Asked < least) {
			least, out.Limit = s.Asked, s.Limit
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.KeptUp && (least == 0 || s.Asked < least) && (out.EventsPerSecond == nil || s.Reached > *out.EventsPerSecond) {
			out.EventsPerSecond = &s.Reached
		}
	}
	return out, nil
}
