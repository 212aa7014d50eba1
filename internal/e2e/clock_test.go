package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/measure/reportcases"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

// The reports' own bounds. They hold on a fake clock, where no machine is in the way: what is late there, we hold back.
const (
	addedAtMost = 2 * time.Millisecond  // AX-19, AX-23: an event at the client after the engine's write
	spanSlack   = 10 * time.Millisecond // AX-23: of the span from the first event to the last
)

// TestAX19AX23HoldNothingBack plays the two reports about proxies that hold a stream back, with recording and without,
// and holds the literal bounds of the reports for every event.
func TestAX19AX23HoldNothingBack(t *testing.T) {
	cases, err := reportcases.Load()
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, c := range cases {
		if c.ID != "AX-19" && c.ID != "AX-23" {
			continue
		}
		for _, v := range c.Variants {
			for _, recording := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s recording %v", variantName(v), recording), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { holdsNothingBack(t, v, recording) })
				})
				played++
			}
		}
	}
	if played < 4 {
		t.Errorf("played %d streams: the reports are not there", played)
	}
}

// kept is a sink for one exchange.
type kept chan *exchange.Exchange

func (k kept) Offer(x *exchange.Exchange) bool { k <- x; return true }

func holdsNothingBack(t *testing.T, v reportcases.Variant, recording bool) {
	script := &sim.Script{Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}}
	for _, f := range v.Frames {
		script.Steps = append(script.Steps, sim.Step{At: f.At, Data: f.Data})
	}
	engine, behind := sim.New(sim.Config{Handler: sim.Always(script)}), sim.NewPipeListener()
	front, sink := sim.NewPipeListener(), make(kept, 1)
	o := proxy.SessionOptions{}
	if recording {
		o.Sink = sink
	}
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: "http://engine", Dial: behind.Dial})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := proxy.NewServer(proxy.ServerOptions{Session: proxy.NewSession(o), Upstream: up})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- engine.Serve(behind) }()
	go func() { ended <- srv.Serve(front) }()

	sent, arrivals := streamed(t, front)
	checkArrivals(t, script, sent, arrivals)
	if recording {
		checkFakeRecord(t, v, <-sink, script)
	}
	for _, end := range []func() error{srv.Close, up.Close, engine.Close, func() error { return <-ended }, func() error { return <-ended }} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(time.Minute) // the HTTP library's pool winds down
}

// clientRead is one read of the client that brought body bytes.
type clientRead struct {
	at  time.Time
	end int // body bytes so far
}

// streamed sends a request and reads its answer read by read.
func streamed(t *testing.T, front *sim.PipeListener) (sent time.Time, got []clientRead) {
	t.Helper()
	conn, err := front.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent = clock.Now()
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for buf, end := make([]byte, 64<<10), 0; ; {
		n, err := resp.Body.Read(buf)
		if end += n; n > 0 {
			got = append(got, clientRead{clock.Now(), end})
		}
		if err == io.EOF {
			return sent, got
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkArrivals holds the bounds for every event: at the client at once, and in no read with an earlier one.
func checkArrivals(t *testing.T, s *sim.Script, sent time.Time, got []clientRead) {
	t.Helper()
	end := 0
	for i, st := range s.Steps {
		end += len(st.Data)
		a := slices.IndexFunc(got, func(a clientRead) bool { return a.end >= end })
		if a < 0 {
			t.Fatalf("step %d never came", i)
		}
		if late := got[a].at.Sub(sent) - st.At; late < 0 || late > addedAtMost {
			t.Errorf("step %d is at the client %v after the engine's write", i, late)
		}
		if i+1 < len(s.Steps) && s.Steps[i+1].At > st.At && got[a].end != end {
			t.Errorf("step %d shares a read with the one after it", i)
		}
	}
}

// checkFakeRecord holds the reports' expectations of the record.
func checkFakeRecord(t *testing.T, v reportcases.Variant, x *exchange.Exchange, s *sim.Script) {
	t.Helper()
	reads := slices.DeleteFunc(slices.Clone(x.Timeline.Reads), func(r exchange.Read) bool { return r.Size == 0 })
	tokens := len(s.Steps) - 3 // behind them come finish, usage and [DONE]
	if len(reads) < tokens {
		t.Errorf("%d reads for %d events", len(reads), tokens)
	}
	span := time.Duration(reads[tokens-1].At - reads[0].At)
	if want := s.Steps[tokens-1].At - s.Steps[0].At; (span - want).Abs() > spanSlack {
		t.Errorf("events span %v in the record, want %v", span, want)
	}
	a := measure.Analyze(x)
	if a.Outcome != exchange.OutcomeComplete {
		t.Errorf("outcome %s", a.Outcome)
	}
	for name, want := range v.Expect.Figures {
		got := a.Figures[name]
		if got.Present() != (want != nil) || want != nil && (got.Value < *want*0.99 || got.Value > *want*1.01) {
			t.Errorf("%s is %+v, want %v", name, got, want)
		}
	}
}
