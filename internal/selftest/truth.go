package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// idHeader carries the number of a request, by which the driver's, the engine's and the proxy's account of it meet.
const idHeader = "X-Selftest-Request"

// journal asks the scripted engine for what it did.
type journal struct {
	url  string
	http *http.Client
}

func newJournal(engine string, dial func(context.Context) (net.Conn, error)) *journal {
	t := &http.Transport{DisableKeepAlives: true}
	if dial != nil {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	}
	return &journal{url: engine + "/sim/records", http: &http.Client{Transport: t}}
}

// Take gives the requests since the last Take by their number, and has the engine forget them.
func (j *journal) Take(ctx context.Context) (map[string]sim.Record, error) {
	var t sim.Truth
	if err := j.call(ctx, http.MethodGet, &t); err != nil {
		return nil, err
	}
	if err := j.call(ctx, http.MethodDelete, nil); err != nil {
		return nil, err
	}
	out := make(map[string]sim.Record, len(t.Requests))
	for _, r := range t.Requests {
		if id, ok := exchange.HeaderValue(r.Headers, idHeader); ok {
			out[id] = r
		}
	}
	return out, nil
}

func (j *journal) call(ctx context.Context, method string, into any) error {
	fail := func(cause error) error {
		return &exchange.Error{Op: "ask scripted engine", Object: j.url, Side: exchange.SideEngine, Cause: cause}
	}
	req, err := http.NewRequestWithContext(ctx, method, j.url, nil)
	if err != nil {
		return fail(err)
	}
	resp, err := j.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fail(fmt.Errorf("%w: %w", exchange.ErrUnreachable, err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 != 2:
		return fail(fmt.Errorf("it answered %s", resp.Status))
	case into == nil:
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fail(fmt.Errorf("read answer: %w", err))
	}
	return nil
}

// checkURL refuses what is no address of a server.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%w: %s %q is not http://host:port", exchange.ErrUsage, what, text)
	}
	return nil
}
