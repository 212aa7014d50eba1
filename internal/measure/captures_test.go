package measure

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// TestCapturesComeOutAsTheyWent holds the outcome of every capture and the invariants of its figures. None of them is
// buffered, although the machine they were taken on was busy and many reads brought several events.
func TestCapturesComeOutAsTheyWent(t *testing.T) {
	captures := wiretest.Captures(t)
	for _, c := range captures {
		a := Analyze(c.Exchange())
		if want := captureOutcome(c); a.Outcome != want {
			t.Errorf("%s: outcome %s (%v), want %s", c.ID(), a.Outcome, a.Cause, want)
		}
		if a.Flagged(FlagBuffered) {
			t.Errorf("%s is called buffered", c.ID())
		}
		checkInvariants(t, c.ID(), a)
	}
	if len(captures) < 100 {
		t.Errorf("only %d captures", len(captures))
	}
}

func captureOutcome(c wiretest.Capture) exchange.Outcome {
	switch {
	case c.Facts.End == "client-abort":
		return exchange.OutcomeClientAbort
	case c.Status < 200 || c.Status > 299:
		return exchange.OutcomeUpstreamError
	case c.Name == "badbytes-stream": // an error event ends it
		return exchange.OutcomeStreamError
	}
	return exchange.OutcomeComplete
}

// checkInvariants holds what is true of the figures of any exchange.
func checkInvariants(t *testing.T, name string, a *Analysis) {
	t.Helper()
	for metric, f := range a.Figures {
		if f.Present() == (f.Reason != "") || !f.Present() && !slices.Contains(Reasons(), f.Reason) {
			t.Errorf("%s: %s is %+v", name, metric, f)
		}
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			t.Errorf("%s: %s is %v", name, metric, f.Value)
		}
	}
	last := 0.0
	for _, metric := range []string{HeadersMS, FirstEventMS, TTFTMS, AnswerTTFTMS, LastTokenMS, TotalWallMS} {
		if f := a.Figures[metric]; f.Present() && f.Value < last {
			t.Errorf("%s: %s is %v, before the one it follows", name, metric, f.Value)
		} else if f.Present() {
			last = f.Value
		}
	}
	if peak, decode := a.Figures[Peak1sTPS], a.Figures[DecodeTPS]; peak.Present() && peak.Value < 0.99*decode.Value {
		t.Errorf("%s: peak %v below the mean %v", name, peak.Value, decode.Value)
	}
	if d, tpot := a.Figures[DecodeTPS], a.Figures[TPOTMS]; d.Present() != tpot.Present() || d.Present() && math.Abs(d.Value*tpot.Value-1000) > 1e-6 {
		t.Errorf("%s: decode %+v and TPOT %+v do not fit", name, d, tpot)
	}
}

// TestCapturesAgreeWithTheEngine holds our decode rate against the engine's own. The bound is generous, since the
// models are tiny and the machine was busy: 10 % over windows of 50 ms and more, 50 % over shorter ones, for streams
// of 12 tokens and more in which nearly every token had its event.
func TestCapturesAgreeWithTheEngine(t *testing.T) {
	long, short := 0, 0
	for _, c := range wiretest.Captures(t) {
		a := Analyze(c.Exchange())
		diff, perEvent := a.Figures[DecodeEngineDiff], a.Figures[TokensPerEvent]
		if c.Server != "llama-server" || !diff.Present() || perEvent.Value > 1.1 || a.Figures[CompletionTokens].Value < 12 {
			continue
		}
		bound := 0.5
		if a.Figures[LastTokenMS].Value-a.Figures[TTFTMS].Value >= 50 {
			bound, long = 0.1, long+1
		} else {
			short++
		}
		if math.Abs(diff.Value) > bound {
			t.Errorf("%s: ours %v, the engine's %v: %.1f %% apart", c.ID(), a.Figures[DecodeTPS].Value, a.Figures[EngineDecodeTPS].Value, 100*diff.Value)
		}
		if a.Flagged(FlagDecodeDiffers) != (math.Abs(diff.Value) > 0.05 && a.Figures[CompletionTokens].Value >= minCompared) {
			t.Errorf("%s: difference %v, flags %q", c.ID(), diff.Value, a.Flags)
		}
	}
	if long < 8 || short < 4 {
		t.Errorf("only %d long and %d short streams were compared", long, short)
	}
}

// TestCapturesHoldPrefillWithinTTFT holds that the engine's prefill lies within our TTFT.
func TestCapturesHoldPrefillWithinTTFT(t *testing.T) {
	n := 0
	for _, c := range wiretest.Captures(t) {
		a := Analyze(c.Exchange())
		ttft, timings := a.Figures[TTFTMS], a.Transcript.Timings
		if !ttft.Present() || timings == nil || timings.PrefillMS == nil {
			continue
		}
		n++
		if ttft.Value < *timings.PrefillMS {
			t.Errorf("%s: TTFT %v ms, prefill by the engine %v ms", c.ID(), ttft.Value, *timings.PrefillMS)
		}
	}
	if n < 20 {
		t.Errorf("only %d captures were compared", n)
	}
}

// capture is the named capture of llama-server.
func capture(tb testing.TB, name string) *exchange.Exchange {
	tb.Helper()
	return wiretest.LoadCapture(tb, "llama-server/"+name).Exchange()
}

// TestAnalyzeIsPure holds that two readings of one exchange agree and leave it as it was.
func TestAnalyzeIsPure(t *testing.T) {
	x := capture(t, "chat-stream-200")
	before := strings.Clone(string(x.Response.Body.Bytes()))
	a, b := Analyze(x), Analyze(x)
	for name, f := range a.Figures {
		if b.Figures[name] != f {
			t.Errorf("%s was %+v and is %+v", name, f, b.Figures[name])
		}
	}
	if string(x.Response.Body.Bytes()) != before {
		t.Error("the body was changed")
	}
}
