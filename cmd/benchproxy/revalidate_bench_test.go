package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

var (
	benchExchanges = flag.Int("revalidate-exchanges", 2_000, "exchanges in the store of BenchmarkRevalidate")
	benchStore     = flag.String("revalidate-store", "", "directory to make that store in, and to leave it; default: a temporary one")
)

// BenchmarkRevalidate judges a store of streamed answers of 100 tokens by what their requests asked for: with the reading
// of the store, the parsing of the bodies and all metrics.
func BenchmarkRevalidate(b *testing.B) {
	dir := *benchStore
	if dir == "" {
		dir = b.TempDir()
	}
	store, err := recorder.Open(dir, recorder.Options{Harness: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }() // nothing is written any more
	run := benchRun(b, store)
	judged := 0
	b.ResetTimer()
	for b.Loop() {
		r, err := replay.Revalidate(b.Context(), store, &run, replay.RevalidateOptions{Limit: sampleLimit})
		if err != nil || r.Verdict() != nil {
			b.Fatal(err, r.Verdict())
		}
		judged += r.Judged
	}
	rate := float64(judged) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "exchanges/s")
	b.ReportMetric(rate/float64(runtime.GOMAXPROCS(0)), "exchanges/s/core")
}

func benchRun(b *testing.B, store *recorder.Store) exchange.Run {
	b.Helper()
	room := make(chan struct{}, 1024) // the queue never overflows
	w, err := store.NewWriter(newRun("record", "bench", []upstream{{name: "engine", url: "http://127.0.0.1:1"}}), recorder.WriterOptions{
		Derive:   func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
		OnStored: func(exchange.Summary) { <-room }})
	if err != nil {
		b.Fatal(err)
	}
	start := clock.Now()
	for i := range *benchExchanges {
		room <- struct{}{}
		if !w.Offer(benchExchange(i, start.Add(time.Duration(i)*time.Millisecond))) {
			b.Fatal("an exchange was dropped")
		}
	}
	run, err := w.Close(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return run
}

// benchExchange is a streamed answer of 100 tokens, an event a read.
func benchExchange(n int, wall time.Time) *exchange.Exchange {
	request := fmt.Sprintf(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"messages":[{"role":"user","content":"question %d"}]}`, n)
	var body strings.Builder
	x := &exchange.Exchange{
		ID: exchange.NewID(wall), Seq: uint64(n + 1), Mode: "record", Upstream: "engine", End: exchange.EndEOF, State: exchange.StateStored,
		Request: exchange.Request{Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1", Head: []byte("POST /v1/chat/completions HTTP/1.1\r\n\r\n"),
			Body: exchange.NewBody([]byte(request))},
		Response: exchange.Response{Status: 200, Proto: "HTTP/1.1", Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
			Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}},
	}
	tl := &x.Timeline
	tl.Wall, tl.Clock = wall, exchange.ClockRead
	tl.Accepted, tl.RequestRead, tl.SendStart, tl.HeaderRead = exchange.MarkAt(0), exchange.MarkAt(10_000), exchange.MarkAt(50_000), exchange.MarkAt(20_000_000)
	at := int64(20_000_000)
	say := func(event string) {
		at += 5_000_000 + int64(n%977)*100
		tl.Reads = append(tl.Reads, exchange.Read{At: at, Size: len(event), Write: 20_000})
		body.WriteString(event)
	}
	for i := range 100 {
		say(fmt.Sprintf("data: {\"id\":\"c%d\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%d\"},\"finish_reason\":null}]}\n\n", n, (i*7+n)%911))
	}
	say("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n")
	say("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":100,\"total_tokens\":112}}\n\ndata: [DONE]\n\n")
	tl.FirstRead, tl.LastRead, tl.BodyEnd, tl.ClientDone = exchange.MarkAt(tl.Reads[0].At), exchange.MarkAt(at), exchange.MarkAt(at), exchange.MarkAt(at+30_000)
	x.Response.Body = exchange.NewBody([]byte(body.String()))
	return x
}
