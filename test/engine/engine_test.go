package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// model is the name the script gives the tiny model.
const model = "tiny"

// The bounds against the engine's own times. Its clock starts inside the server, its decode time is that of the model
// alone, and both processes share two cores with whatever else runs: what is held is that the figures are of the same
// stream, not a precision.
const (
	slackMS   = 400.0 // of a latency
	shareRate = 0.6   // of a rate
)

func openaiClient() openai.Client {
	return openai.NewClient(option.WithAPIKey("none"), option.WithMaxRetries(0)) // the address comes from OPENAI_BASE_URL
}

func ollamaClient(t *testing.T) *api.Client {
	t.Helper()
	c, err := api.ClientFromEnvironment() // the address comes from OLLAMA_HOST
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func chatParams(prompt string, tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, MaxTokens: openai.Int(tokens), Seed: openai.Int(7),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	}
}

// streamChat runs a streamed chat with usage and gives what the client put together.
func streamChat(ctx context.Context, prompt string, tokens int64) (openai.ChatCompletionAccumulator, error) {
	p := chatParams(prompt, tokens)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	c := openaiClient()
	var acc openai.ChatCompletionAccumulator
	s := c.Chat.Completions.NewStreaming(ctx, p)
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return acc, fmt.Errorf("chunk does not fit: %s", s.Current().RawJSON())
		}
	}
	return acc, s.Err()
}

// count holds a token count of a record.
func count(t *testing.T, x recorded.Exchange, name string, want int64) {
	t.Helper()
	got, ok := x.Metric(name)
	if !ok || int64(got) != want || x.Basis[name] != "reported" {
		t.Errorf("exchange %d: %s is %v (%s), the client was told %d", x.Seq, name, got, x.Basis[name], want)
	}
}

func TestV1Streamed(t *testing.T) {
	s := recorded.Begin(t)
	acc, err := streamChat(s.Ctx, "tell me something long", 120)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	if !x.Stream || x.Finish() != "length" || x.OutputText != acc.Choices[0].Message.Content || x.OutputText == "" {
		t.Errorf("stream %v, finish %q, recorded %q, received %q", x.Stream, x.Finish(), x.OutputText, acc.Choices[0].Message.Content)
	}
	count(t, x, "prompt_tokens", acc.Usage.PromptTokens)
	count(t, x, "completion_tokens", 120)
	if ttft, ok := x.Metric("ttft_ms"); !ok || ttft <= 0 {
		t.Errorf("ttft_ms %v %v", ttft, x.Absent["ttft_ms"])
	}
}

func TestV1Plain(t *testing.T) {
	s := recorded.Begin(t)
	c := openaiClient()
	answer, err := c.Chat.Completions.New(s.Ctx, chatParams("say it at once", 30))
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	if x.Stream || x.OutputText != answer.Choices[0].Message.Content {
		t.Errorf("stream %v, recorded %q, received %q", x.Stream, x.OutputText, answer.Choices[0].Message.Content)
	}
	count(t, x, "prompt_tokens", answer.Usage.PromptTokens)
	count(t, x, "completion_tokens", answer.Usage.CompletionTokens)
}

// holdNative compares a record of the native protocol with the engine's last line.
func holdNative(t *testing.T, x recorded.Exchange, text string, m api.Metrics) {
	t.Helper()
	if x.OutputText != text || x.OutputText == "" {
		t.Errorf("exchange %d: recorded %q, received %q", x.Seq, x.OutputText, text)
	}
	count(t, x, "prompt_tokens", int64(m.PromptEvalCount))
	count(t, x, "completion_tokens", int64(m.EvalCount))
	x.Near(t, "engine_decode_tps", float64(m.EvalCount)/m.EvalDuration.Seconds(), 0.05, 0)
	// This engine counts what it took from its cache and not the time for it: the rate is known as a bound only.
	x.Near(t, "engine_prefill_max_tps", float64(m.PromptEvalCount)/m.PromptEvalDuration.Seconds(), 0.05, 0)
	if why := x.Absent["engine_prefill_tps"]; why != "cached_unknown" {
		t.Errorf("exchange %d: engine_prefill_tps is absent for %q", x.Seq, why)
	}
	if !x.Stream {
		return
	}
	x.Near(t, "total_wall_ms", float64(m.TotalDuration)/1e6, 0, slackMS)
	x.Near(t, "ttft_ms", float64(m.LoadDuration+m.PromptEvalDuration)/1e6, 0, slackMS)
	if !slices.Contains(x.Flags, "buffered") {
		x.Near(t, "decode_tps", float64(m.EvalCount)/m.EvalDuration.Seconds(), shareRate, 0)
	}
}

