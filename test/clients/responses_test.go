package clients

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// weatherSchema is the schema of the arguments of get_weather.
func weatherSchema() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{
		"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"},
	}}
}

func openAI(base string) openai.Client {
	opts := []option.RequestOption{option.WithAPIKey(secret), option.WithMaxRetries(0)}
	if base != "" {
		opts = append(opts, option.WithBaseURL(base+"/v1"))
	}
	return openai.NewClient(opts...)
}

func TestResponses(t *testing.T) {
	text := responses.ResponseNewParams{
		Model: "sim", MaxOutputTokens: openai.Int(24), Instructions: openai.String("be brief"),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("tell me about the sea")},
	}
	thinking := text
	thinking.MaxOutputTokens = openai.Int(30)
	thinking.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortLow}
	tools := text
	tools.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", weatherSchema(), false)}
	const path = "/v1/responses"
	for _, c := range []sample{
		{"text streamed", path, true, streamResponse(text)},
		{"text", path, false, plainResponse(text)},
		{"thinking streamed", path, true, streamResponse(thinking)},
		{"thinking", path, false, plainResponse(thinking)},
		{"tools streamed", path, true, streamResponse(tools)},
		{"tools", path, false, plainResponse(tools)},
	} {
		t.Run(c.name, c.through)
	}
}

func plainResponse(p responses.ResponseNewParams) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		c := openAI(base)
		r, err := c.Responses.New(ctx, p)
		if err != nil {
			return answer{}, err
		}
		return responseAnswer(*r), nil
	}
}

// streamResponse joins the deltas and takes the rest from the last event.
func streamResponse(p responses.ResponseNewParams) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		c := openAI(base)
		var a answer
		var text, thinking string
		s := c.Responses.NewStreaming(ctx, p)
		for s.Next() {
			switch e := s.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				text += e.Delta
			case responses.ResponseReasoningSummaryTextDeltaEvent:
				thinking += e.Delta
			case responses.ResponseCompletedEvent:
				a = responseAnswer(e.Response)
			case responses.ResponseIncompleteEvent:
				a = responseAnswer(e.Response)
			}
		}
		a.Text, a.Thinking = text, thinking
		return a, s.Err()
	}
}

func responseAnswer(r responses.Response) answer {
	a := answer{
		Text: r.OutputText(), Finish: string(r.Status) + r.IncompleteDetails.Reason,
		Prompt: r.Usage.InputTokens, Completion: r.Usage.OutputTokens,
	}
	for _, item := range r.Output {
		switch item := item.AsAny().(type) {
		case responses.ResponseReasoningItem:
			for _, part := range item.Summary {
				a.Thinking += part.Text
			}
		case responses.ResponseFunctionToolCall:
			a.Calls = append(a.Calls, call{item.Name, item.Arguments})
		}
	}
	return a
}

func TestEmbeddings(t *testing.T) {
	ask := func(format openai.EmbeddingNewParamsEncodingFormat) func(context.Context, string) (answer, error) {
		return func(ctx context.Context, base string) (answer, error) {
			c := openAI(base)
			r, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{
				Model: "sim", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"the sea", "a tower of stone"}},
				EncodingFormat: format, Dimensions: openai.Int(32),
			})
			if err != nil {
				return answer{}, err
			}
			a := answer{Prompt: r.Usage.PromptTokens}
			for _, e := range r.Data {
				a.Vectors = append(a.Vectors, e.Embedding)
			}
			return a, nil
		}
	}
	sample{"floats", "/v1/embeddings", false, ask(openai.EmbeddingNewParamsEncodingFormatFloat)}.through(t)
}
