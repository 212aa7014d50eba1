package clients

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
	"github.com/ollama/ollama/api"
)

func ollamaClient(base string) (*api.Client, error) {
	if base == "" {
		return api.ClientFromEnvironment()
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return api.NewClient(u, http.DefaultClient), nil
}

// weather is get_weather in the client's types.
func weather() api.Tools {
	p := api.NewToolPropertiesMap()
	p.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}})
	p.Set("days", api.ToolProperty{Type: api.PropertyType{"integer"}})
	f := api.ToolFunction{Name: "get_weather", Parameters: api.ToolFunctionParameters{Type: "object", Properties: p}}
	return api.Tools{{Type: "function", Function: f}}
}

func TestOllama(t *testing.T) {
	plain := new(bool)
	limit := map[string]any{"num_predict": 24}
	ask := []api.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "tell me about the sea"}}
	think := &api.ThinkValue{Value: true}
	schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	const chat, generate = "/api/chat", "/api/generate"
	for _, c := range []sample{
		{"chat streamed", chat, true, ollamaChat(api.ChatRequest{Messages: ask, Options: limit})},
		{"chat", chat, false, ollamaChat(api.ChatRequest{Messages: ask, Options: limit, Stream: plain})},
		{"chat thinking streamed", chat, true, ollamaChat(api.ChatRequest{Messages: ask, Think: think})},
		{"chat thinking", chat, false, ollamaChat(api.ChatRequest{Messages: ask, Think: think, Stream: plain})},
		{"chat tools streamed", chat, true, ollamaChat(api.ChatRequest{Messages: ask, Tools: weather()})},
		{"chat tools", chat, false, ollamaChat(api.ChatRequest{Messages: ask, Tools: weather(), Stream: plain})},
		{"chat format streamed", chat, true, ollamaChat(api.ChatRequest{Messages: ask, Format: schema})},
		{"generate streamed", generate, true, ollamaGenerate(api.GenerateRequest{Prompt: "tell me about the sea", Options: limit})},
		{"generate", generate, false, ollamaGenerate(api.GenerateRequest{Prompt: "tell me about the sea", Options: limit, Stream: plain})},
		{"generate thinking streamed", generate, true, ollamaGenerate(api.GenerateRequest{Prompt: "the sea", System: "think", Think: think})},
		{"embed", "/api/embed", false, ollamaEmbed},
	} {
		t.Run(c.name, c.through)
	}
}

func ollamaChat(req api.ChatRequest) func(context.Context, string) (answer, error) {
	req.Model = "sim"
	return func(ctx context.Context, base string) (answer, error) {
		var a answer
		c, err := ollamaClient(base)
		if err != nil {
			return a, err
		}
		err = c.Chat(ctx, &req, func(r api.ChatResponse) error {
			a.Text += r.Message.Content
			a.Thinking += r.Message.Thinking
			for _, f := range r.Message.ToolCalls {
				a.Calls = append(a.Calls, call{f.Function.Name, f.Function.Arguments.String()})
			}
			a.finishOllama(r.DoneReason, r.Metrics)
			return nil
		})
		return a, err
	}
}

func ollamaGenerate(req api.GenerateRequest) func(context.Context, string) (answer, error) {
	req.Model = "sim"
	return func(ctx context.Context, base string) (answer, error) {
		var a answer
		c, err := ollamaClient(base)
		if err != nil {
			return a, err
		}
		err = c.Generate(ctx, &req, func(r api.GenerateResponse) error {
			a.Text += r.Response
			a.Thinking += r.Thinking
			a.finishOllama(r.DoneReason, r.Metrics)
			return nil
		})
		return a, err
	}
}

func (a *answer) finishOllama(reason string, m api.Metrics) {
	a.Finish, a.Prompt, a.Completion = reason, int64(m.PromptEvalCount), int64(m.EvalCount)
}

func ollamaEmbed(ctx context.Context, base string) (answer, error) {
	c, err := ollamaClient(base)
	if err != nil {
		return answer{}, err
	}
	r, err := c.Embed(ctx, &api.EmbedRequest{Model: "sim", Input: []string{"the sea", "a tower of stone"}})
	if err != nil {
		return answer{}, err
	}
	a := answer{Prompt: int64(r.PromptEvalCount)}
	for _, v := range r.Embeddings {
		vector := make([]float64, len(v))
		for i, f := range v {
			vector[i] = float64(f)
		}
		a.Vectors = append(a.Vectors, vector)
	}
	return a, nil
}

// scripted adds the header that tells the scripted engine how to misbehave: the client has no way to send one.
type scripted string

func (s scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Sim", string(s))
	return http.DefaultTransport.RoundTrip(req)
}

// TestOllamaErrors holds that the client finds an engine's own errors behind the proxy: a refusal, and one in the
// middle of a stream.
func TestOllamaErrors(t *testing.T) {
	s := recorded.Begin(t)
	c, err := ollamaClient("")
	if err != nil {
		t.Fatal(err)
	}
	ask := &api.ChatRequest{Model: "sim", Messages: []api.Message{{Role: "user", Content: "now"}}}
	nothing := func(api.ChatResponse) error { return nil }
	refused := *ask
	refused.Options = map[string]any{"num_predict": 0}
	var status api.StatusError
	if err := c.Chat(s.Ctx, &refused, nothing); !errors.As(err, &status) || status.StatusCode != 400 || status.ErrorMessage == "" {
		t.Errorf("a request for no tokens: %v", err)
	}
	if x := s.Stored(t, 1)[0]; x.Status != 400 || x.Outcome != "upstream_error" {
		t.Errorf("status %d, outcome %s", x.Status, x.Outcome)
	}
	u, err := url.Parse(os.Getenv("OLLAMA_HOST"))
	if err != nil {
		t.Fatal(err)
	}
	broken := api.NewClient(u, &http.Client{Transport: scripted("fault=error@3")})
	if err := broken.Chat(s.Ctx, ask, nothing); err == nil {
		t.Error("the client took a broken stream for a whole one")
	}
	if x := s.Stored(t, 1)[0]; x.Outcome != "stream_error" || x.Status != 200 {
		t.Errorf("outcome %s of a broken stream, status %d", x.Outcome, x.Status)
	}
}
