package proxy

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// tagged streams n events that carry the body of their request, with pauses.
func tagged(n int, pause time.Duration) func(p *peer, a asked) bool {
	return func(p *peer, a asked) bool {
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		tick := time.NewTicker(max(pause, time.Nanosecond))
		defer tick.Stop()
		for i := range n {
			if pause > 0 {
				<-tick.C
			}
			if _, err := fmt.Fprintf(p.Conn, "%x\r\ntag-%s-%04d;\r\n", len(a.Body)+10, a.Body, i); err != nil {
				return false
			}
		}
		p.send("0\r\n\r\n")
		return true
	}
}

// foreign gives the first piece of a tagged body that is not of its request.
func foreign(body, tag string) string {
	for i, piece := range strings.SplitAfter(body, ";") {
		want := fmt.Sprintf("tag-%s-%04d;", tag, i)
		if piece != want && !strings.HasPrefix(want, piece) {
			return piece
		}
	}
	return ""
}

// TestChurn holds that streams cut at random moments never leak a byte into another one, on either side or the record.
func TestChurn(t *testing.T) {
	e := newEngine(t, tagged(50, time.Millisecond))
	r := newRig(t, e.url())
	const clients, rounds = 24, 6
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 5))
			for round := range rounds {
				tag := fmt.Sprintf("c%02dr%d", k, round)
				c := r.dial()
				c.post(tag)
				_ = c.SetReadDeadline(clock.Now().Add(time.Duration(rng.IntN(90)) * time.Millisecond))
				got := "tag-" + tag + c.rest() // until the deadline, with its chunk framing
				c.Close()
				for _, piece := range strings.Split(got, "tag-")[1:] {
					if !strings.HasPrefix(piece, tag) && !strings.HasPrefix(tag, strings.TrimSuffix(piece, "\r\n")) {
						t.Errorf("client %s got foreign bytes %.40q", tag, piece)
					}
				}
			}
		})
	}
	wg.Wait()
	for range clients * rounds {
		x := r.sink.next(t)
		checkRecord(t, x)
		tag := string(x.Request.Body.Bytes())
		if p := foreign(string(x.Response.Body.Bytes()), tag); p != "" {
			t.Errorf("record of %s holds foreign bytes %.40q", tag, p)
		}
	}
	eventually(t, "the engine's connections return to the pool or close", func() bool {
		r.up.mu.Lock()
		defer r.up.mu.Unlock()
		return e.open.Load() == int64(len(r.up.free))
	})
}

// TestStoppedStreamsLeaveNothing holds that goroutines and connections return to where they were.
func TestStoppedStreamsLeaveNothing(t *testing.T) {
	e := newEngine(t, tagged(10, 0))
	slow := newEngine(t, tagged(1000, 5*time.Millisecond))
	r, rs := newRig(t, e.url()), newRig(t, slow.url())
	whole := func(n int) {
		c := r.dial()
		defer c.Close()
		for range n {
			if p := foreign(c.post("whole").ok(200), "whole"); p != "" {
				t.Fatalf("foreign bytes %q", p)
			}
			r.sink.next(t)
		}
	}
	whole(1)
	before := runtime.NumGoroutine()
	whole(100)
	for range 20 {
		c := rs.dial()
		c.post("half")
		c.head()
		_, _ = c.br.ReadString(';')
		c.Close()
		if x := rs.sink.next(t); x.End != exchange.EndClientGone || foreign(string(x.Response.Body.Bytes()), "half") != "" {
			t.Errorf("stopped stream ended as %s with %q", x.End, x.Response.Body.Bytes())
		}
	}
	whole(20)
	if n := e.open.Load(); n != 1 {
		t.Errorf("%d connections to the engine, want 1", n)
	}
	eventually(t, "no connection of a stopped stream is left", func() bool { return slow.open.Load() == 0 })
	// Workers of the HTTP library stay for a while: one for each connection that was open at the same time.
	eventually(t, "goroutines return to their level", func() bool { return runtime.NumGoroutine() <= before+6 })
}

// TestThousandStreams holds that a thousand streams run at once without an error.
func TestThousandStreams(t *testing.T) {
	const n = 1000
	var all sync.WaitGroup
	all.Add(n)
	release := make(chan struct{})
	e := newEngine(t, func(p *peer, a asked) bool {
		all.Done()
		<-release // until all are here
		return tagged(10, 0)(p, a)
	})
	r := newRig(t, e.url())
	go func() { all.Wait(); close(release) }()
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			tag := fmt.Sprint(i)
			c := r.dial()
			defer c.Close()
			_ = c.SetReadDeadline(clock.Now().Add(6 * patience))
			c.post(tag)
			_, body, err := c.answer("POST")
			if err != nil || strings.Count(body, ";") != 10 || foreign(body, tag) != "" {
				t.Errorf("stream %d: %d bytes, %v", i, len(body), err)
			}
		})
	}
	clients.Wait()
	for range n {
		if x := r.sink.next(t); x.End != exchange.EndEOF || x.State != exchange.StateStored {
			t.Errorf("exchange %d ended as %s %+v", x.Seq, x.End, x.Cause)
		}
	}
	if st := r.session.Stats(); st.Accepted != n || st.Dropped != 0 || st.Ends[exchange.EndEOF] != n {
		t.Errorf("counters %+v", st)
	}
}
