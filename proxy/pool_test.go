package proxy

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaryPoolLetsConnectionsRest holds that an engine which closes connections behind its answers is found out, and
// that its connections are then used again only after the time in which it would have closed them.
func TestWaryPoolLetsConnectionsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engine []net.Conn
		up, err := NewUpstream(UpstreamOptions{Name: "e", URL: "http://engine", Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			engine = append(engine, theirs)
			return ours, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		take := func(wantReused bool) *engineConn {
			t.Helper()
			c := up.unused()
			if reused := c != nil; reused != wantReused {
				t.Errorf("reused is %v, want %v", reused, wantReused)
			}
			if c == nil {
				var err error
				if c, err = up.dial(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return c
		}
		up.put(take(false))
		up.put(take(true)) // nothing speaks against using it again at once
		engine[0].Close()
		c := take(false) // found dead: from now on the pool is wary
		up.put(c)
		young := take(false)
		up.put(young)
		time.Sleep(restTime)
		if rested := take(true); rested != young {
			t.Error("the pool did not give the youngest rested connection")
		}
		if err := up.Close(); err != nil {
			t.Error(err)
		}
	})
}
