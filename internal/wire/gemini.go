package wire

import (
	"net/url"
	"strings"

	"github.com/valyala/fastjson"
)

// geminiKnows are the top-level keys that need not be kept beside the dialect.
func geminiKnows(key string) bool {
	switch key {
	case "candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "createTime", "error", "response":
		return true
	}
	return false
}

// readGemini reads a chunk or the whole answer of generateContent. Nothing but the finish reasons of the candidates, or
// the block reason of the prompt, tells the end of a stream.
func readGemini(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	a.readGeminiError(v.Get("error"))
	a.keepUnknown(v.GetObject(), data, geminiKnows)
	if inner := v.Get("response"); inner != nil && inner.Type() == fastjson.TypeObject { // Google's Code Assist wraps the chunk
		v = inner
	}
	identity(&a.id, v.Get("responseId"))
	identity(&a.model, v.Get("modelVersion"))
	for i, candidate := range v.GetArray("candidates") {
		if candidate.Type() != fastjson.TypeObject {
			continue
		}
		index, ok := indexOf(candidate.Get("index"))
		if !ok {
			index = i
		}
		a.readCandidate(a.choice(index), candidate)
	}
	if reason := word(v.Get("promptFeedback", "blockReason")); reason != "" {
		if c := a.choice(0); !c.finished {
			c.finish, c.finished = blocked+":"+reason, true
		}
	}
	if u, ok := readUsageMetadata(v.Get("usageMetadata"), a.hasContent()); ok {
		a.takeUsage(u, true)
	}
}

// readGeminiError reads an error, whose type is called its status (INVALID_ARGUMENT and its like).
func (a *answer) readGeminiError(v *fastjson.Value) {
	if a.failure != nil {
		return
	}
	a.readError(v, "")
	if a.failure != nil && a.failure.Type == "" {
		a.failure.Type = string(text(v.Get("status")))
	}
}

func (a *answer) readCandidate(c *choice, v *fastjson.Value) {
	for _, part := range v.GetArray("content", "parts") {
		if part.Type() == fastjson.TypeObject {
			a.readPart(c, part)
		}
	}
	a.countLogprobs(v.Get("logprobsResult", "chosenCandidates"))
	a.setFinish(c, v.Get("finishReason"))
}

// readPart reads one part of a candidate's content. What a tool on Google's side answered was not generated, and a
// signature is no content.
func (a *answer) readPart(c *choice, part *fastjson.Value) {
	to, kind := &c.text, KindText
	if isTrue(part.Get("thought")) {
		to, kind = &c.reasoning, KindReasoning
	}
	a.add(to, kind, text(part.Get("text")))
	a.addMedia(part.Get("inlineData", "data"))
	a.addMedia(part.Get("fileData", "fileUri"))
	if call := part.Get("functionCall"); call != nil && call.Type() == fastjson.TypeObject {
		a.readFunctionCall(c, call)
	}
	if code := part.Get("executableCode"); code != nil && code.Type() == fastjson.TypeObject {
		a.addFragment(c, fragment{
			index: c.tools.top, hasIndex: true, id: text(code.Get("id")), kind: []byte("executableCode"), name: []byte("code_execution"),
			args: code, byEngine: true,
		})
	}
	if call := part.Get("toolCall"); call != nil && call.Type() == fastjson.TypeObject {
		a.addFragment(c, fragment{
			index: c.tools.top, hasIndex: true, id: text(call.Get("id")), kind: []byte("toolCall"), name: text(call.Get("toolType")),
			args: call.Get("args"), byEngine: true,
		})
	}
}

// readFunctionCall reads a call, which comes whole. A call that announces more to come is continued by the calls after
// it, whose partial arguments are joined as sent: each a list of JSON paths and values.
func (a *answer) readFunctionCall(c *choice, v *fastjson.Value) {
	f := fragment{id: text(v.Get("id")), name: text(v.Get("name")), args: v.Get("args")}
	f.index, f.hasIndex = c.tools.top, true
	if c.continued {
		f.index-- // the last one
		f.id = nil
	}
	if !present(f.args) {
		f.args = v.Get("partialArgs")
	}
	if c.continued || len(f.name) > 0 || len(f.id) > 0 || present(f.args) {
		a.addFragment(c, f)
	}
	c.continued = isTrue(v.Get("willContinue")) && !a.quiet
}

// readUsageMetadata reads the counts of a chunk, which cover the answer up to it. The thoughts are not among the tokens
// of the candidates, unless the total shows that they are; where neither is told, the total tells their sum, but for an
// answer that has content and a total that is the prompt alone: such a total does not count the answer. The cached part
// is within the prompt.
func readUsageMetadata(v *fastjson.Value, hasContent bool) (u usageCounts, ok bool) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return u, false
	}
	u.prompt = countOf(v.Get("promptTokenCount"))
	u.cached = countOf(v.Get("cachedContentTokenCount"))
	u.reasoning = countOf(v.Get("thoughtsTokenCount"))
	candidates, total := countOf(v.Get("candidatesTokenCount")), countOf(v.Get("totalTokenCount"))
	before := u.prompt.plus(countOf(v.Get("toolUsePromptTokenCount")))
	switch {
	case candidates.ok && total.ok && total == before.plus(candidates) && u.reasoning.n <= candidates.n:
		u.completion = candidates
	case candidates.ok:
		u.completion = candidates.plus(u.reasoning)
	case u.reasoning.ok:
		u.completion = u.reasoning
	case before.ok && total.ok && (total.n > before.n || total.n == before.n && !hasContent):
		u.completion = count{total.n - before.n, true}
	}
	return u, u.prompt.ok || u.completion.ok
}

// methodInPath is the model and the method of a path that ends in model:method, as Google's do.
func methodInPath(target string) (model, method string) {
	path := pathOf(target)
	model = path[strings.LastIndexByte(path, '/')+1:]
	colon := strings.LastIndexByte(model, ':') // a model may have one too
	if colon < 0 {
		return "", ""
	}
	model, method = model[:colon], model[colon+1:]
	if plain, err := url.PathUnescape(model); err == nil {
		model = plain
	}
	return model, method
}
