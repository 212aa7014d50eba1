package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// timed is a stream with a step every gap, the first one after the first gap.
func timed(gap time.Duration, data ...string) *sim.Script {
	s := &sim.Script{Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}}
	for i, d := range data {
		s.Steps = append(s.Steps, sim.Step{At: gap * time.Duration(i+1), Data: []byte(d)})
	}
	return s
}

// bodyOf is the body that a script sends.
func bodyOf(s *sim.Script) []byte {
	var b []byte
	for _, st := range s.Steps {
		b = append(b, st.Data...)
	}
	return b
}

// played is a rig whose engine plays one script for every request.
func played(t *testing.T, s *sim.Script, edit ...func(*rigOptions)) *rig {
	t.Helper()
	return newRig(t, append([]func(*rigOptions){func(o *rigOptions) { o.engine.Handler = sim.Always(s) }}, edit...)...)
}

// TestRR01AX23RecordingIsATee: frames reach the client as the engine sends them, with recording on as with it off;
// the record has the same spacing.
func TestRR01AX23RecordingIsATee(t *testing.T) {
	t.Parallel()
	script := timed(200*time.Millisecond, sse(delta("a")), sse(delta("b")), sse(delta("c")), sse(delta("d")), sse(stop, "[DONE]"))
	on, off := played(t, script), played(t, script, func(o *rigOptions) { o.off = true })
	undisturbed(t, func(n int) bool {
		name := fmt.Sprint("tee", n)
		quiet := true
		for _, r := range []*rig{on, off} {
			a := r.do(t, chat(name))
			a.whole(t, 200, bodyOf(script))
			engine := r.truth(t, name)
			end := 0
			for _, st := range script.Steps {
				end += len(st.Data)
				delay := a.arrived(t, end).UnixNano() - writeOf(t, engine, end).Wall
				quiet = within(t, "a frame at the client", time.Duration(delay)) && quiet
			}
			first, last := a.arrived(t, len(script.Steps[0].Data)), a.arrived(t, end)
			quiet = quiet && last.Sub(first) >= 700*time.Millisecond && len(a.arrivals) == len(script.Steps)
		}
		x := on.stored(t, name, 0)
		checkStamps(t, x, on.truth(t, name))
		reads := slices.DeleteFunc(slices.Clone(x.Timeline.Reads), func(r exchange.Read) bool { return r.Size == 0 })
		if len(reads) != len(script.Steps) {
			return false
		}
		for i := 1; i < len(reads); i++ {
			gap := time.Duration(reads[i].At - reads[i-1].At)
			if gap < 200*time.Millisecond-liveBound/2 || gap > 200*time.Millisecond+liveBound {
				t.Logf("recorded pause %d is %v, the engine's was 200ms", i, gap)
				quiet = false
			}
		}
		return quiet
	})
}

