package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	runID = exchange.ID("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	xID   = exchange.ID("01ARZ3NDEKTSV4RRFFQ69G5FAW")
)

// fake is a store with one run; its rows end with broken, when that is set.
type fake struct {
	rows   []exchange.Summary
	broken error
	pause  func() // before each row, and before an exchange; nil does not
}

func (f *fake) Runs() ([]exchange.Run, error) { return []exchange.Run{{ID: runID, Name: "r"}}, nil }

func (f *fake) Run(name string) (exchange.Run, error) {
	if name != "r" && name != string(runID) {
		return exchange.Run{}, fmt.Errorf("find run %s: %w", name, exchange.ErrMiss)
	}
	return exchange.Run{ID: runID, Name: "r"}, nil
}

func (f *fake) SummariesAfter(_ exchange.ID, seq uint64) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for _, r := range f.rows {
			if r.Seq <= seq && seq > 0 {
				continue
			}
			f.wait()
			if !yield(r, nil) {
				return
			}
		}
		if f.broken != nil {
			yield(exchange.Summary{}, f.broken)
		}
	}
}

func (f *fake) wait() {
	if f.pause != nil {
		f.pause()
	}
}

func (f *fake) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	if id != xID {
		return nil, exchange.Summary{}, fmt.Errorf("find exchange %s: %w", id, exchange.ErrMiss)
	}
	f.wait()
	x := &exchange.Exchange{
		ID: xID, Run: runID, End: exchange.EndEOF,
		Request:  exchange.Request{Method: "POST", Target: "/v1/chat/completions", Head: []byte("POST / HTTP/1.1\r\n\r\n"), Body: exchange.NewBody([]byte(`{"model":"m"}`))},
		Response: exchange.Response{Status: 200, Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: exchange.NewBody([]byte(`{"choices":[]}`))},
	}
	return x, exchange.Summary{ID: xID, Key: "h1:1"}, nil
}

func (f *fake) TakesAfter(_ string, after recorder.Take, _ int) ([]recorder.Take, bool, error) {
	if after != (recorder.Take{}) {
		return nil, false, nil
	}
	return []recorder.Take{{ID: xID, Run: runID, Seq: 1}}, false, nil
}

func (f *fake) Pieces(exchange.ID) ([]recorder.Piece, error) { return make([]recorder.Piece, 1), nil }

func (f *fake) ReadPiece(recorder.Piece, func(exchange.ID, uint64) bool, func(*exchange.Exchange) error) error {
	return fmt.Errorf("read piece: %w", exchange.ErrMiss)
}

// serve starts a server and gives its address.
func serve(t *testing.T, o Options) string {
	t.Helper()
	if o.Health == nil {
		o.Health = func() any { return map[string]string{"status": "ok"} }
	}
	return serveOn(t, NewServer(o))
}

// serveOn starts s and gives its address.
func serveOn(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func withStore(f *fake) Options {
	return Options{
		Store: f,
		Stats: func() (any, error) { return map[string]int{"exchanges": 2}, nil },
		Check: func(context.Context) (any, error) { return nil, errors.New("disk fell off") },
	}
}

func get(t *testing.T, addr, path, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "early end: " + err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, "early end: " + err.Error()
	}
	return resp.StatusCode, string(b)
}

func TestRoutes(t *testing.T) {
	addr := serve(t, withStore(&fake{rows: []exchange.Summary{{ID: xID}}}))
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/healthz", 200, `"status":"ok"`},
		{"/api/v1/runs", 200, `"schema":1,"runs":[{"id":"` + string(runID)},
		{"/api/v1/runs/r", 200, `"name":"r"`},
		{"/api/v1/runs/other", 404, "find run other"},
		{"/api/v1/runs/r/exchanges", 200, string(xID)},
		{"/api/v1/runs/other/exchanges", 404, "find run other"},
		{"/api/v1/runs/r/exchanges?after=x", 400, "after"},
		{"/api/v1/runs/r/exchanges?limit=-1", 400, "limit"},
		{"/api/v1/exchanges/" + string(xID) + "/record", 200, "benchproxy-exchange 1\n"},
		{"/api/v1/exchanges/none/record", 404, "find exchange none"},
		{"/api/v1/exchanges/" + string(xID), 200, `"key":"h1:1"`},
		{"/api/v1/exchanges/none", 404, "find exchange none"},
		{"/api/v1/exchanges/" + string(xID) + "/request/body", 200, `{"model":"m"}`},
		{"/api/v1/exchanges/" + string(xID) + "/response/body", 200, `{"choices":[]}`},
		{"/api/v1/exchanges/" + string(xID) + "/response/head", 200, "HTTP/1.1 200 OK\r\n\r\n"},
		{"/api/v1/exchanges/" + string(xID) + "/sideways/body", 400, "request or response"},
		{"/api/v1/exchanges/" + string(xID) + "/request/foot", 400, "head or body"},
		{"/api/v1/keys/h1:1", 200, `"takes":[{"id":"` + string(xID)},
		{"/api/v1/stats", 200, `"exchanges":2`},
		{"/api/v1/check", 500, "disk fell off"},
		{"/nowhere", 404, ""},
	} {
		status, body := get(t, addr, c.path, "")
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s; want %d with %q", c.path, status, body, c.status, c.want)
		}
	}
}

