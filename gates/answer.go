package gates

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// answerGates are the rules that look at one answer alone.
func answerGates() []Gate {
	return slices.Concat(
		[]Gate{usageGate(), finishGate(), exactGate(), recallGate(), decodeGate(), budgetGate(), degenerateGate()},
		jsonGates())
}

// missing says why there is no whole answer to judge; ok is true when there is one. An answer that the client left or
// that we cut was never whole, whatever the engine would have sent: that is nobody's failure and no pass either.
func (t Turn) missing() (Finding, bool) {
	switch t.Outcome {
	case exchange.OutcomeComplete:
		return Finding{}, true
	case exchange.OutcomeClientAbort, exchange.OutcomeShutdown:
		return skipped("the answer was not waited for: %s", t.outcome()), false
	}
	return notRun("there is no whole answer: %s", t.outcome()), false
}

// outcome is what the exchange came to, with its cause.
func (t Turn) outcome() string {
	if t.Analysis.Cause == nil {
		return string(t.Outcome)
	}
	return oneLine(fmt.Sprintf("%s (%s)", t.Outcome, t.Analysis.Cause.Text))
}

// answered wraps a rule about the last answer: it is asked only when there is a whole one.
func answered(rule func(*Evidence, Turn) Finding) func(*Evidence) (Finding, exchange.Needs) {
	return func(e *Evidence) (Finding, exchange.Needs) {
		t := e.Last()
		if f, there := t.missing(); !there {
			return f, nil
		}
		return rule(e, t), nil
	}
}

func usageGate() Gate {
	return Gate{
		ID: "usage_present", Version: 1, Family: "answer",
		Summary: "the engine reported how many tokens it read and wrote",
		Explain: `Every turn of the case that was answered in whole must carry a usage report with the number of prompt tokens and the
number of completion tokens. A reported 0 is a report. Counts that benchproxy estimated from events do not satisfy the gate,
nor does a running usage whose final one never came, or one that was sent before the answer began.
ok: all turns carry it. fail: a turn does not. not_run, skipped: there is no whole answer.
Judged by itself: every answer but a stream of the OpenAI kind that was not asked for usage (stream_options.include_usage).`,
		auto: func(a *Asked) (json.RawMessage, bool) {
			optional := a.Dialect == wire.DialectChat || a.Dialect == wire.DialectCompletions
			return nil, !optional || !a.Facts.Stream || a.Facts.IncludeUsage
		},
		judge: usagePresent,
	}
}

func usagePresent(e *Evidence) (Finding, exchange.Needs) {
	for i, t := range e.Turns {
		if f, there := t.missing(); !there {
			return f, nil
		}
		switch u := t.Transcript.Usage; {
		case u == nil:
			return fail("turn %d carries no usage", i+1), nil
		case u.Prompt == nil:
			return fail("the usage of turn %d tells no prompt tokens", i+1), nil
		case u.Completion == nil || u.Opening:
			return fail("the usage of turn %d tells no completion tokens", i+1), nil
		case u.Partial:
			return fail("the usage of turn %d is a running one: the final one never came", i+1), nil
		}
	}
	return ok(), nil
}

// Normalized finish reasons, as package wire makes them.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishTools  = "tool_calls"
)

// finishParams are the parameters of finish_reason.
type finishParams struct {
	Allow []string `json:"allow"`                // normalized finish reasons that pass; none = stop and tool_calls
	Used  bool     `json:"limit_used,omitempty"` // length passes only where the limit of the request was used up
}

