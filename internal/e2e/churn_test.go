package e2e

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// churnFor is how long TestChurn goes on. The load test runs it for 30 s.
var churnFor = flag.Duration("churn", 2*time.Second, "how long TestChurn goes on")

// churnClients come and go at the same time.
const churnClients = 64

// churnAnswer is what the engine answers to a request of TestChurn: the name stands in every event. The name begins with
// the kind of the answer.
func churnAnswer(name string) *sim.Script {
	kind, _, _ := strings.Cut(name, ".")
	event := func(i int) string { return sse(delta(fmt.Sprintf("tag-%s-%d;", name, i))) }
	var s *sim.Script
	switch kind {
	case "length":
		return &sim.Script{Framing: sim.FramingLength, Steps: []sim.Step{{Data: []byte(event(0))}, {At: 5 * time.Millisecond, Data: []byte(event(1))}}}
	case "large":
		s = timed(0, strings.Repeat(event(0), 80), strings.Repeat(event(1), 80))
	case "prefill":
		s = timed(0, event(0), event(1), event(2))
		s.HeadAt = 20 * time.Millisecond
		for i := range s.Steps {
			s.Steps[i].At = s.HeadAt
		}
	default:
		events := make([]string, 12)
		for i := range events {
			events[i] = event(i)
		}
		s = timed(time.Millisecond, events...)
	}
	return s
}

// churner is one client of TestChurn. It makes connection after connection and leaves most of them at a bad moment.
type churner struct {
	t     *testing.T
	addr  string
	id    int
	rng   *rand.Rand
	named int
	asked int             // requests sent
	whole map[string]bool // requests whose answer it had to the end
}

func (c *churner) run(until time.Time) {
	c.visit()
	for clock.Now().Before(until) {
		c.visit()
	}
}

// next names a request.
func (c *churner) next() string {
	c.named++
	return fmt.Sprintf("%s.%d.%d", []string{"stream", "stream", "prefill", "length", "large"}[c.rng.IntN(5)], c.id, c.named)
}

// visit is one connection: up to four requests, one after the other or all at once, and somewhere among them the client
// leaves: before the head, within the body, or when it has all.
func (c *churner) visit() {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		c.t.Errorf("dial: %v", err)
		return
	}
	defer conn.Close()
	br := bufio.NewReader(conn)
	names := make([]string, 1+c.rng.IntN(4))
	var all []byte
	for i := range names {
		names[i] = c.next()
		all = append(all, chat(names[i]).bytes()...)
	}
	pipelined, leaves := c.rng.IntN(3) == 0, c.rng.IntN(len(names)+1)
	if pipelined {
		c.write(conn, len(names), all)
	}
	for i, name := range names {
		if !pipelined {
			c.write(conn, 1, chat(name).bytes())
		}
		if i == leaves {
			c.leave(conn, br, name)
			return
		}
		_ = conn.SetReadDeadline(clock.Now().Add(patience))
		if !c.read(br, name, -1) {
			return
		}
	}
	c.part(conn)
}

