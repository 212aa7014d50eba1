package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
)

// secret is the key that every client sends.
const secret = "sk-test-of-a-client"

// The tolerance against the engine's own clock: its instants start when it had the request whole, ours when its first
// byte was sent, and a busy machine delays either by a time slice or two. A token cannot be seen before it was written;
// the kernel's clock and the engine's may differ by a little.
const (
	slackMS   = 60.0 // of a latency
	earlyMS   = 0.5  // of a latency, the other way
	shareRate = 0.25 // of a rate
)

// sample is one thing to ask, by one client.
type sample struct {
	name   string
	path   string // of the request, without its query
	stream bool
	// run asks and gives what the client made of the answer. base is the engine's URL; "" leaves it to the client's own
	// environment, which leads through the proxy.
	run func(ctx context.Context, base string) (answer, error)
}

// answer is what a client put together.
type answer struct {
	Text       string      `json:"text"`
	Thinking   string      `json:"thinking"`
	Calls      []call      `json:"calls"`
	Finish     string      `json:"finish"`
	Prompt     int64       `json:"prompt"`
	Completion int64       `json:"completion"`
	Vectors    [][]float64 `json:"vectors"`
}

// call is one tool call. Arguments are JSON.
type call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// through asks directly and through the proxy. It holds that the client got the same, that the record is what the
// client got, and that the record agrees with the engine.
func (c sample) through(t *testing.T) {
	if os.Getenv("TEST_SERVED") != "" {
		c.served(t)
		return
	}
	s := recorded.Begin(t)
	direct, err := c.run(s.Ctx, engine(t))
	if err != nil {
		t.Fatalf("without a proxy: %v", err)
	}
	forget(s.Ctx, t)
	got, err := c.run(s.Ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(direct, got) {
		t.Errorf("through the proxy the client got\n%+v\nand without it\n%+v", got, direct)
	}
	got.keep(t)
	if got.Text == "" && len(got.Calls) == 0 && len(got.Vectors) == 0 {
		t.Errorf("the client got nothing: %+v", got)
	}
	x := s.Complete(t, 1)[0]
	mustValue(t, "path", pathOf(x.Path), c.path)
	mustValue(t, "stream", x.Stream, c.stream)
	mustValue(t, "text", x.OutputText, got.Text)
	mustValue(t, "thinking", x.ReasoningText, got.Thinking)
	mustValue(t, "calls", len(x.ToolCalls), len(got.Calls))
	for i, want := range got.Calls[:min(len(got.Calls), len(x.ToolCalls))] {
		mustValue(t, "name", x.ToolCalls[i].Name, want.Name)
		mustValue(t, "arguments", plainJSON(x.ToolCalls[i].Arguments), plainJSON(want.Arguments))
	}
	hold(t, s, x, truth(s.Ctx, t))
	mustValue(t, "prompt tokens at the client", got.Prompt, *x.Metrics["prompt_tokens"])
	if len(got.Vectors) == 0 {
		mustValue(t, "completion tokens at the client", got.Completion, *x.Metrics["completion_tokens"])
	}
}

func pathOf(target string) string {
	path, _, _ := bytes.Cut([]byte(target), []byte("?"))
	return string(path)
}

// plainJSON is JSON with sorted keys and no blanks.
func plainJSON(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil { // it was JSON
		return text
	}
	return string(b)
}

// hold compares a record with what the engine did: every byte of the body, the counts, and the times.
func hold(t *testing.T, s *recorded.Session, x recorded.Exchange, all map[string]truthRecord) {
	t.Helper()
	body, err := s.Store.Body(s.Ctx, x.ID, "request")
	if err != nil {
		t.Fatal(err)
	}
	r, ok := all[string(body)]
	if !ok {
		t.Fatalf("the engine never got %s", body)
	}
	mustCount(t, x, "prompt_tokens", r.Usage.Prompt)
	if r.Usage.Completion > 0 {
		mustCount(t, x, "completion_tokens", r.Usage.Completion)
	}
	if _, told := x.Metric("reasoning_tokens"); told {
		mustCount(t, x, "reasoning_tokens", r.Usage.Reasoning)
	}
	mustValue(t, "usage_estimated", x.UsageEstimated, false)
	if x.Stream {
		r.holdTimes(t, x)
	}
	got, err := s.Store.Body(s.Ctx, x.ID, "response")
	if err != nil {
		t.Fatal(err)
	}
	if want := r.sentBody(t); !bytes.Equal(got, want) {
		t.Errorf("stored body differs from what the engine sent:\n%s\n%s", got, want)
	}
}

// holdTimes compares the times of a stream.
func (r truthRecord) holdTimes(t *testing.T, x recorded.Exchange) {
	t.Helper()
	first, last := r.firstLast()
	for name, want := range map[string]float64{"ttft_ms": first, "last_token_ms": last} {
		x.Near(t, name, want, 0, slackMS)
		if got, ok := x.Metric(name); ok && got < want-earlyMS {
			t.Errorf("exchange %d: %s is %v, and the engine wrote the token at %v", x.Seq, name, got, want)
		}
	}
	if !slices.Contains(x.Flags, "buffered") && last > first {
		x.Near(t, "decode_tps", float64(r.Usage.Completion-1)/(last-first)*1000, shareRate, 0)
	}
}

func mustCount(t *testing.T, x recorded.Exchange, name string, want int) {
	t.Helper()
	got, ok := x.Metric(name)
	if !ok || got != float64(want) {
		t.Errorf("exchange %d: %s is %v (absent: %q), want %d", x.Seq, name, got, x.Absent[name], want)
	}
}
