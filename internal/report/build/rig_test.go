package build

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// answer says what a written exchange is like.
type answer struct {
	seq       int
	model     string
	prompt    int
	cached    int     // prompt tokens from a cache
	tokens    int     // events with text
	thinking  int     // events with reasoning before
	ttft, gap float64 // ms
	engine    float64 // decode rate that the engine states, 0 for none
	status    int     // 0 is 200
	cut       bool    // the stream ends without its end
	noUsage   bool
	limit     int
	wave      string
	item      *exchange.PlanItem
	text      string // of each event; "" is "word "
}

var origin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func idOf(run string, seq int) exchange.ID { return exchange.ID(fmt.Sprintf("01%s%022d", run, seq)) }

// written is an exchange as a proxy would have recorded it, a read for each event.
func (w answer) written(run string) *exchange.Exchange {
	var body strings.Builder
	x := &exchange.Exchange{ID: idOf(run, w.seq), Run: idOf(run, 0), Seq: uint64(w.seq), Upstream: "engine", Identity: exchange.Identity{Engine: "llamacpp", Version: "b100", Basis: "probe"},
		End: exchange.EndEOF, State: exchange.StateStored, Wave: w.wave, Item: w.item, Harness: "test"}
	request := fmt.Sprintf(`{"model":%q,"stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"%d of %d"}]}`, w.model, max(w.limit, 1), w.seq, w.prompt)
	x.Request = exchange.Request{Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1", Body: exchange.NewBody([]byte(request))}
	x.Response = exchange.Response{Status: max(w.status, 200), Proto: "HTTP/1.1", Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}}
	tl := &x.Timeline
	*tl = exchange.Timeline{Wall: origin.Add(time.Duration(w.seq) * 10 * time.Second), Clock: exchange.ClockKernel, Accepted: exchange.MarkAt(0), RequestRead: exchange.MarkAt(1000), SendStart: exchange.MarkAt(2000), SendDone: exchange.MarkAt(3000)}
	send := func(ms float64, event string) {
		at := int64(2000 + ms*1e6)
		body.WriteString(event)
		tl.Reads = append(tl.Reads, exchange.Read{At: at, Write: 20_000, Size: len(event)})
		if !tl.HeaderRead.Happened() {
			tl.HeaderRead, tl.FirstRead = exchange.MarkAt(at), exchange.MarkAt(at)
		}
		tl.LastRead, tl.BodyEnd, tl.ClientDone = exchange.MarkAt(at), exchange.MarkAt(at), exchange.MarkAt(at+20_000)
	}
	if w.status >= 400 {
		x.Response.Headers[0].Value = "application/json"
		send(w.ttft, `{"error":{"message":"busy","type":"overloaded"}}`)
		x.Response.Body = exchange.NewBody([]byte(body.String()))
		return x
	}
	text := w.text
	if text == "" {
		text = "word "
	}
	at := w.ttft
	for i := range w.thinking + w.tokens {
		field := "content"
		if i < w.thinking {
			field = "reasoning_content"
		}
		send(at, fmt.Sprintf(`data: {"id":"c","model":%q,"choices":[{"index":0,"delta":{%q:%q},"finish_reason":null}]}`+"\n\n", w.model, field, text))
		at += w.gap
	}
	if !w.cut {
		send(at, fmt.Sprintf(`data: {"id":"c","model":%q,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]%s}`+"\n\n", w.model, w.tail()))
		send(at, "data: [DONE]\n\n")
	}
	x.Response.Body = exchange.NewBody([]byte(body.String()))
	return x
}

// tail is the end of the last event: usage, and what the engine says of its own times.
func (w answer) tail() string {
	out := ""
	if !w.noUsage {
		out = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, w.prompt, w.tokens+w.thinking, w.cached)
	}
	if w.engine > 0 {
		out += fmt.Sprintf(`,"timings":{"prompt_n":%d,"prompt_ms":%g,"predicted_n":%d,"predicted_ms":%g,"predicted_per_second":%g,"draft_n":%d,"draft_n_accepted":%d}`,
			w.prompt, w.ttft-5, w.tokens, float64(w.tokens)/w.engine*1e3, w.engine, w.tokens, w.tokens/2)
	}
	return out
}

