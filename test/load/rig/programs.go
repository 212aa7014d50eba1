package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// startTime bounds the start of a program on a busy machine.
const startTime = time.Minute

// Engine is a running `benchproxy sim`.
type Engine struct {
	*Process
	URL  string
	Addr string // host:port of URL
}

// StartEngine starts the scripted engine of the program at path.
func StartEngine(ctx context.Context, path string) (*Engine, error) {
	p, err := Start(path, "sim", "--listen", "127.0.0.1:0", "--json")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	m, err := p.Out.Match(ctx, regexp.MustCompile(`"url":"(http://([^"]+))"`))
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start scripted engine: %w: %s", err, p.Err.Tail())
	}
	return &Engine{Process: p, URL: m[1], Addr: m[2]}, nil
}

// Truth is what the engine did since the last Forget, with all bytes when bytes is set.
func (e *Engine) Truth(ctx context.Context, bytes bool) (sim.Truth, error) {
	url := e.URL + "/sim/records"
	if bytes {
		url += "?bytes=1"
	}
	var t sim.Truth
	err := getJSON(ctx, url, &t)
	return t, err
}

// Forget drops the engine's records.
func (e *Engine) Forget(ctx context.Context) error {
	body, err := call(ctx, http.MethodDelete, e.URL+"/sim/records")
	if err != nil {
		return err
	}
	return body.Close()
}

// Proxy is a program that stands in front of the engine.
type Proxy struct {
	*Process
	Addr  string // host:port for clients
	Admin string // base URL of its admin listener, "" when it has none
}

// StartProxy starts `benchproxy record` or `benchproxy proxy`, as args say, from the program at path.
func StartProxy(ctx context.Context, path string, args ...string) (*Proxy, error) {
	return StartProxyWith(ctx, nil, path, args...)
}

// StartProxyWith is StartProxy with variables of the program's environment set.
func StartProxyWith(ctx context.Context, vars []string, path string, args ...string) (*Proxy, error) {
	p, err := StartWith(vars, path, append(args, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	m, err := p.Err.Match(ctx, regexp.MustCompile(`(?s)http://(\S+)  ->.*admin (http://\S+)`))
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	return &Proxy{Process: p, Addr: m[1], Admin: m[2]}, nil
}

// Health is the part of a proxy's /healthz that is held here.
type Health struct {
	Status string `json:"status"`
	Proxy  struct {
		Accepted int64 `json:"accepted"`
		Running  int64 `json:"running"`
		Dropped  int64 `json:"dropped"`
	} `json:"proxy"`
	Recorder *struct {
		Stored  int64 `json:"stored"`
		Dropped int64 `json:"dropped"`
	} `json:"recorder"`
}

// Health asks the proxy how it is.
func (p *Proxy) Health(ctx context.Context) (Health, error) {
	var h Health
	err := getJSON(ctx, p.Admin+"/healthz", &h)
	return h, err
}

// Settle waits until n exchanges are stored or dropped. A proxy without a store has nothing to settle.
func (p *Proxy) Settle(ctx context.Context, n int64) error {
	return Poll(ctx, func() (bool, error) {
		h, err := p.Health(ctx)
		if err != nil || h.Recorder == nil {
			return true, err
		}
		return h.Recorder.Stored+h.Recorder.Dropped >= n, nil
	})
}

// Body is the response body of a stored exchange, read through the admin listener.
func (p *Proxy) Body(ctx context.Context, id exchange.ID) ([]byte, error) {
	resp, err := call(ctx, http.MethodGet, p.Admin+"/api/v1/exchanges/"+string(id)+"/response/body")
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	return io.ReadAll(resp)
}

// Rows are the exchanges that `record --json` has acknowledged: one whole line each on its standard output.
func (p *Proxy) Rows() ([]exchange.Summary, error) { return summaries(p.Out.Lines()) }

func summaries(lines [][]byte) ([]exchange.Summary, error) {
	rows := make([]exchange.Summary, len(lines))
	for i, l := range lines {
		if err := json.Unmarshal(l, &rows[i]); err != nil {
			return nil, fmt.Errorf("read row %d: %w", i, err)
		}
	}
	return rows, nil
}

// getJSON reads a JSON document.
func getJSON(ctx context.Context, url string, into any) error {
	body, err := call(ctx, http.MethodGet, url)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", url, err)
	}
	return nil
}

// call makes a request over a connection of its own, which ends with the body of the answer. The caller closes it.
func call(ctx context.Context, method, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask program: %w", err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask program: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		resp.Body.Close()
		return nil, fmt.Errorf("ask program: %s %s answered %s", method, url, resp.Status)
	}
	return resp.Body, nil
}

// Ask is a request to the scripted engine.
type Ask struct {
	ID     string // comes back in the engine's record as the header X-Request-Id
	Prompt string
	Stream bool
	Sim    string // options of the engine for this request
}

// idHeader carries Ask.ID.
const idHeader = "X-Request-Id"

// Body is the JSON body of the request.
func (a Ask) Body() string {
	prompt, err := json.Marshal(a.Prompt)
	if err != nil { // a string always marshals
		panic(err)
	}
	return fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%s}],"stream":%t}`, prompt, a.Stream)
}

// Bytes is the whole request.
func (a Ask) Bytes() []byte {
	body := a.Body()
	var b strings.Builder
	fmt.Fprintf(&b, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n")
	fmt.Fprintf(&b, "%s: %s\r\nX-Sim: %s\r\nContent-Length: %d\r\n\r\n%s", idHeader, a.ID, a.Sim, len(body), body)
	return []byte(b.String())
}

// ByID are the engine's records by the id of their request.
func ByID(t sim.Truth) map[string]sim.Record {
	out := make(map[string]sim.Record, len(t.Requests))
	for _, r := range t.Requests {
		if id, ok := exchange.HeaderValue(r.Headers, idHeader); ok {
			out[id] = r
		}
	}
	return out
}
