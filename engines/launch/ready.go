package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// probe is what one ready check found.
type probe struct {
	connected bool   // something accepts connections at the port
	silent    bool   // and did not answer in time
	ready     bool   // the check succeeded
	says      string // what the answer was
}

// probe sends one ready check.
func (p *Process) probe(ctx context.Context) probe {
	ctx, cancel := context.WithTimeout(ctx, p.spec.Times.Probe)
	defer cancel()
	return p.readyCheck(ctx)
}

// defaultReady is the path of the ready check of engines whose profile has none.
const defaultReady = "/v1/models"

// readyCheck asks for the document that says whether the engine is ready.
func (c *caller) readyCheck(ctx context.Context) probe {
	path, key := defaultReady, ""
	if r := c.engine.Ready; r != nil {
		path, key = r.Path, r.Key
	}
	status, body, err := c.call(ctx, http.MethodGet, path, nil)
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return probe{}
	case err != nil:
		return probe{connected: true, silent: errors.As(err, &timeout) && timeout.Timeout(), says: "GET " + path + ": " + err.Error()}
	case status != http.StatusOK:
		return probe{connected: true, says: fmt.Sprintf("GET %s answers %d", path, status)}
	case key != "" && !isTrue(body, key):
		return probe{connected: true, says: fmt.Sprintf("GET %s does not say that %s is true", path, key)}
	}
	return probe{connected: true, ready: true}
}

// isTrue looks up a dotted path in a JSON document.
func isTrue(doc []byte, path string) bool {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return false
	}
	for _, key := range strings.Split(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			return false
		}
		v = o[key]
	}
	return v == true
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 4 << 20

// call sends a request and reads its whole answer.
func (c *caller) call(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	resp, answer, err := c.exchange(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, answer, nil
}

func (c *caller) exchange(ctx context.Context, method, path string, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range c.headers {
		req.Header.Set(h.Name, h.Value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp, answer, err
}