// runs are some runs, gathered.
type rig struct {
	run  *Run
	side *compare.Side
	all  map[exchange.ID]*exchange.Exchange
}

func newRig(t testing.TB, name, label string, sets []measure.Set, answers []answer) *rig {
	t.Helper()
	device, model, quant, slots := "cuda", "m-9b", "Q4_K_M", int64(4)
	run := exchange.Run{ID: idOf(name, 0), Name: label, Mode: "record", State: exchange.RunComplete, Started: origin, Upstreams: map[string]string{"engine": "http://127.0.0.1:8080"}, Harness: "test",
		Deployments: []exchange.Deployment{{Upstream: "engine", ReadAt: origin, Identity: exchange.Identity{Engine: "llamacpp", Version: "b100", Basis: "probe"}, Model: &model, Quantization: &quant, ObservedDevice: &device, Slots: &slots,
			Fingerprint: &exchange.Fingerprint{Version: 1, Digest: "abcdef012345"}}}}
	end := origin.Add(time.Hour)
	run.Ended = &end
	return rigOf(t, run, sets, name, answers)
}

// rigOf is a run of these answers.
func rigOf(t testing.TB, run exchange.Run, sets []measure.Set, name string, answers []answer) *rig {
	t.Helper()
	r := &rig{run: NewRun(run, "", sets), side: &compare.Side{Run: run}, all: map[exchange.ID]*exchange.Exchange{}}
	for _, w := range answers {
		r.add(w.written(name))
	}
	return r
}

func (r *rig) add(x *exchange.Exchange) {
	a := measure.Analyze(x)
	row := measure.Summarize(x, a)
	row.Key = "h1:" + string(x.Request.Body.Bytes())
	r.run.Add(x, a, &row)
	d := measure.DetailOf(x, a, row)
	r.side.Entries = append(r.side.Entries, compare.NewEntry(&d, x.Request.Body.Bytes()))
	r.all[x.ID] = x
}

// against is the comparison with a reference.
func (r *rig) against(t testing.TB, reference *rig) Compared {
	t.Helper()
	result, err := compare.Compare(context.Background(), reference.side, r.side, compare.Options{Margin: compare.DefaultMargin}, func(_ context.Context, id exchange.ID) (compare.Answer, error) {
		x := r.all[id]
		if x == nil {
			x = reference.all[id]
		}
		d := measure.Detail(x, exchange.Summary{})
		return compare.AnswerOf(&d), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return Compared{Reference: reference.run.Label, Candidate: r.run.Label, Report: result}
}

// workload is answers to requests of several lengths, with what goes wrong at the end.
func workload(pace float64, text string) []answer {
	var out []answer
	for i := range 12 {
		w := answer{seq: i + 1, model: "m-9b", prompt: []int{100, 1000, 4000}[i%3], tokens: 20, gap: 10 * pace, limit: 20, engine: 99 / pace, text: text}
		w.ttft = 50 + float64(w.prompt)/4*pace + float64(i)/10
		out = append(out, w)
	}
	out = append(out, answer{seq: 13, model: "m-9b", prompt: 40, tokens: 6, thinking: 10, ttft: 80, gap: 10 * pace, limit: 16, text: text},
		answer{seq: 14, model: "m-9b", prompt: 40, tokens: 8, ttft: 80, gap: 10 * pace, limit: 8, noUsage: true, text: text},
		answer{seq: 15, model: "m-9b", prompt: 40, tokens: 5, ttft: 80, gap: 10 * pace, limit: 8, cut: true},
		answer{seq: 16, model: "m-9b", ttft: 3, status: 503})
	return out
}
