package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/recorder"
)

// together runs f for 0 to n-1 at the same time.
func together(n int, f func(k int)) {
	var wg sync.WaitGroup
	for k := range n {
		wg.Go(func() { f(k) })
	}
	wg.Wait()
}

// eventually waits for something that no one tells of.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := clock.Now().Add(patience); !ok(); <-tick.C {
		if clock.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// TestRR31EveryAnswerIsInTheCapture: a thousand answers of 100 kB, 32 at once, are a thousand complete records.
func TestRR31EveryAnswerIsInTheCapture(t *testing.T) {
	const clients, size, total = 32, 100_000, 1000
	content := func(name string) []byte {
		return bytes.Repeat([]byte(fmt.Sprintf("%-20s", name)), size/20)
	}
	r := newRig(t, func(o *rigOptions) {
		o.engine.KeepBytes = 1
		o.engine.Handler = func(q sim.Request) *sim.Script {
			return sim.BodyScript(200, "application/octet-stream", sim.FramingChunked, content(caseOf(q)), 16_000)
		}
	})
	together(clients, func(k int) {
		c := dial(t, r.addr)
		for i := k; i < total; i += clients {
			name, got := fmt.Sprint("capture", i), sha256.New()
			if _, err := io.Copy(got, c.send(request{target: "/files", name: name, body: name}).head("POST").Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if hexOf(got) != sumOf(content(name)) {
				t.Errorf("the client's body of %s is another", name)
			}
		}
	})
	sums := map[string]bool{} // what the store holds under each digest is compared when it closes
	for range total {
		row := r.nextRow(t, "any capture")
		sums[row.ResponseSum] = true
		if row.State != exchange.StateStored || row.Outcome != exchange.OutcomeComplete || row.ResponseBytes != size {
			t.Errorf("record %d is %s, %s, %d bytes", row.Seq, row.State, row.Outcome, row.ResponseBytes)
		}
	}
	for i := range total {
		if name := fmt.Sprint("capture", i); !sums[exchange.DigestPrefix+sumOf(content(name))] {
			t.Errorf("%s is in no record", name)
		}
	}
	if run := r.writer.Run(); run.Counts.Stored != total || run.Counts.Dropped != 0 || run.Counts.Truncated != 0 {
		t.Errorf("counts %+v", run.Counts)
	}
}

// TestRR40MemoryIsBounded: 600 MB through record mode reach the client whole, while the heap stays small; the record says
// that it was cut and still has the digest of all of it.
func TestRR40MemoryIsBounded(t *testing.T) {
	const piece, pieces, kept, bound = 64 << 10, 9600, 1 << 20, 32 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), piece/16)
	chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", piece, data))
	s := &sim.Script{Framing: sim.FramingRaw, Steps: []sim.Step{
		{Data: []byte("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n")},
	}}
	want := sha256.New()
	for range pieces {
		s.Steps = append(s.Steps, sim.Step{Data: chunk}) // all of them share it
		want.Write(data)
	}
	s.Steps = append(s.Steps, sim.Step{Data: []byte("0\r\n\r\n")})
	r := played(t, s, func(o *rigOptions) {
		o.engine.KeepBytes = 1
		o.session.MaxBody, o.session.Budget = kept, 8<<20
	})
	before := heap()
	got, peak := sha256.New(), uint64(0)
	body := dial(t, r.addr).send(request{target: "/files", name: "large"}).head("POST").Body
	var size int64
	for {
		n, err := io.CopyN(got, body, 32<<20)
		size += n
		peak = max(peak, heap())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if size != piece*pieces || hexOf(got) != hexOf(want) {
		t.Errorf("the client got %d bytes, want %d", size, piece*pieces)
	}
	if peak > before+bound {
		t.Errorf("the heap grew by %d MiB, the bound is %d", (peak-before)>>20, bound>>20)
	}
	x := r.stored(t, "large", 0)
	if b := x.Response.Body; x.State != exchange.StateTruncated || b.Size != size || b.Kept != kept || x.row.ResponseSum != exchange.DigestPrefix+hexOf(want) {
		t.Errorf("the record is %s, %d of %d bytes, digest %s", x.State, b.Kept, b.Size, x.row.ResponseSum)
	}
	var health recorder.Health
	if err := json.Unmarshal(fetch(t, r, "/healthz"), &health); err != nil || health.Truncated != 1 {
		t.Errorf("health %+v, %v", health, err)
	}
	t.Logf("heap before %d KiB, at most %d KiB", before>>10, peak>>10)
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// heap is the memory of the heap in use without garbage, which grows with what earlier tests left.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// TestAX21NoByteOfAnotherStream: twenty tagged streams whose clients leave one after the other; neither a client nor a
// record holds a byte of another one.
func TestAX21NoByteOfAnotherStream(t *testing.T) {
	const clients, rounds = 20, 5
	tag := func(name string) string { return "tag-" + name + "-" }
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = func(q sim.Request) *sim.Script {
			var events []string
			for i := range 50 {
				events = append(events, sse(delta(fmt.Sprintf("%s%d;", tag(caseOf(q)), i))))
			}
			return timed(2*time.Millisecond, events...)
		}
	})
	foreign := func(body []byte, name string) bool {
		return bytes.Count(body, []byte("tag-")) != bytes.Count(body, []byte(tag(name)))
	}
	whole := func(body []byte) []byte { return body[:bytes.LastIndex(body, []byte("\n\n"))+1] } // without a tag that was cut
	for round := range rounds {
		together(clients, func(k int) {
			name := fmt.Sprintf("%d.%d", round, k)
			c := dial(t, r.addr).send(chat(name))
			defer c.Close()
			if err := c.SetReadDeadline(clock.Now().Add(time.Duration(5+k) * time.Millisecond)); err != nil {
				t.Error(err)
			}
			got, _ := io.ReadAll(c.br) // until it is time to leave
			if foreign(whole(got), name) {
				t.Errorf("client %s got foreign bytes in %q", name, got)
			}
		})
	}
	for round := range rounds {
		for k := range clients {
			name := fmt.Sprintf("%d.%d", round, k)
			x := r.stored(t, name, 0)
			body := x.Response.Body.Bytes()
			if foreign(whole(body), name) || !bytes.HasPrefix(sent(name), body) {
				t.Errorf("the record of %s holds foreign bytes: %q", name, body)
			}
			if whole := len(body) == len(sent(name)); x.End != exchange.EndClientGone && !(whole && x.End == exchange.EndEOF) {
				t.Errorf("%s ended as %s after %d bytes", name, x.End, len(body)) // a client that was held up may leave too late
			}
		}
	}
}

