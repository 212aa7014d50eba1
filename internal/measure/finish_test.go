package measure

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestFinishReasonErrorIsAStreamError holds that an answer which the engine gave up is not taken for one cut short:
// some engines say so by the finish reason alone.
func TestFinishReasonErrorIsAStreamError(t *testing.T) {
	for _, reason := range []string{"abort", "error"} {
		body := `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n" + "data: [DONE]\n\n"
		x := &exchange.Exchange{
			Request:  exchange.Request{Method: "POST", Target: "/v1/chat/completions"},
			Response: exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}, Body: exchange.NewBody([]byte(body))},
			End:      exchange.EndEOF,
		}
		a := Analyze(x)
		if a.Outcome != exchange.OutcomeStreamError {
			t.Errorf("finish reason %q: outcome %s, want stream_error", reason, a.Outcome)
		}
		if a.Cause == nil || a.Cause.Side != exchange.SideEngine || a.Cause.Text == "" {
			t.Errorf("finish reason %q: cause %+v", reason, a.Cause)
		}
	}
}

// TestPinnedDialect holds that a pinned dialect reads request and answer whatever the path.
func TestPinnedDialect(t *testing.T) {
	x := &exchange.Exchange{
		Dialect: "ollama",
		Request: exchange.Request{Method: "POST", Target: "/my/gateway", Body: exchange.NewBody([]byte(`{"model":"m"}`))},
		Response: exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/x-ndjson"}},
			Body: exchange.NewBody([]byte(`{"response":"hi","done":false}` + "\n" + `{"response":"","done":true,"done_reason":"stop","eval_count":1}` + "\n"))},
		End: exchange.EndEOF,
	}
	a := Analyze(x)
	if !a.Request.Stream || a.Transcript.Choice0().Text != "hi" || a.Outcome != exchange.OutcomeComplete {
		t.Errorf("stream %v, text %q, outcome %s", a.Request.Stream, a.Transcript.Choice0().Text, a.Outcome)
	}
}

// TestOurLimitsAccuseNobody holds that an answer we do not decode is judged by its transport, and says so; one whose
// coding is damaged is not.
func TestOurLimitsAccuseNobody(t *testing.T) {
	for coding, want := range map[string]exchange.Outcome{"x-own": exchange.OutcomeComplete, "gzip": exchange.OutcomeUpstreamTruncated} {
		x := &exchange.Exchange{
			Request: exchange.Request{Method: "POST", Target: "/v1/chat/completions"},
			Response: exchange.Response{Status: 200, Body: exchange.NewBody([]byte("\x1f\x8bno")), Headers: []exchange.Header{
				{Name: "Content-Type", Value: "text/event-stream"}, {Name: "Content-Encoding", Value: coding}}},
			End: exchange.EndEOF,
		}
		a := Analyze(x)
		if a.Outcome != want || !a.Flagged(FlagCodingError) || a.Flagged(FlagOutcomeUnverified) != (want == exchange.OutcomeComplete) {
			t.Errorf("coding %s: %s %v, want %s", coding, a.Outcome, a.Flags, want)
		}
	}
}

func TestStalledWriteIsFlagged(t *testing.T) {
	for wait, want := range map[int64]bool{99e6: false, 100e6: true} {
		x := &exchange.Exchange{
			Response: exchange.Response{Status: 200, Body: exchange.NewBody([]byte("x"))}, End: exchange.EndEOF,
			Timeline: exchange.Timeline{SendStart: exchange.MarkAt(0), Reads: []exchange.Read{{At: 1, Size: 1, Write: wait}}},
		}
		if got := Analyze(x).Flagged(FlagWriteStalled); got != want {
			t.Errorf("a write of %d ns: flagged is %v", wait, got)
		}
	}
}
