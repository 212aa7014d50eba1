package scenario

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// engine is a scripted engine in memory.
type engine struct {
	client *http.Client
}

func newEngine(t *testing.T, o sim.Options) engine {
	t.Helper()
	ln := sim.NewPipeListener()
	s := sim.New(sim.Config{Options: o})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.Dial(ctx) }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return engine{&http.Client{Transport: transport}}
}

// send is the exchange of a request, as a recorder would have kept it.
func (e engine) send(t *testing.T, r Request) *exchange.Exchange {
	t.Helper()
	answer, err := e.client.Post("http://sim"+r.Path, "application/json", bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	x := &exchange.Exchange{
		Request: exchange.Request{Method: r.Method, Target: r.Path, Body: exchange.NewBody(r.Body)},
		Response: exchange.Response{Status: answer.StatusCode, Body: exchange.NewBody(body),
			Headers: []exchange.Header{{Name: "Content-Type", Value: answer.Header.Get("Content-Type")}}},
		End: exchange.EndEOF, State: exchange.StateStored,
	}
	x.Timeline.Reads = []exchange.Read{{At: 1, Size: len(body)}}
	return x
}

// TestScenariosAgainstAnEngine sends the first request of every scenario to an engine that calls what is declared, with
// made-up arguments that the schemas allow: its calls have their shape, however they are streamed, and the conversation
// goes on or stops for a reason that names the call.
func TestScenariosAgainstAnEngine(t *testing.T) {
	defer goleak.VerifyNone(t)
	called := 0
	for _, form := range []string{sim.ToolsFragments, sim.ToolsWhole, sim.ToolsOff} {
		t.Run(form, func(t *testing.T) {
			e := newEngine(t, sim.Options{Tools: form})
			for _, s := range All() {
				for _, stream := range []bool{false, true} {
					o := Options{Stream: stream, Tag: s.TagName() + "-c1-r0-i0"}
					r := request(t, s.ID, o)
					x := e.send(t, r)
					c := s.Case("c", o)
					c.Exchanges = []*exchange.Exchange{x}
					evidence := gates.Prepare(&c)
					if s.Suite == SuitePolicies && s.Blocking { // this engine refuses nothing
						if v := verdict(t, evidence, c.Checks[0]); v.Status != exchange.VerdictFail || v.Reason != "the status is 200, not 400" {
							t.Errorf("%s: %s (%s)", s.ID, v.Status, v.Reason)
						}
						continue
					}
					calls := evidence.Last().Transcript.Choice0().ToolCalls
					called += len(calls)
					shape := verdict(t, evidence, exchange.Check{Gate: "tool_call_shape"})
					if len(calls) > 0 && shape.Status != exchange.VerdictOK {
						t.Errorf("%s: %s (%s)\n%s", s.ID, shape.Status, shape.Reason, x.Response.Body.Bytes())
					}
					if done := verdict(t, evidence, exchange.Check{Gate: "stream_done"}); done.Status == exchange.VerdictFail {
						t.Errorf("%s: %s", s.ID, done.Reason)
					}
					if _, err := s.Request(o, []Answer{AnswerOf(wire.Parse(x))}); s.Turns == 1 && err != ErrOver {
						t.Errorf("%s goes on: %v", s.ID, err)
					}
				}
			}
		})
	}
	if called == 0 {
		t.Error("no tool was called: nothing was tested")
	}
}

func verdict(t *testing.T, e *gates.Evidence, c exchange.Check) exchange.Verdict {
	t.Helper()
	v, _, err := gates.Judge(e, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
