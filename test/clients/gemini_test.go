package clients

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
	"google.golang.org/genai"
)

func geminiClient(ctx context.Context, base string) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: secret, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base},
	})
}

func TestGemini(t *testing.T) {
	text := &genai.GenerateContentConfig{MaxOutputTokens: 24, SystemInstruction: genai.NewContentFromText("be brief", genai.RoleUser)}
	thinking := &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true}}
	tools := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
		Name: "get_weather",
		Parameters: &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{
			"city": {Type: genai.TypeString}, "days": {Type: genai.TypeInteger},
		}},
	}}}}}
	structured := &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: weatherSchema()}
	const streamed, plain = "/v1beta/models/sim:streamGenerateContent", "/v1beta/models/sim:generateContent"
	for _, c := range []sample{
		{"text streamed", streamed, true, streamGemini(text)},
		{"text", plain, false, plainGemini(text)},
		{"thinking streamed", streamed, true, streamGemini(thinking)},
		{"thinking", plain, false, plainGemini(thinking)},
		{"tools streamed", streamed, true, streamGemini(tools)},
		{"tools", plain, false, plainGemini(tools)},
		{"structured streamed", streamed, true, streamGemini(structured)},
	} {
		t.Run(c.name, c.through)
	}
}

func plainGemini(config *genai.GenerateContentConfig) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		c, err := geminiClient(ctx, base)
		if err != nil {
			return answer{}, err
		}
		r, err := c.Models.GenerateContent(ctx, "sim", genai.Text("tell me about the sea"), config)
		if err != nil {
			return answer{}, err
		}
		var a answer
		return a, addGemini(&a, r)
	}
}

func streamGemini(config *genai.GenerateContentConfig) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		var a answer
		c, err := geminiClient(ctx, base)
		if err != nil {
			return a, err
		}
		for r, err := range c.Models.GenerateContentStream(ctx, "sim", genai.Text("tell me about the sea"), config) {
			if err != nil {
				return a, err
			}
			if err := addGemini(&a, r); err != nil {
				return a, err
			}
		}
		return a, nil
	}
}

// addGemini adds what one response says.
func addGemini(a *answer, r *genai.GenerateContentResponse) error {
	if u := r.UsageMetadata; u != nil {
		a.Prompt, a.Completion = int64(u.PromptTokenCount), int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount)
	}
	for _, c := range r.Candidates {
		a.Finish = string(c.FinishReason)
		for _, p := range c.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				b, err := json.Marshal(p.FunctionCall.Args)
				if err != nil {
					return err
				}
				a.Calls = append(a.Calls, call{p.FunctionCall.Name, string(b)})
			case p.Thought:
				a.Thinking += p.Text
			default:
				a.Text += p.Text
			}
		}
	}
	return nil
}

// TestGeminiErrors holds that the client finds an engine's own errors behind the proxy: a refusal, an overload, and one
// in the middle of a stream.
func TestGeminiErrors(t *testing.T) {
	s := recorded.Begin(t)
	for sim, want := range map[string]genai.APIError{
		"answer=many": {Code: 400, Status: "INVALID_ARGUMENT"}, "status=503": {Code: 503, Status: "UNAVAILABLE"},
	} {
		c, err := geminiClient(s.Ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{Headers: http.Header{"X-Sim": {sim}}}}
		_, err = c.Models.GenerateContent(s.Ctx, "sim", genai.Text("now"), config)
		var got genai.APIError
		if !errors.As(err, &got) || got.Code != want.Code || got.Status != want.Status {
			t.Errorf("%s: %v", sim, err)
		}
		for _, x := range s.Stored(t, 1) {
			if x.Status != want.Code || x.Outcome != "upstream_error" {
				t.Errorf("%s: status %d, outcome %s", sim, x.Status, x.Outcome)
			}
		}
	}
	c, err := geminiClient(s.Ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{Headers: http.Header{"X-Sim": {"fault=error@3"}}}}
	for _, err = range c.Models.GenerateContentStream(s.Ctx, "sim", genai.Text("break"), config) {
		if err != nil {
			break
		}
	}
	if err == nil {
		t.Error("the client took a broken stream for a whole one")
	}
	if x := s.Stored(t, 1)[0]; x.Outcome != "stream_error" || x.Status != 200 {
		t.Errorf("outcome %s of a broken stream, status %d", x.Outcome, x.Status)
	}
}
