package e2e

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
	"github.com/benchproxy/benchproxy/replay"
)

// shelf is a source of captures, in their order.
type shelf struct {
	rows []exchange.Summary
	xs   map[exchange.ID]*exchange.Exchange
}

func shelve(captures ...wiretest.Capture) *shelf {
	s := &shelf{xs: map[exchange.ID]*exchange.Exchange{}}
	for _, c := range captures {
		x := c.Exchange()
		x.ID = exchange.NewID(x.Timeline.Wall)
		redact.Exchange(x)
		row := measure.Summarize(x, measure.Analyze(x))
		row.Key, row.Digest = canon.RequestKey(&x.Request).Key, "known"
		s.rows, s.xs[x.ID] = append(s.rows, row), x
	}
	return s
}

func (s *shelf) Summaries(exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for _, row := range s.rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (s *shelf) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	i := slices.IndexFunc(s.rows, func(r exchange.Summary) bool { return r.ID == id })
	if i < 0 {
		return nil, exchange.Summary{}, fmt.Errorf("%w: %s", exchange.ErrMiss, id)
	}
	return s.xs[id], s.rows[i], nil
}

// standIn serves src and gives the address.
func standIn(t *testing.T, src replay.Source, run exchange.ID, speed float64) (*replay.StandIn, string) {
	t.Helper()
	s, err := replay.NewStandIn(t.Context(), src, &exchange.Run{ID: run}, replay.Filter{}, replay.ServeOptions{Speed: speed,
		OnMiss: func(m replay.Miss) { t.Errorf("miss: %s", m.Text()) }})
	if err != nil {
		t.Fatal(err)
	}
	ln, server, ended := listen(t), sim.New(s.Config()), make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Close() // it returns nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, ln.Addr().String()
}

// TestStandInServesEveryCapture holds that each capture comes from a stand-in as it came from its engine: head and body byte
// for byte, and the same kind of end.
func TestStandInServesEveryCapture(t *testing.T) {
	t.Parallel()
	all := wiretest.Captures(t)
	s, addr := standIn(t, shelve(all...), "run", 0)
	for _, c := range all {
		t.Run(c.ID(), func(t *testing.T) {
			conn := dial(t, addr)
			defer conn.Close()
			seen := &tee{r: conn.Conn}
			conn.br = bufio.NewReader(seen)
			conn.send(request{method: c.Method, target: c.Path, name: c.ID(), body: string(c.RequestBody)})
			if c.Head == nil {
				if b, err := io.ReadAll(conn.br); err != nil || len(b) > 0 {
					t.Errorf("got %q and %v", b, err)
				}
				return
			}
			a := conn.answer(c.Method, leaveAfter(c))
			if early := a.err != nil; a.StatusCode != c.Status || early != (!c.Whole && leaveAfter(c) == 0) {
				t.Errorf("status %d and %v, want %d", a.StatusCode, a.err, c.Status)
			}
			want := c.Body
			if c.Method == http.MethodHead {
				want = nil
			}
			sameBytes(t, "body", a.body, want)
			sameBytes(t, "head", seen.data[:min(len(c.Head), len(seen.data))], c.Head)
		})
	}
	if r := s.Report(); int(r.Answered) != len(all) || r.Misses != 0 || r.Unserved != 0 {
		t.Errorf("%+v", r)
	}
	t.Logf("%d captures", len(all))
}

// tee keeps what is read.
type tee struct {
	r    io.Reader
	data []byte
}

func (k *tee) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	k.data = append(k.data, p[:n]...)
	return n, err
}

// TestStandInKeepsThePace holds each piece of a stream against its recorded instant: never early, and late by no more than
// what the stand-in states and the machine adds.
func TestStandInKeepsThePace(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"llama-server/chat-stream-200", "llama-server/slow-stream", "ollama/api-chat-stream"} {
		for _, speed := range []float64{1, 2, 0} {
			t.Run(fmt.Sprintf("%s at %g", id, speed), func(t *testing.T) {
				t.Parallel()
				c := wiretest.LoadCapture(t, id)
				undisturbed(t, func(int) bool {
					s, addr := standIn(t, shelve(c), "run", speed)
					conn := dial(t, addr)
					defer conn.Close()
					before := clock.Now()
					conn.send(request{method: c.Method, target: c.Path, name: id, body: string(c.RequestBody)})
					a := conn.answer(c.Method, 0)
					sameBytes(t, "body", a.body, c.Body)
					ok, end := true, 0
					for _, r := range c.Reads {
						if end += r.Size; r.Size > 0 {
							due := time.Duration(0)
							if speed > 0 {
								due = time.Duration(float64(r.At) / speed)
							}
							ok = within(t, fmt.Sprint("byte ", end), a.arrived(t, end).Sub(before)-due) && ok
						}
					}
					late := s.Report().LateMS
					if ok && late.N > 0 && *late.Max > float64(liveBound.Milliseconds()) {
						t.Errorf("the client saw all within %v, and %v ms are stated", liveBound, *late.Max)
					}
					return ok
				})
			})
		}
	}
}

