package web

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
)

// growing is a running exchange that a test lets go on.
type growing struct{ proxy.Live }

func begin(seq uint64, model string) *growing {
	body := fmt.Sprintf(`{"model":%q,"stream":true}`, model)
	return &growing{proxy.Live{ID: exchange.ID(fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ6%06d", seq)), Seq: seq, Upstream: "engine", Method: "POST", Target: "/v1/chat/completions?a=b",
		Started: clock.Now(), RequestBody: []byte(body)}}
}

// head is the response head; t0 is 1 ms after the start.
func (g *growing) head() {
	g.Response = &exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}}
	g.Timeline.SendStart = exchange.MarkAt(1e6)
}

// event brings one event now.
func (g *growing) event(data string) {
	data = "data: " + data + "\n\n"
	g.Chunks = append(g.Chunks, []byte(data[:5]), []byte(data[5:])) // chunks are cut anywhere
	g.Reads = append(g.Reads, exchange.Read{At: int64(clock.Since(g.Started)), Size: len(data)})
	g.Size += int64(len(data))
}

const token = `{"choices":[{"index":0,"delta":{"content":"x"}}]}`

// TestRunningStreams follows a stream from its beginning to its end.
func TestRunningStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(7, "m")
		running := []*growing{g}
		l := NewLive(func() (out []proxy.Live) {
			for _, g := range running {
				out = append(out, g.Live)
			}
			return out
		})
		look := func() Stream {
			t.Helper()
			streams, all := l.Running(10)
			if len(streams) != 1 || all != 1 {
				t.Fatalf("%d of %d streams", len(streams), all)
			}
			return streams[0]
		}
		time.Sleep(time.Second)
		if s := look(); s.Phase != PhaseWaiting || s.Age != time.Second || s.Name() != "m" || s.Path != "/v1/chat/completions" || s.Seq != 7 {
			t.Errorf("waiting: %+v", s)
		}
		g.head()
		g.event(`{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`)
		if s := look(); s.Phase != PhasePrefill || s.Events != 0 || s.Bytes == 0 {
			t.Errorf("no token yet: %+v", s)
		}
		for range 40 { // 20 a second
			time.Sleep(50 * time.Millisecond)
			g.event(token)
		}
		s := look()
		if s.Phase != PhaseDecode || s.Events != 40 || s.Tokens != 40 || !s.Estimated || s.First != 1049*time.Millisecond || s.Rate < 19 || s.Rate > 21 {
			t.Errorf("decoding: %+v", s)
		}
		time.Sleep(3 * time.Second)
		if s := look(); s.Rate != 0 || s.Events != 40 {
			t.Errorf("a stream that stands still: %v tok/s", s.Rate)
		}
		g.event(`{"choices":[{"index":0,"delta":{"content":"y"}}],"usage":{"prompt_tokens":3,"completion_tokens":90}}`)
		if s := look(); s.Tokens != 90 || s.Estimated {
			t.Errorf("the engine's own count: %+v", s)
		}
		if e := l.Engines(); len(e) != 1 || e[0].Running != 1 || e[0].Health() != "unknown" {
			t.Errorf("engines %+v", e)
		}
		running = nil
		if streams, all := l.Running(10); len(streams) != 0 || all != 0 || len(l.seen) != 0 {
			t.Errorf("after the end: %d streams, %d followed", all, len(l.seen))
		}
		for i := range 5 {
			running = append(running, begin(uint64(i), ""))
		}
		if streams, all := l.Running(2); len(streams) != 2 || all != 5 || streams[0].Name() != "POST /v1/chat/completions" {
			t.Errorf("%d of %d, %q", len(streams), all, streams[0].Name())
		}
	})
}

