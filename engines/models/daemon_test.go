package models

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// says answers a pull with lines.
func says(lines ...string) step {
	return func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
		return true
	}
}

const (
	manifest = `{"status":"pulling manifest"}`
	half     = `{"status":"pulling a","digest":"sha256:a","total":1000,"completed":500}`
	all      = `{"status":"pulling a","digest":"sha256:a","total":1000,"completed":1000}`
	second   = `{"status":"pulling b","digest":"sha256:b","total":200,"completed":200}`
	success  = `{"status":"success"}`
)

func TestOllamaPull(t *testing.T) {
	hang := func(_ *server, w http.ResponseWriter, r *http.Request) bool {
		fmt.Fprintln(w, half)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	for name, c := range map[string]struct {
		script []step
		asked  int
		took   time.Duration
		fails  string
		have   int64
	}{
		"well":       {script: []step{says(manifest, half, all, second, `{"status":"verifying sha256 digest"}`, "no JSON", success)}, asked: 1, have: 1200},
		"ends early": {script: []step{says(manifest, half), says(all, success)}, asked: 2, took: time.Second, have: 1000},
		"never ends": {script: []step{says(manifest), says(manifest), says(manifest)}, asked: 3, took: 3 * time.Second, fails: "3 attempts: Ollama ended its answer without success"},
		"stalls":     {script: []step{hang, says(all, success)}, asked: 2, took: 5*time.Minute + time.Second, have: 1000},
		"an error":   {script: []step{says(manifest, `{"error":"pull model manifest: file does not exist"}`)}, asked: 1, fails: "file does not exist"},
		"refused": {script: []step{func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":"invalid model name"}`)
			return true
		}}, asked: 1, fails: "400 Bad Request: invalid model name"},
		"busy":          {script: []step{status(503), says(success)}, asked: 2, took: time.Second},
		"not there yet": {script: []step{raw(""), says(success)}, asked: 2, took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.script...)
				p := NewDaemonPull(Daemon{KindOllama, "m:1"}, DaemonOptions{Ollama: "http://ollama.test/", Transport: r.o.Transport})
				began := clock.Now()
				err := p.Run(context.Background())
				if took := clock.Since(began); took != c.took || len(r.asked) != c.asked {
					t.Errorf("it took %v and %d requests", took, len(r.asked))
				}
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) || p.Progress().Phase != PhaseFailed {
						t.Errorf("%v, want %s", err, c.fails)
					}
					return
				}
				if err != nil || p.Progress().Phase != PhaseDone || p.Progress().Have != c.have {
					t.Errorf("%v, %+v", err, p.Progress())
				}
			})
		})
	}
}

func TestOllamaIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		p := NewDaemonPull(Daemon{KindOllama, "m"}, DaemonOptions{Transport: refuse})
		if err := p.Run(context.Background()); !errors.Is(err, exchange.ErrUnreachable) || !strings.Contains(err.Error(), "start Ollama") {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if err := NewDaemonPull(Daemon{KindOllama, "m"}, DaemonOptions{Transport: refuse}).Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := NewDaemonPull(Daemon{KindOllama, "m"}, DaemonOptions{Ollama: "::"}).Run(context.Background()); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%v", err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