func (c *churner) write(conn net.Conn, requests int, b []byte) {
	c.asked += requests
	if _, err := conn.Write(b); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

// read takes an answer, at most limit bytes of its body unless limit is negative, and holds it to what the engine means to
// send. It reports whether it came whole, which it must without a limit.
func (c *churner) read(br *bufio.Reader, name string, limit int) bool {
	resp, err := http.ReadResponse(br, &http.Request{Method: "POST"})
	if err != nil {
		if limit < 0 {
			c.t.Errorf("%s: read head: %v", name, err)
		}
		return false
	}
	from := io.Reader(resp.Body)
	if limit >= 0 {
		from = io.LimitReader(from, int64(limit))
	}
	body, err := io.ReadAll(from)
	want := bodyOf(churnAnswer(name))
	switch {
	case resp.StatusCode != 200 || !bytes.HasPrefix(want, body):
		c.t.Errorf("%s: status %d, bytes of another stream or none of the engine's: %.80q", name, resp.StatusCode, body)
		return false
	case limit < 0 && (err != nil || len(body) != len(want)):
		c.t.Errorf("%s: %d of %d bytes, %v", name, len(body), len(want), err)
		return false
	case err != nil || len(body) < len(want):
		return false
	}
	c.whole[name] = limit < 0
	return true
}

// leave reads a part of an answer, for up to 25 ms, and goes.
func (c *churner) leave(conn net.Conn, br *bufio.Reader, name string) {
	_ = conn.SetReadDeadline(clock.Now().Add(time.Duration(c.rng.IntN(25_000)) * time.Microsecond))
	limit := c.rng.IntN(2 * len(bodyOf(churnAnswer(name))))
	if c.rng.IntN(4) > 0 { // else it goes at once
		c.read(br, name, limit)
	}
	c.part(conn)
}

// part ends a connection: with a FIN, with a reset, or with a FIN while it still reads.
func (c *churner) part(conn net.Conn) {
	tcp := conn.(*net.TCPConn)
	switch c.rng.IntN(3) {
	case 0:
		_ = tcp.SetLinger(0)
	case 1:
		_ = tcp.CloseWrite() // the proxy may have closed already
		_ = conn.SetReadDeadline(clock.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			c.t.Error("the proxy did not close a connection that was closed towards it")
		}
	}
}

// TestChurn lets clients come and go for a while, most of them at a bad moment, and holds that nothing of it is left: each
// request reached the engine at most once and is one record, no stream has a byte of another one, at the client, at the engine
// or in the store, and connections, descriptors and goroutines are as many as before.
func TestChurn(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	files := openFiles(t)
	r := newRig(t, func(o *rigOptions) {
		o.engine.KeepRecords, o.engine.KeepBytes = 1<<20, 1
		o.engine.Handler = func(q sim.Request) *sim.Script { return churnAnswer(caseOf(q)) }
		o.upstream.IdleAge = 300 * time.Millisecond // nothing rests for long when all have gone
	})
	sockets := openSockets(t)
	rows := make(chan map[string]record)
	ended := make(chan struct{})
	go func() { rows <- collectChurn(t, r, ended) }()

	until := clock.Now().Add(*churnFor)
	clients := make([]*churner, churnClients)
	together(churnClients, func(k int) {
		clients[k] = &churner{t: t, addr: r.addr, id: k, rng: rand.New(rand.NewPCG(uint64(k), 64)), whole: map[string]bool{}}
		clients[k].run(until)
	})
	eventually(t, "no exchange runs", func() bool { return r.session.Stats().Running == 0 })
	close(ended)
	records := <-rows
	eventually(t, "the sockets are as many as before", func() bool { return openSockets(t) == sockets })
	if n := openConnections(r.engine); n != 0 {
		t.Errorf("%d connections to the engine are left", n)
	}
	checkChurn(t, r.engine.Truth(), clients, records)
	r.close()
	eventually(t, "the descriptors are as many as before", func() bool { return openFiles(t) <= files })
	// The cleaner of fasthttp's idle workers sees late that its server has gone.
	eventually(t, "the goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+1 })
}

// collectChurn reads every record as it is stored, until all of those that began have come after the end. It drops the bodies.
func collectChurn(t *testing.T, r *rig, ended <-chan struct{}) map[string]record {
	records := map[string]record{}
	take := func(row exchange.Summary) {
		x, _, err := r.store.Exchange(row.ID)
		if err != nil {
			t.Errorf("read record: %v", err)
			return
		}
		name, _ := exchange.HeaderValue(x.Request.Headers, caseHeader)
		if _, twice := records[name]; twice || name == "" {
			t.Errorf("there are two records of %q", name)
		}
		body, want := x.Response.Body.Bytes(), bodyOf(churnAnswer(name))
		if !bytes.HasPrefix(want, body) || x.End == exchange.EndEOF && len(body) != len(want) {
			t.Errorf("the record of %s ends as %s with %d of %d bytes: %.80q", name, x.End, len(body), len(want), body)
		}
		x.Response.Body = exchange.Body{Size: x.Response.Body.Size}
		records[name] = record{x, row}
	}
	for {
		select {
		case row := <-r.rows:
			take(row)
		case <-ended:
			for int64(len(records)) < r.session.Stats().Accepted {
				take(r.nextRow(t, "any record"))
			}
			return records
		}
	}
}

// checkChurn holds the engine's account, what the clients had and the records to each other.
func checkChurn(t *testing.T, truth sim.Truth, clients []*churner, records map[string]record) {
	t.Helper()
	engine := map[string]sim.Record{}
	for _, rec := range truth.Requests {
		name := caseOf(rec.Request)
		if _, twice := engine[name]; twice {
			t.Errorf("%s reached the engine twice", name)
		}
		engine[name] = rec
		x, ok := records[name]
		if !ok {
			t.Errorf("%s reached the engine and has no record", name)
			continue
		}
		sent := 0
		if n := len(rec.Writes); n > 0 {
			sent = rec.Writes[n-1].Body
		}
		if x.Response.Body.Size > int64(sent) {
			t.Errorf("the record of %s has %d bytes, the engine sent %d", name, x.Response.Body.Size, sent)
		}
	}
	ends := map[exchange.End]int{}
	for name, x := range records {
		ends[x.End]++
		if x.End != exchange.EndEOF && x.End != exchange.EndClientGone {
			t.Errorf("%s ended as %s %+v", name, x.End, x.Cause)
		}
		if _, asked := engine[name]; !asked && (x.End != exchange.EndClientGone || x.Response.Status != 0) {
			t.Errorf("%s has a record that ended as %s, and never reached the engine", name, x.End)
		}
	}
	asked, whole := 0, 0
	for _, c := range clients {
		asked += c.asked
		for name := range c.whole {
			whole++
			if x := records[name]; x.Exchange == nil || x.Response.Body.Size != int64(len(bodyOf(churnAnswer(name)))) {
				t.Errorf("%s came whole to its client, but not to the store", name)
			}
		}
	}
	t.Logf("%d asked, %d reached the engine on %d connections, %d came whole, ends %v", asked, len(engine), len(truth.Connections), whole, ends)
	if asked < churnClients || ends[exchange.EndClientGone] == 0 || whole == 0 {
		t.Error("that was no churn")
	}
}

// openFiles counts the descriptors of this process; where the system does not list them it is always 0.
func openFiles(t testing.TB) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
