// Command mkstore writes a store with as many exchanges as asked for, as a recording of an engine would hold them: streams
// of several models, errors, and answers that left early; and a run of one exchange of each form. With -hostile it adds a run of answers that attack the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
)

func main() {
	dir := flag.String("store", "", "directory of the store")
	n := flag.Int("n", 1000, "exchanges of the run \"many\"")
	hostile := flag.Bool("hostile", false, "add the run \"hostile\"")
	flag.Parse()
	if err := fill(*dir, *n, *hostile); err != nil {
		fmt.Fprintln(os.Stderr, "mkstore: "+err.Error())
		os.Exit(1)
	}
}

// day is when the exchanges of a made store began.
var day = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func fill(dir string, n int, hostile bool) error {
	s, err := recorder.Open(dir, recorder.Options{Harness: "mkstore"})
	if err != nil {
		return err
	}
	err = write(s, "many", n, ordinary)
	if forms := shapes(); err == nil {
		err = write(s, "shapes", len(forms), func(i int) *exchange.Exchange { return forms[i] })
	}
	if err == nil && hostile {
		err = write(s, "hostile", len(attacks), func(i int) *exchange.Exchange { return attacks[i].exchange(i) })
	}
	if err == nil && hostile {
		err = write(s, hostileName, 1, ordinary)
	}
	return errors.Join(err, s.Close())
}

// write makes one run. What the writer has no room for waits: nothing is dropped.
func write(s *recorder.Store, name string, n int, make func(int) *exchange.Exchange) error {
	room := make64()
	free := func() { <-room }
	w, err := s.NewWriter(exchange.Run{
		Name: name, Mode: "record", Harness: "mkstore", Started: day,
		Upstreams: map[string]string{"engine": "http://127.0.0.1:8080"},
		Identity:  exchange.Identity{Engine: "llamacpp", Version: "b9000", Basis: "probe"},
	}, recorder.WriterOptions{
		Derive:    func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
		OnStored:  func(exchange.Summary) { free() },
		OnDropped: func(exchange.ID, recorder.DropReason) { free() },
	})
	if err != nil {
		return err
	}
	for i := range n {
		x := make(i)
		x.Run, x.Seq = w.Run().ID, uint64(i+1)
		room <- struct{}{}
		w.Offer(x)
	}
	run, err := w.Close(context.Background())
	if err == nil && run.Counts.Stored != int64(n) {
		err = fmt.Errorf("run %s holds %d exchanges of %d: %v", name, run.Counts.Stored, n, run.Counts.DropWhy)
	}
	return err
}

// make64 bounds what waits for the writer.
func make64() chan struct{} { return make(chan struct{}, 1024) }

var models = []string{"qwen3-8b", "llama-3.1-70b-instruct", "gemma-3-27b", "mistral-small"}

// ordinary is exchange i of an everyday recording. The same i gives the same bytes and times.
func ordinary(i int) *exchange.Exchange {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	x := request(i, models[r.IntN(len(models))], fmt.Sprintf("question %d of %d", i, r.IntN(1000)))
	switch k := r.IntN(50); {
	case k == 0:
		refuse(x, 503, `{"error":{"message":"no slot is free","type":"unavailable_error","code":503}}`)
	case k == 1:
		stream(x, r, words(r, 6))
		cut(x)
	default:
		stream(x, r, words(r, 8+r.IntN(24)))
	}
	return x
}

