package clients

import (
	"context"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/benchproxy/benchproxy/test/clients/recorded"
)

func anthropicClient(base string) anthropic.Client {
	opts := []option.RequestOption{option.WithAPIKey(secret), option.WithMaxRetries(0)}
	if base != "" {
		opts = append(opts, option.WithBaseURL(base))
	}
	return anthropic.NewClient(opts...)
}

// claude is a request for a message.
func claude(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "sim", MaxTokens: 2048, System: []anthropic.TextBlockParam{{Text: "be brief"}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

func TestMessages(t *testing.T) {
	text := claude("tell me about the sea")
	text.MaxTokens = 24
	thinking := claude("think about the sea")
	thinking.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	tools := claude("what is the weather in Bern")
	tools.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(
		anthropic.ToolInputSchemaParam{Properties: weatherSchema()["properties"]}, "get_weather")}
	thinkingTools := tools
	thinkingTools.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	const path = "/v1/messages"
	for _, c := range []sample{
		{"text streamed", path, true, streamMessage(text)},
		{"text", path, false, plainMessage(text)},
		{"thinking streamed", path, true, streamMessage(thinking)},
		{"thinking", path, false, plainMessage(thinking)},
		{"tools streamed", path, true, streamMessage(tools)},
		{"tools", path, false, plainMessage(tools)},
		{"thinking and tools streamed", path, true, streamMessage(thinkingTools)},
	} {
		t.Run(c.name, c.through)
	}
}

func plainMessage(p anthropic.MessageNewParams) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		c := anthropicClient(base)
		m, err := c.Messages.New(ctx, p)
		if err != nil {
			return answer{}, err
		}
		return messageAnswer(*m), nil
	}
}

func streamMessage(p anthropic.MessageNewParams) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		c := anthropicClient(base)
		var m anthropic.Message
		s := c.Messages.NewStreaming(ctx, p)
		for s.Next() {
			if err := m.Accumulate(s.Current()); err != nil {
				return answer{}, err
			}
		}
		return messageAnswer(m), s.Err()
	}
}

func messageAnswer(m anthropic.Message) answer {
	a := answer{Finish: string(m.StopReason), Completion: m.Usage.OutputTokens}
	a.Prompt = m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case anthropic.TextBlock:
			a.Text += b.Text
		case anthropic.ThinkingBlock:
			a.Thinking += b.Thinking
		case anthropic.ToolUseBlock:
			a.Calls = append(a.Calls, call{b.Name, string(b.Input)})
		}
	}
	return a
}

// TestMessagesErrors holds that the client finds an engine's own errors behind the proxy: a refusal, an overload, and
// one in the middle of a stream.
func TestMessagesErrors(t *testing.T) {
	s := recorded.Begin(t)
	c := anthropicClient("")
	_, err := c.Messages.New(s.Ctx, anthropic.MessageNewParams{Model: "sim", MaxTokens: 8, Messages: []anthropic.MessageParam{}})
	var refused *anthropic.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Type() != "invalid_request_error" {
		t.Errorf("a request without messages: %v", err)
	}
	if x := s.Stored(t, 1)[0]; x.Status != 400 || x.Outcome != "upstream_error" {
		t.Errorf("status %d, outcome %s", x.Status, x.Outcome)
	}
	_, err = c.Messages.New(s.Ctx, claude("now"), option.WithHeader("X-Sim", "status=529"))
	if !errors.As(err, &refused) || refused.StatusCode != 529 || refused.Type() != "overloaded_error" {
		t.Errorf("an overload: %v", err)
	}
	if x := s.Stored(t, 1)[0]; x.Status != 529 || x.Outcome != "upstream_error" {
		t.Errorf("status %d, outcome %s", x.Status, x.Outcome)
	}
	str := c.Messages.NewStreaming(s.Ctx, claude("break"), option.WithHeader("X-Sim", "fault=error@6"))
	for str.Next() {
	}
	if str.Err() == nil {
		t.Error("the client took a broken stream for a whole one")
	}
	if x := s.Stored(t, 1)[0]; x.Outcome != "stream_error" || x.Status != 200 {
		t.Errorf("outcome %s of a broken stream, status %d", x.Outcome, x.Status)
	}
}
