package proxy

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestDoKeepsThePlace holds that what a plan says of a request, and what it changed, is in the record, before what sending
// changed.
func TestDoKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, err := NewUpstream(UpstreamOptions{Name: "engine", URL: "http://engine", Dial: noEngine})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = up.Close() }()
		intended := clock.Now()
		time.Sleep(7 * time.Millisecond) // the sender is late
		item := &exchange.PlanItem{Item: "i", Turns: 1, Attempt: 2}
		x := NewSession(SessionOptions{Mode: "replay"}).Do(t.Context(), up, Call{
			Method: "POST", Target: "/v1/x", Body: []byte("{}"), Item: item, Intended: intended,
			Notes: []exchange.Intervention{{Kind: "planned_field_set", Where: exchange.SideEngine, Name: "model", Reason: "model_asked"}},
		}, nil)
		if ns, ok := x.Timeline.Intended.NS(); !ok || ns != -7_000_000 {
			t.Errorf("intended %d, %v", ns, ok)
		}
		if x.Item != item || len(x.Interventions) < 2 || x.Interventions[0].Name != "model" || x.End != exchange.EndConnectFailed {
			t.Errorf("item %+v, interventions %+v, end %s", x.Item, x.Interventions, x.End)
		}
	})
}

// noEngine is an address that nobody listens on.
func noEngine(context.Context) (net.Conn, error) { return nil, net.ErrClosed }