func request(i int, model, ask string) *exchange.Exchange {
	body := fmt.Sprintf(`{"model":%s,"stream":true,"max_tokens":32,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be short."},{"role":"user","content":%s}]}`, jsonText(model), jsonText(ask))
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-live-0123456789abcdef\r\n" +
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"
	at := day.Add(time.Duration(i) * 180 * time.Millisecond)
	return &exchange.Exchange{
		ID: exchange.NewID(at), Upstream: "engine", UpstreamURL: "http://127.0.0.1:8080", Mode: "record", State: exchange.StateStored, End: exchange.EndEOF,
		Identity: exchange.Identity{Engine: "llamacpp", Version: "b9000", Basis: "probe"}, Harness: "mkstore",
		Request: exchange.Request{
			Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1", Head: []byte(head), Headers: headersOf(head), Body: exchange.NewBody([]byte(body)),
		},
		Timeline: exchange.Timeline{
			Wall: at, Clock: exchange.ClockKernel, Accepted: exchange.MarkAt(0), RequestRead: exchange.MarkAt(40_000), Dialed: exchange.MarkAt(60_000),
			SendStart: exchange.MarkAt(70_000), SendDone: exchange.MarkAt(95_000), Reused: true,
		},
		Interventions: []exchange.Intervention{{Kind: "header_changed", Where: exchange.SideEngine, Name: "Host", From: "127.0.0.1:8090", To: "127.0.0.1:8080", Reason: "host"}},
	}
}

func headersOf(head string) (hs []exchange.Header) {
	lines := strings.Split(strings.TrimSpace(head), "\r\n")
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		hs = append(hs, exchange.Header{Name: name, Value: value})
	}
	return hs
}

func answerHead(x *exchange.Exchange, status int, kind string) {
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: %s\r\nServer: llama.cpp\r\n\r\n", status, kind)
	x.Response = exchange.Response{Status: status, Reason: "X", Proto: "HTTP/1.1", Head: []byte(head), Headers: headersOf(head)}
}

func refuse(x *exchange.Exchange, status int, body string) {
	answerHead(x, status, "application/json")
	x.Response.Body = exchange.NewBody([]byte(body))
	x.Timeline.Reads = []exchange.Read{{At: 1_400_000, Write: 20_000, Size: len(body)}}
	marks(x, 1_300_000)
}

// stream gives x an answer of one event a piece, and the usage behind them.
func stream(x *exchange.Exchange, r *rand.Rand, pieces []string) {
	answerHead(x, 200, "text/event-stream")
	at := int64(40_000_000 + r.IntN(160_000_000))
	pace := int64(8_000_000 + r.IntN(24_000_000))
	head := at - 9_000_000
	var body []byte
	event := func(s string) {
		s = "data: " + s + "\n\n"
		body = append(body, s...)
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Write: int64(18_000 + r.IntN(20_000)), Size: len(s)})
		at += pace + int64(r.IntN(int(pace))) - pace/2
	}
	for _, p := range pieces {
		event(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, jsonText(p)))
	}
	event(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	event(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, 20+r.IntN(400), len(pieces)))
	event("[DONE]")
	x.Response.Body = exchange.NewBody(body)
	marks(x, head)
}

// cut ends the answer early, as an engine that dies does.
func cut(x *exchange.Exchange) {
	reads := x.Timeline.Reads[:4]
	size := 0
	for _, r := range reads {
		size += r.Size
	}
	x.Timeline.Reads = reads
	x.Response.Body = exchange.NewBody(x.Response.Body.Bytes()[:size])
	x.End, x.Cause = exchange.EndReset, &exchange.Cause{Side: exchange.SideEngine, Code: "reset", Text: "connection reset by peer"}
	head, _ := x.Timeline.HeaderRead.NS()
	marks(x, head)
}

func marks(x *exchange.Exchange, head int64) {
	t := &x.Timeline
	t.HeaderRead = exchange.MarkAt(head)
	last := t.Reads[len(t.Reads)-1]
	t.FirstRead, t.LastRead = exchange.MarkAt(t.Reads[0].At), exchange.MarkAt(last.At)
	t.BodyEnd, t.ClientDone = exchange.MarkAt(last.At+30_000), exchange.MarkAt(last.At+80_000)
}

var vocabulary = strings.Fields("the a of model answer token because stream engine cache slot each time then first second fast slow with prompt is was not and it one two window draft")

func words(r *rand.Rand, n int) (out []string) {
	for range n {
		out = append(out, vocabulary[r.IntN(len(vocabulary))]+" ")
	}
	return out
}
