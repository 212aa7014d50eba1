package replay

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// previousField is where a request to OpenAI's Responses names the answer that it continues: the engine keeps the
// conversation, and the request holds only what is new.
const previousField = "previous_response_id"

// previousIn is the answer that a request continues, "" for none.
func previousIn(target string, body []byte) string {
	if wire.DialectOf(target) != wire.DialectResponses {
		return ""
	}
	var request struct {
		Previous string `json:"previous_response_id"`
	}
	_ = json.Unmarshal(body, &request) // what is no request continues nothing
	return request.Previous
}

// responseOf is the id of a recorded answer that a later request may continue, "" for none.
func responseOf(target string, x *exchange.Exchange) string {
	if x == nil || wire.DialectOf(target) != wire.DialectResponses {
		return ""
	}
	return wire.Parse(x).ID
}

// continued are the answers of a conversation that later turns may continue: the recorded ids with those of now.
type continued struct {
	now    map[string]string // recorded id -> id of now
	before *Item             // the turn before
	last   string            // id of its answer now
}

// answered notes the answer to a turn.
func (c *continued) answered(it *Item, id string) {
	if c.now == nil {
		c.now = map[string]string{}
	}
	c.before, c.last = it, id
	if it.Response != "" && id != "" {
		c.now[it.Response] = id
	}
}

// rewrite lets a request continue the answer of now in the place of the recorded one. Where the recorded id of the turn
// before is not known, as in a file without answers, it is taken to be the one that is named. An answer of no turn of the
// conversation stays named: the engine may know it.
func (c *continued) rewrite(q *draft) error {
	was := previousIn(q.target, q.body)
	if was == "" || c.before == nil {
		return nil
	}
	id := c.now[was]
	if id == "" && c.before.Response == "" {
		id = c.last
	}
	if id == "" {
		return nil
	}
	return q.edit(Edit{path: jsonPath{{name: previousField, index: -1}}, value: quoted(id)}, "live_response")
}
