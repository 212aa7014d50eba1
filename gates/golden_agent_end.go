package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// agentParams are the parameters of agent_turns.
type agentParams struct {
	referenceParams
	Calls []string `json:"calls,omitempty"` // tools that the loop needs: one call a turn, in this order; nil when not stated
	Free  bool     `json:"free,omitempty"`  // each of them is called at least once, in any order, several at once where the model likes
}

// agentLoop is what is known of a loop while its turns are looked at.
type agentLoop struct {
	*agentParams
	planned int      // turns, at most
	seen    int      // turns so far
	called  []string // tools of these
	open    bool     // it could have gone on behind its last turn
}

// took notes the calls of a turn.
func (l *agentLoop) took(a *answer) {
	l.seen++
	l.called = append(l.called, callNames(a.channels.calls)...)
}

// needs is the tool that the loop still needs at the next turn; "" when it needs none, or does not say.
func (l *agentLoop) needs() string {
	if !l.Free {
		if l.seen < len(l.Calls) {
			return l.Calls[l.seen]
		}
		return ""
	}
	for _, name := range l.Calls {
		if !slices.Contains(l.called, name) {
			return name
		}
	}
	return ""
}

// goesOn reports whether there is a turn behind an answer with these calls.
func (l *agentLoop) goesOn(names []string) bool {
	if l.Free || l.Calls == nil {
		return true
	}
	return len(names) == 1 && names[0] == l.needs()
}

// end judges the last turn of a conversation: whether it was right to end there. inside says that it ended inside its
// reasoning, where the reference prefers to end as well.
func (l *agentLoop) end(t *agentTurn, a *answer, inside bool) {
	names := callNames(a.channels.calls)
	if len(names) == 0 {
		l.uncalled(t, a, inside)
		return
	}
	if l.seen+1 >= l.planned || t.problem != "" {
		return
	}
	g := t.Tie.recording
	switch {
	case l.goesOn(names):
		l.open = true
	case g != nil && slices.Equal(callNames(g.Calls), names):
		t.Notes = append(t.Notes, fmt.Sprintf("the loop cannot go on behind %s, which the reference calls too", strings.Join(names, ", ")))
	case g != nil && len(g.Calls) > 0:
		t.miscalls("it calls %s and the golden %s, and the loop cannot go on", names, callNames(g.Calls))
	default:
		t.miscalls("it calls %s and the loop needs %s, and cannot go on", names, []string{l.needs()})
	}
}

// uncalled judges an answer that calls nothing, which ends the conversation.
func (l *agentLoop) uncalled(t *agentTurn, a *answer, inside bool) {
	need, g := l.needs(), t.Tie.recording
	done := l.Calls != nil && need == "" // the answer is due: whether it may be one is for the golden rule
	switch {
	case done, inside:
	case g != nil && len(g.Calls) > 0:
		t.miscalls("it makes no call (finish reason %s) where the golden calls %s", []string{a.finish}, callNames(g.Calls))
	case g != nil && l.seen+1 < l.planned:
		t.Notes = append(t.Notes, "the conversation ends here without a call, as the reference's does")
	case g == nil && need != "":
		t.miscalls("it makes no call (finish reason %s) where the loop needs %s", []string{a.finish}, []string{need})
	}
}

// miscalls fails the calls of a turn.
func (t *agentTurn) miscalls(format string, got, want []string) {
	fine := false
	t.Calls = &fine
	t.fails(fmt.Sprintf(format, strings.Join(got, ", "), strings.Join(want, ", ")))
}

func callNames(calls []exchange.ToolCall) (names []string) {
	for _, c := range calls {
		names = append(names, c.Name)
	}
	return names
}
