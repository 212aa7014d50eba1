package replay

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestServeFile holds that a run and its exports answer alike: bytes, pieces, instants.
func TestServeFile(t *testing.T) {
	left := answering(strings.Replace(question, "why", "left", 1), chunkedHead, say("a"), chatEnd)
	left.End = exchange.EndClientGone
	src := newShelf(answering(question, chunkedHead, say("a"), "\xff\x00", chatEnd), answering(question, chunkedHead, say("again"), chatEnd), left)
	ask := func(s *StandIn) (out []gotten) {
		c := &counter{t: t, s: s}
		inBubbleWith(t, c, func(t *testing.T) {
			for _, body := range []string{question, question, strings.Replace(question, "why", "left", 1), "{}"} {
				g := c.post(body)
				g.header = nil
				out = append(out, g)
			}
		})
		return out
	}
	stored, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{Speed: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := ask(stored)
	for _, format := range []Format{FormatJSONL, FormatHAR} {
		text, _ := exported(t, src, ExportOptions{Format: format})
		held, err := OpenFile(write(t, "file", text), FileOptions{}).Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held.Run.ID != src.run.ID {
			t.Errorf("%s: run %s", format, held.Run.ID)
		}
		s, err := NewStandIn(t.Context(), held, &held.Run, Filter{}, ServeOptions{Speed: 2})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ask(s), cmp.AllowUnexported(gotten{})); diff != "" {
			t.Errorf("%s (-run +file):\n%s", format, diff)
		}
	}
}

// inBubbleWith runs f with a server of c.s in a bubble.
func inBubbleWith(t *testing.T, c *counter, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { c.serve(t, func() { f(t) }) })
}

// TestServeForeignArchive holds what an archive of a browser is good for: bodies without coding, a head of another version
// of HTTP, no times of pieces.
func TestServeForeignArchive(t *testing.T) {
	const archive = `{"log":{"version":"1.2","creator":{"name":"Browser","version":"1"},"entries":[
{"startedDateTime":"2026-01-02T03:04:05.000Z","time":30,"request":{"method":"POST","url":"https://api.example/v1/chat/completions","httpVersion":"h2","headers":[{"name":":method","value":"POST"},{"name":"content-type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{\"model\":\"m\"}"}},
 "response":{"status":200,"statusText":"","httpVersion":"h2","headers":[{"name":":status","value":"200"},{"name":"content-encoding","value":"br"},{"name":"content-length","value":"7"},{"name":"x-a","value":"1"}],"content":{"size":15,"mimeType":"text/event-stream","text":"data: [DONE]\n\nx"}},"cache":{},"timings":{"send":0,"wait":20,"receive":10}},
{"startedDateTime":"2026-01-02T03:04:06.000Z","time":30,"request":{"method":"POST","url":"https://api.example/v1/chat/completions","httpVersion":"HTTP/1.1","headers":[{"name":"content-type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{\"model\":\"n\"}"}},
 "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"content-encoding","value":"gzip"},{"name":"Content-Length","value":"7"}],"content":{"size":12,"mimeType":"application/json","text":"{\"answer\":1}"}},"cache":{},"timings":{"send":0,"wait":20,"receive":10}},
{"startedDateTime":"2026-01-02T03:04:07.000Z","time":30,"request":{"method":"POST","url":"https://api.example/v1/chat/completions","httpVersion":"HTTP/1.1","headers":[],"postData":{"mimeType":"application/json","text":"{\"model\":\"o\"}"}},
 "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[],"content":{"size":12,"mimeType":"application/json"}},"cache":{},"timings":{"send":0,"wait":20,"receive":10}}
]}}`
	held, err := OpenFile(write(t, "a.har", archive), FileOptions{}).Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStandIn(t.Context(), held, &held.Run, Filter{}, ServeOptions{Speed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{t: t, s: s}
	inBubbleWith(t, c, func(t *testing.T) {
		got := c.post(`{"model":"m"}`)
		if got.body != "data: [DONE]\n\nx" || got.head != "HTTP/1.1 200 OK\r\nx-a: 1\r\nTransfer-Encoding: chunked" || got.err != nil {
			t.Errorf("%+v", got)
		}
		if want := []time.Duration{20 * time.Millisecond, 30 * time.Millisecond}; cmp.Diff(want, got.times) != "" {
			t.Errorf("instants %v, want %v", got.times, want)
		}
		if got := c.post(`{"model":"n"}`); got.body != `{"answer":1}` || got.header.Get("Content-Length") != "12" {
			t.Errorf("%+v", got)
		}
		if got := c.post(`{"model":"o"}`); got.status != 404 || !strings.Contains(got.body, "without an answer") {
			t.Errorf("an answer without its body: %+v", got)
		}
	})
	if r := s.Report(); r.LeftOut[leftCut] != 1 {
		t.Errorf("%+v", r)
	}
}

// TestHoldRefuses holds what no stand-in is made of.
func TestHoldRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a bad line":  `{"method":"POST","path":"nowhere"}`,
		"two ids":     `{"id":"a","method":"GET","path":"/"}` + "\n" + `{"id":"a","method":"GET","path":"/"}`,
		"no requests": `{"schema":"benchproxy.workload/1","items":0,"whole":true}` + "\n" + `{"end":{"items":0}}`,
	} {
		if _, err := OpenFile(write(t, "x.jsonl", text), FileOptions{Format: FormatJSONL}).Hold(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	held, err := OpenFile(write(t, "x.jsonl", `{"method":"POST","path":"/v1/chat/completions","body":{}}`), FileOptions{}).Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewStandIn(context.Background(), held, &held.Run, Filter{}, ServeOptions{}); err == nil || !strings.Contains(err.Error(), "no answer that can be given") {
		t.Errorf("requests alone: %v", err)
	}
	if _, _, err := held.Exchange("nonsense"); err == nil {
		t.Error("an exchange that is not there")
	}
}
