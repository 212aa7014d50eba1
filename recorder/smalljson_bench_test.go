package recorder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// smallJSON is a short chat exchange that is not streamed, number n of its kind, as the proxy seals it: masked, with
// the heads a usual client and a llama-server send.
func smallJSON(n int) *exchange.Exchange {
	request := fmt.Sprintf(`{"model":"qwen3-4b","messages":[{"role":"user","content":"Say something short, number %d."}],"max_tokens":16}`, n)
	answer := fmt.Sprintf(`{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"Here is something short: %d."}}],"created":1747474747,"id":"chatcmpl-%d","model":"qwen3-4b","object":"chat.completion","system_fingerprint":"b5400-c6a2c9e7","usage":{"completion_tokens":9,"prompt_tokens":17,"total_tokens":26},"timings":{"prompt_n":17,"prompt_ms":21.403,"prompt_per_token_ms":1.259,"prompt_per_second":794.28,"predicted_n":9,"predicted_ms":88.17,"predicted_per_token_ms":9.796,"predicted_per_second":102.07}}`, n, n)
	x := streamed(request, answer)
	headers := []exchange.Header{
		{Name: "Host", Value: "127.0.0.1:8090"}, {Name: "User-Agent", Value: "OpenAI/Python 1.78.0"},
		{Name: "Authorization", Value: "Bearer ***"}, {Name: "Accept", Value: "application/json"},
		{Name: "Accept-Encoding", Value: "gzip, deflate"}, {Name: "Content-Type", Value: "application/json"},
		{Name: "Content-Length", Value: fmt.Sprint(len(request))}, {Name: "Connection", Value: "keep-alive"},
	}
	x.Request.Headers, x.Request.Head = headers, head("POST /v1/chat/completions HTTP/1.1", headers)
	headers = []exchange.Header{
		{Name: "Server", Value: "llama.cpp"}, {Name: "Access-Control-Allow-Origin", Value: ""},
		{Name: "Content-Type", Value: "application/json; charset=utf-8"}, {Name: "Content-Length", Value: fmt.Sprint(len(answer))},
		{Name: "Keep-Alive", Value: "timeout=5, max=100"},
	}
	x.Response.Headers, x.Response.Head = headers, head("HTTP/1.1 200 OK", headers)
	x.Interventions = []exchange.Intervention{
		{Kind: "header_changed", Where: exchange.SideEngine, Name: "Host", From: "127.0.0.1:8090", To: "127.0.0.1:8080", Reason: "host"},
		{Kind: "header_changed", Where: exchange.SideEngine, Name: "Accept-Encoding", From: "gzip, deflate", To: "identity", Reason: "identity_coding"},
		{Kind: "header_removed", Where: exchange.SideEngine, Name: "Connection", From: "keep-alive", Reason: "hop_by_hop"},
		{Kind: "header_removed", Where: exchange.SideClient, Name: "Keep-Alive", From: "timeout=5, max=100", Reason: "hop_by_hop"},
	}
	for i, m := range marks(&x.Timeline) {
		*m = exchange.MarkAt(int64(i) * 12_345)
	}
	x.Timeline.Reads[0].At = 120_000
	redact.Exchange(x)
	return x
}

func head(line string, headers []exchange.Header) []byte {
	var b strings.Builder
	b.WriteString(line + "\r\n")
	for _, h := range headers {
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	return []byte(b.String() + "\r\n")
}

// BenchmarkSmallJSON is what the recorder spends on one small exchange that is not streamed, from the queue to the
// acknowledged commit, with batches of the length that steady traffic makes.
func BenchmarkSmallJSON(b *testing.B) {
	const batch = 16
	s, err := Open(b.TempDir(), Options{FreeSpace: plenty})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }() // without the check of openStore, which would fill the profile
	w := newWriter(b, s, exchange.Run{}, WriterOptions{
		Derive: func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
	})
	p, err := newPreparer(w)
	if err != nil {
		b.Fatal(err)
	}
	xs := make([]*exchange.Exchange, 8192)
	for i := range xs {
		xs[i] = smallJSON(i)
	}
	var records []*record
	n := 0
	b.ReportAllocs()
	for ; b.Loop(); n++ {
		x := *xs[n%len(xs)]
		x.ID = exchange.NewID(day.Add(time.Duration(n) * time.Millisecond))
		r, err := p.prepare(&queued{x: &x, seq: uint64(n + 1)})
		if err != nil {
			b.Fatal(err)
		}
		if records = append(records, r); len(records) == batch {
			w.commit(records)
			records = nil
		}
	}
	w.commit(records)
	b.ReportMetric(float64(w.bytes)/float64(n), "stored-B/op")
	if run := closeWriter(b, w); run.Counts.Stored != int64(n) {
		b.Errorf("stored %d of %d, dropped %v", run.Counts.Stored, n, run.Counts.DropWhy)
	}
}

// BenchmarkListRows is what a listing spends on one row of a store that was closed and opened again.
func BenchmarkListRows(b *testing.B) {
	const rows = 20_000
	dir := b.TempDir()
	s, err := Open(dir, Options{FreeSpace: plenty})
	if err != nil {
		b.Fatal(err)
	}
	w := newWriter(b, s, exchange.Run{}, WriterOptions{
		Derive: func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
	})
	for i := range rows {
		x := smallJSON(i)
		x.ID = exchange.NewID(day.Add(time.Duration(i) * time.Millisecond))
		w.Offer(x)
	}
	run := closeWriter(b, w)
	if err := s.Close(); err != nil || run.Counts.Stored != rows {
		b.Fatalf("stored %d, %v", run.Counts.Stored, err)
	}
	if s, err = Open(dir, Options{FreeSpace: plenty}); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range s.Summaries(run.ID) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != rows {
			b.Fatalf("%d rows", n)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/rows*1e9, "ns/row")
}
