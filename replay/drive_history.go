package replay

import (
	"encoding/json"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// history is what the engine has answered in a conversation so far, where later turns are to repeat that and not what was
// recorded.
type history struct {
	answers []liveAnswer
	asked   int // messages of the request before: the answer to it is the next one
	last    liveAnswer
}

// liveAnswer is an answer as a message of a chat.
type liveAnswer struct {
	at      int // place among the messages
	message string
	calls   []wire.ToolCall
}

// chatMessage is the part of a message that matters here.
type chatMessage struct {
	Role      string `json:"role"`
	ToolCall  string `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func messagesIn(b []byte) []chatMessage {
	var body struct {
		Messages []chatMessage `json:"messages"`
	}
	if json.Unmarshal(b, &body) != nil {
		return nil
	}
	return body.Messages
}

// answered notes the answer to a request.
func (h *history) answered(q *draft, t *wire.Transcript) {
	c := t.Choice0()
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	m := struct {
		Role    string  `json:"role"`
		Content *string `json:"content"`
		Calls   []call  `json:"tool_calls,omitempty"`
	}{Role: "assistant"}
	if c.Text != "" || len(c.ToolCalls) == 0 {
		m.Content = &c.Text
	}
	for _, k := range c.ToolCalls {
		m.Calls = append(m.Calls, call{ID: k.ID, Type: "function", Function: function{k.Name, k.Arguments}})
	}
	b, _ := json.Marshal(m) // strings always marshal
	h.asked = len(messagesIn(q.body))
	h.last = liveAnswer{at: h.asked, message: string(b), calls: c.ToolCalls}
}

// rewrite puts the answers into the next request, in the place of the recorded ones, and gives tool results the ids of
// the calls that were made now. false means that the conversation cannot go on as it was recorded: the engine called
// other tools, or the request does not hold the answer where it should.
func (h *history) rewrite(q *draft) bool {
	messages := messagesIn(q.body)
	if h.last.at >= len(messages) {
		return false
	}
	h.answers = append(h.answers, h.last)
	for _, a := range h.answers {
		recorded := messages[a.at]
		if recorded.Role != "assistant" || len(recorded.ToolCalls) != len(a.calls) {
			return false
		}
		for i, c := range recorded.ToolCalls {
			if c.Function.Name != a.calls[i].Name {
				return false
			}
			if !rename(q, messages, a.at, c.ID, a.calls[i].ID) {
				return false
			}
		}
		if q.edit(Edit{path: messagePath(a.at, ""), value: a.message}, "live_history") != nil {
			return false
		}
	}
	return true
}

// rename gives the results of a tool call behind a message another id.
func rename(q *draft, messages []chatMessage, after int, from, to string) bool {
	for i := after + 1; i < len(messages); i++ {
		if messages[i].Role == "assistant" {
			return true
		}
		if messages[i].ToolCall == from && q.edit(Edit{path: messagePath(i, "tool_call_id"), value: quoted(to)}, "live_history") != nil {
			return false
		}
	}
	return true
}

func messagePath(i int, field string) jsonPath {
	p, _ := parsePath("messages[" + strconv.Itoa(i) + "]") // it is a path
	if field != "" {
		p = append(p, pathStep{name: field, index: -1})
	}
	return p
}
