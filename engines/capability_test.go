package engines

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	oneCall  = `{"choices":[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{"function":{"name":"get_weather","arguments":"{}"}}]}}]}`
	twoCalls = `{"choices":[{"message":{"tool_calls":[{"function":{"name":"get_weather"}},{"function":{"name":"get_weather"}}]}}]}`
	words    = `{"choices":[{"finish_reason":"stop","message":{"content":"Hello."}}]}`
	cut      = `{"choices":[{"finish_reason":"length","message":{"content":"{\"n\""}}]}`
	object   = `{"choices":[{"message":{"content":"{\"n\": 8}"}}]}`
	loose    = `{"choices":[{"message":{"content":"{\"legs\": 8, \"n\": 8.5}"}}]}`
)

func TestProbeCapabilities(t *testing.T) {
	type reply struct {
		status int
		body   string
	}
	// The order is tools, tool_choice, parallel, json_schema, json_object; y, n and ? are the verdicts.
	for name, c := range map[string]struct {
		replies [5]reply
		want    string
	}{
		"all of it":        {[5]reply{{200, oneCall}, {200, oneCall}, {200, twoCalls}, {200, object}, {200, object}}, "yyyyy"},
		"none of it":       {[5]reply{{200, words}, {200, words}, {200, oneCall}, {200, loose}, {200, words}}, "?n?nn"},
		"refused as such":  {[5]reply{{400, "Tools are off"}, {422, "tool_choice"}, {501, "parallel"}, {400, "grammar"}, {400, "response_format"}}, "nnnnn"},
		"refused for else": {[5]reply{{400, "max_tokens"}, {400, "model"}, {401, "tool"}, {400, "temperature"}, {500, "json_schema"}}, "?????"},
		"cut answers":      {[5]reply{{200, cut}, {200, cut}, {200, cut}, {200, cut}, {200, cut}}, "?????"},
		"no completions":   {[5]reply{{200, "<html>"}, {200, `{"error":{"message":"tool"}}`}, {200, `{"choices":[]}`}, {200, ""}, {503, "busy"}}, "?????"},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			got, err := ProbeCapabilities(t.Context(), "m", func(_ context.Context, body []byte) (int, []byte, error) {
				var req struct {
					Model string `json:"model"`
				}
				if err := json.Unmarshal(body, &req); err != nil || req.Model != "m" {
					t.Errorf("probe %d is %s", sent, body)
				}
				r := c.replies[sent]
				sent++
				return r.status, []byte(r.body), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var verdicts strings.Builder
			for _, v := range []Capability{got.Tools, got.ToolChoice, got.Parallel, got.JSONSchema, got.JSONObject} {
				switch {
				case v.Supported == nil:
					verdicts.WriteString("?")
				case *v.Supported:
					verdicts.WriteString("y")
				default:
					verdicts.WriteString("n")
				}
				if v.Evidence == "" {
					t.Error("a verdict without evidence")
				}
			}
			if verdicts.String() != c.want {
				t.Errorf("verdicts %s, want %s: %+v", verdicts.String(), c.want, got)
			}
		})
	}
}

func TestProbeCapabilitiesEndsWithTheConnection(t *testing.T) {
	gone, sent := errors.New("reset"), 0
	_, err := ProbeCapabilities(t.Context(), "m", func(context.Context, []byte) (int, []byte, error) {
		sent++
		return 0, nil, gone
	})
	if !errors.Is(err, gone) || sent != 1 {
		t.Errorf("got %v after %d requests", err, sent)
	}
}

// TestChatSender holds that probes go to the chat completions of the server, with its headers, and how a lost answer is told.
func TestChatSender(t *testing.T) {
	s := &server{answers: map[string]played{"POST /v1/chat/completions": {status: 400, body: "no"}}}
	send, err := ChatSender(s, base+"/v1", Options{Headers: []exchange.Header{{Name: "Authorization", Value: "Bearer k"}}})
	if err != nil {
		t.Fatal(err)
	}
	status, body, err := send(t.Context(), []byte(`{"model":"m"}`))
	if err != nil || status != 400 || string(body) != "no" || s.bodies[0] != `{"model":"m"}` || s.headers[0].Get("Authorization") != "Bearer k" {
		t.Errorf("%d %s, %v; sent %q, %v", status, body, err, s.bodies, s.headers)
	}
	s.refuse = true
	if _, _, err := send(t.Context(), []byte("{}")); !errors.Is(err, exchange.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, _, err := send(ctx, []byte("{}")); !errors.Is(err, stop) {
		t.Errorf("ended: %v", err)
	}
	if _, err := ChatSender(s, "ftp://x", Options{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("no URL: %v", err)
	}
}
