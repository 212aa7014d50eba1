package replay

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// history is what the engine has answered in a conversation so far, where later turns are to repeat that and not what was
// recorded. It is in the dialect that the engine speaks.
type history struct {
	answers []liveAnswer
	last    liveAnswer
	lost    bool // an answer could not be made a message
}

// liveAnswer is an answer as a message of a conversation.
type liveAnswer struct {
	at int // place among the messages
	bridge.Said
}

// answered notes the answer to a request.
func (h *history) answered(q *draft, x *exchange.Exchange, t *wire.Transcript) {
	d := wire.DialectOf(q.target)
	said, err := bridge.Answer(d, x, t)
	h.lost = h.lost || err != nil
	h.last = liveAnswer{len(bridge.Turns(d, q.body)), said}
}

// rewrite puts the answers into the next request, in the place of the recorded ones, and gives tool results the ids of
// the calls that were made now. false means that the conversation cannot go on as it was recorded: the engine called
// other tools, or the request does not hold the answer where it should.
func (h *history) rewrite(q *draft) bool {
	turns := bridge.Turns(wire.DialectOf(q.target), q.body)
	if h.lost || h.last.at >= len(turns) {
		return false
	}
	h.answers = append(h.answers, h.last)
	for _, a := range h.answers {
		if !a.stands(turns) || !a.putInto(q, turns) {
			return false
		}
	}
	return true
}

// stands reports whether the recorded answer in the place of this one called the same tools.
func (a *liveAnswer) stands(turns []bridge.Turn) bool {
	recorded := turns[a.at]
	if !recorded.Assistant || len(recorded.Calls) != len(a.Calls) {
		return false
	}
	for i, c := range recorded.Calls {
		if c.Name != a.Calls[i].Name {
			return false
		}
	}
	return true
}

// putInto puts the answer into a request, and its ids into the results behind it.
func (a *liveAnswer) putInto(q *draft, turns []bridge.Turn) bool {
	recorded := turns[a.at].Calls
	nth := 0
	for _, t := range turns[a.at+1:] {
		if t.Assistant {
			break
		}
		for _, res := range t.Results {
			for i, c := range recorded {
				if res.ID != "" && res.ID == c.ID || res.ID == "" && i == nth {
					if !setID(q, res, a.Calls[i].ID) {
						return false
					}
					break
				}
			}
			nth++
		}
	}
	return setPath(q, turns[a.at].Path, string(a.Message))
}

// setID names the call that a result belongs to.
func setID(q *draft, res bridge.ResultAt, id string) bool {
	if res.ID == id {
		return true
	}
	value := "" // an engine that gives no ids wants none
	if id != "" {
		value = quoted(id)
	}
	return setPath(q, res.Path, value)
}

func setPath(q *draft, path, value string) bool {
	p, err := parsePath(path)
	return err == nil && q.edit(Edit{path: p, value: value}, "live_history") == nil
}