func TestNativeChat(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream=%v", streamed), func(t *testing.T) {
			s := recorded.Begin(t)
			text, last := "", api.Metrics{}
			err := ollamaClient(t).Chat(s.Ctx, &api.ChatRequest{
				Model: model, Stream: &streamed, Messages: []api.Message{{Role: "user", Content: "hello out there"}},
				Options: map[string]any{"num_predict": 100, "seed": 3},
			}, func(r api.ChatResponse) error {
				text += r.Message.Content
				last = r.Metrics
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			x := s.Complete(t, 1)[0]
			if x.Stream != streamed || x.Finish() != "length" {
				t.Errorf("stream %v, finish %q", x.Stream, x.Finish())
			}
			holdNative(t, x, text, last)
		})
	}
}

func TestNativeGenerate(t *testing.T) {
	s := recorded.Begin(t)
	text, last := "", api.Metrics{}
	err := ollamaClient(t).Generate(s.Ctx, &api.GenerateRequest{
		Model: model, Prompt: "once upon a time", Options: map[string]any{"num_predict": 80, "seed": 3},
	}, func(r api.GenerateResponse) error {
		text += r.Response
		last = r.Metrics
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	holdNative(t, s.Complete(t, 1)[0], text, last)
}

func TestFourAtOnce(t *testing.T) {
	s := recorded.Begin(t)
	texts := make([]string, 4)
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() {
			acc, err := streamChat(s.Ctx, strings.Repeat("again ", i+1), 60)
			if err != nil {
				t.Error(err)
				return
			}
			texts[i] = acc.Choices[0].Message.Content
		})
	}
	wg.Wait()
	for _, x := range s.Complete(t, 4) {
		if !slices.Contains(texts, x.OutputText) {
			t.Errorf("no client got the text %q", x.OutputText)
		}
		count(t, x, "completion_tokens", 60)
	}
}

func TestErrors(t *testing.T) {
	s := recorded.Begin(t)
	c := openaiClient()
	p := chatParams("x", 5)
	p.Model = "no-such-model"
	_, err := c.Chat.Completions.New(s.Ctx, p)
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound {
		t.Errorf("unknown model: %v", err)
	}
	err = ollamaClient(t).Chat(s.Ctx, &api.ChatRequest{Model: "no-such-model"}, func(api.ChatResponse) error { return nil })
	if err == nil {
		t.Error("the engine knew no-such-model")
	}
	status, body := postRaw(t, s.Ctx, "/v1/chat/completions", `{"model":`)
	if status != http.StatusBadRequest {
		t.Errorf("bad JSON: %d %s", status, body)
	}
	for i, x := range s.Stored(t, 3) {
		want := []int{404, 404, 400}[i]
		if x.Status != want || x.Outcome != "upstream_error" {
			t.Errorf("exchange %d: status %d, outcome %s", i, x.Status, x.Outcome)
		}
	}
}

// postRaw sends bytes that no client library would, through the proxy.
func postRaw(t *testing.T, ctx context.Context, path, body string) (int, []byte) {
	t.Helper()
	base, err := url.Parse(os.Getenv("OLLAMA_HOST"))
	if err != nil || base.Host == "" {
		t.Fatalf("OLLAMA_HOST %q: %v", os.Getenv("OLLAMA_HOST"), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(path).String(), bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// TestAbortEndsTheEnginesWork leaves streams that would run for minutes. The engine has two slots: when two aborted
// streams still held them, the third request would wait for their end.
func TestAbortEndsTheEnginesWork(t *testing.T) {
	s := recorded.Begin(t)
	for range 3 {
		ctx, cancel := context.WithCancel(s.Ctx)
		first := errors.New("first token")
		err := ollamaClient(t).Generate(ctx, &api.GenerateRequest{
			Model: model, Prompt: "go on for ever", Options: map[string]any{"num_predict": 1_000_000, "seed": 3},
		}, func(api.GenerateResponse) error { cancel(); return first })
		cancel()
		if !errors.Is(err, first) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	for _, x := range s.Stored(t, 3) {
		if x.Outcome != "client_abort" || x.End != "client_gone" {
			t.Errorf("exchange %d: outcome %s, end %s", x.Seq, x.Outcome, x.End)
		}
	}
	start := time.Now()
	if _, err := streamChat(s.Ctx, "are you there", 5); err != nil {
		t.Fatal(err)
	}
	s.Complete(t, 1)
	if waited := time.Since(start); waited > 20*time.Second {
		t.Errorf("the next request took %v", waited)
	}
}