// TestEngineHealth holds what speaks against an engine and what does not.
func TestEngineHealth(t *testing.T) {
	l := NewLive(func() []proxy.Live { return nil })
	l.Upstreams("engine", "idle")
	x := asked{model: "m", pieces: []string{"a", "b"}}.exchange(1)
	ended := func(o exchange.Outcome, status int) {
		end(l, x, exchange.Summary{ID: x.ID, Outcome: o, Status: status, Cause: &exchange.Cause{Code: "reset"}})
	}
	for _, c := range []struct {
		outcome exchange.Outcome
		status  int
		health  string
	}{
		{exchange.OutcomeComplete, 200, "answering"}, {exchange.OutcomeUpstreamError, 404, "answering"}, {exchange.OutcomeUpstreamError, 503, "failing"}, {exchange.OutcomeUpstreamError, 0, "failing"},
		{exchange.OutcomeClientAbort, 200, "answering"}, {exchange.OutcomeStreamError, 200, "failing"}, {exchange.OutcomeUpstreamTruncated, 200, "failing"}, {exchange.OutcomeTimeout, 0, "failing"},
		{exchange.OutcomeComplete, 200, "answering"},
	} {
		ended(c.outcome, c.status)
		e := l.Engines()[0]
		if e.Health() != c.health || (e.Trouble != "") != (c.health == "failing") {
			t.Errorf("%s %d: %s, %q", c.outcome, c.status, e.Health(), e.Trouble)
		}
	}
	if e := l.Engines(); e[1].Name != "idle" || e[1].Health() != "unknown" || e[0].Answers != 9 {
		t.Errorf("engines %+v", e)
	}
	if got := l.Ended(); len(got) != 9 || len(got[0].Times) != 2 || got[0].Times[0] != 99.998 {
		t.Errorf("ended %d, times %v", len(got), got[0].Times)
	}
	for range 2 * keptEnded {
		ended(exchange.OutcomeComplete, 200)
	}
	if got := l.Ended(); len(got) != keptEnded {
		t.Errorf("%d are kept", len(got))
	}
	if got := thinned(make([]float64, 100_000)); len(got) != keptTimes {
		t.Errorf("%d times are kept", len(got))
	}
}

// TestLivePage holds what the page tells of what runs, of the engine and of the recorder.
func TestLivePage(t *testing.T) {
	g := begin(3, "gamma")
	g.head()
	g.event(token)
	g.event(token)
	many := func() (out []proxy.Live) {
		for range shownStreams + 4 {
			out = append(out, g.Live)
		}
		return out
	}
	l := NewLive(many)
	model, quantization, window := "gamma-3", "Q4_K_M", int64(8192)
	l.Describe(exchange.Deployment{Upstream: "engine", Identity: exchange.Identity{Engine: "llamacpp", Version: "b77"}, Model: &model, Quantization: &quantization, Window: &window, CPUFallback: true})
	x := asked{model: "delta", pieces: []string{"a", "b", "c"}}.exchange(1)
	end(l, x, exchange.Summary{ID: x.ID, Seq: 2, Model: "delta", Outcome: exchange.OutcomeUpstreamError, Status: 503})
	run := exchange.Run{ID: runID, Name: "agent", Upstreams: map[string]string{"engine": "http://e:1"}}
	o := withStore(&fake{})
	o.Live, o.Health = l, healthy(run)
	addr := serve(t, o)
	for _, path := range []string{"/", "/part/live"} {
		status, body := get(t, addr, path, "")
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		for _, want := range []string{"gamma", "decode", "~2", "and 4 more running", "llamacpp b77", "gamma-3", "Q4_K_M", "window 8192", "CPU fallback", "http://e:1", "failing", "upstream_error 503",
			"3 token events over time", "delta", "/exchanges/" + string(x.ID), "&lt;b&gt; 1", `href="/runs/` + string(runID) + `"`, `data-poll="/part/live"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
		inert(t, path, body)
	}
	if _, body := get(t, addr, "/part/live", ""); strings.Contains(body, "<html") {
		t.Error("the part is a whole page")
	}
	o.Health = func() any { return "another document" }
	if status, body := get(t, serve(t, o), "/", ""); status != 200 || !strings.Contains(body, "gamma") {
		t.Errorf("with an unknown health: %d", status)
	}
}
