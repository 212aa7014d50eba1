package measure

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// timings says that the engine decoded for so many ms.
func (s *script) timings(decodeMS float64) *script {
	s.t.Timings = &wire.Timings{Source: "timings", DecodeMS: &decodeMS}
	return s
}

// spaced adds n events of one read each, us microseconds apart.
func (s *script) spaced(from, us float64, n int) *script { return s.texts(from, us/1000, n) }

func TestBufferedStreams(t *testing.T) {
	for name, s := range map[string]*script{
		"whole answer in one read after 15 s":         newScript().burst(15250, 60),
		"whole answer in one read, role long before":  newScript().read(20, 0).burst(2000, 12),
		"replayed at the end, a read an event":        newScript().spaced(4000, 60, 200),
		"11 events within 35 us after 515 ms":         newScript().spaced(515, 3.5, 11),
		"three events in one read after 2 s":          newScript().burst(2000, 3),
		"the engine says that it decoded for 1.8 s":   newScript().burst(2000, 30).timings(1800),
		"a tenth of the silence hidden":               newScript().burst(1000, 5).timings(100),
		"replayed slowly, but the engine knows":       newScript().spaced(900, 450, 400).timings(800),
		"a hop flushes whenever 4 KiB are full":       newScript().burst(4250, 16).burst(8250, 16).burst(12250, 16).burst(15250, 12),
		"two flushes":                                 newScript().burst(1000, 20).burst(2000, 2),
		"flushes whose parts are reads of their own":  newScript().spaced(1000, 100, 20).spaced(2000, 100, 20),
		"flushes, the engine says that it began soon": newScript().burst(1000, 20).burst(2000, 20).timings(1950),
	} {
		t.Run(name, func(t *testing.T) {
			n := int64(len(s.t.Events))
			a := s.usage(20, n).end(16000).derive()
			wantAbsent(t, a, ReasonBuffered, TTFTMS, AnswerTTFTMS, PrefillTPS, PrefillUncachedTPS, DecodeTPS, TPOTMS, DecodeFirstEventTPS, Peak1sTPS)
			wantValue(t, a, WallTPS, float64(n)/16, msrd)
			if !a.Flagged(FlagBuffered) || a.Outcome != exchange.OutcomeComplete {
				t.Errorf("flags %q, outcome %s", a.Flags, a.Outcome)
			}
		})
	}
}

func TestRealStreamsAreNotBuffered(t *testing.T) {
	for name, s := range map[string]*script{
		"two events in the first read":                  newScript().burst(900, 2).texts(920, 20, 30),
		"an answer of two events in one read":           newScript().burst(900, 2),
		"speculative steps of five events":              stepsOf(5, 120, 60),
		"speculative steps of sixteen, slow model":      stepsOf(16, 800, 200),
		"short fast answer of a small model":            newScript().burst(6, 8),
		"short fast answer, reads of its own":           newScript().spaced(6, 300, 8),
		"300 tokens at 2,000 a second after 200 ms":     newScript().spaced(200, 500, 300),
		"long prefill, five tokens 20 ms apart":         newScript().texts(2200, 20, 5),
		"long prefill, eight tokens merged, 5 ms each":  newScript().burst(2000, 8).timings(40),
		"small model on a busy machine, all merged":     newScript().burst(60, 20).timings(12),
		"busy machine merges 40 events a read":          newScript().burst(40, 40).burst(90, 40).burst(140, 40).burst(200, 17),
		"busy machine, one read stalls for a second":    newScript().texts(40, 2, 50).burst(1200, 500).texts(1203, 2, 50),
		"tool call: name early, arguments late at once": newScript().read(300, wire.KindTool).burst(2600, 20),
		"reasoning streams, the answer comes at once":   newScript().read(300, wire.KindReasoning).read(800, wire.KindReasoning).burst(1400, 30),
		"the first tokens come at once, then a pause":   newScript().burst(100, 20).burst(1600, 20),
		"the whole answer in one event":                 newScript().read(3000, wire.KindText),
		"flushes of a slow engine that says so":         newScript().burst(1000, 20).burst(2000, 20).timings(1010),
	} {
		t.Run(name, func(t *testing.T) {
			a := s.usage(20, int64(len(s.t.Events))).derive()
			if a.Flagged(FlagBuffered) {
				t.Errorf("called buffered: ttft %+v", a.Figures[TTFTMS])
			}
			if !a.Figures[TTFTMS].Present() {
				t.Errorf("no TTFT: %s", a.Figures[TTFTMS].Reason)
			}
		})
	}
}

// stepsOf is a speculative stream: after the first token, steps of n events in one read each.
func stepsOf(n int, first, every float64) *script {
	s := newScript().read(first, wire.KindText)
	for i := range 10 {
		s.burst(first+float64(i+1)*every, n)
	}
	return s
}

func TestNotStreamedIsNeverBuffered(t *testing.T) {
	s := newScript().burst(5000, 40)
	s.t.Framing = wire.FramingJSON
	wantFlags(t, s.derive())
}
