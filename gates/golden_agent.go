package gates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// agentRecordings is how often a turn that would fail is recorded again.
const agentRecordings = 2

// reuseShare is the part of the history that a turn must take from the cache.
const reuseShare = 0.8

func agentGates() []Gate {
	return []Gate{{
		ID: "agent_turns", Version: 3, Family: "golden",
		Summary: "every turn of a tool loop renders, reuses, calls and answers as it should",
		Explain: `Per turn: render_ok, the prompt has as many tokens as the golden's; reuse_ok, from the second turn on at least 80 %
of the previous prompt and answer come from the cache; calls_ok, every call names a declared tool and has a JSON
object for arguments; and the near-tie rule with views, where a turn that would fail is recorded up to twice again
on the reference.
Reuse is waived where the next prompt does not hold the history: the template rewrote an answer that followed the
golden in full, the prompt agrees with less than 80 % of an answer that did not, or the parse kept one call of an
answer that made two. An answer that ends inside its reasoning is noted, with what the reference prefers there.
A conversation ends before its last turn when an answer makes no call, or one that the loop has no result for. That fails
calls_ok where the golden calls a tool, and where no golden tells and the loop needs one: "calls" are its tools, one a turn
in this order, or with "free" each at least once. Where the reference stops there too, the turns up to there are judged and
it is noted. An answer that ends inside its reasoning where the reference prefers the end, too, does not fail calls_ok.
fail: a turn is not as it should be, or the engine refused it or answered with an error. partial: all turns are right and
the loop could have gone on. unsupported: the engine refused the tools in so many words.`,
		Params: func() any { return &agentParams{} },
		judge:  agentTurns,
	}}
}

// agentTurn is what was found of one turn. A null is not known.
type agentTurn struct {
	Turn    int       `json:"turn"` // from 1
	Render  *bool     `json:"render_ok"`
	Reuse   *bool     `json:"reuse_ok"` // null, too, for the first turn and where it is waived
	Reused  *float64  `json:"reused"`   // share of the previous prompt and answer; above 1 when more was cached
	Waived  string    `json:"reuse_waived,omitempty"`
	Calls   *bool     `json:"calls_ok"` // null when it makes none
	Notes   []string  `json:"notes,omitempty"`
	Tie     tieDetail `json:"golden"`
	problem string
	unknown string
}

func agentTurns(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*agentParams), &wants{e: e}
	o := &tieOptions{reference: &p.referenceParams, views: true, rerecord: agentRecordings}
	loop := agentLoop{agentParams: p, planned: e.Case.Turns}
	var turns []agentTurn
	var before *answer
	for i := range e.Turns {
		if why := e.Turns[i].unsupported(); why != "" {
			return Finding{Status: exchange.VerdictUnsupported, Reason: "the engine has no tools: " + why}, nil
		}
		if f, there := e.Turns[i].refused(); !there && f.Status == exchange.VerdictFail {
			return turnFinding(i, f), nil
		} else if !there {
			return incomparable("turn %d is %s", i+1, e.Turns[i].Outcome), nil
		}
		a := answerOf(e.Turns[i])
		t := agentTurn{Turn: i + 1}
		t.render(a, goldensOf(e.Case, i))
		t.calls(a)
		t.Tie = judgeTie(w, i, a, goldensOf(e.Case, i), o)
		if i > 0 {
			t.reuse(e, a, before, &turns[i-1])
		}
		inside := t.endsInReasoning(a)
		if i == len(e.Turns)-1 {
			loop.end(&t, a, inside)
		}
		loop.took(a)
		turns = append(turns, t)
		before = a
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	finding := agentFinding(turns)
	if finding.Status == exchange.VerdictOK && loop.open {
		finding = Finding{Status: exchange.VerdictPartial, Reason: fmt.Sprintf("%d of %d turns", len(e.Turns), e.Case.Turns)}
	}
	finding.Detail = map[string]any{"turns": turns}
	return finding, nil
}

func agentFinding(turns []agentTurn) Finding {
	for _, t := range turns {
		switch {
		case t.problem != "":
			return fail("turn %d: %s", t.Turn, t.problem)
		case t.Tie.Status == string(exchange.VerdictFail):
			return fail("%s", t.Tie.Why)
		}
	}
	for _, t := range turns {
		switch {
		case t.Tie.Status != string(exchange.VerdictOK):
			return incomparable("turn %d: %s", t.Turn, t.Tie.Why)
		case t.unknown != "":
			return incomparable("turn %d: %s", t.Turn, t.unknown)
		}
	}
	return ok()
}

// render compares the number of prompt tokens with the golden's.
func (t *agentTurn) render(a *answer, goldens []*exchange.Golden) {
	for _, g := range goldens {
		told, counts := promptCounts(g, a)
		if !told {
			continue
		}
		same := counts[0] == counts[1]
		if t.Render = &same; same {
			t.problem = ""
			return
		}
		t.problem = fmt.Sprintf("the prompt has %d tokens, and the template makes %d", counts[1], counts[0])
	}
	if t.Render == nil {
		t.unknown = "the number of prompt tokens is not told on both sides"
	}
}

