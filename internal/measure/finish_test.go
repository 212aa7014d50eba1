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
