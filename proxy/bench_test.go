package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

type nullSink struct{}

func (nullSink) Offer(*exchange.Exchange) bool { return true }

// pingPong streams n events, each when the client has answered the one before: what is measured is one event's way.
func pingPong(n int, payload string) func(p *peer, a asked) bool {
	event := fmt.Sprintf("%x\r\n%s\r\n", len(payload), payload)
	return func(p *peer, a asked) bool {
		_, _ = io.WriteString(p.Conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range n {
			_, _ = io.WriteString(p.Conn, event)
			<-p.engine.step
		}
		_, _ = io.WriteString(p.Conn, "0\r\n\r\n")
		return true
	}
}

// targets runs fn against the engine itself, through the proxy, and through the proxy with a sink.
func targets(b *testing.B, script func(p *peer, a asked) bool, fn func(b *testing.B, e *engine, addr string)) {
	for _, name := range []string{"direct", "proxied", "proxied+sink"} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, script)
			addr := e.Addr().String()
			if name != "direct" {
				s := NewSession(SessionOptions{})
				if name == "proxied+sink" {
					s = NewSession(SessionOptions{Sink: nullSink{}})
				}
				u, _ := NewUpstream(UpstreamOptions{URL: e.url()})
				srv, _ := NewServer(ServerOptions{Session: s, Upstream: u})
				ln := listen(b, "tcp")
				addr = ln.Addr().String()
				go func() { _ = srv.Serve(ln) }()
				b.Cleanup(func() { _, _ = srv.Close(), u.Close() })
			}
			b.ReportAllocs()
			fn(b, e, addr)
		})
	}
}

func BenchmarkStream(b *testing.B) {
	const events = 200
	payload := "data: " + strings.Repeat("x", 240) + "\n\n"
	targets(b, pingPong(events, payload), func(b *testing.B, e *engine, addr string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		br := bufio.NewReader(c)
		var first time.Duration
		for b.Loop() {
			began := clock.Now()
			_, _ = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			for range 4 {
				_, _ = br.ReadSlice('\n') // head
			}
			for i := range events {
				for range 4 { // size, data, blank, chunk end
					if _, err := br.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
				}
				if i == 0 {
					first += clock.Since(began)
				}
				e.step <- struct{}{}
			}
			_, _ = br.ReadSlice('\n')
			_, _ = br.ReadSlice('\n')
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/events, "us/event")
		b.ReportMetric(float64(first.Microseconds())/float64(b.N), "us/ttft")
	})
}

func BenchmarkJSON(b *testing.B) {
	targets(b, jsonAnswer(`{"a":"`+strings.Repeat("x", 600)+`"}`), func(b *testing.B, e *engine, addr string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		br := bufio.NewReader(c)
		for b.Loop() {
			_, _ = io.WriteString(c, "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			for range 4 {
				_, _ = br.ReadSlice('\n')
			}
			if _, err := br.Discard(608); err != nil {
				b.Fatal(err)
			}
		}
	})
}
