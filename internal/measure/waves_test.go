package measure

import (
	"math"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// beganAt is a wall instant of these tests.
var beganAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// member is a stream of a wave whose exchange began ms after the others' clock did.
func member(ms float64, s *script) WaveMember {
	s.x.Timeline.Wall = beganAt.Add(time.Duration(ms * 1e6))
	return WaveMemberOf(s.x, s.derive())
}

// decoding is a stream of n tokens, one an event, the first at from ms and then every ms apart.
func decoding(from, every float64, n int) *script {
	last := from + float64(n-1)*every
	return newScript().texts(from, every, n).usage(10, int64(n)).end(last + 10)
}

func waveFigures(t *testing.T, w exchange.WaveRate, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		f := w.Figures[name]
		if !f.Present() || math.Abs(f.Value-v) > 0.01 {
			t.Errorf("%s = %+v, want %.2f", name, f, v)
		}
		if f.Unit != unitTPS {
			t.Errorf("%s is in %q", name, f.Unit)
		}
	}
}

func waveAbsent(t *testing.T, w exchange.WaveRate, want map[string]exchange.Reason) {
	t.Helper()
	for name, why := range want {
		if f := w.Figures[name]; f.Present() || f.Reason != why {
			t.Errorf("%s = %+v, want absent: %s", name, f, why)
		}
	}
}

func TestWaveOfOverlappingStreams(t *testing.T) {
	// A decodes from 100 to 1100 ms, B from 600 to 1600 ms: 11 and 21 tokens. They decode together from 600 to 1100.
	w := Wave("w", []WaveMember{member(0, decoding(100, 100, 11)), member(500, decoding(100, 50, 21))})
	if w.Streams != 2 || w.Failed != 0 || w.PeakLive != 2 {
		t.Errorf("streams, failed, live = %d, %d, %d", w.Streams, w.Failed, w.PeakLive)
	}
	waveFigures(t, w, map[string]float64{
		AggregateDecodeTPS: 30 / 1.5,       // (10 + 20) over 100 to 1600
		SteadyTPS:          (5 + 10) / 0.5, // A's events at 700 to 1100, B's at 650 to 1100
		BatchTPS:           32 / 1.61,      // all tokens from the first send to the last end of a body
	})
}

func TestWaveOfOneIsItsDecodeRate(t *testing.T) {
	s := decoding(100, 20, 51)
	w := Wave("w", []WaveMember{member(0, s)})
	a := s.derive()
	waveFigures(t, w, map[string]float64{
		AggregateDecodeTPS: a.Figures[DecodeTPS].Value, SteadyTPS: a.Figures[DecodeTPS].Value, BatchTPS: a.Figures[WallTPS].Value,
	})
}

// The engine has two slots for four requests of 50 tokens at 50 tok/s each: never a rate of four.
func TestWaveOfAThrottledEngine(t *testing.T) {
	first := func() *script { return decoding(100, 20, 50) }
	second := func() *script { return decoding(1180, 20, 50) }
	w := Wave("w", []WaveMember{member(0, first()), member(0, second()), member(0, first()), member(0, second())})
	if w.PeakLive != 2 {
		t.Errorf("%d streams decoded at once, want 2", w.PeakLive)
	}
	waveFigures(t, w, map[string]float64{AggregateDecodeTPS: 4 * 49 / 2.06, BatchTPS: 200 / 2.17})
	waveAbsent(t, w, map[string]exchange.Reason{SteadyTPS: ReasonNotTogether})
}

func TestWaveOrderDoesNotMatter(t *testing.T) {
	members := []WaveMember{member(0, decoding(100, 10, 40)), member(30, decoding(90, 15, 30)), member(60, decoding(200, 7, 50))}
	want := Wave("w", members)
	for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		got := Wave("w", []WaveMember{members[order[0]], members[order[1]], members[order[2]]})
		for name, f := range want.Figures {
			if g := got.Figures[name]; math.Abs(g.Value-f.Value) > 1e-9 || g.Basis != f.Basis {
				t.Errorf("order %v: %s = %+v, want %+v", order, name, g, f)
			}
		}
	}
}

func TestWaveWithoutRates(t *testing.T) {
	whole := func() WaveMember { return member(0, decoding(100, 100, 11)) }
	all := func(why exchange.Reason) map[string]exchange.Reason {
		return map[string]exchange.Reason{AggregateDecodeTPS: why, SteadyTPS: why, BatchTPS: why}
	}
	cut := decoding(100, 100, 5)
	cut.x.End, cut.t.DialectEnd = exchange.EndReset, false
	plain := newScript()
	plain.t.Framing = wire.FramingJSON
	plain.read(900, wire.KindText).usage(10, 30)
	uncounted := newScript()
	uncounted.t.Framing = wire.FramingJSON
	uncounted.read(900, wire.KindText)
	for name, tc := range map[string]struct {
		members []WaveMember
		failed  int
		want    map[string]exchange.Reason
	}{
		"no member":     {nil, 0, all(ReasonNotSent)},
		"failed member": {[]WaveMember{whole(), member(0, cut), whole()}, 1, all(ReasonMemberFailed)},
		"not counted":   {[]WaveMember{whole(), member(0, uncounted)}, 0, all(ReasonNotReported)},
		"not streamed": {[]WaveMember{whole(), member(0, plain)}, 0, map[string]exchange.Reason{
			AggregateDecodeTPS: ReasonNotStreamed, SteadyTPS: ReasonNotStreamed}},
		"buffered": {[]WaveMember{whole(), member(0, newScript().burst(2000, 40).usage(10, 40))}, 0, map[string]exchange.Reason{
			AggregateDecodeTPS: ReasonBuffered, SteadyTPS: ReasonBuffered}},
		"touching": {[]WaveMember{member(0, decoding(100, 10, 11)), member(0, decoding(200, 10, 11))}, 0, map[string]exchange.Reason{
			SteadyTPS: ReasonNotTogether}},
	} {
		t.Run(name, func(t *testing.T) {
			w := Wave("w", tc.members)
			if w.Failed != tc.failed {
				t.Errorf("%d failed, want %d", w.Failed, tc.failed)
			}
			waveAbsent(t, w, tc.want)
			for _, n := range []string{AggregateDecodeTPS, SteadyTPS, BatchTPS} {
				if f, ok := w.Figures[n]; !ok || !f.Present() && f.Reason == "" {
					t.Errorf("%s has neither value nor reason", n)
				}
			}
		})
	}
}

func TestWaveOfEstimatesIsAnEstimate(t *testing.T) {
	w := Wave("w", []WaveMember{member(0, decoding(100, 100, 11)), member(0, newScript().texts(100, 50, 21))})
	for name, f := range w.Figures {
		if f.Basis != exchange.BasisEstimated {
			t.Errorf("%s has basis %q", name, f.Basis)
		}
	}
}
