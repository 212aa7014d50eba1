package gates

import (
	"net/http"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// toolGates are the rules about tool calls.
func toolGates() []Gate {
	return slices.Concat(
		[]Gate{shapeGate(), policyGate(), doneGate(), functionCallGate(), codeEditGate(), toolUseGate()},
		workflowGates())
}

// calls are the tool calls of the answer, their fragments joined.
func (t Turn) calls() []wire.ToolCall { return t.Transcript.Choice0().ToolCalls }

// rawFinish is the finish reason as sent, "" for none.
func (t Turn) rawFinish() string {
	if t.Transcript.FinishReason == nil {
		return ""
	}
	return *t.Transcript.FinishReason
}

// refused is missing, but for what the engine itself did to a request that the case holds to be in order: refuse it, put
// an error in the place of the answer, or end the answer properly without saying why it stopped. Those are failures. A
// refusal for the credential or the rate of requests is about something else.
func (t Turn) refused() (Finding, bool) {
	s := t.Response.Status
	elsewhere := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests}
	switch {
	case s >= 400 && s < 500 && !slices.Contains(elsewhere, s):
		return fail("the request was refused: %s", t.outcome()), false
	case t.Outcome == exchange.OutcomeStreamError:
		return fail("the answer is an error: %s", t.outcome()), false
	case t.Outcome == exchange.OutcomeUpstreamTruncated && t.End == exchange.EndEOF && t.rawFinish() == "":
		return fail("the answer ends without a finish reason"), false
	}
	return t.missing()
}

// doneGate is the gate of a stream's last word.
func doneGate() Gate {
	return Gate{
		ID: "stream_done", Version: 1, Family: "tool",
		Summary: "a stream of the OpenAI kind ends with data: [DONE]",
		Explain: `Every turn whose request asked for a stream must be answered by an event stream that ends with the event data: [DONE]. Clients
wait for it; a connection that merely closes is told from one that broke by nothing else. What came before a missing end stays
in the record.
ok: all streams end with it. fail: one does not, or the answer to a request for a stream is none. skipped: no turn asked for a
stream, or its dialect has no such event.`,
		judge: streamDone,
	}
}

func streamDone(e *Evidence) (Finding, exchange.Needs) {
	seen := false
	for i, t := range e.Turns {
		d := t.Transcript.Dialect
		if !t.Analysis.Request.Stream || d != wire.DialectChat && d != wire.DialectCompletions {
			continue
		}
		seen = true
		if f, there := t.streamed(); !there {
			return turnFinding(i, f), nil
		}
	}
	if !seen {
		return skipped("no turn asked for a stream that ends with [DONE]"), nil
	}
	return ok(), nil
}

// streamed says what is wrong with the stream that the request asked for; ok is true when nothing is, or none was.
func (t Turn) streamed() (Finding, bool) {
	switch {
	case !t.Analysis.Request.Stream:
	case t.Transcript.Framing != wire.FramingSSE:
		return fail("a stream was asked for and the answer is none"), false
	case t.Transcript.Terminator != terminatorDone:
		return fail("the stream does not end with [DONE]; it ends with %s", t.Transcript.Terminator), false
	}
	return Finding{}, true
}

// terminatorDone is the terminator of a stream that ended with the event of that data.
const terminatorDone = "[DONE]"

// turnFinding says which turn a finding is about.
func turnFinding(i int, f Finding) Finding {
	f.Reason = sprintTurn(i) + f.Reason
	return f
}

// functionParams are the parameters of function_call.
type functionParams struct {
	Name string `json:"name"` // of the function; "" = get_weather
}

// Validate names the function.
func (p *functionParams) Validate() error {
	if p.Name == "" {
		p.Name = weatherTool
	}
	return nil
}

// functionCallGate is the weak gate of the run matrix.
func functionCallGate() Gate {
	return Gate{
		ID: "function_call", Version: 2, Family: "tool",
		Summary: "the answer calls the function, or says that it stopped for a call",
		Explain: `The rule of TensorSharp's run matrix for its scenario of one tool: the named function ("name", get_weather unless stated) is
among the calls of the answer, or the finish reason is tool_calls (in other dialects the word for it). It looks at nothing else;
tool_call_shape judges the rest.
ok: either. fail: neither. not_run, skipped: there is no whole answer.`,
		Params: func() any { return &functionParams{} },
		judge: answered(func(e *Evidence, t Turn) Finding {
			name := e.params.(*functionParams).Name
			called := slices.ContainsFunc(t.calls(), func(c wire.ToolCall) bool { return c.Name == name })
			if called || t.stopped(AskedOf(t.Exchange), finishTools) == "" {
				return ok()
			}
			return fail("the answer does not call %s and its finish reason is %q", name, t.rawFinish())
		}),
	}
}
