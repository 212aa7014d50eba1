package gates

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// What the rules of tools look at is said in other words by each dialect. Those that cannot say it are named.

// toolDialect is how a dialect says what is about tools.
type toolDialect struct {
	name     string
	callType string // of a call that the client answers; "" where calls have no type
	end      string // terminator of a stream; "" where its framing alone says that it ended
	choice   bool   // a request can force, name and forbid calls
	parallel bool   // a request can say whether there may be several calls at once
	many     bool   // several at once are allowed where it says nothing
	json     bool   // a request can ask for any JSON object
	results  func(*Asked) ([]toolResult, error)
	prompts  [][]string // fields that hold what is asked
}

// toolResult is the result of a call, as a later request gives it back.
type toolResult struct {
	answers  int             // of the model that stand before it
	id, name string          // of the call; "" where the dialect or the client says none
	content  json.RawMessage // a text, or whatever else stands there
}

// toolDialectOf is that of a request; ok is false for a dialect without tools.
func toolDialectOf(a *Asked) (d toolDialect, ok bool) {
	switch a.Dialect {
	case wire.DialectChat:
		return toolDialect{"chat completions", callType, terminatorDone, true, true, false, true, chatResults, [][]string{{"messages"}}}, true
	case wire.DialectAnthropic:
		return toolDialect{"Anthropic Messages", "tool_use", "message_stop", true, true, true, false, anthropicResults, [][]string{{"system"}, {"messages"}}}, true
	case wire.DialectResponses:
		return toolDialect{"OpenAI Responses", "function_call", "", true, true, false, true, responsesResults, [][]string{{"instructions"}, {"input"}}}, true
	case wire.DialectOllama:
		return toolDialect{"Ollama's /api/chat", "", "", false, false, true, true, ollamaResults, [][]string{{"messages"}}}, true
	}
	return toolDialect{}, false
}

// notTools says that a case of tools was sent as something that has none.
func notTools(a *Asked) string {
	return fmt.Sprintf("it is no request of a dialect whose tools can be judged (%s)", a.Target)
}

// allows reports whether the request lets the model make several calls at once. Where it says nothing, the dialect decides.
func (d toolDialect) allows(w wish) bool {
	if w.Parallel != nil {
		return *w.Parallel
	}
	return d.many
}

// parallelSaid is what the request says of several calls at once.
func (d toolDialect) parallelSaid(a *Asked) string {
	field := []string{"parallel_tool_calls"}
	if a.Dialect == wire.DialectAnthropic {
		field = []string{"tool_choice", "disable_parallel_tool_use"}
	}
	return fmt.Sprintf("%s is %s", strings.Join(field, "."), excerpt(string(a.Field(field...))))
}

// wantsJSON reports whether the request asks for any JSON object.
func wantsJSON(a *Asked) bool {
	for _, place := range [][]string{{"response_format", "type"}, {"text", "format", "type"}} {
		if a.Word(place...) == "json_object" {
			return true
		}
	}
	return a.Dialect == wire.DialectOllama && a.Word("format") == "json"
}

// stopped says what is wrong with the end of an answer that is to end for this reason; "" when nothing is. In chat
// completions the word itself counts.
func (t Turn) stopped(a *Asked, want string) string {
	raw := t.rawFinish()
	switch {
	case a.Dialect == wire.DialectChat && raw != want:
		return fmt.Sprintf("the finish reason is %q, not %s", raw, want)
	case t.Transcript.FinishNorm != want:
		return fmt.Sprintf("the finish reason is %q, which is not that of %s", raw, want)
	}
	return ""
}

// flows says what is wrong with the stream that the request asked for; "" when nothing is, or none was.
func (t Turn) flows(d toolDialect) string {
	switch {
	case !t.Analysis.Request.Stream || t.Transcript.Dialect == wire.DialectOllama:
	case t.Transcript.Framing != wire.FramingSSE:
		return "a stream was asked for and the answer is none"
	case d.end != "" && t.Transcript.Terminator != d.end:
		return fmt.Sprintf("the stream does not end with %s; it ends with %s", d.end, t.Transcript.Terminator)
	}
	return ""
}

// callsToAnswer are the calls of the answer that are for the client.
func (t Turn) callsToAnswer(a *Asked) []wire.ToolCall { return clientCalls(a.Dialect, t.calls()) }

// chatResults are the results that a request of chat completions gives: messages of the role tool.
func chatResults(a *Asked) (out []toolResult, err error) {
	var messages []struct {
		Role    string          `json:"role"`
		CallID  string          `json:"tool_call_id"`
		Name    string          `json:"tool_name"`
		Content json.RawMessage `json:"content"`
	}
	err = json.Unmarshal(a.Field("messages"), &messages)
	answers := 0
	for _, m := range messages {
		switch m.Role {
		case "assistant":
			answers++
		case "tool":
			out = append(out, toolResult{answers, m.CallID, m.Name, m.Content})
		}
	}
	return out, err
}

// ollamaResults are those of a request to Ollama, whose calls may have no id: then the tool is named.
func ollamaResults(a *Asked) ([]toolResult, error) { return chatResults(a) }

// anthropicResults are blocks in what the user says.
func anthropicResults(a *Asked) (out []toolResult, err error) {
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	err = json.Unmarshal(a.Field("messages"), &messages)
	answers := 0
	for _, m := range messages {
		if m.Role == "assistant" {
			answers++
		}
		var blocks []struct {
			Type    string          `json:"type"`
			CallID  string          `json:"tool_use_id"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(m.Content, &blocks) // a text holds none
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, toolResult{answers: answers, id: b.CallID, content: joinedText(b.Content)})
			}
		}
	}
	return out, err
}

// responsesResults are items of the input. Texts, calls and thoughts in a row are one answer.
func responsesResults(a *Asked) (out []toolResult, err error) {
	var items []struct {
		Type   string          `json:"type"`
		Role   string          `json:"role"`
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	input := a.Field("input")
	if strings.HasPrefix(strings.TrimSpace(string(input)), `"`) {
		return nil, nil // a text holds none
	}
	err = json.Unmarshal(input, &items)
	answers, inside := 0, false
	for _, item := range items {
		said := item.Role == "assistant" || item.Type == "reasoning" || strings.HasSuffix(item.Type, "_call")
		if said && !inside {
			answers++
		}
		inside = said
		if item.Type == "function_call_output" {
			out = append(out, toolResult{answers: answers, id: item.CallID, content: joinedText(item.Output)})
		}
	}
	return out, err
}

// joinedText is content as one text: what is a list of texts is joined, and everything else stays.
func joinedText(content json.RawMessage) json.RawMessage {
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return content
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Text == nil {
			return content
		}
		all.WriteString(*p.Text)
	}
	b, err := json.Marshal(all.String())
	if err != nil {
		return content
	}
	return b
}

// asks are the texts of the fields in which a request asks. What is no plain text is given as it stands.
func (d toolDialect) asks(a *Asked) (out []string) {
	for _, place := range d.prompts {
		field := a.Field(place...)
		var list []json.RawMessage
		if json.Unmarshal(field, &list) != nil {
			list = []json.RawMessage{field}
		}
		for _, entry := range list {
			var m struct {
				Content json.RawMessage `json:"content"`
			}
			if json.Unmarshal(entry, &m) == nil && m.Content != nil {
				entry = m.Content
			}
			text := string(entry)
			_ = json.Unmarshal(entry, &text) // what is no text stays
			out = append(out, text)
		}
	}
	return out
}
