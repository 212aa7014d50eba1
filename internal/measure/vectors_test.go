package measure

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// vectorExchange is a written transcript as one read for each event, 10 ms apart.
func vectorExchange(v wiretest.Vector) *exchange.Exchange {
	s := newScript()
	s.x.Request.Target = v.Path()
	s.x.Response.Status = v.Status
	s.x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: v.ContentType}}
	s.x.Response.Body = exchange.NewBody(v.Body)
	var off int64
	for i, e := range wire.Parse(s.x).Events {
		s.read(float64(10 * (i + 1)))
		s.x.Timeline.Reads[i].Size = int(e.End - off)
		off = e.End
	}
	if rest := len(v.Body) - int(off); rest > 0 {
		s.read(float64(10 * (len(s.x.Timeline.Reads) + 1)))
		s.x.Timeline.Reads[len(s.x.Timeline.Reads)-1].Size = rest
	}
	return s.x
}

// TestVectorsGiveTheFiguresOfTheirEvents holds, for every written transcript of a dialect we read, the outcome and the
// instants against the indices of its events.
func TestVectorsGiveTheFiguresOfTheirEvents(t *testing.T) {
	n := 0
	for _, v := range wiretest.Vectors(t) {
		if wire.DialectOf(v.Path()) == wire.DialectNone {
			continue
		}
		n++
		a := Analyze(vectorExchange(v))
		if got := a.Outcome == exchange.OutcomeComplete; got != v.Expected.Complete {
			t.Errorf("%s: outcome %s, complete wanted: %v", v.Name(), a.Outcome, v.Expected.Complete)
		}
		checkInvariants(t, v.Name(), a)
		instants := map[string]*int{TTFTMS: v.Expected.FirstToken, AnswerTTFTMS: v.Expected.FirstAnswer, LastTokenMS: v.Expected.LastToken}
		for name, index := range instants {
			f := a.Figures[name]
			switch {
			case !streamed(a.Transcript):
				if f.Present() || f.Reason != ReasonNotStreamed && f.Reason != ReasonNoResponse {
					t.Errorf("%s: %s of a whole answer is %+v", v.Name(), name, f)
				}
			case (index != nil) != f.Present():
				t.Errorf("%s: %s is %+v, event wanted: %v", v.Name(), name, f, index != nil)
			case index != nil && f.Value != float64(10*(*index+1)):
				t.Errorf("%s: %s is %v, want event %d", v.Name(), name, f.Value, *index)
			}
		}
		counts := map[string]*int64{PromptTokens: v.Expected.PromptTokens, CachedTokens: v.Expected.CachedTokens, ReasoningTokens: v.Expected.ReasoningTokens}
		for name, want := range counts {
			if f := a.Figures[name]; want != nil && (!f.Present() || f.Value != float64(*want)) {
				t.Errorf("%s: %s is %+v, want %d", v.Name(), name, f, *want)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d vectors", n)
	}
}
