package measure

import (
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestALimitNobodyAskedForMakesNoAnswerShort holds for the limit that a translation had to add.
func TestALimitNobodyAskedForMakesNoAnswerShort(t *testing.T) {
	for _, added := range []bool{false, true} {
		x := &exchange.Exchange{End: exchange.EndEOF}
		x.Request.Method, x.Request.Target = "POST", "/v1/messages"
		x.Request.Body = exchange.NewBody([]byte(`{"model":"m","max_tokens":4096,"messages":[]}`))
		x.Response.Status = 200
		x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: "application/json"}}
		x.Response.Body = exchange.NewBody([]byte(`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`))
		if added {
			x.Interventions = []exchange.Intervention{{Kind: exchange.KindLimitAdded, Name: "max_tokens", To: "4096"}}
		}
		if a := Analyze(x); slices.Contains(a.Flags, FlagShortAnswer) == added {
			t.Errorf("limit added %t: flags %v, outcome %s", added, a.Flags, a.Outcome)
		}
	}
}
