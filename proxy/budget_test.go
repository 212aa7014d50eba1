package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(9, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestBodyCap holds that past the cap the stream goes on, and that sizes and digest still cover all of it.
func TestBodyCap(t *testing.T) {
	for _, size := range []int{999, 1000, 1001, 50_000, 3 << 20} {
		body := noise(size)
		e := newEngine(t, func(p *peer, a asked) bool {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
			_, _ = p.Write(body)
			return true
		})
		r := newRig(t, e.url(), func(o *rigOptions) { o.session.MaxBody = 1000 })
		if got := r.dial().post(string(body)).ok(200); got != string(body) {
			t.Fatalf("size %d: the client got another body", size)
		}
		if e.last(t).Body != string(body) {
			t.Fatalf("size %d: the engine got another body", size)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		cut := size > 1000
		for side, b := range map[string]exchange.Body{"request": x.Request.Body, "response": x.Response.Body} {
			if b.Size != int64(size) || b.Kept != int64(min(size, 1000)) || !bytes.Equal(b.Bytes(), body[:min(size, 1000)]) {
				t.Errorf("size %d: %s keeps %d of %d", size, side, b.Kept, b.Size)
			}
			if want := exchange.NewBody(body).Sum(); b.Sum() != want || cut != (b.Digest != "") {
				t.Errorf("size %d: %s digest %q, want %q", size, side, b.Digest, want)
			}
		}
		if (x.State == exchange.StateTruncated) != cut {
			t.Errorf("size %d: state %s", size, x.State)
		}
		sum := 0
		for _, rd := range x.Timeline.Reads {
			sum += rd.Size
		}
		if sum != size {
			t.Errorf("size %d: stamps cover %d bytes", size, sum)
		}
	}
}

func TestReadsCap(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool {
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 50 {
			p.chunk("x")
			_, _ = p.br.ReadByte() // the client has it
		}
		p.send("0\r\n\r\n")
		return true
	})
	s := NewSession(SessionOptions{MaxReads: 10})
	u, err := NewUpstream(UpstreamOptions{URL: e.url()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Close() }()
	f := s.open(u, Call{Method: "POST", Target: "/"}, clock.Start())
	if err := f.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := f.conn
	ack := writerFunc(func(b []byte) (int, error) { _, _ = conn.Write([]byte("a")); return len(b), nil })
	if _, err := f.stream(ack); err != nil {
		t.Fatal(err)
	}
	x := f.seal()
	if len(x.Timeline.Reads) != 10 || x.State != exchange.StateTruncated || x.Response.Body.Kept != 50 || !x.Response.Body.Whole() {
		t.Errorf("%d reads, state %s, %d bytes", len(x.Timeline.Reads), x.State, x.Response.Body.Kept)
	}
}

// TestBudgetCutsTheLargest runs a large and a small stream against a small budget: the large record is cut, the small
// one is whole, both clients get everything, and new large requests are refused meanwhile.
func TestBudgetCutsTheLargest(t *testing.T) {
	large, small := noise(4<<20), noise(20_000)
	step, finish := make(chan struct{}), make(chan struct{})
	e := newEngine(t, func(p *peer, a asked) bool {
		body := small
		if a.Body == "large" {
			body = large
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
		_, _ = p.Write(body[:len(body)-1])
		if a.Body == "large" {
			step <- struct{}{}
		}
		<-finish
		_, _ = p.Write(body[len(body)-1:])
		return true
	})
	r := newRig(t, e.url(), func(o *rigOptions) { o.session.Budget = 2 << 20 })
	type result struct{ name, body string }
	results := make(chan result, 2)
	for name := range map[string]bool{"large": true, "small": true} {
		go func() { results <- result{name, r.dial().post(name).ok(200)} }()
	}
	<-step
	eventually(t, "the large record is cut", func() bool {
		for _, l := range r.session.Live() {
			if string(l.RequestBody) == "large" && l.Size == int64(len(large)-1) {
				kept := 0
				for _, c := range l.Chunks {
					kept += len(c)
				}
				return kept == cutKeep
			}
		}
		return false
	})
	if held := r.session.Stats().Held; held > 2<<20 {
		t.Errorf("%d bytes are held", held)
	}
	r.session.budget.take(2 << 20) // someone else holds the rest
	errorObject(t, r.dial().post(strings.Repeat("x", largeRequest+1)).ok(503))
	r.session.budget.release(2 << 20)
	close(finish)
	for range 2 {
		got := <-results
		if want := map[string][]byte{"large": large, "small": small}[got.name]; got.body != string(want) {
			t.Errorf("client of %s got %d bytes, want %d", got.name, len(got.body), len(want))
		}
		x := r.sink.next(t)
		body, state := small, exchange.StateStored
		if string(x.Request.Body.Bytes()) == "large" {
			body, state = large, exchange.StateTruncated
		}
		if x.State != state || x.Response.Body.Sum() != exchange.NewBody(body).Sum() || !bytes.HasPrefix(body, x.Response.Body.Bytes()) {
			t.Errorf("%s: state %s, digest %s", x.Request.Body.Bytes(), x.State, x.Response.Body.Sum())
		}
	}
	if st := r.session.Stats(); st.RefusedBusy != 1 || st.Truncated != 1 {
		t.Errorf("counters %+v", st)
	}
}

// TestRecordIsCutWhileItGrows races the budget's cut against the writer: what is kept stays a prefix.
func TestRecordIsCutWhileItGrows(t *testing.T) {
	body := noise(3 << 20)
	for round := range 20 {
		s := NewSession(SessionOptions{})
		var rec record
		rec.init(s, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !rec.hashing.Load() {
				runtime.Gosched()
			}
			s.mu.Lock()
			rec.shorten()
			s.mu.Unlock()
		}()
		for i := 0; i < len(body); {
			n := min(1000+round*37, len(body)-i)
			rec.addBody(body[i : i+n])
			rec.addRead(exchange.Read{Size: n})
			i += n
		}
		<-done
		b := rec.body()
		if !bytes.HasPrefix(body, b.Bytes()) || b.Size != int64(len(body)) || b.Whole() || b.Sum() != exchange.NewBody(body).Sum() {
			t.Fatalf("round %d: kept %d of %d", round, b.Kept, b.Size)
		}
		rec.release()
		if n := s.budget.used.Load(); n != 0 {
			t.Fatalf("round %d: %d bytes are still held", round, n)
		}
	}
}

// TestLive holds that a look at a running stream shows what is there, with credentials masked.
func TestLive(t *testing.T) {
	step := make(chan struct{})
	e := newEngine(t, func(p *peer, a asked) bool {
		<-step
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: a=sk-secret\r\nTransfer-Encoding: chunked\r\n\r\n")
		p.chunk("data: 1\n\n")
		<-step
		p.send("0\r\n\r\n")
		return true
	})
	r := newRig(t, e.url())
	c := r.dial()
	c.send("POST /v1/chat/completions?api_key=sk-secret HTTP/1.1\r\nHost: me\r\nContent-Length: 2\r\n\r\n{}")
	eventually(t, "it runs", func() bool { return len(r.session.Live()) == 1 })
	l := r.session.Live()[0]
	if l.Response != nil || l.Method != "POST" || string(l.RequestBody) != "{}" || l.Seq != 1 || l.Started.IsZero() {
		t.Errorf("before the head: %+v", l)
	}
	step <- struct{}{}
	eventually(t, "a read is there", func() bool { return len(r.session.Live()[0].Reads) == 1 })
	l = r.session.Live()[0]
	if s := fmt.Sprintf("%+v", l) + fmt.Sprintf("%+v %s", *l.Response, l.Response.Head); strings.Contains(s, "sk-secret") {
		t.Errorf("a look shows a credential: %s", s)
	}
	if string(bytes.Join(l.Chunks, nil)) != "data: 1\n\n" || l.Size != 9 || l.Response.Status != 200 || !l.Timeline.SendStart.Happened() {
		t.Errorf("in the stream: %+v", l)
	}
	step <- struct{}{}
	c.ok(200)
	eventually(t, "it has ended", func() bool { return len(r.session.Live()) == 0 })
}
