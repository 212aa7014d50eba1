package gates

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// shapeGate is the gate of every answer that calls tools.
func shapeGate() Gate {
	return Gate{
		ID: "tool_call_shape", Version: 1, Family: "tool",
		Summary: "tool calls name a declared tool, with arguments that its schema allows",
		Explain: `Every tool call of every turn is held against what its own request declared, in the dialect of the request:
- it names a declared tool (calls that the engine runs itself, such as a search of its own, are not looked at);
- its arguments are one strict JSON object (no key twice, no NaN) that is valid under the tool's declared schema;
- where the dialect has ids (chat completions, Responses, Anthropic), its id is there, and no other call of the answer has it;
- in chat completions its type is function, and its arguments are a string on the wire;
- the answer says that it stopped for tools. In chat completions the finish reason itself is tool_calls; stop is let pass where
  the request named the tool to call.
The request's own wishes are held too: tool_choice required or a named tool needs a call (of that tool), none forbids calls, and
parallel_tool_calls false allows one.
ok: all calls are so. fail: one is not; the reason names the turn, the call and the fault. incomparable: the declared schema is
none that can be used. skipped: nothing was called, and nothing had to be. not_run: there is no whole answer.
Judged by itself: requests that declare tools.`,
		auto:  func(a *Asked) (json.RawMessage, bool) { return nil, len(declaredTools(a)) > 0 },
		judge: callShape,
	}
}

func callShape(e *Evidence) (Finding, exchange.Needs) {
	called := 0
	for i, t := range e.Turns {
		if f, there := t.missing(); !there {
			return turnFinding(i, f), nil
		}
		s := shape{t: t, asked: AskedOf(t.Exchange), read: map[string]*readySchema{}}
		s.tools, s.wish = declaredTools(s.asked), toolWish(s.asked)
		for _, c := range t.Transcript.Choices {
			c.ToolCalls = clientCalls(s.asked.Dialect, c.ToolCalls)
			called += len(c.ToolCalls)
			if f := s.choice(c); f.Status != exchange.VerdictOK {
				return turnFinding(i, f), nil
			}
		}
	}
	if called == 0 {
		return skipped("no tool was called"), nil
	}
	f := ok()
	f.Detail = map[string]int{"calls": called}
	return f, nil
}

// shape judges the calls of one turn.
type shape struct {
	t     Turn
	asked *Asked
	tools []declaredTool
	wish  wish
	read  map[string]*readySchema // the declared schemas of tools that were called
}

// schema is the declared schema of a tool, made ready once.
func (s *shape) schema(d declaredTool) (*readySchema, error) {
	if ready := s.read[d.Name]; ready != nil {
		return ready, nil
	}
	ready, err := compileSchema(d.Schema)
	if err == nil {
		s.read[d.Name] = ready
	}
	return ready, err
}

func (s *shape) choice(c wire.Choice) Finding {
	calls := c.ToolCalls
	switch {
	case len(calls) == 0 && s.wish.Force:
		return fail("the request wants a tool call and the answer makes none")
	case len(calls) == 0:
		return ok()
	case s.wish.Forbid:
		return fail("the request forbids tool calls and the answer calls %s", calls[0].Name)
	case s.wish.Parallel != nil && !*s.wish.Parallel && len(calls) > 1:
		return fail("the request wants one tool call at a time and the answer makes %d", len(calls))
	}
	ids := map[string]bool{}
	for i, call := range calls {
		if f := s.call(call); f.Status != exchange.VerdictOK {
			f.Reason = fmt.Sprintf("call %d: %s", i+1, f.Reason)
			return f
		}
		if call.ID != "" && ids[call.ID] {
			return fail("call %d: the id %q is that of another call", i+1, call.ID)
		}
		ids[call.ID] = true
	}
	if why := s.finish(c); why != "" {
		return fail("%s", why)
	}
	if c.Index == 0 && s.asked.Dialect == wire.DialectChat && !s.legacy() {
		return s.argumentStrings()
	}
	return ok()
}

