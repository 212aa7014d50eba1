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

// stage is a Live over exchanges that a test lets grow.
type stage struct {
	t       *testing.T
	live    *Live
	running []*growing
}

func newStage(t *testing.T, running ...*growing) *stage {
	s := &stage{t: t, running: running}
	s.live = NewLive(func() (out []proxy.Live) {
		for _, g := range s.running {
			out = append(out, g.Live)
		}
		return out
	})
	return s
}

// look is the one stream that runs.
func (s *stage) look() Stream {
	s.t.Helper()
	streams, all := s.live.Running(10)
	if len(streams) != 1 || all != 1 {
		s.t.Fatalf("%d of %d streams", len(streams), all)
	}
	return streams[0]
}

// TestStreamBeforeItsTokens holds what is told while an engine is waited for.
func TestStreamBeforeItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(7, "m")
		s := newStage(t, g)
		time.Sleep(time.Second)
		if s := s.look(); s.Phase != PhaseWaiting || s.Age != time.Second || s.Name() != "m" || s.Path != "/v1/chat/completions" || s.Seq != 7 {
			t.Errorf("waiting: %+v", s)
		}
		g.head()
		g.event(`{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`)
		if s := s.look(); s.Phase != PhasePrefill || s.Events != 0 || s.Bytes == 0 {
			t.Errorf("no token yet: %+v", s)
		}
		if e := s.live.Engines(); len(e) != 1 || e[0].Running != 1 || e[0].Health() != "unknown" {
			t.Errorf("engines %+v", e)
		}
	})
}

// TestStreamOfTokens holds counts and rate of a stream from its first token on.
func TestStreamOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(7, "m")
		s := newStage(t, g)
		time.Sleep(time.Second)
		g.head()
		for range 40 { // 20 a second
			time.Sleep(50 * time.Millisecond)
			g.event(token)
			s.look() // each goes on from the one before
		}
		got := s.look()
		if got.Phase != PhaseDecode || got.Events != 40 || got.Tokens != 40 || !got.Estimated || got.First != 1049*time.Millisecond {
			t.Errorf("decoding: %+v", got)
		}
		if got.Rate < 19 || got.Rate > 21 {
			t.Errorf("%v tok/s", got.Rate)
		}
		time.Sleep(3 * time.Second)
		if got := s.look(); got.Rate != 0 || got.Events != 40 {
			t.Errorf("a stream that stands still: %v tok/s", got.Rate)
		}
		g.event(`{"choices":[{"index":0,"delta":{"content":"y"}}],"usage":{"prompt_tokens":3,"completion_tokens":90}}`)
		if got := s.look(); got.Tokens != 90 || got.Estimated {
			t.Errorf("the engine's own count: %+v", got)
		}
	})
}

// TestStreamsThatEnd holds that nothing is kept of them, and that a limit leaves the others counted.
func TestStreamsThatEnd(t *testing.T) {
	g := begin(7, "m")
	s := newStage(t, g)
	s.look()
	s.running = nil
	if streams, all := s.live.Running(10); len(streams) != 0 || all != 0 || len(s.live.seen) != 0 {
		t.Errorf("after the end: %d streams, %d followed", all, len(s.live.seen))
	}
	s.running = []*growing{g}
	s.look()
	x := asked{model: "m", pieces: []string{"a"}}.exchange(1)
	x.ID = g.ID
	if end(s.live, x, exchange.Summary{ID: x.ID}); len(s.live.seen) != 0 {
		t.Error("an exchange that ended is followed until the next look")
	}
	s.running = nil
	for i := range 5 {
		s.running = append(s.running, begin(uint64(i), ""))
	}
	if streams, all := s.live.Running(2); len(streams) != 2 || all != 5 || streams[0].Name() != "POST /v1/chat/completions" {
		t.Errorf("%d of %d, %q", len(streams), all, streams[0].Name())
	}
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
	for i := range 5 * keptEnded / 2 {
		end(l, x, exchange.Summary{ID: x.ID, Seq: uint64(i)})
		if got := l.Ended(); got[0].Row.Seq != uint64(i) || i > keptEnded && (len(got) != keptEnded || got[keptEnded-1].Row.Seq != uint64(i-keptEnded+1)) {
			t.Fatalf("after %d: %d are kept, the first is %d", i, len(got), got[0].Row.Seq)
		}
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

// TestEndDoesNotWaitForALook holds that recording goes on while somebody reads streams, however long that takes.
func TestEndDoesNotWaitForALook(t *testing.T) {
	looking, done := make(chan struct{}), make(chan struct{})
	l := NewLive(func() []proxy.Live {
		close(looking)
		<-done
		return nil
	})
	x := asked{model: "m", pieces: []string{"a"}}.exchange(1)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		l.Running(1)
	}()
	<-looking
	end(l, x, exchange.Summary{ID: x.ID}) // would hang
	if len(l.Ended()) != 1 || l.Engines()[0].Answers != 1 {
		t.Error("the end is not there")
	}
	close(done)
	<-looked
}
