package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
)

// day is when the exchanges of a test began.
var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

// asked is what a test wants of an exchange.
type asked struct {
	model  string
	prompt string
	pieces []string // of the streamed answer
	raw    string   // body in their place
	status int      // 0 is 200
}

// exchange makes number i: events 10 ms apart, the first 100 ms after the request.
func (a asked) exchange(i int) *exchange.Exchange {
	body, _ := json.Marshal(map[string]any{"model": a.model, "stream": true, "messages": []any{map[string]string{"role": "user", "content": a.prompt}}})
	head := "POST /v1/chat/completions?api_key=sk-secretsecretsecret HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-secretsecretsecret\r\n" +
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"
	at := day.Add(time.Duration(i) * time.Minute)
	x := &exchange.Exchange{
		ID: exchange.NewID(at), Seq: uint64(i + 1), Upstream: "engine", UpstreamURL: "http://127.0.0.1:8080", Mode: "record", State: exchange.StateStored, End: exchange.EndEOF,
		Identity: exchange.Identity{Engine: "llamacpp", Version: "b1"},
		Request: exchange.Request{Method: "POST", Target: "/v1/chat/completions?api_key=sk-secretsecretsecret", Proto: "HTTP/1.1", Head: []byte(head), Headers: headersIn(head),
			Body: exchange.NewBody(body)},
		Timeline: exchange.Timeline{Wall: at.UTC(), Clock: exchange.ClockKernel, Accepted: exchange.MarkAt(0), RequestRead: exchange.MarkAt(1000), SendStart: exchange.MarkAt(2000),
			SendDone: exchange.MarkAt(3000), HeaderRead: exchange.MarkAt(90e6)},
		Interventions: []exchange.Intervention{{Kind: "header_changed", Where: exchange.SideEngine, Name: "Host", From: "h", To: "127.0.0.1:8080", Reason: "host"}},
	}
	status := a.status
	if status == 0 {
		status = 200
	}
	kind := "text/event-stream"
	if status != 200 {
		kind = "application/json"
	}
	answer := fmt.Sprintf("HTTP/1.1 %d OK\r\nContent-Type: %s\r\nSet-Cookie: session=sk-secretsecretsecret\r\n\r\n", status, kind)
	x.Response = exchange.Response{Status: status, Proto: "HTTP/1.1", Head: []byte(answer), Headers: headersIn(answer)}
	a.answer(x)
	return x
}

func (a asked) answer(x *exchange.Exchange) {
	var body []byte
	at := int64(100e6)
	add := func(s string) {
		body = append(body, s...)
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Write: 25_000, Size: len(s)})
		at += 10e6
	}
	for _, p := range a.pieces {
		add(`data: {"choices":[{"index":0,"delta":{"content":` + jsonQuoted(p) + `}}]}` + "\n\n")
	}
	if a.raw != "" {
		add(a.raw)
	} else {
		add(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":` + fmt.Sprint(len(a.pieces)) + "}}\n\ndata: [DONE]\n\n")
	}
	x.Response.Body = exchange.NewBody(body)
	last := x.Timeline.Reads[len(x.Timeline.Reads)-1].At
	x.Timeline.FirstRead, x.Timeline.LastRead = exchange.MarkAt(100e6), exchange.MarkAt(last)
	x.Timeline.BodyEnd, x.Timeline.ClientDone = exchange.MarkAt(last+1000), exchange.MarkAt(last+2000)
}

func headersIn(head string) (hs []exchange.Header) {
	for _, l := range strings.Split(strings.TrimSpace(head), "\r\n")[1:] {
		name, value, _ := strings.Cut(l, ": ")
		hs = append(hs, exchange.Header{Name: name, Value: value})
	}
	return hs
}

// recorded is a store with one run of the exchanges.
func recorded(t testing.TB, asks ...asked) (store *recorder.Store, run exchange.Run, rows []exchange.Summary) {
	t.Helper()
	store, err := recorder.Open(t.TempDir(), recorder.Options{FreeSpace: func(string) (int64, error) { return 1 << 50, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, write(t, store, "r", asks), rowsIn(t, store, "r")
}

func write(t testing.TB, store *recorder.Store, name string, asks []asked) exchange.Run {
	t.Helper()
	w, err := store.NewWriter(exchange.Run{Name: name, Mode: "record", Upstreams: map[string]string{"engine": "http://127.0.0.1:8080"}}, recorder.WriterOptions{
		Derive: func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range asks {
		x := a.exchange(i)
		x.Run = w.Run().ID
		if !w.Offer(x) {
			t.Fatal("the writer refused an exchange")
		}
	}
	run, err := w.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func rowsIn(t testing.TB, store *recorder.Store, name string) (rows []exchange.Summary) {
	t.Helper()
	run, err := store.Run(name)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range store.Summaries(run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// page reads a page until the index of its run is made.
func page(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	for {
		status, body := get(t, addr, path, "")
		if !strings.Contains(body, `data-swap="main"`) {
			return status, body
		}
	}
}

// answerOf is a whole answer, with headers of the request in pairs.
func answerOf(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}
