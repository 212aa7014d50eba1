package sim

import (
	"encoding/json"
	"time"
)

// ollamaChatDialect is /api/chat.
var ollamaChatDialect = dialect{
	mime: mimeLines, whole: true, parse: parseOllamaChat, refuse: refuseOllama, breakup: breakOllama,
	stream: streamOllama, plain: plainOllama,
}

// ollamaGenerateDialect is /api/generate.
var ollamaGenerateDialect = dialect{
	mime: mimeLines, whole: true, parse: parseOllamaGenerate, refuse: refuseOllama, breakup: breakOllama,
	stream: streamOllama, plain: plainOllama,
}

func breakOllama(int) []byte { return line(refuseOllama(500, "", lostModel)) }

// refuseOllama is an error in Ollama's form: the message alone.
func refuseOllama(_ int, _, message string) []byte { return encode(object{{"error", message}}) }

// ollamaBody is a request body of either path, as far as the engine looks at it.
type ollamaBody struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Prompt  string          `json:"prompt"`
	Suffix  string          `json:"suffix"`
	System  string          `json:"system"`
	Stream  *bool           `json:"stream"` // true when it is missing
	Tools   []tool          `json:"tools"`
	Format  json.RawMessage `json:"format"`
	Think   json.RawMessage `json:"think"` // a switch, or how much
	Options struct {
		NumPredict *int            `json:"num_predict"`
		Stop       json.RawMessage `json:"stop"`
	} `json:"options"`
	KeepAlive   json.RawMessage `json:"keep_alive"`
	Logprobs    bool            `json:"logprobs"`
	TopLogprobs int             `json:"top_logprobs"`
}

// ask reads what both paths share.
func (b ollamaBody) ask(o Options) ask {
	a := newAsk(o)
	a.model, a.stream = b.Model, b.Stream == nil || *b.Stream
	a.boundAbove(b.Options.NumPredict)
	a.stop = stringOrList(b.Options.Stop)
	switch string(b.Think) {
	case "", "false", `""`, "null":
	default:
		a.thinking = true
	}
	switch string(b.Format) {
	case "", "null", `""`:
	case `"json"`:
		a.schema = anyJSON
	default:
		a.schema = b.Format
	}
	if b.Logprobs {
		a.top = min(max(b.TopLogprobs, 0), 20)
	}
	return a
}

// loading is how a request without a prompt ends: it loads the model, or unloads it.
func (b ollamaBody) loading() string {
	if k := string(b.KeepAlive); k == "0" || k == `"0"` || k == `"0s"` {
		return "unload"
	}
	return "load"
}

func parseOllamaChat(req Request, o Options) (ask, error) {
	var b ollamaBody
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := b.ask(o)
	a.chat = true
	if len(b.Messages) == 0 {
		a.control = b.loading()
		return a, nil
	}
	for _, m := range b.Messages {
		a.prompt += words(m.Content)
	}
	a.offer(toolWish{tools: b.Tools, answered: b.Messages[len(b.Messages)-1].Role == "tool"}, o)
	return a, nil
}

func parseOllamaGenerate(req Request, o Options) (ask, error) {
	var b ollamaBody
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := b.ask(o)
	if b.Prompt == "" {
		a.control = b.loading()
		return a, nil
	}
	a.prompt = words(b.System, b.Prompt, b.Suffix)
	return a, nil
}

func streamOllama(p *answerPlan, w *scribe) {
	for _, e := range p.events {
		b := block{kind: e.tokens[0].kind, call: e.tokens[0].call}
		b.name, b.text = e.parts()
		o := p.ollamaLine(e.at, []block{b}).with(member{"done", false})
		if lp := p.logprobsOf(e.tokens); lp != nil {
			o = o.with(member{"logprobs", lp})
		}
		w.add(e.at, line(encode(o)), len(e.tokens))
	}
	w.add(p.last, line(encode(p.ollamaLine(p.last, nil).with(p.ollamaEnd()...))), 0)
}

func plainOllama(p *answerPlan) []byte {
	o := p.ollamaLine(p.last, p.blocks(0)).with(p.ollamaEnd()...)
	if lp := p.logprobsOf(p.choices[0].tokens); lp != nil {
		o = o.with(member{"logprobs", lp})
	}
	return encode(o)
}

// logprobsOf are the log-probabilities of the text among tokens; nil when there are none to tell.
func (p *answerPlan) logprobsOf(tokens []token) json.RawMessage {
	text := textOf(tokens)
	if p.top < 0 || len(text) == 0 {
		return nil
	}
	return p.logprobList(text)
}

// ollamaLine is a line up to its "done", with what the blocks say.
func (p *answerPlan) ollamaLine(at time.Duration, blocks []block) object {
	o := object{{"model", p.model}, {"created_at", stampAt(at)}}
	text, thinking := ofKind(blocks, kindText), ofKind(blocks, kindReasoning)
	if !p.chat {
		o = o.with(member{"response", text})
		if thinking != "" {
			o = o.with(member{"thinking", thinking})
		}
		return o
	}
	message := object{{"role", "assistant"}, {"content", text}}
	if thinking != "" {
		message = message.with(member{"thinking", thinking})
	}
	calls := array{}
	for _, b := range blocks {
		if b.kind == kindCall {
			f := object{{"index", b.call}, {"name", b.name}, {"arguments", b.arguments()}}
			calls = append(calls, object{{"id", p.callID(0, b.call)}, {"function", f}})
		}
	}
	if len(calls) > 0 {
		message = message.with(member{"tool_calls", calls})
	}
	return o.with(member{"message", message})
}

// ollamaEnd is what the last line adds: the reason, and the planned times and counts without those that are zero.
func (p *answerPlan) ollamaEnd() []member {
	reason := p.choices[0].finish
	if reason == "tool_calls" {
		reason = "stop"
	}
	end := []member{{"done", true}, {"done_reason", reason}}
	if p.control != "" || p.Options.Usage == UsageNone {
		return end
	}
	if !p.chat {
		end = append(end, member{"context", p.tokenIDs(p.choices[0].tokens)})
	}
	for _, m := range []struct {
		key string
		n   int
	}{
		{"total_duration", int(p.last)}, {"prompt_eval_count", p.total.Prompt}, {"prompt_eval_duration", int(p.prefill)},
		{"eval_count", p.total.Completion}, {"eval_duration", int(p.last - p.prefill)},
	} {
		if m.n > 0 {
			end = append(end, member{m.key, m.n})
		}
	}
	return end
}

// tokenIDs are made-up ids of tokens: the same for the same text.
func (p *answerPlan) tokenIDs(tokens []token) []int {
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = tokenID(t.text)
	}
	return ids
}

// tokenID is the made-up id of a token's text.
func tokenID(text string) int {
	h := uint32(2166136261)
	for _, c := range []byte(text) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h % 100_000)
}

// ollamaModels is the listing at /api/tags.
func (s *Server) ollamaModels() []byte {
	return encode(object{{"models", array{object{
		{"name", s.cfg.Model}, {"model", s.cfg.Model}, {"modified_at", stampAt(0)}, {"size", 0}, {"digest", ""},
		{"details", object{{"format", "gguf"}, {"family", "sim"}}},
	}}}})
}
