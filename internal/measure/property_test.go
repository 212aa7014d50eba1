package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// randomScript is a stream of up to 80 reads with any mix of events, counts and silences.
func randomScript(r *rand.Rand) *script {
	s := newScript()
	kinds := []wire.Kind{0, wire.KindText, wire.KindText, wire.KindReasoning, wire.KindTool, wire.KindText | wire.KindReasoning}
	at, total := 0.0, int64(0)
	for range r.IntN(80) {
		at += math.Round(r.ExpFloat64()*[]float64{0.1, 5, 80, 900}[r.IntN(4)]*1e4) / 1e4 // tenths of a microsecond survive doubling
		bring := make([]wire.Kind, r.IntN(4))
		for i := range bring {
			bring[i] = kinds[r.IntN(len(kinds))]
		}
		s.read(at, bring...)
	}
	for i := range s.t.Events {
		if s.t.Events[i].Kinds != 0 {
			total += 1 + int64(r.IntN(4))
		}
		switch r.IntN(3) {
		case 0:
			s.t.Events[i].Running = total
		case 1:
			s.t.Events[i].Tokens = r.IntN(4)
		}
	}
	if r.IntN(4) > 0 {
		s.usage(int64(r.IntN(5000)), total)
		s.t.Usage.Cached = []*int64{nil, ref(int64(0)), ref(int64(r.IntN(100)))}[r.IntN(3)]
		s.t.Usage.Reasoning = []*int64{nil, ref(int64(0)), ref(int64(7))}[r.IntN(3)]
		s.t.Usage.PerChoice = r.IntN(20) == 0
	}
	if r.IntN(3) == 0 {
		s.t.Timings = &wire.Timings{DecodeTPS: ref(r.Float64() * 100), DecodeMS: ref(r.Float64() * 3000), DraftN: ref(int64(r.IntN(9))), DraftAccepted: ref(int64(r.IntN(9)))}
	}
	return s
}

func TestFiguresOfAnyStreamHoldTheirInvariants(t *testing.T) {
	for seed := range uint64(1000) {
		s := randomScript(rand.New(rand.NewPCG(seed, 2)))
		checkInvariants(t, fmt.Sprintf("seed %d", seed), s.derive())
	}
}

// retimed is the script with every instant mapped by f, which is in ns of the timeline.
func (s *script) retimed(f func(int64) int64) *script {
	x := *s.x
	tl := &x.Timeline
	for _, m := range []*exchange.Mark{
		&tl.Accepted, &tl.RequestRead, &tl.Dialed, &tl.SendStart, &tl.SendDone, &tl.HeaderRead, &tl.FirstRead, &tl.LastRead, &tl.BodyEnd, &tl.ClientDone,
	} {
		if ns, ok := m.NS(); ok {
			*m = exchange.MarkAt(f(ns))
		}
	}
	tl.Reads = nil
	for _, r := range s.x.Timeline.Reads {
		r.At = f(r.At)
		tl.Reads = append(tl.Reads, r)
	}
	return &script{x: &x, t: s.t, r: s.r}
}

// TestOriginDoesNotMatter holds that only differences of instants enter a figure.
func TestOriginDoesNotMatter(t *testing.T) {
	for seed := range uint64(300) {
		s := randomScript(rand.New(rand.NewPCG(seed, 3)))
		want, got := s.derive(), s.retimed(func(ns int64) int64 { return ns + 123_456_789 }).derive()
		for name, f := range want.Figures {
			if got.Figures[name] != f {
				t.Fatalf("seed %d: %s was %+v and is %+v an origin later", seed, name, f, got.Figures[name])
			}
		}
	}
}

// TestHalfTheSpeedIsHalfTheRate doubles every instant: times double, rates halve, counts and ratios stay. Streams whose
// verdict rests on absolute times (buffered, shorter than a second) are compared where both runs agree on it.
func TestHalfTheSpeedIsHalfTheRate(t *testing.T) {
	factor := map[string]float64{unitMS: 2, unitTPS: 0.5, unitTokens: 1, unitEvents: 1, unitReads: 1}
	compared := 0
	for seed := range uint64(300) {
		s := randomScript(rand.New(rand.NewPCG(seed, 4)))
		s.t.Timings = nil
		want, got := s.derive(), s.retimed(func(ns int64) int64 { return 2 * ns }).derive()
		if want.Flagged(FlagBuffered) != got.Flagged(FlagBuffered) {
			continue
		}
		for name, f := range want.Figures {
			k, ok := factor[f.Unit]
			if !ok || name == Peak1sTPS || name == WriteStallMS || name == TPOTMS && !f.Present() {
				continue
			}
			compared++
			g := got.Figures[name]
			if f.Present() != g.Present() || f.Reason != g.Reason || math.Abs(g.Value-k*f.Value) > 1e-9*math.Abs(g.Value) {
				t.Fatalf("seed %d: %s was %+v and is %+v at half the speed", seed, name, f, g)
			}
		}
	}
	if compared < 3000 {
		t.Errorf("only %d figures were compared", compared)
	}
}

// FuzzDerive feeds transcripts whose indices and counts fit nothing: every metric is there, finite or with a reason.
func FuzzDerive(f *testing.F) {
	f.Add(int64(3), int64(-1), int64(5), uint8(1), false)
	f.Add(int64(1<<62), int64(1<<62), int64(-9), uint8(255), true)
	f.Add(int64(0), int64(0), int64(0), uint8(0), true)
	f.Fuzz(func(t *testing.T, read, count, at int64, kinds uint8, sent bool) {
		s := newScript().texts(10, 10, 3).usage(count, count)
		s.t.Events[1].Read, s.t.Events[1].Kinds, s.t.Events[1].Running = int(read), wire.Kind(kinds), count
		s.x.Timeline.Reads[2].At = at
		s.t.Usage.Cached, s.t.Usage.Reasoning, s.r.MaxTokens = &at, &read, &count
		if !sent {
			s.x.Timeline.SendStart = exchange.Mark{}
		}
		a := s.derive()
		if len(a.Figures) != len(definitions) {
			t.Errorf("%d figures", len(a.Figures))
		}
		for name, fig := range a.Figures {
			if fig.Present() == (fig.Reason != "") || math.IsNaN(fig.Value) || math.IsInf(fig.Value, 0) {
				t.Errorf("%s is %+v", name, fig)
			}
		}
	})
}
