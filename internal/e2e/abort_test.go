package e2e

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

const (
	// goneBound is how soon the engine must see that a client left.
	goneBound = 100 * time.Millisecond
	// goneLimit is the same on a machine that is held up.
	goneLimit = 5 * time.Second
)

// TestClientGoneEndsTheEnginesWork closes the client's connection in each state of a request: the engine sees it within
// goneBound by its own account, and the record says who left.
func TestClientGoneEndsTheEnginesWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plainBody := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		name, sim, body string
		started         bool // the client waits for the first body byte before it leaves
	}{
		{"streamed", "decode=20; answer=2000", chatBody, true},
		{"prefilling", "ttft=1h", chatBody, false},
		{"prefilling after the head", "ttft=1h; early_role=1", chatBody, true},
		{"not streamed", "ttft=1h", plainBody, false},
		{"stalled", "fault=stall@3", chatBody, true},
	} {
		for how, leave := range map[string]func(*client){"fin": func(*client) {}, "rst": (*client).resetOnClose} {
			t.Run(c.name+" "+how, func(t *testing.T) {
				t.Parallel()
				undisturbed(t, func(n int) bool {
					name := fmt.Sprint(t.Name(), n)
					conn := dial(t, r.addr).send(request{name: name, body: c.body, headers: []string{"X-Sim: " + c.sim}})
					truthOf(t, r.engine, name, func(sim.Record) bool { return true })
					if c.started {
						one := make([]byte, 1)
						if _, err := conn.head("POST").Body.Read(one); err != nil {
							t.Fatal(err)
						}
					}
					leave(conn)
					left := clock.Now()
					conn.Close()
					return checkGone(t, r, name, left)
				})
			})
		}
	}
}

// resetOnClose makes the close of the connection a reset.
func (c *client) resetOnClose() {
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		c.t.Error(err)
	}
}

// checkGone holds what becomes of a request whose client left at an instant; it reports whether that was in time.
func checkGone(t *testing.T, r *rig, name string, left time.Time) bool {
	t.Helper()
	engine := r.truth(t, name)
	if engine.Gone == 0 || engine.Ended != sim.EndedGone {
		t.Errorf("the engine ended as %q, gone at %d", engine.Ended, engine.Gone)
	}
	delay := time.Duration(engine.Wall + engine.Gone - left.UnixNano())
	if delay > goneLimit {
		t.Errorf("the engine saw the client gone after %v", delay)
	}
	x := r.stored(t, name, 0)
	if x.End != exchange.EndClientGone || x.row.Outcome != exchange.OutcomeClientAbort || x.Cause == nil || x.Cause.Side != exchange.SideClient {
		t.Errorf("sealed as %s, %+v, outcome %s", x.End, x.Cause, x.row.Outcome)
	}
	return delay <= goneBound
}
