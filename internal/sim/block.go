package sim

import (
	"encoding/json"
	"time"
)

// block is what a choice generates on one channel without a break: its thinking, its text or one call. Dialects that
// open and close parts of an answer tell it block by block.
type block struct {
	kind   kind // kindReasoning, kindText or kindCall
	call   int
	name   string // of the called function
	text   string // all of it; the arguments of a call
	events []event
}

// blocks is a choice in blocks, each with its events in order.
func (p *answerPlan) blocks(choice int) []block {
	var out []block
	for _, e := range p.events {
		if e.choice != choice {
			continue
		}
		first := e.tokens[0]
		if len(out) == 0 || !out[len(out)-1].holds(first) {
			k := first.kind
			if k == kindArgs {
				k = kindCall
			}
			out = append(out, block{kind: k, call: first.call})
		}
		b := &out[len(out)-1]
		b.events = append(b.events, e)
		name, rest := e.parts()
		b.name += name
		b.text += rest
	}
	return out
}

func (b block) holds(t token) bool {
	if t.kind == kindCall || t.kind == kindArgs {
		return b.kind == kindCall && b.call == t.call
	}
	return b.kind == t.kind
}

// parts are the name of a function that an event opens a call of, "" otherwise, and its other text.
func (e event) parts() (name, rest string) {
	if first := e.tokens[0]; first.kind == kindCall {
		return first.text, joined(e.tokens[1:])
	}
	return "", joined(e.tokens)
}

// arguments are those of a call as the object that some dialects send. A call cut by the limit has none.
func (b block) arguments() json.RawMessage {
	if !json.Valid([]byte(b.text)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(b.text)
}

// ofKind is the joined text of the blocks of one kind.
func ofKind(blocks []block, k kind) string {
	var s string
	for _, b := range blocks {
		if b.kind == k {
			s += b.text
		}
	}
	return s
}

// begin and end are the instants of the first and the last event.
func (b block) begin() time.Duration { return b.events[0].at }
func (b block) end() time.Duration   { return b.events[len(b.events)-1].at }

// tokens are all tokens of a block.
func (b block) tokens() []token {
	var all []token
	for _, e := range b.events {
		all = append(all, e.tokens...)
	}
	return all
}