// TestRR03ErrorInsideTheStreamIsRecordedWhereItWas: the record splits as the engine wrote and ends as the engine ended.
func TestRR03ErrorInsideTheStreamIsRecordedWhereItWas(t *testing.T) {
	t.Parallel()
	script := func(end sim.Ending) *sim.Script {
		s := timed(100*time.Millisecond, sse(delta("one")), sse(delta("two")), sse(delta("three")),
			sse(`{"error":{"message":"the engine lost its cache","type":"server_error","code":500}}`))
		s.End = end
		return s
	}
	for _, c := range []struct {
		name  string
		end   sim.Ending
		early bool
		want  exchange.End
	}{
		{"kept", sim.EndKeep, false, exchange.EndEOF},
		{"closed", sim.EndTruncate, true, exchange.EndShort},
		{"reset", sim.EndReset, true, exchange.EndReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := script(c.end)
			s.EndAt = 600 * time.Millisecond // a reset may overtake bytes that were not read yet
			r := played(t, s)
			undisturbed(t, func(n int) bool {
				name := fmt.Sprint(c.name, n)
				a, x := r.do(t, chat(name)), r.stored(t, name, 0)
				sameBytes(t, "the client's body", a.body, bodyOf(s))
				sameBytes(t, "the recorded body", x.Response.Body.Bytes(), bodyOf(s))
				if early := a.err != nil; early != c.early || x.End != c.want || x.row.Outcome != exchange.OutcomeStreamError {
					t.Errorf("the client's body ended with %v, the record with %s, outcome %s", a.err, x.End, x.row.Outcome)
				}
				tr := measure.Analyze(x.Exchange).Transcript
				if tr.Error == nil || tr.Error.Message != "the engine lost its cache" || tr.Choice0().Text != "onetwothree" {
					t.Errorf("error %+v, text %q", tr.Error, tr.Choice0().Text)
				}
				var sizes []int
				for _, rd := range x.Timeline.Reads {
					if rd.Size > 0 {
						sizes = append(sizes, rd.Size)
					}
				}
				want := []int{len(s.Steps[0].Data), len(s.Steps[1].Data), len(s.Steps[2].Data), len(s.Steps[3].Data)}
				return cmp.Equal(want, sizes)
			})
		})
	}
}

// TestRR04OddEventsKeepTheirBytes: comments, fields, CRLF and a read boundary inside a character survive, and the index of
// tokens made from the store is the one made from the live record.
func TestRR04OddEventsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	text := ": keep-alive\r\n\r\nevent: message\r\nid: 7\r\ndata: " + delta("größe €") + "\r\n\r\n" +
		"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\r\ndata: \"delta\":{\"content\":\" two lines\"}}]}\r\n\r\n\r\n" +
		"retry: 10\ndata:" + stop + "\n\ndata: [DONE]\r\n\r\n"
	at := strings.Index(text, "€") + 1
	cr := strings.Index(text[at:], "\r") + at + 1
	script := timed(30*time.Millisecond, text[:at], text[at:cr], text[cr:])
	r := played(t, script)
	undisturbed(t, func(n int) bool {
		name := fmt.Sprint("odd", n)
		r.do(t, chat(name)).whole(t, 200, []byte(text))
		x := r.stored(t, name, 0)
		sameBytes(t, "the recorded body", x.Response.Body.Bytes(), []byte(text))
		tr := wire.Parse(x.Exchange)
		if got := tr.Choice0().Text; got != "größe € two lines" || tr.ParseErrors != 0 || tr.Comments != 1 || x.row.Outcome != exchange.OutcomeComplete {
			t.Errorf("text %q, %d parse errors, %d comments, %s", got, tr.ParseErrors, tr.Comments, x.row.Outcome)
		}
		whole := wire.NewParser(wire.InfoOf(x.Exchange))
		whole.Feed([]byte(text), 0)
		if diff := cmp.Diff(unread(whole.Finish(true)), unread(tr)); diff != "" {
			t.Errorf("index (-whole +reads):\n%s", diff)
		}
		again := measure.Summarize(x.Exchange, measure.Analyze(x.Exchange))
		if diff := cmp.Diff(x.row.Metrics, again.Metrics, cmp.Comparer(sameFigure)); diff != "" {
			t.Errorf("figures (-recorded +rebuilt):\n%s", diff)
		}
		return readOf(x.Timeline.Reads, int64(at)) < readOf(x.Timeline.Reads, int64(at+1))
	})
}

// sameFigure compares figures as a row keeps them: its units go with the names of the metrics.
func sameFigure(a, b exchange.Figure) bool {
	return a.Value == b.Value && a.Basis == b.Basis && a.Reason == b.Reason
}

