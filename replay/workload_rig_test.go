package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// shelf is a source in memory, which masks and keys what it is given as a store does.
type shelf struct {
	run  exchange.Run
	xs   map[exchange.ID]*exchange.Exchange
	rows []exchange.Summary
}

func newShelf(xs ...*exchange.Exchange) *shelf {
	s := &shelf{xs: map[exchange.ID]*exchange.Exchange{}, run: exchange.Run{
		ID: exchange.NewID(traceDay), Name: "morning", Mode: "record", State: exchange.RunComplete, Started: traceDay,
		Labels: map[string]string{"host": "a"}, Upstreams: map[string]string{"default": "http://127.0.0.1:8080"},
	}}
	for _, x := range xs {
		s.put(x)
	}
	return s
}

func (s *shelf) put(x *exchange.Exchange) {
	c := *x
	redact.Exchange(&c)
	c.Masked = false
	if c.ID == "" {
		c.ID = exchange.NewID(c.Timeline.Wall)
	}
	if c.Seq == 0 {
		c.Seq = uint64(len(s.rows) + 1)
	}
	row := measure.Summarize(&c, measure.Analyze(&c))
	row.Key, row.Started = canon.RequestKey(&c.Request).Key, c.Timeline.Wall
	row.Path, _, _ = strings.Cut(c.Request.Target, "?")
	s.xs[c.ID] = &c
	s.rows = append(s.rows, row)
}

func (s *shelf) Summaries(exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for _, r := range s.rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *shelf) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	if x := s.xs[id]; x != nil {
		return x, exchange.Summary{}, nil
	}
	return nil, exchange.Summary{}, fmt.Errorf("%w: %s", exchange.ErrMiss, id)
}

var traceDay = time.Date(2026, 11, 3, 9, 30, 0, 123_456_789, time.UTC)

// recorded is a whole exchange: a request at an instant, and an answer that came in the given pieces, 10 ms apart.
func recorded(after time.Duration, body, contentType string, pieces ...string) *exchange.Exchange {
	wall := traceDay.Add(after)
	x := &exchange.Exchange{
		ID: exchange.NewID(wall), Mode: "record", Upstream: "default", UpstreamURL: "http://127.0.0.1:8080",
		Request: exchange.Request{
			Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1",
			Headers: []exchange.Header{{Name: "Host", Value: "x"}, {Name: "Content-Type", Value: "application/json"}, {Name: "X-Team", Value: "blue"}},
			Body:    exchange.NewBody([]byte(body)),
		},
		Response: exchange.Response{Status: 200, Reason: "OK", Proto: "HTTP/1.1", Headers: []exchange.Header{{Name: "Content-Type", Value: contentType}}},
		End:      exchange.EndEOF, State: exchange.StateStored, Harness: "test",
	}
	t := &x.Timeline
	t.Wall, t.Clock = wall, exchange.ClockRead
	t.Accepted, t.RequestRead, t.Dialed = exchange.MarkAt(0), exchange.MarkAt(1000), exchange.MarkAt(1500)
	t.SendStart, t.SendDone, t.HeaderRead = exchange.MarkAt(2000), exchange.MarkAt(3000), exchange.MarkAt(4_000_000)
	at, whole := int64(4_000_000), ""
	for _, p := range pieces {
		at += 10_000_000
		t.Reads = append(t.Reads, exchange.Read{At: at, Size: len(p), Write: 50_000})
		whole += p
	}
	if len(pieces) > 0 {
		t.FirstRead, t.LastRead = exchange.MarkAt(t.Reads[0].At), exchange.MarkAt(at)
	}
	t.BodyEnd, t.ClientDone = exchange.MarkAt(at), exchange.MarkAt(at+100_000)
	x.Response.Body = exchange.NewBody([]byte(whole))
	x.Request.Head = head("POST "+x.Request.Target+" HTTP/1.1", x.Request.Headers)
	x.Response.Head = head("HTTP/1.1 200 OK", x.Response.Headers)
	sealDigests(x)
	return x
}

func sealDigests(x *exchange.Exchange) {
	x.Request.Body.Digest, x.Response.Body.Digest = "", ""
	x.Request.Body.Digest, x.Response.Body.Digest = x.Request.Body.Sum(), x.Response.Body.Sum()
}

const eventStream = "text/event-stream"

// say is one event of a streamed chat answer.
func say(content string) string {
	return `data: {"id":"c1","choices":[{"index":0,"delta":{"content":` + jsonText(content) + `},"finish_reason":null}]}` + "\n\n"
}

func jsonText(s string) string {
	b, err := appendJSON(nil, s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const chatEnd = `data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"id":"c1","choices":[],"usage":{"prompt_tokens":1100,"completion_tokens":4,"total_tokens":1104}}` + "\n\ndata: [DONE]\n\n"

// write puts a file into a directory of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t *testing.T, text io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// exported is a shelf as a file of a format.
func exported(t *testing.T, s *shelf, o ExportOptions) (string, *ExportReport) {
	t.Helper()
	var b bytes.Buffer
	r, err := Export(context.Background(), s, &s.run, ExportTo{Main: &b}, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), r
}

func load(t *testing.T, text string, o FileOptions) *Workload {
	t.Helper()
	w, err := OpenFile(write(t, "file", text), o).Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func payload(t *testing.T, it *Item) string {
	t.Helper()
	b, err := it.Payload()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
