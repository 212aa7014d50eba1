package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// t0NS is where the exchanges of these tests send: not 0, so that a forgotten subtraction shows.
const t0NS = 7_000_000

// script builds an exchange and its transcript event by event, without bytes.
type script struct {
	x *exchange.Exchange
	t *wire.Transcript
	r wire.RequestFacts
}

// newScript is a streamed chat answer with status 200, complete and without events.
func newScript() *script {
	s := &script{
		x: &exchange.Exchange{
			Request:  exchange.Request{Method: "POST", Target: "/v1/chat/completions?x=1"},
			Response: exchange.Response{Status: 200},
			End:      exchange.EndEOF,
			State:    exchange.StateStored,
		},
		t: &wire.Transcript{Version: wire.Version, Dialect: wire.DialectChat, Framing: wire.FramingSSE, DialectEnd: true},
		r: wire.RequestFacts{JSON: true, Stream: true, N: 1},
	}
	s.x.Timeline.RequestRead, s.x.Timeline.SendStart = exchange.MarkAt(t0NS-1_500_000), exchange.MarkAt(t0NS)
	return s
}

// read adds a read ms after the send that brings one event of each given kind.
func (s *script) read(ms float64, kinds ...wire.Kind) *script {
	at := t0NS + int64(math.Round(ms*1e6))
	tl := &s.x.Timeline
	tl.Reads = append(tl.Reads, exchange.Read{At: at, Size: 10 * len(kinds), Write: 20_000})
	if !tl.HeaderRead.Happened() {
		tl.HeaderRead, tl.FirstRead = exchange.MarkAt(at), exchange.MarkAt(at)
	}
	tl.LastRead, tl.BodyEnd, tl.ClientDone = exchange.MarkAt(at), exchange.MarkAt(at), exchange.MarkAt(at)
	for _, k := range kinds {
		s.t.Events = append(s.t.Events, wire.Event{Read: len(tl.Reads) - 1, Kinds: k, Tokens: -1, Running: -1})
	}
	return s
}

// texts adds n reads of one text event each, from ms on and every ms apart.
func (s *script) texts(from, every float64, n int) *script {
	for i := range n {
		s.read(from+float64(i)*every, wire.KindText)
	}
	return s
}

// burst adds one read of n text events.
func (s *script) burst(ms float64, n int) *script {
	return s.read(ms, slices.Repeat([]wire.Kind{wire.KindText}, n)...)
}

// end sets the end of the body.
func (s *script) end(ms float64) *script {
	s.x.Timeline.BodyEnd = exchange.MarkAt(t0NS + int64(ms*1e6))
	return s
}

// usage reports prompt and completion.
func (s *script) usage(prompt, completion int64) *script {
	s.t.Usage = &wire.Usage{Prompt: &prompt, Completion: &completion, Events: 1}
	return s
}

func (s *script) derive() *Analysis { return Derive(s.x, s.t, s.r) }

func ref[T any](v T) *T { return &v }

// wantValue checks a figure that is there.
func wantValue(t *testing.T, a *Analysis, name string, want float64, basis exchange.Basis) {
	t.Helper()
	f := a.Figures[name]
	if !f.Present() {
		t.Errorf("%s is absent (%s), want %v", name, f.Reason, want)
		return
	}
	if math.Abs(f.Value-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", name, f.Value, want)
	}
	if f.Basis != basis {
		t.Errorf("%s has the basis %s, want %s", name, f.Basis, basis)
	}
}

// wantAbsent checks that figures are absent for one reason.
func wantAbsent(t *testing.T, a *Analysis, why exchange.Reason, names ...string) {
	t.Helper()
	for _, name := range names {
		f, ok := a.Figures[name]
		if !ok || f.Present() || f.Reason != why {
			t.Errorf("%s is %+v (there: %v), want absent for %s", name, f, ok, why)
		}
	}
}

func wantFlags(t *testing.T, a *Analysis, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(a.Flags, want) {
		t.Errorf("flags are %q, want %q", a.Flags, want)
	}
}

const (
	msrd = exchange.BasisMeasured
	rptd = exchange.BasisReported
	estd = exchange.BasisEstimated
)
