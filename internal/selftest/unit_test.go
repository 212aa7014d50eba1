package selftest

import (
	"context"
	"errors"
	"iter"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/stat"
)

func TestMain(m *testing.M) {
	// The HTTP library's pool notices up to ten seconds late that its server has stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// madeAnswer is an answer whose reads and writes are given: writes as (us, body end, token), reads as (us, size, us of
// the write to the client).
func madeAnswer(writes, reads [][3]int) *answer {
	wall := time.Unix(1_800_000_000, 0).UTC()
	a := &answer{id: "1", seen: &exchange.Exchange{End: exchange.EndEOF}}
	a.seen.Timeline = exchange.Timeline{Wall: wall, Clock: exchange.ClockKernel, SendStart: exchange.MarkAt(10_000)}
	for _, w := range writes {
		at := int64(w[0]) * 1000
		a.truth.Writes = append(a.truth.Writes, sim.Write{Wall: wall.UnixNano() + at, At: at, Done: at + 1000, Plan: at, Body: w[1], Token: w[2] != 0})
	}
	for _, r := range reads {
		a.seen.Timeline.Reads = append(a.seen.Timeline.Reads, exchange.Read{At: int64(r[0]) * 1000, Size: r[1], Write: int64(r[2]) * 1000})
	}
	return a
}

// TestSamplesOfAnAnswer holds what becomes of an event alone in its read, of two merged ones, of one split over two reads,
// and of one that shares its read with the end of the stream.
func TestSamplesOfAnAnswer(t *testing.T) {
	a := madeAnswer(
		[][3]int{{0, 0, 0}, {100, 10, 1}, {200, 20, 1}, {250, 30, 1}, {300, 40, 1}, {400, 50, 1}, {401, 60, 0}},
		[][3]int{{90, 0, 0}, {107, 10, 5}, {260, 20, 6}, {310, 4, 7}, {330, 6, 8}, {420, 20, 9}})
	if us, ok := firstToken(a); !ok || us != 107-10-100 {
		t.Errorf("first token %v, %v", us, ok)
	}
	if d := cmp.Diff([]float64{7, 60, 10, 30, 20}, eventTimes(a)); d != "" {
		t.Errorf("event times (-want +got):\n%s", d)
	}
	var s stamps
	s.add(a.seen, a.truth.Writes)
	if d := cmp.Diff([]float64{30, 10, 7}, s.errors); d != "" {
		t.Errorf("stamp errors (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{38, 16, 12}, s.returned); d != "" {
		t.Errorf("with the moment of return (-want +got):\n%s", d)
	}
	a.truth.Writes[1].Done += int64(writeBound) // held up: the first event gives no error
	a.truth.Writes[5].Done = 0                  // still in its call: neither does the last, which has none anyway
	s.add(a.seen, a.truth.Writes)
	if len(s.errors) != 5 || s.unsure != 1 || s.events != 10 {
		t.Errorf("%d errors, %d unsure of %d events", len(s.errors), s.unsure, s.events)
	}
}

func TestClocksAreCounted(t *testing.T) {
	a := madeAnswer([][3]int{{100, 10, 1}, {101, 20, 1}}, [][3]int{{107, 20, 5}})
	var s stamps
	s.add(a.seen, a.truth.Writes)
	a.seen.Timeline.Clock = exchange.ClockMixed
	s.add(a.seen, nil)
	if s.events != 2 || s.merged != 1 || s.answers != 2 || s.lost != 1 {
		t.Errorf("events %d, merged %d, answers %d, lost %d", s.events, s.merged, s.answers, s.lost)
	}
}

// TestSamplesOfAnAnswerThatIsNotThere holds that nothing is made of what did not come.
func TestSamplesOfAnAnswerThatIsNotThere(t *testing.T) {
	a := madeAnswer([][3]int{{100, 10, 1}}, nil)
	var s stamps
	s.add(a.seen, a.truth.Writes)
	_, ok := firstToken(a)
	if _, noToken := firstToken(madeAnswer(nil, nil)); ok || noToken || len(eventTimes(a)) != 0 || s.events != 0 || len(s.errors) != 0 {
		t.Errorf("samples of nothing: %v, %+v", eventTimes(a), s)
	}
}

func TestWholeAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*answer)
		want   string
	}{
		"whole":   {func(*answer) {}, ""},
		"reset":   {func(a *answer) { a.seen.End, a.seen.Cause = exchange.EndReset, &exchange.Cause{Text: "gone"} }, "ended as reset: gone"},
		"refused": {func(a *answer) { a.seen.Response.Status = 503 }, "status 503"},
		"unknown": {func(a *answer) { a.truth.Writes = nil }, "no account of request 1"},
		"short":   {func(a *answer) { a.seen.Response.Body.Size = 7 }, "7 bytes came of the 10"},
	} {
		a := madeAnswer([][3]int{{100, 10, 1}}, [][3]int{{107, 10, 1}})
		a.seen.Response.Status, a.seen.Response.Body.Size = 200, 10
		c.change(a)
		err := a.whole()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoiseFloorRule(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	added := func(half float64) Added {
		return Added{Added: stat.Summary{Interval: &stat.Interval{Lo: 100 - half, Hi: 100 + half}}}
	}
	for name, c := range map[string]struct {
		cell Cell
		want *float64
		from string
		why  exchange.Reason
	}{
		"p99":         {Cell{Stamp: stat.Summary{N: 700, P99: us(40), Max: us(90)}, TTFT: added(3), Event: added(2)}, us(40), "p99 of the stamp error", ""},
		"few":         {Cell{Stamp: stat.Summary{N: 7, Max: us(90)}, TTFT: added(3), Event: added(2)}, us(90), "largest stamp error", ""},
		"ttft":        {Cell{Stamp: stat.Summary{N: 700, P99: us(40), Max: us(90)}, TTFT: added(300), Event: added(2)}, us(300), "interval of added TTFT", ""},
		"event":       {Cell{Stamp: stat.Summary{N: 700, P99: us(40), Max: us(90)}, TTFT: added(3), Event: added(55)}, us(55), "interval of added time per event", ""},
		"no interval": {Cell{Stamp: stat.Summary{N: 700, P99: us(40), Max: us(90)}, TTFT: added(3)}, nil, "", stat.ReasonNoInterval},
		"no samples":  {Cell{}, nil, "", stat.ReasonNoSamples},
	} {
		c.cell.floor()
		if d := cmp.Diff(c.want, c.cell.Noise); d != "" || c.cell.NoiseFrom != c.from || c.cell.NoiseWhy != c.why {
			t.Errorf("%s: %v from %q, %q", name, c.cell.Noise, c.cell.NoiseFrom, c.cell.NoiseWhy)
		}
	}
}

// TestJudgeRate holds whose fault a late event is.
func TestJudgeRate(t *testing.T) {
	play := func(engineLate, pathLate int) RateStep {
		a := madeAnswer([][3]int{{1000, 10, 1}, {2000, 20, 1}}, [][3]int{{1001, 10, 1}, {2000 + pathLate, 10, 1}})
		a.truth.Writes[1].Plan -= int64(engineLate) * 1000
		return judgeRate([]answer{*a}, 30*time.Millisecond)
	}
	for name, c := range map[string]struct {
		step  RateStep
		kept  bool
		limit string
	}{
		"in time": {play(0, 5), true, ""},
		"path":    {play(1000, 40_000), false, ""}, // try asks whether it is the proxy
		"engine":  {play(40_000, 5), false, LimitEngine},
		"nothing": {judgeRate(nil, time.Second), false, LimitEngine},
	} {
		if c.step.KeptUp != c.kept || c.step.Limit != c.limit {
			t.Errorf("%s: %+v", name, c.step)
		}
	}
	if s := play(0, 5); s.Reached != 1000 || s.LagMS != 0.005 {
		t.Errorf("rate %v, lag %v", s.Reached, s.LagMS)
	}
}

func TestBestRate(t *testing.T) {
	stall := 250.0
	r, err := best([]RateStep{
		{Asked: 1000, Reached: 990, KeptUp: true}, {Asked: 2000, Reached: 1980, KeptUp: true, StallMS: new(float64)},
		{Asked: 4000, Reached: 3900, KeptUp: true, StallMS: &stall}, {Asked: 8000, Reached: 7000, Limit: LimitProxy}, {Asked: 6000, Reached: 5900, KeptUp: true},
	}, 4)
	if err != nil || r.EventsPerSecond == nil || *r.EventsPerSecond != 1980 || r.Limit != LimitStall {
		t.Errorf("rate %+v, %v", r, err)
	}
	if r, err := best([]RateStep{{Asked: 1000, Limit: LimitEngine}}, 4); err != nil || r.EventsPerSecond != nil || r.Limit != LimitEngine {
		t.Errorf("rate %+v, %v", r, err)
	}
	if _, err := best(nil, 4); !errors.Is(err, errNoRate) {
		t.Errorf("of no step: %v", err)
	}
}

func TestPlanScales(t *testing.T) {
	full, quick, short, long := NewPlan(DefaultDuration, false), NewPlan(DefaultDuration, true), NewPlan(time.Second, false), NewPlan(10*DefaultDuration, false)
	if len(full.Levels) != 4 || len(quick.Levels) != 2 || full.Rounds != 6 || short.Rounds != 6 {
		t.Errorf("plans %+v, %+v", full, quick)
	}
	for i, l := range full.Levels {
		if short.Levels[i].Answers != 1 || long.Levels[i].Answers != 10*l.Answers {
			t.Errorf("answers %d, %d and %d", short.Levels[i].Answers, l.Answers, long.Levels[i].Answers)
		}
		// The last token of an answer has no stamp of its own.
		if n := full.Rounds * l.Streams * l.Answers * (l.Tokens - 1); n < stat.Floor(0.99) {
			t.Errorf("%d streams give %d stamps, a p99 takes %d", l.Streams, n, stat.Floor(0.99))
		}
	}
}

// TestErrorsEndTheSelftest holds what is told when something around it fails, and that the cores are not left loaded.
func TestErrorsEndTheSelftest(t *testing.T) {
	broken := errors.New("broken")
	small := Plan{Levels: []Level{{Streams: 2, Answers: 1, Tokens: 2, Rate: 100}}, Rounds: 1}
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
		text   string
	}{
		"cores":   {func(c *Config) { c.Busy = func(context.Context, bool) error { return broken } }, broken, "load cores"},
		"settle":  {func(c *Config) { c.Settle = func(context.Context) error { return broken } }, broken, "wait for proxy"},
		"records": {func(c *Config) { c.Records = failing(broken) }, broken, "read records"},
		"no records": {func(c *Config) {
			c.Records = func(context.Context) iter.Seq2[*exchange.Exchange, error] {
				return func(func(*exchange.Exchange, error) bool) {}
			}
		}, exchange.ErrIncomplete, "of 4 requests"},
		"engine URL": {func(c *Config) { c.Engine = "engine:1" }, exchange.ErrUsage, "the direct way"},
		"proxy URL":  {func(c *Config) { c.Proxy = "https://x" }, exchange.ErrUsage, "the proxied way"},
		"unload": {func(c *Config) {
			c.Busy = func(_ context.Context, on bool) error {
				if on {
					return nil
				}
				return broken
			}
		}, broken, "unload cores"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &bench{}, func(t *testing.T, cfg Config) {
				cfg.Plan = small
				c.change(&cfg)
				if _, err := Run(t.Context(), cfg); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func failing(err error) func(context.Context) iter.Seq2[*exchange.Exchange, error] {
	return func(context.Context) iter.Seq2[*exchange.Exchange, error] {
		return func(yield func(*exchange.Exchange, error) bool) { yield(nil, err) }
	}
}

// TestContextEndsTheSelftest ends the context at every stage and wants its cause back, with the cores free again.
func TestContextEndsTheSelftest(t *testing.T) {
	for _, stage := range []string{"1 streams, idle", "3 streams, idle", "looking", "1 streams, busy"} {
		t.Run(stage, func(t *testing.T) {
			b := &bench{}
			inBubble(t, b, func(t *testing.T, cfg Config) {
				why := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				cfg.Progress = func(what string) {
					if strings.HasPrefix(what, stage) {
						time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
					}
				}
				if _, err := Run(ctx, cfg); !errors.Is(err, why) {
					t.Errorf("error %v", err)
				}
				if n := len(b.busy); n > 0 && b.busy[n-1] {
					t.Error("the cores are still loaded")
				}
			})
		})
	}
}

// TestUnreachableEngine holds that an engine that is not there is told as such.
func TestUnreachableEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := func(string) func(context.Context) (net.Conn, error) {
			return func(context.Context) (net.Conn, error) { return nil, errors.New("refused") }
		}
		_, err := Run(t.Context(), Config{Engine: "http://engine", Proxy: "http://proxy", Dial: refused, Plan: NewPlan(time.Second, true)})
		if !errors.Is(err, exchange.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
	})
}
