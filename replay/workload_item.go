package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// notSent are headers of one connection, one sender or one attempt: whoever sends the request again makes its own.
var notSent = map[string]bool{
	"host": true, "connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true, "expect": true, "content-length": true, "accept-encoding": true,
	"traceparent": true, "tracestate": true, "forwarded": true, "via": true, "x-forwarded-for": true,
	"x-forwarded-host": true, "x-forwarded-proto": true, "x-real-ip": true, "cookie": true,
}

// sendable are the headers of hs that a replay sends: without those of notSent, those that carry a credential, and the
// pseudo headers that captures of HTTP/2 list.
func sendable(hs []exchange.Header) []exchange.Header {
	var out []exchange.Header
	for _, h := range hs {
		name := strings.ToLower(h.Name)
		if notSent[name] || strings.HasPrefix(name, ":") || redact.SecretHeader(name) {
			continue
		}
		h.Value = redact.HeaderValue(h.Name, h.Value)
		out = append(out, h)
	}
	return out
}

// itemOf is the item that sends a recorded request again, in a conversation that is not found yet. body is all of it.
func itemOf(x *exchange.Exchange, body []byte) Item {
	it := Item{
		ID: string(x.ID), Conversation: string(x.ID), At: AtUnknown, Method: x.Request.Method,
		Target: redact.Target(x.Request.Target), Headers: sendable(x.Request.Headers),
	}
	it.identify(body)
	return it
}

// at is the instant of an item that was recorded at wall, in a workload that begins at start.
func at(wall, start time.Time) time.Duration { return wall.Sub(start).Truncate(time.Microsecond) }

// talks finds the conversations in requests that come in the order in which they were sent: a request continues the one
// whose whole list of messages it begins with, followed by an answer, or the one whose answer it names.
type talks struct {
	answers map[string]string            // id of an answer -> its conversation
	turns   map[string]int               // of a conversation so far, where answers are named
	open    map[[sha256.Size]byte][]turn // list of messages -> turns that end with it and that nothing continues yet, oldest first
}

// turn is a place in a conversation.
type turn struct {
	conversation string
	n            int
}

func newTalks() *talks {
	return &talks{answers: map[string]string{}, turns: map[string]int{}, open: map[[sha256.Size]byte][]turn{}}
}

// answered notes the answer to an item that has joined.
func (t *talks) answered(it *Item) {
	if it.Response != "" {
		t.answers[it.Response] = it.Conversation
		t.turns[it.Conversation] = max(t.turns[it.Conversation], it.Turn+1)
	}
}

// join puts the item in the conversation that its request continues, if it continues one.
func (t *talks) join(it *Item, body []byte) {
	if talk, ok := t.answers[previousIn(it.Target, body)]; ok { // several may continue one answer: all are later turns
		it.Conversation, it.Turn = talk, t.turns[talk]
		t.turns[talk]++
		return
	}
	list := messagesOf(body)
	if len(list) == 0 {
		return
	}
	sums := make([][sha256.Size]byte, len(list)+1)
	for i, m := range list {
		sums[i+1] = sha256.Sum256(append(slices.Clone(sums[i][:]), m.form...))
	}
	for i := len(list) - 1; i > 0; i-- {
		if waiting := t.open[sums[i]]; list[i].answer && len(waiting) > 0 {
			it.Conversation, it.Turn = waiting[0].conversation, waiting[0].n+1
			t.open[sums[i]] = waiting[1:]
			if len(waiting) == 1 {
				delete(t.open, sums[i])
			}
			break
		}
	}
	whole := sums[len(list)]
	t.open[whole] = append(t.open[whole], turn{it.Conversation, it.Turn})
}

// message is one message of a request.
type message struct {
	form   []byte // canonical
	answer bool   // the engine's own
}

// messagesOf are the messages of a request in any of the chat dialects; nil when it has none.
func messagesOf(body []byte) []message {
	if !bytes.Contains(body, []byte(`"messages"`)) && !bytes.Contains(body, []byte(`"contents"`)) && !bytes.Contains(body, []byte(`"input"`)) {
		return nil
	}
	var request struct{ Messages, Contents, Input json.RawMessage }
	if json.Unmarshal(body, &request) != nil {
		return nil
	}
	var raw []json.RawMessage
	// An input that is one text is no list, and then no conversation.
	if json.Unmarshal(firstOf(request.Messages, request.Contents, request.Input), &raw) != nil {
		return nil
	}
	list := make([]message, len(raw))
	for i, m := range raw {
		var role struct{ Role, Type string }
		_ = json.Unmarshal(m, &role) // what is no object has no role
		answer := role.Role == "assistant" || role.Role == "model" || role.Type == "function_call" || role.Type == "reasoning"
		list[i] = message{form: messageForm(m), answer: answer}
	}
	return list
}

// messageForm is a message in a form in which it is the same in the next turn. Clients move their marks of where an
// engine should cache to the newest message, so these are left out.
func messageForm(m []byte) []byte {
	if bytes.Contains(m, []byte(`"cache_control"`)) {
		var v any
		if json.Unmarshal(m, &v) == nil {
			if b, err := json.Marshal(withoutKey(v, "cache_control")); err == nil {
				m = b
			}
		}
	}
	form, err := canon.JSON(m)
	if err != nil {
		return m
	}
	return form
}

// withoutKey is v without the members of that name, at any depth.
func withoutKey(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, name)
		for k, e := range v {
			v[k] = withoutKey(e, name)
		}
	case []any:
		for i, e := range v {
			v[i] = withoutKey(e, name)
		}
	}
	return v
}

// arrange puts the items in the order of their instants and lets the first begin at 0. It says how many were out of
// order. Items without an instant keep their places only where none has one; else they go last.
func (w *Workload) arrange() {
	moved, latest, first := 0, AtUnknown, AtUnknown
	for i := range w.Items {
		switch t := w.Items[i].At; {
		case t == AtUnknown:
		case t < latest:
			moved++
		default:
			latest = t
		}
	}
	for i := range w.Items {
		if t := w.Items[i].At; t != AtUnknown && (first == AtUnknown || t < first) {
			first = t
		}
	}
	for i := range w.Items {
		if w.Items[i].At != AtUnknown {
			w.Items[i].At -= first
		}
	}
	if moved > 0 {
		slices.SortStableFunc(w.Items, func(a, b Item) int { return cmp.Compare(a.order(), b.order()) })
		w.Notes = append(w.Notes, fmt.Sprintf("%s out of order in the source and sorted by time", count(moved, "item was", "items were")))
	}
}

// order is the place of an item in time.
func (it *Item) order() time.Duration {
	if it.At == AtUnknown {
		return 1<<63 - 1
	}
	return it.At
}

// count is a number with the word that goes with it.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// firstOf is the first value that is there.
func firstOf(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}
