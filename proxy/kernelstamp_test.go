//go:build linux

package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestReadsCarryTheKernelsStamp holds which clock stamps which connection, and that a stamp lies between the engine's
// write and the end of our write to the client.
func TestReadsCarryTheKernelsStamp(t *testing.T) {
	waitForStamps(t)
	server, client := certificate(t)
	for name, c := range map[string]struct {
		listen string
		wrap   *tls.Config
		scheme string
		reads  bool
		want   exchange.StampClock
	}{
		"tcp":               {"tcp", nil, "http://", false, exchange.ClockKernel},
		"tls":               {"tcp", server, "https://", false, exchange.ClockKernel},
		"unix":              {"unix", nil, "unix:", false, exchange.ClockRead},
		"tcp, read stamps":  {"tcp", nil, "http://", true, exchange.ClockRead},
		"tls, read stamps":  {"tcp", server, "https://", true, exchange.ClockRead},
		"unix, read stamps": {"unix", nil, "unix:", true, exchange.ClockRead},
	} {
		t.Run(name, func(t *testing.T) {
			const events = 20
			ln := listen(t, c.listen)
			if c.wrap != nil {
				ln = tls.NewListener(ln, c.wrap)
			}
			written := make(chan int64, events)
			e := newEngineOn(t, ln, func(p *peer, _ asked) bool {
				p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for range events {
					<-p.engine.step // the client has the one before: no two share a read
					written <- clock.Now().UnixNano()
					p.chunk("data: x\n\n")
				}
				p.send("0\r\n\r\n")
				return true
			})
			r := newRig(t, c.scheme+ln.Addr().String(), func(o *rigOptions) { o.up.TLS, o.up.ReadStamps = client, c.reads })
			down := r.dial().post("{}")
			resp, err := http.ReadResponse(down.br, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range events {
				e.step <- struct{}{}
				if _, err := io.ReadFull(resp.Body, make([]byte, 9)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			x := r.sink.next(t)
			checkRecord(t, x)
			if x.Timeline.Clock != c.want {
				t.Errorf("stamped by the %s clock, want %s", x.Timeline.Clock, c.want)
			}
			seen := 0
			for _, rd := range x.Timeline.Reads {
				if rd.Size == 0 {
					continue
				}
				seen++
				if at, w := x.Timeline.Wall.UnixNano()+rd.At, <-written; at < w {
					t.Errorf("a read is stamped %d ns before the engine wrote it", w-at)
				}
			}
			if seen != events {
				t.Errorf("%d reads brought bytes, want %d", seen, events)
			}
		})
	}
}

// TestReadByKernelDoesNotAllocate holds that the stamp costs no garbage.
func TestReadByKernelDoesNotAllocate(t *testing.T) {
	waitForStamps(t)
	ln := listen(t, "tcp")
	e := newEngineOn(t, ln, func(p *peer, _ asked) bool {
		for range 201 { // AllocsPerRun calls once more than it is told
			p.send("x")
			<-p.engine.step
		}
		return false
	})
	origin := clock.Start()
	up, err := NewUpstream(UpstreamOptions{Name: "e", URL: e.url()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Close() }()
	c, err := up.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.closeRaw()
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(200, func() {
		if _, err := c.fill(origin); err != nil {
			t.Fatal(err)
		}
		c.use(len(c.unread()))
		e.step <- struct{}{}
	})
	if c.clock != exchange.ClockKernel {
		t.Errorf("stamped by the %s clock", c.clock)
	}
	if n > 1 { // the engine's write and the channel share the count
		t.Errorf("%v allocations a read", n)
	}
}

// waitForStamps returns once the kernel stamps, which it begins a moment after it is asked, and keeps it stamping for
// the test.
func waitForStamps(t *testing.T) {
	t.Helper()
	stamps := keepStamping()
	t.Cleanup(stamps.end)
	ln := listen(t, "tcp")
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	_, k := stampedByKernel(nc)
	for deadline := clock.Now().Add(10 * time.Second); clock.Now().Before(deadline); {
		if _, err := far.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if _, ok := k.taken(); ok {
			return
		}
	}
	t.Fatal("the kernel gives no stamps")
}