// calls holds that every call is one of a declared tool, with a JSON object for arguments.
func (t *agentTurn) calls(a *answer) {
	if len(a.channels.calls) == 0 {
		return
	}
	names, fine := declared(a.x), true
	for _, c := range a.channels.calls {
		var args map[string]json.RawMessage
		why := ""
		switch {
		case !names[c.Name]:
			why = fmt.Sprintf("%q is called and was not declared", c.Name)
		case json.Unmarshal([]byte(c.Arguments), &args) != nil || args == nil:
			why = fmt.Sprintf("the arguments of %q are no JSON object", c.Name)
		}
		if why != "" {
			fine = false
			t.fails(why)
		}
	}
	t.Calls = &fine
}

func (t *agentTurn) fails(why string) {
	if t.problem == "" {
		t.problem = why
	}
}

// reuse holds that the history came from the cache, unless the prompt does not hold that history.
func (t *agentTurn) reuse(e *Evidence, a, before *answer, last *agentTurn) {
	cached, told := cachedOf(a)
	if !told || before.usage == nil || before.usage.Prompt == nil || before.usage.Completion == nil {
		t.unknown = "what came from the cache is not told"
		return
	}
	share := float64(cached) / float64(*before.usage.Prompt+*before.usage.Completion)
	fine := share >= reuseShare
	t.Reused = &share
	if !fine {
		if t.Waived = waiver(e, before, last, t.Turn-1); t.Waived != "" {
			return
		}
		t.fails(fmt.Sprintf("%d of %d tokens of the history came from the cache", cached, *before.usage.Prompt+*before.usage.Completion))
	}
	t.Reuse = &fine
}

// waiver says why a turn (from 0) need not reuse its history; "" when it must.
func waiver(e *Evidence, before *answer, last *agentTurn, turn int) string {
	for _, g := range goldensOf(e.Case, turn-1) {
		if g.ID != last.Tie.Golden && last.Tie.Golden != "" {
			continue
		}
		if droppedCall(before, g, last) {
			return "the answer before made a second call, which its parse dropped"
		}
		for _, next := range goldensOf(e.Case, turn) {
			if why := rewritten(g, next, last.Tie.FullMatch); why != "" {
				return why
			}
		}
	}
	return ""
}

// rewritten says how the prompt of the next turn departs from the history of the golden, where both tell their ids. An
// answer that did not follow the golden need only be there for the most part.
func rewritten(g, next *exchange.Golden, verified bool) string {
	if len(g.PromptIDs) == 0 || len(next.PromptIDs) == 0 {
		return ""
	}
	history := slices.Clone(g.PromptIDs)
	for i := range g.Tokens {
		if g.Tokens[i].ID < 0 {
			return ""
		}
		history = append(history, g.Tokens[i].ID)
	}
	same := firstUnequal(history, next.PromptIDs)
	switch {
	case same == len(history):
		return ""
	case verified:
		return fmt.Sprintf("the template rewrites the history from token %d on", same)
	case float64(same) < reuseShare*float64(len(history)):
		return fmt.Sprintf("the prompt agrees with %d of %d tokens of the history", same, len(history))
	}
	return ""
}

// droppedCall reports whether an answer generated a second call that its parse does not hold: more tokens than the golden
// needs for the first one, with the golden going on to another.
func droppedCall(before *answer, g *exchange.Golden, last *agentTurn) bool {
	if len(before.channels.calls) != 1 || len(g.Calls) < 2 || before.usage == nil || before.usage.Completion == nil {
		return false
	}
	if g.Calls[0].Name != before.channels.calls[0].Name || !sameArguments(g.Calls[0].Arguments, before.channels.calls[0].Arguments) {
		return false
	}
	s := scriptOfGolden(g)
	end := strings.Index(s.text(), g.Calls[0].Arguments)
	return end >= 0 && int(*before.usage.Completion) > tokenAt(s.starts(), end+len(g.Calls[0].Arguments))+1
}

// endsInReasoning notes an answer without anything behind its reasoning, and what the reference prefers there. It reports
// whether the reference prefers to end there, too.
func (t *agentTurn) endsInReasoning(a *answer) (too bool) {
	if a.reasoning == "" || a.text != "" || len(a.channels.calls) > 0 || !endedItself(a.finish) {
		return false
	}
	note := "the model ended inside its reasoning"
	switch g := t.Tie.recording; {
	case t.Tie.FullMatch:
		note, too = note+", as the reference does", true
	case g == nil || t.Tie.Position == nil || *t.Tie.Position >= len(g.Tokens):
	case t.Tie.Rule == ruleViewPrefers, prefersEnd(g.Tokens[*t.Tie.Position].Top):
		note, too = note+", which the reference prefers too", true
	}
	t.Notes = append(t.Notes, note)
	return too
}

// prefersEnd reports whether the most likely token of a list ends the answer.
func prefersEnd(top []exchange.TokenProb) bool {
	return len(top) > 0 && isEndSpelling(top[0].Spelling())
}