// TestRR21FourTimesAreFour: head, first byte, first token and last token are measured apart.
func TestRR21FourTimesAreFour(t *testing.T) {
	t.Parallel()
	s := timed(0, sse(`{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`), sse(delta("a")), sse(delta("b")), sse(stop, "[DONE]"))
	s.HeadAt = 2 * time.Millisecond
	for i, at := range []time.Duration{200, 400, 800, 1000} {
		s.Steps[i].At = at * time.Millisecond
	}
	r := played(t, s)
	undisturbed(t, func(n int) bool {
		name := fmt.Sprint("four", n)
		r.do(t, chat(name)).whole(t, 200, bodyOf(s))
		x, engine := r.stored(t, name, 0), r.truth(t, name)
		t0, _ := x.Timeline.SendStart.NS()
		kept := true
		for metric, write := range map[string]int{measure.HeadersMS: 0, measure.FirstByteMS: 1, measure.TTFTMS: 2, measure.LastTokenMS: 3} {
			got := time.Duration(x.row.Metrics[metric].Value * 1e6)
			kept = within(t, metric, got-time.Duration(engine.Writes[write].Wall-wallOf(x, t0))) && kept
		}
		m := x.row.Metrics
		return kept && m[measure.HeadersMS].Value < 200 && m[measure.FirstByteMS].Value < m[measure.TTFTMS].Value && m[measure.TTFTMS].Value < m[measure.LastTokenMS].Value
	})
}

// TestRR22RR26BodiesAreKeptByteForByte: an answer whose keys are in no order, and a stream, are in the store byte for byte.
func TestRR22RR26BodiesAreKeptByteForByte(t *testing.T) {
	body := []byte(`{"z":1,"object":"chat.completion","b" : 2,"choices":[{"message":{"role":"assistant","content":"x"},"index":0,"finish_reason":"stop"}],"a":1.0}`)
	stream := bodyOf(timed(0, sse(delta("b")), sse(delta("a")), sse(stop, "[DONE]")))
	r := newRig(t, func(o *rigOptions) {
		o.engine = scripted(map[string]*sim.Script{
			"json": sim.BodyScript(200, "application/json", sim.FramingLength, body, 0),
			"sse":  sim.BodyScript(200, "text/event-stream", sim.FramingChunked, stream, 40),
		})
	})
	for name, want := range map[string][]byte{"json": body, "sse": stream} {
		r.do(t, chat(name)).whole(t, 200, want)
		x := r.stored(t, name, 0)
		sameBytes(t, "the recorded body", x.Response.Body.Bytes(), want)
		if sum := exchange.NewBody(want).Sum(); x.row.ResponseSum != sum || x.Response.Body.Sum() != sum {
			t.Errorf("digest %s, want %s", x.row.ResponseSum, sum)
		}
	}
}