// TestForeignHostIsRefused holds that a web page whose name resolves to loopback cannot read recordings.
func TestForeignHostIsRefused(t *testing.T) {
	addr := serve(t, withStore(&fake{}))
	for host, want := range map[string]int{
		"evil.example": 403, "evil.example:80": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403, "0.0.0.0": 403,
		"localhost": 200, "LOCALHOST:1": 200, "127.0.0.1": 200, "[::1]:7": 200,
	} {
		if got, _ := get(t, addr, "/api/v1/runs", host); got != want {
			t.Errorf("host %s: %d, want %d", host, got, want)
		}
	}
}

func TestWithoutStore(t *testing.T) {
	addr := serve(t, Options{})
	if status, body := get(t, addr, "/api/v1/runs", ""); status != 404 || !strings.Contains(body, "only measures") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, addr, "/healthz", ""); status != 200 {
		t.Errorf("health: %d", status)
	}
}

// TestListThatBreaksIsNotWhole holds that an error in the middle of a list cannot be taken for its end.
func TestListThatBreaksIsNotWhole(t *testing.T) {
	addr := serve(t, withStore(&fake{rows: []exchange.Summary{{ID: xID}}, broken: errors.New("page is torn")}))
	c := NewClient(addr, "")
	defer c.Close()
	var broken error
	for _, broken = range c.Summaries(runID) {
	}
	if broken == nil {
		t.Error("the list ended properly")
	}
	if status, body := get(t, addr, "/api/v1/runs/r/exchanges", ""); status != 500 || !strings.Contains(body, "page is torn") {
		t.Errorf("the page of a list: %d %s", status, body)
	}
	first := serve(t, withStore(&fake{broken: errors.New("page is torn")}))
	if status, body := get(t, first, "/api/v1/runs/r/exchanges", ""); status != 500 || !strings.Contains(body, "page is torn") {
		t.Errorf("%d %s", status, body)
	}
}

func TestClientReadsWhatTheServerHas(t *testing.T) {
	rows := []exchange.Summary{{ID: xID, Model: "a", Metrics: exchange.Figures{}}, {ID: xID, Model: "b", Metrics: exchange.Figures{}}}
	c := NewClient(serve(t, withStore(&fake{rows: rows})), "")
	defer c.Close()
	ctx := context.Background()
	if runs, err := c.Runs(); err != nil || len(runs) != 1 || runs[0].ID != runID {
		t.Errorf("runs %+v, %v", runs, err)
	}
	if run, err := c.Run("r"); err != nil || run.Name != "r" {
		t.Errorf("run %+v, %v", run, err)
	}
	var models []string
	for row, err := range c.Summaries(runID) {
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, row.Model)
	}
	if strings.Join(models, "") != "ab" {
		t.Errorf("rows %q", models)
	}
	for range 3 { // more than once over one connection
		x, row, err := c.Exchange(xID)
		if err != nil || row.Key != "h1:1" || x.End != exchange.EndEOF || string(x.Request.Body.Bytes()) != `{"model":"m"}` || string(x.Response.Body.Bytes()) != `{"choices":[]}` {
			t.Errorf("exchange %+v, %+v, %v", x, row, err)
		}
	}
	if _, _, err := c.Exchange("none"); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("an exchange that is not there: %v", err)
	}
	if s, err := c.Stats(ctx); err != nil || !json.Valid(s) {
		t.Errorf("stats %s, %v", s, err)
	}
}

func TestClientErrorsKeepTheirKind(t *testing.T) {
	c := NewClient(serve(t, withStore(&fake{rows: []exchange.Summary{{ID: xID}}, broken: errors.New("page is torn")})), "")
	defer c.Close()
	if _, err := c.Run("other"); !errors.Is(err, exchange.ErrMiss) || !strings.Contains(err.Error(), "find run other") {
		t.Errorf("missing run: %v", err)
	}
	if _, err := c.get(context.Background(), "/api/v1/exchanges/"+string(xID)+"/x/body", ""); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("bad side: %v", err)
	}
	if _, err := c.Check(context.Background()); err == nil || errors.Is(err, exchange.ErrMiss) {
		t.Errorf("broken check: %v", err)
	}
	last := error(nil)
	for _, err := range c.Summaries(runID) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "run this again") {
		t.Errorf("a list that broke off ended with %v", last)
	}
	gone := NewClient("127.0.0.1:1", "")
	defer gone.Close()
	var e *exchange.Error
	if _, err := gone.Runs(); !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("nobody listens: %v", err)
	}
}
