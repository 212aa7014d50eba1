package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Client reads a store through the admin listener of the proxy that owns it.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the admin listener at addr (host:port). Close frees its connections.
func NewClient(addr string) *Client {
	return &Client{base: "http://" + addr, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: time.Minute}}}
}

// Close frees the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get opens an answer. The caller closes it.
func (c *Client) get(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the proxy that owns the store: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &exchange.Error{Op: "ask the proxy that owns the store", Object: c.base, Side: exchange.SideStore, Cause: err,
			Hint: "its admin listener does not answer; stop that proxy to read the store directly"}
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var p problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil || p.Error.Message == "" {
		return nil, fmt.Errorf("ask the proxy that owns the store: %s answered %s", c.base, resp.Status)
	}
	kinds := map[int]error{http.StatusNotFound: exchange.ErrMiss, http.StatusBadRequest: exchange.ErrUsage}
	return nil, remoteError{text: p.Error.Message, kind: kinds[resp.StatusCode]}
}

// remoteError is an error told by the owner of the store, with the kind its status stands for.
type remoteError struct {
	text string
	kind error
}

func (e remoteError) Error() string { return e.text }
func (e remoteError) Unwrap() error { return e.kind }

func getJSON[T any](ctx context.Context, c *Client, path string) (T, error) {
	var v T
	body, err := c.get(ctx, path)
	if err != nil {
		return v, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		return v, fmt.Errorf("read answer of the proxy that owns the store: %w", err)
	}
	return v, nil
}

// Runs lists the runs, oldest first.
func (c *Client) Runs() ([]exchange.Run, error) {
	list, err := getJSON[RunList](context.Background(), c, "/api/v1/runs")
	return list.Runs, err
}

// Run is the run with that id, or the newest with that name.
func (c *Client) Run(idOrName string) (exchange.Run, error) {
	return getJSON[exchange.Run](context.Background(), c, "/api/v1/runs/"+url.PathEscape(idOrName))
}

// Summaries are the rows of a run in order.
func (c *Client) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		body, err := c.get(context.Background(), "/api/v1/runs/"+url.PathEscape(string(run))+"/exchanges")
		if err != nil {
			yield(exchange.Summary{}, err)
			return
		}
		defer body.Close()
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF && len(bytes.TrimSpace(line)) == 0 {
				return
			}
			var row exchange.Summary
			if err == nil {
				err = json.Unmarshal(line, &row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Detail is one exchange with its texts.
func (c *Client) Detail(ctx context.Context, id exchange.ID) (exchange.Detail, error) {
	return getJSON[exchange.Detail](ctx, c, "/api/v1/exchanges/"+url.PathEscape(string(id)))
}

// Bytes opens a part (head or body) of a side (request or response) of a stored exchange.
func (c *Client) Bytes(ctx context.Context, id exchange.ID, side, part string) (io.ReadCloser, error) {
	return c.get(ctx, strings.Join([]string{"/api/v1/exchanges", url.PathEscape(string(id)), side, part}, "/"))
}

// Stats is the JSON document of the store's sizes.
func (c *Client) Stats(ctx context.Context) (json.RawMessage, error) {
	return getJSON[json.RawMessage](ctx, c, "/api/v1/stats")
}

// Check is the JSON document of a full check, made by the owner.
func (c *Client) Check(ctx context.Context) (json.RawMessage, error) {
	return getJSON[json.RawMessage](ctx, c, "/api/v1/check")
}
