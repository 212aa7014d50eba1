package measure

import (
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// TestHiddenErrorsAreNoSuccess holds what becomes of each way to hide an error.
func TestHiddenErrorsAreNoSuccess(t *testing.T) {
	for _, tc := range []struct {
		vector, flag, code string
		outcome            exchange.Outcome
	}{
		{"tensorsharp-chat-error-as-content", FlagErrorAsContent, "", exchange.OutcomeComplete}, // the wire calls it complete
		{"ollama-v1-error-swallowed", FlagSwallowedError, "swallowed_error", exchange.OutcomeUpstreamTruncated},
		{"generic-http200-error-json", "", "stream_error", exchange.OutcomeStreamError},
		{"ollama-chat-no-done-eof", "", "no_dialect_end", exchange.OutcomeUpstreamTruncated},
		{"tensorsharp-ollama-error", "", "stream_error", exchange.OutcomeStreamError},
		{"tensorfold-chat-embedded-error", "", "stream_error", exchange.OutcomeStreamError},
	} {
		a := vectorAnalysis(t, tc.vector)
		if a.Outcome != tc.outcome || tc.flag != "" && !a.Flagged(tc.flag) {
			t.Errorf("%s: outcome %s, flags %q", tc.vector, a.Outcome, a.Flags)
		}
		if tc.code != "" && (a.Cause == nil || a.Cause.Code != tc.code || a.Cause.Side != exchange.SideEngine) {
			t.Errorf("%s: cause %+v", tc.vector, a.Cause)
		}
	}
	page := newScript().read(10)
	page.x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: "text/html"}}
	page.x.Response.Body = exchange.NewBody([]byte("<!doctype html><html></html>"))
	page.x.Timeline.Reads[0].Size = int(page.x.Response.Body.Size)
	a := Analyze(page.x)
	if a.Outcome != exchange.OutcomeUpstreamTruncated || !a.Flagged(FlagNoAPIAnswer) || a.Cause.Code != "no_api_answer" {
		t.Errorf("a web page: outcome %s, cause %+v, flags %q", a.Outcome, a.Cause, a.Flags)
	}
	page.x.Request.Method = "GET"
	if a := Analyze(page.x); a.Flagged(FlagNoAPIAnswer) || a.Outcome != exchange.OutcomeComplete {
		t.Errorf("a page that was asked for: outcome %s, flags %q", a.Outcome, a.Flags)
	}
}

// TestSuspectIsNoSample holds that an error message in the place of an answer is in no metric of a run.
func TestSuspectIsNoSample(t *testing.T) {
	s := newScript().texts(100, 20, 40).usage(10, 40)
	good := Summarize(s.x, s.derive())
	s.t.Suspect = wire.SuspectErrorAsContent
	bad := Summarize(s.x, s.derive())
	m := RunSummary([]exchange.Summary{good, bad}).Metric(TTFTMS)
	if m.Summary.N != 1 || m.Excluded[ExcludedSuspect] != 1 {
		t.Errorf("%+v", m)
	}
}

func TestEventsBehindDoneAreFlagged(t *testing.T) {
	s := newScript().texts(100, 20, 3).usage(10, 3)
	s.t.AfterDone = 1
	if a := s.derive(); !slices.Contains(a.Flags, FlagEventsAfterDone) {
		t.Errorf("flags %q", a.Flags)
	}
}

func TestDraftFigures(t *testing.T) {
	s := newScript().texts(100, 20, 51).usage(10, 125) // a window of one second
	s.t.Timings = &wire.Timings{DraftN: ref(int64(120)), DraftAccepted: ref(int64(84)), DraftSteps: ref(int64(40)), DraftSource: "response"}
	a := s.derive()
	wantValue(t, a, DraftAcceptance, 0.7, rptd)
	wantValue(t, a, DraftWaste, 0.3, rptd)
	wantValue(t, a, DraftWindow, 3, rptd)
	wantValue(t, a, TokensPerStep, 3.1, rptd)
	wantValue(t, a, VerifyStepsPS, 40, msrd)
	wantValue(t, a, AcceptedGoodputTPS, 84, msrd)
	s.t.Timings.DraftSteps = nil
	a = s.derive()
	wantAbsent(t, a, ReasonStepsUnknown, DraftWindow, TokensPerStep, VerifyStepsPS)
	wantValue(t, a, AcceptedGoodputTPS, 84, msrd)
	s.t.Framing = wire.FramingJSON
	wantAbsent(t, s.derive(), ReasonNotStreamed, AcceptedGoodputTPS)
	s.t.Framing, s.t.Timings.DraftN = wire.FramingSSE, nil
	wantAbsent(t, s.derive(), ReasonNoDrafts, DraftAcceptance, DraftWaste, AcceptedGoodputTPS) // accepted of how many?
	s.t.Timings = nil
	wantAbsent(t, s.derive(), ReasonNoDrafts, DraftAcceptance, DraftWaste, DraftWindow, TokensPerStep, VerifyStepsPS, AcceptedGoodputTPS)
}
