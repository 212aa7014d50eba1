package measure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// eventsOf is an exchange whose events come in one read each, 100 ms apart. Each is a whole block or line.
func eventsOf(target, contentType string, events ...string) *exchange.Exchange {
	s := newScript()
	for i, e := range events {
		s.read(float64(100 * (i + 1)))
		s.x.Timeline.Reads[i].Size = len(e)
	}
	s.x.Request.Target, s.x.Response.Body = target, exchange.NewBody([]byte(strings.Join(events, "")))
	s.x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: contentType}}
	return s.x
}

// TestUsageBeforeTheAnswerCountsNothing holds that a usage which came before the answer, or stayed behind it, is not
// published as its completion: 20 events of content follow it, and then what each case says.
func TestUsageBeforeTheAnswerCountsNothing(t *testing.T) {
	const n = 20
	sse := func(data string) string { return "data: " + data + "\n\n" }
	ndjson := func(data string) string { return data + "\n" }
	opening := func(out int) string {
		return fmt.Sprintf(`{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":0}}}}`, out)
	}
	const (
		messages = "/v1/messages"
		gemini   = "/v1beta/models/g:streamGenerateContent?alt=sse"
		chat     = "/v1/chat/completions"
		text     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		stop     = `{"type":"message_stop"}`
		part     = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`
		delta    = `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
		zeros    = `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":0,"completion_tokens_details":{"reasoning_tokens":0}}}`
	)
	for _, tc := range []struct {
		name, target string
		frame        func(string) string
		first, each  string
		last         []string
	}{
		{"Anthropic, cut", messages, sse, opening(1), text, nil},
		{"Anthropic, cut behind a zero", messages, sse, opening(0), text, nil},
		{"Anthropic, cut behind a large opening", messages, sse, opening(25), text, nil},
		{"Anthropic, an error", messages, sse, opening(1), text, []string{`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`}},
		{"Anthropic, an end without usage", messages, sse, opening(1), text, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, stop}},
		{"Anthropic, an end with the prompt", messages, sse, opening(1), text, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5}}`, stop}},
		{"Anthropic, an end with zeros", messages, sse, opening(1), text, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":0}}`, stop}},
		{"Gemini, cut", gemini, sse, part, part, nil},
		{"Gemini, the prompt first", gemini, sse, `{"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`, `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, []string{`{"candidates":[{"finishReason":"STOP"}]}`}},
		{"Gemini, the prompt last", gemini, sse, part, part, []string{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`}},
		{"chat, zeros, cut", chat, sse, zeros, zeros, nil},
		{"chat, the prompt first", chat, sse, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}}`, delta, []string{`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"}},
		{"Ollama, zeros, cut", "/api/generate", ndjson, `{"response":"a","prompt_eval_count":5,"eval_count":0,"done":false}`, `{"response":"a","prompt_eval_count":5,"eval_count":0,"done":false}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			contentType := "text/event-stream"
			if tc.target == "/api/generate" {
				contentType = "application/x-ndjson"
			}
			events := []string{tc.frame(tc.first)}
			for range n {
				events = append(events, tc.frame(tc.each))
			}
			for _, e := range tc.last {
				events = append(events, tc.frame(e))
			}
			a := Analyze(eventsOf(tc.target, contentType, events...))
			tokens := a.Figures[TokenEvents].Value
			if tokens < n {
				t.Fatalf("%v token events", tokens)
			}
			wantValue(t, a, PromptTokens, 5, rptd)
			wantValue(t, a, CompletionTokens, tokens, estd)
			wantAbsent(t, a, ReasonNotReported, ReasoningTokens)
			if f := a.Figures[TokensPerEvent]; f.Present() && f.Value != 1 {
				t.Errorf("tokens per event %+v", f)
			}
			if f := a.Figures[WallTPS]; f.Present() && f.Basis != estd {
				t.Errorf("wall rate %+v", f)
			}
			if !a.Flagged(FlagTokensEstimated) {
				t.Errorf("flags %q", a.Flags)
			}
		})
	}
}

// TestRunningUsageStillCounts holds that a running count which kept up with the answer is what was reported.
func TestRunningUsageStillCounts(t *testing.T) {
	events := []string{}
	for i := range 20 {
		events = append(events, fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`+"\n\n", 2*(i+1)))
	}
	a := Analyze(eventsOf("/v1/chat/completions", "text/event-stream", events...))
	wantValue(t, a, CompletionTokens, 40, rptd)
	if !a.Flagged(FlagUsagePartial) || a.Flagged(FlagTokensEstimated) {
		t.Errorf("flags %q", a.Flags)
	}
	empty := Analyze(eventsOf("/v1/messages", "text/event-stream", `data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}`+"\n\n"))
	wantAbsent(t, empty, ReasonNotReported, CompletionTokens)
	wantValue(t, empty, PromptTokens, 5, rptd)
}
