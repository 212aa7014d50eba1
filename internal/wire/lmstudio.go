package wire

import (
	"strings"

	"github.com/valyala/fastjson"
)

// isLMStudio tells an event or a whole answer of LM Studio's /api/v1/chat.
func isLMStudio(v *fastjson.Value) bool {
	return present(v.Get("type")) || present(v.Get("output")) && present(v.Get("stats"))
}

// readLMStudio reads a typed event of /api/v1/chat, or the whole answer, which is what the event chat.end repeats.
func readLMStudio(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	identity(&a.model, v.Get("model_instance_id"))
	c, kind := a.choice(0), string(text(v.Get("type")))
	switch kind {
	case "reasoning.delta":
		a.add(&c.reasoning, KindReasoning, text(v.Get("content")))
	case "message.delta":
		a.add(&c.text, KindText, text(v.Get("content")))
	case "tool_call.start", "tool_call.arguments", "tool_call.success", "tool_call.failure":
		a.readLMStudioCall(c, strings.TrimPrefix(kind, "tool_call."), v)
	case "error":
		a.readError(v.Get("error"), "")
	case "chat.end":
		a.ended, a.finish = true, kind
		a.readLMStudioResult(v.Get("result"))
		eachField(data, func(key, value []byte) {
			if string(key) == "result" {
				a.keepLMStudioExtras(value)
			}
		})
	case "":
		a.readLMStudioWhole(c, v)
		a.keepLMStudioExtras(data)
	default:
		a.readLMStudioPhase(kind, v)
		if kind == "model_load.end" {
			a.keepExtras(data, func(key string) bool { return key == "load_time_seconds" })
		}
	}
	a.mayRecur(c)
}

// readLMStudioPhase reads the events before the first token.
func (a *answer) readLMStudioPhase(kind string, v *fastjson.Value) {
	switch stage, _, _ := strings.Cut(kind, "."); stage {
	case "model_load":
		a.event.phase = PhaseLoad
	case "prompt_processing":
		a.event.phase = PhasePrompt
		if share := number(v.Get("progress")); share != nil && strings.HasSuffix(kind, ".progress") {
			a.event.progress = &Progress{Share: share}
		}
	}
}

// readLMStudioCall reads the stages of a call that LM Studio makes itself. The name comes first, then the arguments as
// an object; the outcome repeats both. A call the model got wrong is all in the failure.
func (a *answer) readLMStudioCall(c *choice, stage string, v *fastjson.Value) {
	f := fragment{hasIndex: true, index: c.tools.top - 1, kind: []byte("function")}
	switch stage {
	case "start":
		f.index, f.name = c.tools.top, text(v.Get("tool"))
	case "arguments":
		f.args = v.Get("arguments")
		if c.tools.top == 0 {
			f.index, f.name = 0, text(v.Get("tool"))
		}
	case "failure":
		f.index, f.name, f.args = c.tools.top, text(v.Get("metadata", "tool_name")), v.Get("metadata", "arguments")
		if n := len(c.tools.all); n > 0 && c.tools.all[n-1].args.Len() == 0 && c.tools.all[n-1].name.String() == string(f.name) {
			f.index = c.tools.all[n-1].index // it had begun
		}
	default: // success
		return
	}
	a.addFragment(c, f)
}

// readLMStudioWhole reads an answer that came in one piece.
func (a *answer) readLMStudioWhole(c *choice, v *fastjson.Value) {
	if e := v.Get("error"); present(e) {
		a.readError(e, "")
		return
	}
	for _, item := range v.GetArray("output") {
		switch string(text(item.Get("type"))) {
		case "message":
			a.add(&c.text, KindText, text(item.Get("content")))
		case "reasoning":
			a.add(&c.reasoning, KindReasoning, text(item.Get("content")))
		case "tool_call":
			a.addFragment(c, fragment{index: c.tools.top, hasIndex: true, kind: []byte("function"), name: text(item.Get("tool")), args: item.Get("arguments")})
		case "invalid_tool_call":
			a.readLMStudioCall(c, "failure", item)
		}
	}
	if present(v.Get("output")) {
		a.ended = true
	}
	a.readLMStudioResult(v)
}

// readLMStudioResult reads the names and counts of the whole answer. Its texts are those the events have brought.
func (a *answer) readLMStudioResult(v *fastjson.Value) {
	identity(&a.model, v.Get("model_instance_id"))
	identity(&a.id, v.Get("response_id"))
	usage := usageCounts{
		prompt:     countOf(v.Get("stats", "input_tokens")),
		completion: countOf(v.Get("stats", "total_output_tokens")),
		reasoning:  countOf(v.Get("stats", "reasoning_output_tokens")),
	}
	if usage.prompt.ok || usage.completion.ok {
		a.takeUsage(usage, false)
	}
}

// keepLMStudioExtras keeps what stands beside the answer in the whole answer.
func (a *answer) keepLMStudioExtras(result []byte) {
	a.keepExtras(result, func(key string) bool {
		return key != "model_instance_id" && key != "output" && key != "response_id" && key != "error"
	})
}