// TestServedAgainMeasuresTheSame records a scripted engine, serves the run, and records that again: requests, bodies, ends
// and outcomes are the same, counts too, and times as near as two plays of one script are.
func TestServedAgainMeasuresTheSame(t *testing.T) {
	t.Parallel()
	options := map[string]string{
		"whole": "", "usage at the finish": "usage=finish", "reasoning": "reasoning=5", "length": "framing=length", "until close": "framing=close",
		"closes": "keepalive=close", "old version": "proto=HTTP/1.0", "early hints": "informational=103", "late head": "head_delay=20ms", "gzip": "gzip=1", "trailer": "trailer=1", "refused": "status=429",
		"error inside": "fault=error@4", "error, then the end": "fault=error_done@4", "cut cleanly": "fault=clean_cut@5", "no last chunk": "fault=no_last_chunk@5",
		"half an event": "fault=truncate_event@5", "half a chunk": "fault=truncate_chunk@5", "reset": "fault=reset@5", "no JSON": "fault=garbage@4",
		"no answer": "fault=crash_conn", "no head": "fault=bad_head",
	}
	first := newRig(t)
	bodyOf := func(name string) string {
		return fmt.Sprintf(`{"model":"sim","stream":true,"max_tokens":20,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`, name)
	}
	for name, option := range options {
		t.Run(name, func(t *testing.T) {
			undisturbed(t, func(n int) bool { // the recording may be what was disturbed: each play has one of its own
				play := fmt.Sprint(name, " ", n)
				first.do(t, request{name: play, body: bodyOf(play), headers: []string{"X-Sim: ttft=60ms; decode=100; " + option}})
				was := first.stored(t, play, 0)
				_, addr := standIn(t, first.store, first.run.ID, 1)
				second := newRig(t, func(o *rigOptions) { o.url = "http://" + addr })
				second.do(t, request{name: play, body: bodyOf(play)})
				return sameExchange(t, was, second.stored(t, play, 0))
			})
		})
	}
}

// sameExchange holds a record of a served exchange against the original, and reports whether its times are near.
func sameExchange(t *testing.T, was, is record) bool {
	t.Helper()
	sameBytes(t, "body", is.Response.Body.Bytes(), was.Response.Body.Bytes())
	sameBytes(t, "head", is.Response.Head, was.Response.Head)
	facts := func(r record) []string {
		finish := ""
		if r.row.FinishReason != nil {
			finish = *r.row.FinishReason
		}
		trailers := fmt.Sprint(r.Response.Trailers)
		return []string{r.row.Key, fmt.Sprint(r.row.Status), string(r.End), string(r.row.Outcome), finish, fmt.Sprint(r.row.Stream, r.row.ParseErrors), trailers}
	}
	if diff := cmp.Diff(facts(was), facts(is)); diff != "" {
		t.Errorf("facts (-was +is):\n%s", diff)
	}
	near := true
	for name, w := range was.row.Metrics {
		g := is.row.Metrics[name]
		if w.Present() != g.Present() && !strings.Contains(name, "merged") {
			// A burst on a busy machine can hide a rate; it is played again.
			t.Logf("%s was %+v and is %+v", name, w, g)
			near = false
			continue
		}
		diff := math.Abs(w.Value - g.Value)
		switch {
		case strings.HasSuffix(name, "_tokens") && diff > 0:
			t.Errorf("%s was %v and is %v", name, w.Value, g.Value)
		case slices.Contains([]string{"headers_ms", "ttft_ms", "last_token_ms", "total_wall_ms"}, name) && diff > 40,
			name == "decode_tps" && diff > 0.2*w.Value:
			t.Logf("%s was %v and is %v", name, w.Value, g.Value)
			near = false
		}
	}
	return near
}
