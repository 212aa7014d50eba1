package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end by themselves when all is well.
const patience = 30 * time.Second

// start serves cfg on a loopback port and closes the server with the test.
func start(t *testing.T, cfg Config) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, cfg, ln), ln.Addr().String()
}

func serveOn(t *testing.T, cfg Config, ln net.Listener) *Server {
	t.Helper()
	s := New(cfg)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		shut(t, s)
		if err := <-done; err != nil && !errors.Is(err, ErrCrashed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func shut(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(deadline(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// deadline is an instant by which a healthy test is long done.
func deadline(t *testing.T) time.Time {
	t.Helper()
	if d, ok := t.Deadline(); ok {
		return d.Add(-time.Second)
	}
	return time.Time{}
}

// post is a request with a body; extra are whole header lines.
func post(path, body string, extra ...string) string {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n", path, len(body))
	for _, h := range extra {
		head += h + "\r\n"
	}
	return head + "\r\n" + body
}

func chat(extra ...string) string { return post("/v1/chat/completions", chatBody, extra...) }

const chatBody = `{"model":"m","messages":[{"role":"user","content":"one two three"}],"max_tokens":4,"stream":true}`

// roundTrip sends raw bytes on a connection of their own and reads until the server closes it.
func roundTrip(t *testing.T, addr, raw string) (string, error) {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// answerOf sends a request and reads its answer with the standard library's reader, as a second opinion.
func answerOf(t *testing.T, c net.Conn, br *bufio.Reader, raw string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("answer to %.60q: %v", raw, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("body of the answer to %.60q: %v", raw, err)
	}
	return resp, string(body)
}

func fetch(t *testing.T, addr, raw string) (*http.Response, string) {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	return answerOf(t, c, bufio.NewReader(c), raw)
}

// await waits for a condition on the truth.
func await(t *testing.T, s *Server, met func(Truth) bool) Truth {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	truth, err := s.Await(ctx, met)
	if err != nil {
		t.Fatalf("the truth never met the condition: %+v", truth)
	}
	return truth
}

// only waits for the end of the one request there was.
func only(t *testing.T, s *Server) Record {
	t.Helper()
	truth := await(t, s, Ended(1))
	if truth.Total != 1 {
		t.Fatalf("%d requests, want 1", truth.Total)
	}
	return truth.Requests[0]
}

// events are the data values of a stream's events.
func events(body string) []string {
	var out []string
	for block := range strings.SplitSeq(body, "\n\n") {
		if data, ok := strings.CutPrefix(block, "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

// parsed is an answer or an event of one, as a client would decode it.
type parsed struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int            `json:"index"`
		Delta   message        `json:"delta"`
		Message message        `json:"message"`
		Text    string         `json:"text"`
		Finish  string         `json:"finish_reason"`
		Log     map[string]any `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int            `json:"prompt_tokens"`
		Completion int            `json:"completion_tokens"`
		Total      int            `json:"total_tokens"`
		In         map[string]int `json:"prompt_tokens_details"`
		Out        map[string]int `json:"completion_tokens_details"`
	} `json:"usage"`
	Timings map[string]float64 `json:"timings"`
	Error   map[string]any     `json:"error"`
}

type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Thinking  string `json:"reasoning_content"`
	Reasoning string `json:"reasoning"`
	Calls     []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func decode(t *testing.T, text string) parsed {
	t.Helper()
	var p parsed
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("not JSON: %q: %v", text, err)
	}
	return p
}

// decodeStream decodes every event but the final [DONE], which must be there.
func decodeStream(t *testing.T, body string) []parsed {
	t.Helper()
	ev := events(body)
	if len(ev) == 0 || ev[len(ev)-1] != "[DONE]" {
		t.Fatalf("no [DONE] at the end of %q", body)
	}
	var out []parsed
	for _, e := range ev[:len(ev)-1] {
		out = append(out, decode(t, e))
	}
	return out
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
