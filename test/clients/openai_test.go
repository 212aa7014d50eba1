package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// client is the official client as a program would make it: the base URL comes from OPENAI_BASE_URL.
func client() openai.Client {
	return openai.NewClient(option.WithAPIKey(secret), option.WithMaxRetries(0))
}

func params(prompt string, tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "sim", MaxTokens: openai.Int(tokens), Seed: openai.Int(1),
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
}

// stream runs a streamed chat and gives what the client put together.
func stream(ctx context.Context, p openai.ChatCompletionNewParams) (openai.ChatCompletionAccumulator, error) {
	return streamOf(ctx, client(), p)
}

func streamOf(ctx context.Context, c openai.Client, p openai.ChatCompletionNewParams) (openai.ChatCompletionAccumulator, error) {
	var acc openai.ChatCompletionAccumulator
	s := c.Chat.Completions.NewStreaming(ctx, p)
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return acc, fmt.Errorf("chunk does not fit: %s", s.Current().RawJSON())
		}
	}
	return acc, s.Err()
}

func TestStreamingChat(t *testing.T) {
	s := recorded.Begin(t)
	forget(s.Ctx, t)
	acc, err := stream(s.Ctx, params("tell me a story about the sea", 48))
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	mustValue(t, "stream", x.Stream, true)
	mustValue(t, "finish", x.Finish(), "length")
	mustValue(t, "text", x.OutputText, acc.Choices[0].Message.Content)
	mustValue(t, "usage at the client", acc.Usage.CompletionTokens, 48)
	hold(t, s, x, truth(s.Ctx, t))
}

func TestPlainChat(t *testing.T) {
	s := recorded.Begin(t)
	forget(s.Ctx, t)
	p := params("one short answer", 12)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	c := client()
	answer, err := c.Chat.Completions.New(s.Ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	mustValue(t, "stream", x.Stream, false)
	mustValue(t, "text", x.OutputText, answer.Choices[0].Message.Content)
	mustValue(t, "why there is no ttft", x.Absent["ttft_ms"] != "", true)
	hold(t, s, x, truth(s.Ctx, t))
}

func TestTools(t *testing.T) {
	s := recorded.Begin(t)
	forget(s.Ctx, t)
	p := params("what is the weather in Bern", 100)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather",
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{
			"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer", "minimum": 1, "maximum": 7},
		}},
	})}
	acc, err := stream(s.Ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	mustValue(t, "finish", x.Finish(), "tool_calls")
	if len(x.ToolCalls) != 1 || len(acc.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("calls recorded %+v, at the client %+v", x.ToolCalls, acc.Choices[0].Message.ToolCalls)
	}
	call := acc.Choices[0].Message.ToolCalls[0].Function
	mustValue(t, "name", x.ToolCalls[0].Name, call.Name)
	mustValue(t, "arguments", x.ToolCalls[0].Arguments, call.Arguments)
	if !json.Valid([]byte(call.Arguments)) {
		t.Errorf("arguments %q", call.Arguments)
	}
	hold(t, s, x, truth(s.Ctx, t))
}

func TestStructuredOutput(t *testing.T) {
	s := recorded.Begin(t)
	forget(s.Ctx, t)
	p := params("describe a tower", 100)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{
		OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "tower", Strict: openai.Bool(true),
			Schema: map[string]any{"type": "object", "properties": map[string]any{
				"name": map[string]any{"type": "string"}, "floors": map[string]any{"type": "integer"},
			}},
		}},
	}
	acc, err := stream(s.Ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Complete(t, 1)[0]
	mustValue(t, "text", x.OutputText, acc.Choices[0].Message.Content)
	var tower struct {
		Name   string
		Floors *int
	}
	if err := json.Unmarshal([]byte(x.OutputText), &tower); err != nil || tower.Name == "" || tower.Floors == nil {
		t.Errorf("%q does not fit its schema: %v", x.OutputText, err)
	}
	hold(t, s, x, truth(s.Ctx, t))
}

func TestFourAtOnce(t *testing.T) {
	s := recorded.Begin(t)
	forget(s.Ctx, t)
	texts := make([]string, 4)
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() {
			acc, err := stream(s.Ctx, params(strings.Repeat("word ", i+1), 40))
			if err != nil {
				t.Error(err)
				return
			}
			texts[i] = acc.Choices[0].Message.Content
		})
	}
	wg.Wait()
	list := s.Complete(t, 4)
	all := truth(s.Ctx, t)
	for _, x := range list {
		if !slices.Contains(texts, x.OutputText) {
			t.Errorf("no client got the text %q", x.OutputText)
		}
		hold(t, s, x, all)
	}
}

func TestErrorsAndAborts(t *testing.T) {
	s := recorded.Begin(t)
	c := client()
	_, err := c.Chat.Completions.New(s.Ctx, openai.ChatCompletionNewParams{Model: "sim"})
	if err == nil {
		t.Fatal("a request without messages was answered")
	}
	if x := s.Stored(t, 1)[0]; x.Status != 400 || x.Outcome != "upstream_error" {
		t.Errorf("status %d, outcome %s", x.Status, x.Outcome)
	}
	broken := client()
	str := broken.Chat.Completions.NewStreaming(s.Ctx, params("break", 20), option.WithHeader("X-Sim", "fault=no_last_chunk@5"))
	for str.Next() {
	}
	if str.Err() == nil {
		t.Error("the client took a cut stream for a whole one")
	}
	if x := s.Stored(t, 1)[0]; x.Outcome != "upstream_truncated" {
		t.Errorf("outcome %s of a cut stream", x.Outcome)
	}
	ctx, cancel := context.WithCancel(s.Ctx)
	aborted := client()
	str = aborted.Chat.Completions.NewStreaming(ctx, params("abort", 20), option.WithHeader("X-Sim", "fault=stall@5"))
	if !str.Next() {
		t.Fatal(str.Err())
	}
	cancel()
	_ = str.Close() // the connection is gone either way
	if x := s.Stored(t, 1)[0]; x.Outcome != "client_abort" {
		t.Errorf("outcome %s of an abort", x.Outcome)
	}
}

// TestNoSecretIsStored holds that the key the client sent is nowhere in the store's files or in what it prints.
func TestNoSecretIsStored(t *testing.T) {
	s := recorded.Begin(t)
	list, err := s.Store.List(s.Ctx)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d exchanges, %v", len(list), err)
	}
	err = walk(os.DirFS(s.Store.Dir), func(name string, b []byte) {
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s holds the client's key", name)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
