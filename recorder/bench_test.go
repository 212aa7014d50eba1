package recorder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// captured is the capture of a real llama-server: 200 tokens streamed, with the arrival time of every read.
func captured(t testing.TB) (x *exchange.Exchange, events int) {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile("testdata/llama-200." + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var request struct {
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(read("request.json"), &request); err != nil {
		t.Fatal(err)
	}
	raw := read("response.txt")
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	x = streamed(string(request.Body))
	x.Response.Head = append(bytes.Clone(head), "\r\n\r\n"...)
	x.Response.Body = exchange.NewBody(body)
	x.Timeline.Reads = captureReads(t, string(read("chunks.tsv")), len(head)+4, len(body))
	return x, bytes.Count(body, []byte("data: "))
}

// captureReads makes reads of the arrival log: times to the nanosecond, as a clock would give them, sizes without the
// chunk framing, which is about the same in every read.
func captureReads(t testing.TB, tsv string, headLen, bodyLen int) (reads []exchange.Read) {
	t.Helper()
	left := bodyLen
	for i, line := range strings.Split(strings.TrimSpace(tsv), "\n") {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || len(f) < 4 {
			continue
		}
		us, err1 := strconv.ParseInt(f[1], 10, 64)
		n, err2 := strconv.Atoi(f[2])
		offset, err3 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatalf("line %q", line)
		}
		n = min(max(offset+n-max(offset, headLen)-6, 0), left)
		left -= n
		jitter := int64(i*7919%1000) + int64(i*104729%30000)
		reads = append(reads, exchange.Read{At: us*1000 + int64(i*7919%1000), Write: 20000 + jitter, Size: n})
	}
	reads[len(reads)-1].Size += left
	return reads
}

// TestStoredBytesPerEvent holds the budget of the design: what a streamed event costs on disk, body and reads.
func TestStoredBytesPerEvent(t *testing.T) {
	x, events := captured(t)
	if events < 200 || len(x.Timeline.Reads) < 200 {
		t.Fatalf("%d events in %d reads: not the capture", events, len(x.Timeline.Reads))
	}
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	body := 0
	for _, c := range chunks(x.Response.Body.Chunks) {
		body += len(pack(enc, c))
	}
	reads := len(packReads(enc, x.Timeline.Reads))
	rest := len(appendRecord(nil, enc, &fieldWriter{}, &manifest{x: x}, nil))
	per := float64(body+reads) / float64(events)
	t.Logf("%d events: body %d bytes, reads %d, rest of the manifest %d; %.1f bytes an event", events, body, reads, rest, per)
	if per > 20 {
		t.Errorf("%.1f stored bytes an event, the budget is 20", per)
	}
}

// BenchmarkRecord is the sustained rate of exchanges of 100 tokens, from Offer to the last commit.
func BenchmarkRecord(b *testing.B) {
	for _, durability := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", durability), func(b *testing.B) {
			s := openStore(b, b.TempDir(), Options{Sync: durability})
			xs := make([]*exchange.Exchange, 256)
			for i := range xs {
				xs[i] = streamed(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"question %d"}]}`, i), answer(100, uint64(i))...)
			}
			room := make(chan struct{}, 1024) // the queue never overflows: this is what can be sustained
			free := func() { <-room }
			w := newWriter(b, s, exchange.Run{}, WriterOptions{
				Derive:    deriveStub,
				OnStored:  func(exchange.Summary) { free() },
				OnDropped: func(exchange.ID, DropReason) { free() },
			})
			for i := 0; b.Loop(); i++ {
				x := *xs[i%len(xs)]
				x.ID = exchange.NewID(day)
				x.Request.Body = exchange.NewBody(fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"question %d"}]}`, i))
				x.Response.Body.Chunks = append([][]byte{fmt.Appendf(nil, ": %d\n", i)}, x.Response.Body.Chunks...)
				x.Response.Body.Size += int64(len(x.Response.Body.Chunks[0]))
				x.Response.Body.Kept = x.Response.Body.Size
				x.Timeline.Reads = append([]exchange.Read{{At: 1500, Size: len(x.Response.Body.Chunks[0])}}, x.Timeline.Reads...)
				room <- struct{}{}
				w.Offer(&x)
			}
			run := closeWriter(b, w)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
			if run.Counts.Dropped > 0 {
				b.Errorf("dropped %v", run.Counts.DropWhy)
			}
			stats, err := s.Stats()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(stats.Runs[0].Bytes)/float64(run.Counts.Stored), "stored-B/exchange")
		})
	}
}