// sent are all body bytes that the engine means to send for a request of TestAX21NoByteOfAnotherStream.
func sent(name string) []byte {
	var b strings.Builder
	for i := range 50 {
		b.WriteString(sse(delta(fmt.Sprintf("tag-%s-%d;", name, i))))
	}
	return []byte(b.String())
}

// TestAX35StoppedStreamsLeaveNothing: after a hundred whole streams and twenty stopped ones there are as many goroutines
// and sockets as before, one idle connection to the engine, and no stream begins with bytes of another.
func TestAX35StoppedStreamsLeaveNothing(t *testing.T) {
	r := newRig(t)
	kept := dial(t, r.addr)
	whole := func(n int, want []byte) []byte {
		for range n {
			a := kept.send(chat("whole", "X-Sim: answer=5")).answer("POST", 0)
			if want == nil {
				want = a.body
			}
			a.whole(t, 200, want)
		}
		return want
	}
	want := whole(1, nil)
	goroutines, sockets := runtime.NumGoroutine(), openSockets(t)
	whole(100, want)
	for i := range 20 {
		c := dial(t, r.addr).send(chat(fmt.Sprint("stopped", i), "X-Sim: decode=200; answer=1000"))
		c.answer("POST", 1)
		c.Close()
	}
	whole(20, want)
	for i := range 20 {
		name := fmt.Sprint("stopped", i)
		if x := r.stored(t, name, 0); x.End != exchange.EndClientGone || !bytes.HasPrefix(x.Response.Body.Bytes(), want[:30]) {
			t.Errorf("%s ended as %s with %.60q", name, x.End, x.Response.Body.Bytes())
		}
	}
	for i := range 121 {
		if x := r.stored(t, "whole", i); x.row.Outcome != exchange.OutcomeComplete || !bytes.Equal(x.Response.Body.Bytes(), want) {
			t.Errorf("whole stream %d: %s, %.60q", i, x.row.Outcome, x.Response.Body.Bytes())
		}
	}
	eventually(t, "one connection to the engine is left", func() bool { return openConnections(r.engine) == 1 })
	eventually(t, "the sockets are as many as before", func() bool { return openSockets(t) == sockets })
	// fasthttp keeps the worker of a connection for some seconds: two connections were open at the same time.
	eventually(t, "the goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
}

// openConnections counts the connections that the engine has open.
func openConnections(s *sim.Server) int {
	n := 0
	for _, c := range s.Truth().Connections {
		if c.Closed == 0 {
			n++
		}
	}
	return n
}

// openSockets counts the sockets of this process; where the system does not list them it is always 0.
func openSockets(t testing.TB) int {
	t.Helper()
	const dir = "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range files {
		if to, err := os.Readlink(dir + "/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