// TestRR27CompressionIsAskedOff: on a measured path the engine is asked for plain bytes, which the record says; when it
// compresses anyway the coded bytes pass untouched, a copy is read, and the record says what the stamps are those of.
func TestRR27CompressionIsAskedOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, coded := range []bool{false, true} {
		name := fmt.Sprint("gzip", coded)
		a := r.do(t, chat(name, "Accept-Encoding: gzip, br", fmt.Sprintf("X-Sim: answer=6; gzip=%d", bit(coded))))
		x, engine := r.stored(t, name, 0), r.truth(t, name)
		if got, _ := exchange.HeaderValue(engine.Headers, "Accept-Encoding"); got != "identity" {
			t.Errorf("the engine was asked for %q", got)
		}
		i := slices.IndexFunc(x.Interventions, func(i exchange.Intervention) bool { return i.Name == "Accept-Encoding" })
		if i < 0 || x.Interventions[i].From != "gzip, br" || x.Interventions[i].To != "identity" {
			t.Errorf("interventions %+v", x.Interventions)
		}
		sameBytes(t, "the recorded body", x.Response.Body.Bytes(), a.body)
		if got := a.Header.Get("Content-Encoding"); (got == "gzip") != coded || slices.Contains(x.row.Flags, measure.FlagContentCoded) != coded {
			t.Errorf("content coding %q, flags %q", got, x.row.Flags)
		}
		plain := a.body
		if coded {
			plain = gunzip(t, a.body)
		}
		if x.row.Outcome != exchange.OutcomeComplete || !bytes.Contains(plain, []byte("[DONE]")) || int(x.row.Metrics[measure.CompletionTokens].Value) != engine.Usage.Completion {
			t.Errorf("outcome %s, tokens %+v of %+v", x.row.Outcome, x.row.Metrics[measure.CompletionTokens], engine.Usage)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRR29CodedRequestsAreToldApart: compressed request bodies are kept as bytes, and differ in digest and key.
func TestRR29CodedRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = sim.Always(sim.BodyScript(200, "application/json", sim.FramingLength, []byte("{}"), 0))
	})
	var records []record
	for _, content := range []string{"one", "two"} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(strings.Replace(chatBody, "hi", content, 1))); err != nil || z.Close() != nil {
			t.Fatal("cannot compress", err)
		}
		r.do(t, request{name: content, headers: []string{"Content-Encoding: gzip"}, body: b.String()}).whole(t, 200, []byte("{}"))
		x, engine := r.stored(t, content, 0), r.truth(t, content)
		sameBytes(t, "the recorded request", x.Request.Body.Bytes(), b.Bytes())
		sameBytes(t, "the engine's request", engine.Body, b.Bytes())
		records = append(records, x)
	}
	if a, b := records[0].row, records[1].row; a.Key == b.Key || a.RequestSum == b.RequestSum || a.RequestSum == "" {
		t.Errorf("keys %s and %s, digests %s and %s", a.Key, b.Key, a.RequestSum, b.RequestSum)
	}
}

// TestRR30TotalIsTheEnginesTime: an answer of 20 ms is recorded as 20 ms and what the sockets take.
func TestRR30TotalIsTheEnginesTime(t *testing.T) {
	t.Parallel()
	s := sim.BodyScript(200, "application/json", sim.FramingLength, []byte(`{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`), 0)
	s.HeadAt, s.Steps[0].At = 20*time.Millisecond, 20*time.Millisecond
	r := played(t, s)
	undisturbed(t, func(n int) bool {
		name := fmt.Sprint("total", n)
		r.do(t, chat(name)).whole(t, 200, bodyOf(s))
		total := r.stored(t, name, 0).row.Metrics[measure.TotalWallMS].Value
		if total < 20 {
			t.Errorf("total is %v ms", total)
		}
		return total < 40
	})
}

// TestAX28EveryFramingIsByteIdentical sends every written transcript in every framing, in pieces.
func TestAX28EveryFramingIsByteIdentical(t *testing.T) {
	framings := []sim.Framing{sim.FramingChunked, sim.FramingLength, sim.FramingClose}
	scripts := map[string]*sim.Script{}
	vectors := wiretest.Vectors(t)
	for _, v := range vectors {
		for _, f := range framings {
			scripts[v.File+string(f)] = sim.BodyScript(v.Status, v.ContentType, f, v.Body, 61)
		}
	}
	r := newRig(t, func(o *rigOptions) { o.engine = scripted(scripts) })
	for _, v := range vectors {
		for _, f := range framings {
			r.do(t, request{target: v.Path(), name: v.File + string(f), body: chatBody}).whole(t, v.Status, v.Body)
		}
	}
	for _, v := range vectors {
		for _, f := range framings {
			x := r.stored(t, v.File+string(f), 0)
			sameBytes(t, v.File+" recorded as "+string(f), x.Response.Body.Bytes(), v.Body)
			if x.End != exchange.EndEOF || x.State != exchange.StateStored || x.row.ResponseSum != exchange.NewBody(v.Body).Sum() {
				t.Errorf("%s as %s: %s, %s, %s", v.File, f, x.End, x.State, x.row.ResponseSum)
			}
		}
	}
}