// clientCalls are the calls that the client is to answer with a function of its own, out of all that the answer made.
func clientCalls(d wire.Dialect, calls []wire.ToolCall) []wire.ToolCall {
	var kinds []string
	switch d {
	case wire.DialectAnthropic:
		kinds = []string{"tool_use"}
	case wire.DialectResponses:
		kinds = []string{"function_call", "custom_tool_call"}
	case wire.DialectGemini:
		return slices.DeleteFunc(slices.Clone(calls), func(c wire.ToolCall) bool { return c.Type == "executableCode" || c.Type == "toolCall" })
	default:
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c wire.ToolCall) bool { return !slices.Contains(kinds, c.Type) })
}

// legacy reports whether the request uses the functions of old: their calls have neither id nor type.
func (s *shape) legacy() bool { return s.asked.Field("functions") != nil }

// call judges one call.
func (s *shape) call(c wire.ToolCall) Finding {
	chat := s.asked.Dialect == wire.DialectChat && !s.legacy()
	at := slices.IndexFunc(s.tools, func(d declaredTool) bool { return d.Name == c.Name })
	switch {
	case c.Name == "":
		return fail("it names no tool")
	case s.asked.Fields == nil:
		return incomparable("the request cannot be read, so its tools are not known")
	case at < 0:
		return fail("the tool %q is not declared", c.Name)
	case s.wish.Named != "" && c.Name != s.wish.Named:
		return fail("it calls %s where the request names %s", c.Name, s.wish.Named)
	case c.ID == "" && hasCallIDs(s.asked.Dialect) && !s.legacy():
		return fail("it has no id")
	case chat && c.Type == "custom" || c.Type == "custom_tool_call":
		return ok() // its input is free text
	case chat && c.Type != callType:
		return fail("its type is %q, not %s", c.Type, callType)
	}
	return s.arguments(c, s.tools[at])
}

// callType is the type of a call in chat completions.
const callType = "function"

func (s *shape) arguments(c wire.ToolCall, d declaredTool) Finding {
	v, err := strictJSON([]byte(c.Arguments))
	if err != nil {
		return fail("the arguments of %s are no strict JSON: %s", c.Name, oneLine(err.Error()))
	}
	if _, object := v.(map[string]any); !object {
		return fail("the arguments of %s are no JSON object", c.Name)
	}
	if len(d.Schema) == 0 || string(d.Schema) == "null" {
		return ok()
	}
	schema, err := s.schema(d)
	why := ""
	if err == nil {
		why, err = schema.fault(v)
	}
	switch {
	case err != nil:
		return incomparable("the declaration of %s: %s", c.Name, oneLine(err.Error()))
	case why != "":
		return fail("the arguments of %s are not what its schema allows: %s", c.Name, why)
	}
	return ok()
}

// finish is what is wrong with the finish reason of a choice that calls tools.
func (s *shape) finish(c wire.Choice) string {
	raw := ""
	if c.FinishReason != nil {
		raw = *c.FinishReason
	}
	if s.asked.Dialect == wire.DialectChat {
		if raw == finishTools || raw == "function_call" || raw == finishStop && s.wish.Named != "" {
			return ""
		}
		return fmt.Sprintf("the finish reason is %q, not %s", raw, finishTools)
	}
	if c.Index == 0 && s.t.Transcript.FinishNorm != finishTools {
		return fmt.Sprintf("the finish reason %q does not say that it stopped for tools", raw)
	}
	return ""
}

// argumentStrings holds that the arguments are strings on the wire.
func (s *shape) argumentStrings() Finding {
	raw, err := rawCalls(s.t)
	if err != nil {
		return incomparable("%s", err)
	}
	for i, c := range raw {
		if c.notText {
			return fail("call %d: the arguments of %s are not a string", i+1, c.name)
		}
	}
	return ok()
}
