package gates

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// spoken is a chat answer in the making: what a test does not set is as a sound engine would have it.
type spoken struct {
	target  string          // of the request; "" = chat completions
	request string          // body; "" = a plain question
	message string          // JSON of the message; "" = made of content and reasoning
	content any             // string, or nil for null
	thought string          // reasoning
	finish  any             // string, or nil for null
	usage   json.RawMessage // "" = 9 prompt and 5 completion tokens; null = none
	body    string          // the whole body instead
	status  int             // 0 = 200
	end     exchange.End    // "" = eof
	state   exchange.State  // "" = stored
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// exchange is the recorded exchange of the answer, not streamed.
func (a spoken) exchange() *exchange.Exchange {
	request, target, body := a.request, a.target, a.body
	if request == "" {
		request = `{"model":"m","messages":[{"role":"user","content":"?"}]}`
	}
	if target == "" {
		target = "/v1/chat/completions"
	}
	message := a.message
	if message == "" {
		message = fmt.Sprintf(`{"role":"assistant","content":%s,"reasoning_content":%s}`, text(a.content), text(a.thought))
	}
	usage := string(a.usage)
	if usage == "" {
		usage = `{"prompt_tokens":9,"completion_tokens":5}`
	}
	if body == "" {
		body = fmt.Sprintf(`{"id":"c","choices":[{"index":0,"message":%s,"finish_reason":%s}],"usage":%s}`, message, text(a.finish), usage)
	}
	x := &exchange.Exchange{
		ID: exchange.NewID(time.UnixMilli(1_790_000_000_000)), Mode: "record",
		Request:  exchange.Request{Method: "POST", Target: target, Body: exchange.NewBody([]byte(request))},
		Response: exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Body: exchange.NewBody([]byte(body))},
		End:      exchange.EndEOF, State: exchange.StateStored,
	}
	if a.status != 0 {
		x.Response.Status = a.status
	}
	if a.end != "" {
		x.End = a.end
	}
	if a.state != "" {
		x.State = a.state
	}
	tl := &x.Timeline
	tl.SendStart, tl.HeaderRead, tl.FirstRead = exchange.MarkAt(1000), exchange.MarkAt(2000), exchange.MarkAt(3000)
	tl.LastRead, tl.BodyEnd = exchange.MarkAt(3000), exchange.MarkAt(3000)
	tl.Reads = []exchange.Read{{At: 3000, Size: len(body)}}
	return x
}

// judged is what one gate says of a case of these exchanges.
func judged(t *testing.T, check exchange.Check, xs ...*exchange.Exchange) exchange.Verdict {
	t.Helper()
	e := Prepare(&exchange.Case{ID: "case", Exchanges: xs, Checks: []exchange.Check{check}})
	v, needs, err := Judge(e, check)
	if err != nil || len(needs) > 0 {
		t.Fatalf("judge by %s: %v, needs %v", check.Gate, err, needs)
	}
	if v.Status != exchange.VerdictOK && v.Reason == "" {
		t.Errorf("%s says %s without a reason", check.Gate, v.Status)
	}
	return v
}

func check(gate string, params ...string) exchange.Check {
	c := exchange.Check{Gate: gate}
	if len(params) > 0 {
		c.Params = json.RawMessage(params[0])
	}
	return c
}
