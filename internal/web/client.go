package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// Client reads a store through the admin listener of the proxy that owns it.
type Client struct {
	base string
	key  string
	http *http.Client
}

// NewClient makes a client of the admin listener at addr (host:port), which may want a key; "" sends none. Close frees
// its connections.
func NewClient(addr, key string) *Client {
	// No proxy of the environment: the listener is on this machine. A connection is used again, for an export asks once
	// for each exchange.
	return &Client{base: "http://" + addr, key: key, http: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Minute}}}
}

// Close frees the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get opens an answer in the form accept, "" for that of the path. The caller closes it.
func (c *Client) get(ctx context.Context, path, accept string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the proxy that owns the store: %w", err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &exchange.Error{Op: "ask the proxy that owns the store", Object: c.base, Side: exchange.SideStore, Cause: err,
			Hint: "its admin listener does not answer; if that proxy ended just now, run this again, else stop it to read the store directly"}
	}
	if resp.StatusCode == http.StatusOK {
		return &answer{ReadCloser: resp.Body, c: c}, nil
	}
	defer resp.Body.Close()
	var p problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil || p.Error.Message == "" {
		return nil, fmt.Errorf("ask the proxy that owns the store: %s answered %s", c.base, resp.Status)
	}
	kinds := map[int]error{http.StatusNotFound: exchange.ErrMiss, http.StatusBadRequest: exchange.ErrUsage}
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, &exchange.Error{Op: "ask the proxy that owns the store", Object: c.base, Side: exchange.SideClient, Cause: errors.New(p.Error.Message),
			Hint: "put the key that it was started with into BENCHPROXY_ADMIN_KEY"}
	}
	return nil, remoteError{text: p.Error.Message, kind: kinds[resp.StatusCode]}
}

// answer is the body of an answer. One that ends early says what that means.
type answer struct {
	io.ReadCloser
	c *Client
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = a.c.cutOff(err)
	}
	return n, err
}

// cutOff is the error of an answer that ended before its end.
func (c *Client) cutOff(err error) error {
	return &exchange.Error{Op: "read answer of the proxy that owns the store", Object: c.base, Side: exchange.SideStore, Cause: err,
		Hint: "it ended, or met an error, while it answered; nothing of the answer is used: run this again"}
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
	body, err := c.get(ctx, path, "")
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
	return c.rows("/api/v1/runs/" + url.PathEscape(string(run)) + "/exchanges")
}

// rows reads rows as they come.
func (c *Client) rows(path string) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		body, err := c.get(context.Background(), path, jsonLines)
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

// Exchange is a whole exchange with its row, as the store itself gives it. Its bodies are in memory.
func (c *Client) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	body, err := c.get(context.Background(), "/api/v1/exchanges/"+url.PathEscape(string(id))+"/record", "")
	if err != nil {
		return nil, exchange.Summary{}, err
	}
	defer body.Close()
	x, row, err := recorder.ReadExchange(body)
	if err == nil {
		_, err = io.Copy(io.Discard, body) // to its end, or the connection cannot be used again
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, new(*exchange.Error)) {
		err = c.cutOff(err)
	}
	return x, row, err
}

// Stats is the JSON document of the store's sizes.
func (c *Client) Stats(ctx context.Context) (json.RawMessage, error) {
	return getJSON[json.RawMessage](ctx, c, "/api/v1/stats")
}

// Check is the JSON document of a full check, made by the owner.
func (c *Client) Check(ctx context.Context) (json.RawMessage, error) {
	return getJSON[json.RawMessage](ctx, c, "/api/v1/check")
}