func finishGate() Gate {
	return Gate{
		ID: "finish_reason", Version: 2, Family: "answer",
		Summary: "the answer came to its end and says why it ended",
		Explain: `Every turn must have been answered: a status outside 2xx, an error inside the stream, a stream that breaks off, a time-out and
an error message in the place of the answer fail. Every answer must name a finish reason which is not empty. The reason, in
its normalized form (stop, length, tool_calls, content_filter, error), must be one of the parameter "allow", by default stop
and tool_calls: an answer that its output limit cut is no whole answer. With "limit_used" length passes only where the engine
reports as many tokens as the request allowed, give or take the one that ends an answer: no other limit was asked for.
ok: all turns ended so. fail: one did not. skipped: the client left or the recording was ended before the answer was whole,
or the language of the endpoint has no finish reasons (TensorSharp's and LM Studio's own).
Judged by itself: every answer; length is allowed where the request states an output limit, since it asked for the cut.`,
		Params: func() any { return &finishParams{} },
		auto: func(a *Asked) (json.RawMessage, bool) {
			if a.Facts.MaxTokens != nil {
				return json.RawMessage(`{"allow":["stop","tool_calls","length"]}`), true
			}
			return nil, true
		},
		judge: finishReason,
	}
}

func finishReason(e *Evidence) (Finding, exchange.Needs) {
	allow := e.params.(*finishParams).Allow
	if len(allow) == 0 {
		allow = []string{finishStop, finishTools}
	}
	told := false
	for i, t := range e.Turns {
		f, there := t.missing()
		switch tr := t.Transcript; {
		case !there && f.Status == exchange.VerdictNotRun:
			return fail("turn %d was not answered: %s", i+1, t.outcome()), nil
		case !there:
			return f, nil
		case t.Flagged(measure.FlagErrorAsContent):
			return fail("the answer of turn %d is an error message", i+1), nil
		case tr.Dialect == wire.DialectTensorSharp || tr.Dialect == wire.DialectLMStudio:
			continue
		case tr.FinishReason == nil || *tr.FinishReason == "":
			return fail("turn %d names no finish reason", i+1), nil
		case !slices.Contains(allow, tr.FinishNorm):
			return fail("turn %d ended for %q, which is none of %q", i+1, *tr.FinishReason, allow), nil
		case e.params.(*finishParams).Used && t.cutShort():
			return fail("turn %d ended for its limit after %d of the %d tokens that it might have", i+1, *tr.Usage.Completion, *t.Analysis.Request.MaxTokens), nil
		}
		told = true
	}
	if !told {
		return skipped("the language of this endpoint has no finish reasons"), nil
	}
	return ok(), nil
}

// cutShort reports whether an answer says that its limit cut it, and had not used up that of its request.
func (t Turn) cutShort() bool {
	u, limit := t.Transcript.Usage, t.Analysis.Request.MaxTokens
	return t.Transcript.FinishNorm == finishLength && limit != nil && u != nil && u.Completion != nil && *u.Completion+1 < *limit
}

// budgetParams are the parameters of half_budget.
type budgetParams struct {
	Must bool `json:"must"` // a shorter answer fails
}

func budgetGate() Gate {
	return Gate{
		ID: "half_budget", Version: 1, Family: "answer",
		Summary: "the answer is long enough to be a sample of the decode rate",
		Explain: `The engine must report at least half as many completion tokens as the request allowed (its output limit, times its choices).
A shorter answer is an answer, but its decode rate rests on too few tokens to be compared: benches, ratios and medians leave
it out, and so does this gate.
ok: at least half. skipped: fewer, or the request states no limit, or the engine reports no count. With the parameter
"must": true, as decode benches set it, a shorter answer and a missing count fail.
Judged by itself: every request that states an output limit.`,
		Params: func() any { return &budgetParams{} },
		auto:   func(a *Asked) (json.RawMessage, bool) { return nil, a.Facts.MaxTokens != nil },
		judge:  answered(halfBudget),
	}
}

func halfBudget(e *Evidence, t Turn) Finding {
	short := skipped
	if e.params.(*budgetParams).Must {
		short = fail
	}
	limit := t.Analysis.Request.MaxTokens
	u := t.Transcript.Usage
	switch {
	case limit == nil:
		return skipped("the request states no output limit")
	case u == nil || u.Completion == nil || u.Partial || u.PerChoice:
		return short("the engine reports no completion tokens of the whole answer")
	}
	if all := *limit * max(t.Analysis.Request.N, 1); 2**u.Completion < all {
		return short("%d of %d tokens: no sample of the decode rate", *u.Completion, all)
	}
	return ok()
}
