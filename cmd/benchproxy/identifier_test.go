package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// identifying is a capture of one engine that reads it.
func identifying(t *testing.T, url string) *capture {
	t.Helper()
	s := quietCapture(t, time.Minute, url)
	s.identify = true
	c, err := startCapture(quietEnv(io.Discard), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func chat(t *testing.T, c *capture) int {
	t.Helper()
	resp, err := http.Post(c.base(0)+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// awaitDeployments waits until the run holds n readings.
func awaitDeployments(t *testing.T, c *capture, n int) []exchange.Deployment {
	t.Helper()
	for end := time.After(20 * time.Second); ; {
		if d := c.writer.Run().Deployments; len(d) >= n {
			return d
		}
		select {
		case <-end:
			t.Fatalf("the run holds %d readings, want %d", len(c.writer.Run().Deployments), n)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func closeCapture(t *testing.T, c *capture) exchange.Run {
	t.Helper()
	run, err := c.Close(nil)
	if err != nil {
		t.Fatal(err)
	}
	return *run
}

// answerAs answers what a vLLM of that version would be asked, and chats.
func answerAs(version, model string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			fmt.Fprintf(w, `{"version":%q}`, version)
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}`)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"model":%q,"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, model)
		default:
			http.NotFound(w, r)
		}
	}
}

// TestProbesMakeRoom holds that a request takes back the probe that runs, and that none is sent while it runs.
func TestProbesMakeRoom(t *testing.T) {
	var running, disturbed atomic.Int64
	var hung atomic.Bool
	probing, withdrawn, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	known := answerAs("1", "m")
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			running.Add(1)
			<-answer
			running.Add(-1)
			known(w, r)
		case hung.CompareAndSwap(false, true): // the first probe is never answered
			close(probing)
			<-r.Context().Done()
			close(withdrawn)
		default:
			disturbed.Add(running.Load())
			known(w, r)
		}
	}))
	defer engine.Close()
	c := identifying(t, engine.URL)
	<-probing
	done := make(chan int, 1)
	go func() { done <- chat(t, c) }()
	select {
	case <-withdrawn:
	case <-time.After(4 * time.Second): // its own time-out is 5 s
		t.Error("the probe was not taken back")
	}
	if n := len(c.writer.Run().Deployments); n != 0 {
		t.Errorf("%d readings while a request runs", n)
	}
	close(answer)
	if status := <-done; status != 200 {
		t.Errorf("status %d", status)
	}
	d := awaitDeployments(t, c, 1)
	if d[0].Engine != "vllm" || d[0].Why != exchange.ReadAtStart || d[0].Upstream != "a" {
		t.Errorf("read %+v", d[0])
	}
	if n := disturbed.Load(); n != 0 {
		t.Errorf("%d probes while a request ran", n)
	}
	closeCapture(t, c)
}

func TestAnEngineThatCameBackIsReadAgain(t *testing.T) {
	engine := httptest.NewServer(answerAs("1", "m"))
	addr := engine.Listener.Addr().String()
	c := identifying(t, engine.URL)
	awaitDeployments(t, c, 1)
	engine.Close()
	if status := chat(t, c); status != 502 {
		t.Errorf("status %d while it is away", status)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: ln, Config: &http.Server{Handler: answerAs("2", "m"), ReadHeaderTimeout: time.Minute}}
	again.Start()
	defer again.Close()
	if status := chat(t, c); status != 200 {
		t.Errorf("status %d when it is back", status)
	}
	d := awaitDeployments(t, c, 2)
	if d[1].Version != "2" || d[1].Why != exchange.ReadAtRestart {
		t.Errorf("read %+v", d[1])
	}
	chat(t, c)
	run := closeCapture(t, c)
	if run.Identity.Version != "1" || len(run.Deployments) != 2 {
		t.Errorf("the run keeps %+v of %d readings", run.Identity, len(run.Deployments))
	}
}

func TestAnEngineThatIsDownAtFirstIsReadLater(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	c := identifying(t, "http://"+addr)
	for !c.ident.targets[0].away.Load() {
		time.Sleep(time.Millisecond)
	}
	if ln, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	engine := &httptest.Server{Listener: ln, Config: &http.Server{Handler: answerAs("1", "m"), ReadHeaderTimeout: time.Minute}}
	engine.Start()
	defer engine.Close()
	chat(t, c)
	if d := awaitDeployments(t, c, 1); d[0].Why != exchange.ReadAtStart || d[0].Engine != "vllm" {
		t.Errorf("read %+v", d[0])
	}
	closeCapture(t, c)
}

func TestAModelThatChangesInMidRunIsTold(t *testing.T) {
	engine := httptest.NewServer(answerAs("1", "another"))
	defer engine.Close()
	c := identifying(t, engine.URL)
	awaitDeployments(t, c, 1)
	chat(t, c)
	d := awaitDeployments(t, c, 2)[1]
	if d.Why != exchange.ReadAtAnswer || *d.Model != "another" || !strings.Contains(d.Evidence, `before, the model was "m"`) {
		t.Errorf("told %+v", d)
	}
	run := closeCapture(t, c)
	flags := rowsIn(t, c.s.store, run.ID)[0].Flags
	if !slices.Contains(flags, engines.FlagModelChanged) || !slices.Contains(flags, engines.FlagModelDiffers) || !slices.IsSorted(flags) {
		t.Errorf("flags %q", flags)
	}
	_, shown := command(t, "store", "show", string(run.ID)+"/1", "--store", c.s.store, "--json")
	file := filepath.Join(t.TempDir(), "x.jsonl")
	if code, _ := command(t, "store", "export", string(run.ID), "--store", c.s.store, "--out", file); code != 0 {
		t.Fatalf("export: exit code %d", code)
	}
	other := filepath.Join(t.TempDir(), "other")
	if code, _ := command(t, "store", "import", file, "--store", other, "--run", "again"); code != 0 {
		t.Fatalf("import: exit code %d", code)
	}
	_, listed := command(t, "store", "ls", "again", "--store", other, "--json")
	for _, flag := range []string{engines.FlagModelChanged, engines.FlagModelDiffers} {
		if !strings.Contains(shown, flag) || !strings.Contains(listed, flag) {
			t.Errorf("%s: shown %v, imported %v", flag, strings.Contains(shown, flag), strings.Contains(listed, flag))
		}
	}
}

// TestTheModelThatIsAskedForIsRead: of several that an engine lists, the one that requests will name is identified, loaded
// or not.
func TestTheModelThatIsAskedForIsRead(t *testing.T) {
	s := captureSettings{upstreams: []upstream{{name: "a", url: "http://127.0.0.1:1", model: "second"}, {name: "b", url: "http://127.0.0.1:1"}}}
	i := newIdentifier(s, nil)
	if got := i.targets[0].options.Model; got != "second" {
		t.Errorf("the model of a is %q", got)
	}
	if got := i.targets[1].options.Model; got != "" {
		t.Errorf("the model of b is %q", got)
	}
}

// rowsIn are the rows of a run in a store that is closed.
func rowsIn(t *testing.T, dir string, run exchange.ID) (rows []exchange.Summary) {
	t.Helper()
	s, err := recorder.Open(dir, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for row, err := range s.Summaries(run) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
