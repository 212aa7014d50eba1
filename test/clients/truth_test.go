package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
)

// truthRecord is one request as the scripted engine saw it.
type truthRecord struct {
	Seq    int64  `json:"seq"`
	Target string `json:"target"`
	Ended  string `json:"ended"`
	Body   []byte `json:"body"`
	Sent   []byte `json:"sent"` // the response as it went on the wire
	Usage  struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Reasoning  int `json:"reasoning_tokens"`
	} `json:"usage"`
	Writes []struct {
		At     int64 `json:"at_ns"`
		Token  bool  `json:"token"`
		Tokens int   `json:"tokens"`
		Body   int   `json:"body_end"`
	} `json:"writes"`
}

// firstLast are the instants of the first and the last token, in milliseconds since the engine had the request.
func (r truthRecord) firstLast() (first, last float64) {
	first = -1
	for _, w := range r.Writes {
		if w.Token {
			last = float64(w.At) / 1e6
			if first < 0 {
				first = last
			}
		}
	}
	return first, last
}

// sentBody is the response body that the engine sent.
func (r truthRecord) sentBody(t *testing.T) []byte {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.Sent)), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// engine is the scripted engine, asked directly.
func engine(t *testing.T) string {
	t.Helper()
	url := os.Getenv("TEST_ENGINE")
	if url == "" {
		t.Fatal("TEST_ENGINE is not set: run this through its script")
	}
	return url
}

// forget empties the engine's records.
func forget(ctx context.Context, t *testing.T) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, engine(t)+"/sim/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
}

// truth are the engine's records since forget, by the request body, which must be there once.
func truth(ctx context.Context, t *testing.T) map[string]truthRecord {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, engine(t)+"/sim/records?bytes=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var all struct {
		Requests []truthRecord `json:"requests"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	byBody := map[string]truthRecord{}
	for _, r := range all.Requests {
		if _, twice := byBody[string(r.Body)]; twice {
			t.Errorf("the engine got a request twice: %s", r.Body)
		}
		byBody[string(r.Body)] = r
	}
	return byBody
}

func mustValue(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
