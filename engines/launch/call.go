package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// caller sends an engine the requests that control it.
type caller struct {
	engine  engines.Profile
	base    string
	headers []exchange.Header
	times   Times
	client  engines.Doer
	daemon  *Daemon // that it is; nil: it was reached otherwise

	mu     sync.Mutex
	loaded string // by us, and not unloaded since; one load or unload runs at a time
}

// URL is the base URL.
func (c *caller) URL() string { return c.base }

// Engine is the profile.
func (c *caller) Engine() engines.Profile { return c.engine }

// Load makes sure that a model is in memory. An engine that was started with its model has it; one that can be told to
// load it is told, after what we loaded into it before was unloaded; one that loads what requests name is only looked at
// for whether it lists the model.
func (c *caller) Load(ctx context.Context, model string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.engine.Load == nil:
		return c.listed(ctx, model)
	case c.loaded == model:
		return nil
	}
	if c.loaded != "" {
		if err := c.unload(ctx, c.loaded); err != nil {
			return err
		}
	}
	if err := c.order(ctx, "load", model); err != nil {
		return err
	}
	c.loaded = model
	return nil
}

// Unload frees the memory of a model.
func (c *caller) Unload(ctx context.Context, model string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unload(ctx, model)
}

func (c *caller) unload(ctx context.Context, model string) error {
	if c.engine.Unload == nil {
		return nil
	}
	if err := c.order(ctx, "unload", model); err != nil {
		return err
	}
	if c.loaded == model {
		c.loaded = ""
	}
	return nil
}

// order loads or unloads a model: by the daemon's command line program where the daemon's file led to it, else, and where
// that program is not installed, by a call.
func (c *caller) order(ctx context.Context, what, model string) error {
	call, command := c.engine.Load, []string(nil)
	if c.daemon != nil {
		command = c.engine.Daemon.Load
	}
	if what == "unload" {
		call = c.engine.Unload
		if c.daemon != nil {
			command = c.engine.Daemon.Unload
		}
	}
	if command != nil {
		if err := c.tell(ctx, what, command, model); !errors.Is(err, errNoTool) {
			return err
		}
	}
	return c.control(ctx, what, call, model)
}

// listed looks whether an engine that loads what requests name lists a model. What is not known to list its models passes.
func (c *caller) listed(ctx context.Context, model string) error {
	if l := c.engine.Launch; l == nil || l.Serves != engines.ServesRequested || model == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.times.Probe)
	defer cancel()
	status, body, err := c.call(ctx, http.MethodGet, defaultReady, nil)
	if err != nil {
		return c.failure("list models of", "", fmt.Errorf("%w: %w", exchange.ErrUnreachable, err), "")
	}
	var doc struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &doc) != nil || len(doc.Data) == 0 {
		return nil
	}
	var names []string
	for _, m := range doc.Data {
		if engines.SameModel(m.ID, model) {
			return nil
		}
		names = append(names, m.ID)
	}
	return c.failure("find model in", model, fmt.Errorf("%w: it has %s", exchange.ErrMiss, strings.Join(names, ", ")), "fetch the model into it first")
}

// Bounds of waiting for an engine that says it is busy.
const (
	busyTries   = 3
	longestWait = time.Minute
)

// control sends a load or unload call. An engine that answers 503 is asked again after the time it names, three times.
func (c *caller) control(ctx context.Context, what string, call *engines.Call, model string) error {
	ctx, cancel := context.WithTimeout(ctx, c.times.Load)
	defer cancel()
	path := strings.ReplaceAll(call.Path, "$model", url.PathEscape(model))
	body, err := withModel(call.Body, model)
	if err != nil {
		return c.failure(what+" model of", model, err, "")
	}
	for try := 0; ; try++ {
		resp, answer, err := c.exchange(ctx, call.Method, path, body)
		switch {
		case err != nil:
			return c.failure(what+" model of", model, fmt.Errorf("%w: %w", exchange.ErrUnreachable, err), "")
		case resp.StatusCode < 300:
			return nil
		case resp.StatusCode != http.StatusServiceUnavailable || try == busyTries:
			return c.failure(what+" model of", model, fmt.Errorf("%s %s answers %s: %s", call.Method, path, resp.Status, firstLine(answer)), "")
		}
		wait := time.NewTimer(retryAfter(resp.Header))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return c.failure(what+" model of", model, errors.Join(context.Cause(ctx), fmt.Errorf("it was busy")), "")
		}
	}
}

// withModel fills a model's name into a body.
func withModel(body json.RawMessage, model string) ([]byte, error) {
	if len(body) == 0 {
		return nil, nil
	}
	name, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(body, []byte(`"$model"`), name), nil
}

// retryAfter is how long a busy engine asks to wait: whole seconds, no more than a minute. Another form, or none, is a second.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return time.Second
	}
	return min(time.Duration(n)*time.Second, longestWait)
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line[:min(len(line), 300)]
}

func (c *caller) failure(op, object string, cause error, hint string) error {
	return &exchange.Error{Op: op + " " + c.engine.ID, Object: object, Side: exchange.SideEngine, Cause: cause, Hint: hint}
}
