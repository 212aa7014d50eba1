// Package recorded reads what a running benchproxy has stored, through its command line, as a user's script would.
package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Store is a store of recordings and the program that reads it.
type Store struct {
	Binary string // path of benchproxy
	Dir    string
}

// FromEnv is the store that the test script names in TEST_BENCHPROXY and TEST_STORE.
func FromEnv() (Store, error) {
	s := Store{Binary: os.Getenv("TEST_BENCHPROXY"), Dir: os.Getenv("TEST_STORE")}
	if s.Binary == "" || s.Dir == "" {
		return s, errors.New("TEST_BENCHPROXY and TEST_STORE are not set: run this through its script")
	}
	return s, nil
}

// Exchange is a stored exchange as `store ls --json` and `store show --json` print it; the latter fills all fields.
type Exchange struct {
	ID             string              `json:"id"`
	Seq            uint64              `json:"seq"`
	Method         string              `json:"method"`
	Path           string              `json:"path"`
	Model          string              `json:"model"`
	Status         int                 `json:"status"`
	End            string              `json:"end"`
	Outcome        string              `json:"outcome"`
	State          string              `json:"state"`
	Stream         bool                `json:"stream"`
	FinishReason   *string             `json:"finish_reason"`
	UsageEstimated bool                `json:"usage_estimated"`
	ParseErrors    int                 `json:"parse_errors"`
	Flags          []string            `json:"flags"`
	ToolCallCount  int                 `json:"n_tool_calls"`
	Metrics        map[string]*float64 `json:"metrics"`
	Basis          map[string]string   `json:"basis"`
	Absent         map[string]string   `json:"absent"`

	OutputText    string `json:"output_text"`
	ReasoningText string `json:"reasoning_text"`
	ToolCalls     []struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"tool_calls"`
}

// Metric is a metric's value; ok is false when it is absent.
func (x Exchange) Metric(name string) (v float64, ok bool) {
	p := x.Metrics[name]
	if p == nil {
		return 0, false
	}
	return *p, true
}

// Finish is the finish reason, "" for none.
func (x Exchange) Finish() string {
	if x.FinishReason == nil {
		return ""
	}
	return *x.FinishReason
}

// List is every stored exchange.
func (s Store) List(ctx context.Context) ([]Exchange, error) {
	out, err := s.run(ctx, "store", "ls", "--store", s.Dir, "--json")
	if err != nil {
		return nil, err
	}
	var list []Exchange
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var x Exchange
		if err := d.Decode(&x); err != nil {
			return nil, fmt.Errorf("read store ls: %w", err)
		}
		list = append(list, x)
	}
	return list, nil
}

// Show is one exchange whole.
func (s Store) Show(ctx context.Context, id string) (Exchange, error) {
	var x Exchange
	out, err := s.run(ctx, "store", "show", "--store", s.Dir, "--json", id)
	if err != nil {
		return x, err
	}
	if err := json.Unmarshal(out, &x); err != nil {
		return x, fmt.Errorf("read store show: %w", err)
	}
	return x, nil
}

// Body is the exact body of one side, request or response.
func (s Store) Body(ctx context.Context, id, side string) ([]byte, error) {
	return s.run(ctx, "store", "show", "--store", s.Dir, "--raw", side, id)
}

// After waits until n exchanges with a higher number than after are stored and gives them whole, in order. Records are
// written behind the exchange's back, so a client is ahead of the store for a moment.
func (s Store) After(ctx context.Context, after uint64, n int) ([]Exchange, error) {
	for {
		list, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		var found []Exchange
		for _, x := range list {
			if x.Seq > after {
				found = append(found, x)
			}
		}
		if len(found) >= n {
			return s.showAll(ctx, found)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d exchanges after number %d are stored: %w", len(found), n, after, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s Store) showAll(ctx context.Context, list []Exchange) ([]Exchange, error) {
	for i, x := range list {
		var err error
		if list[i], err = s.Show(ctx, x.ID); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s Store) run(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Binary, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run benchproxy %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}
