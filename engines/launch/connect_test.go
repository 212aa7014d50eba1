package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// answers is an engine in memory: what it answers to "METHOD path", in order, the last one again and again.
type answers struct {
	by    map[string][]string // "status body", or "refused"
	asked []string
}

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	key := r.Method + " " + r.URL.EscapedPath()
	a.asked = append(a.asked, strings.TrimSpace(key+" "+strings.Join(strings.Fields(string(body)), "")))
	list := a.by[key]
	if len(list) == 0 {
		return nil, fmt.Errorf("nobody answers %s", key)
	}
	next := list[0]
	if len(list) > 1 {
		a.by[key] = list[1:]
	}
	h := http.Header{}
	var code int
	head, text, _ := strings.Cut(next, " ")
	if wait, ok := strings.CutPrefix(head, "503:"); ok {
		head = "503"
		h.Set("Retry-After", wait)
	}
	if _, err := fmt.Sscan(head, &code); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Status: head, Header: h, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func profile(t *testing.T, id string) engines.Profile {
	t.Helper()
	c, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Lookup(id)
	if !ok {
		t.Fatalf("there is no profile %s", id)
	}
	return p
}

func connect(t *testing.T, id string, by map[string][]string) (*Connection, *answers) {
	a := &answers{by: by}
	return Connect(ConnectOptions{Engine: profile(t, id), URL: "http://engine:1/v1/", Client: a, Times: Times{Ready: 30 * time.Second}}), a
}

// TestServers holds that both kinds of engine are used alike.
func TestServers(t *testing.T) {
	for _, s := range []Server{&Process{}, &Connection{}} {
		if s.URL() != "" {
			t.Errorf("%T has an address", s)
		}
	}
}

func TestConnectionReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, "strata", map[string][]string{"GET /health": {`503 `, `200 {"loaded":false}`, `200 {"loaded":true}`}})
		if s := c.Status(); s.State != Starting || c.URL() != "http://engine:1" || c.Engine().ID != "strata" {
			t.Errorf("%+v", s)
		}
		waitReady(t, c)
		if s := c.Status(); s.State != Ready {
			t.Errorf("%+v", s)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-c.Done():
			t.Error("it has ended")
		default:
		}
	})
}

func TestConnectionNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, "llamacpp", map[string][]string{"GET /health": {"503 "}})
		err := c.WaitReady(t.Context())
		if !errors.Is(err, exchange.ErrUnreachable) {
			t.Fatal(err)
		}
		wantWords(t, err.Error(), "not ready within 30s", "GET /health answers 503")
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if err := c.WaitReady(ctx); !errors.Is(err, cause) {
			t.Errorf("an ended wait: %v", err)
		}
	})
}

func TestLoadAndUnload(t *testing.T) {
	models := `200 {"data":[{"id":"a:1b"},{"id":"b"}]}`
	for name, c := range map[string]struct {
		engine string
		by     map[string][]string
		want   []string
	}{
		"ollama keeps one": {"ollama", map[string][]string{"POST /api/generate": {"200 {}"}}, []string{
			`POST /api/generate {"model":"a:1b","keep_alive":-1}`,
			`POST /api/generate {"model":"a:1b","keep_alive":0}`, `POST /api/generate {"model":"b","keep_alive":-1}`,
			`POST /api/generate {"model":"b","keep_alive":0}`}},
		"foundry by path": {"foundry", map[string][]string{"GET /models/load/a:1b": {"200 "}, "GET /models/unload/a:1b": {"200 "}, "GET /models/load/b": {"200 "}, "GET /models/unload/b": {"200 "}},
			[]string{"GET /models/load/a:1b", "GET /models/unload/a:1b", "GET /models/load/b", "GET /models/unload/b"}},
		"prism loads by itself":  {"prism", map[string][]string{"GET /v1/models": {models}, "POST /v1/unload": {"200 "}}, []string{"GET /v1/models", "GET /v1/models", "GET /v1/models", "POST /v1/unload"}},
		"started with its model": {"llamacpp", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := connect(t, c.engine, c.by)
			err := errors.Join(s.Load(t.Context(), "a:1b"), s.Load(t.Context(), "a:1b"), s.Load(t.Context(), "b"), s.Unload(t.Context(), "b"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, a.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBusyEngineIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := connect(t, "ollama", map[string][]string{"POST /api/generate": {"503:7 busy", "503:900 busy", "503 busy", "200 {}"}})
		began := clock.Now()
		if err := c.Load(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
		if took := clock.Since(began); took != 7*time.Second+time.Minute+time.Second {
			t.Errorf("it took %s", took)
		}
		if len(a.asked) != 4 {
			t.Errorf("%d requests", len(a.asked))
		}
		a.by["POST /api/generate"] = []string{"503:1 no room\nfor it"}
		err := c.Unload(t.Context(), "m")
		if err == nil {
			t.Fatal("a busy engine unloaded")
		}
		wantWords(t, err.Error(), "unload model of ollama m", "503", "no room")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		a.by["POST /api/generate"] = []string{"503:9 "}
		if err := c.Unload(ctx, "m"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("in a hurry: %v", err)
		}
	})
}

func TestLoadFails(t *testing.T) {
	c, a := connect(t, "prism", map[string][]string{"GET /v1/models": {`200 {"data":[{"id":"phi"}]}`}})
	if err := c.Load(t.Context(), "qwen"); !errors.Is(err, exchange.ErrMiss) || !strings.Contains(err.Error(), "it has phi") {
		t.Errorf("a model that is not listed: %v", err)
	}
	a.by = map[string][]string{"GET /v1/models": {"500 "}}
	if err := c.Load(t.Context(), "qwen"); err != nil {
		t.Errorf("an engine that lists nothing: %v", err)
	}
	a.by = nil
	if err := c.Load(t.Context(), "qwen"); !errors.Is(err, exchange.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	o, _ := connect(t, "ollama", map[string][]string{"POST /api/generate": {"404 {\"error\":\"no such model\"}"}})
	if err := o.Load(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("a refusal: %v", err)
	}
	n, _ := connect(t, "foundry", nil)
	if err := n.Unload(t.Context(), "m"); !errors.Is(err, exchange.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}
