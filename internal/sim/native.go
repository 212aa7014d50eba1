package sim

import (
	"encoding/json"
	"errors"
	"strconv"
)

// llamaCppDialect is llama.cpp's own /completion: text only, with token ids and the engine's timings.
var llamaCppDialect = dialect{
	mime: mimeSSE, ping: ":\n\n", mute: true, parse: parseLlamaCpp, stream: streamLlamaCpp, plain: plainLlamaCpp,
	refuse: refuseLlamaCpp, breakup: func(int) []byte { return sse(refuseLlamaCpp(500, "server_error", lostModel)) },
}

// sglangDialect is SGLang's own /generate: each event repeats the text so far.
var sglangDialect = dialect{
	mime: mimeSSE, mute: true, parse: parseSGLang, stream: streamSGLang, plain: plainSGLang,
	refuse: refuseSGLang, breakup: func(int) []byte { return sse(refuseSGLang(500, "", lostModel)) },
}

// refuseLlamaCpp is an error in llama.cpp's form.
func refuseLlamaCpp(status int, kind, message string) []byte {
	return encode(object{{"error", object{{"code", status}, {"message", message}, {"type", kind}}}})
}

// refuseSGLang is an error in the form of SGLang's own paths.
func refuseSGLang(_ int, _, message string) []byte {
	return encode(object{{"error", object{{"message", message}}}})
}

func parseLlamaCpp(req Request, o Options) (ask, error) {
	var b struct {
		Prompt     json.RawMessage `json:"prompt"`
		Stream     bool            `json:"stream"`
		NPredict   *int            `json:"n_predict"`
		MaxTokens  *int            `json:"max_tokens"`
		NProbs     int             `json:"n_probs"`
		Stop       json.RawMessage `json:"stop"`
		IgnoreEOS  bool            `json:"ignore_eos"`
		JSONSchema json.RawMessage `json:"json_schema"`
	}
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	prompt := stringOrList(b.Prompt)
	if len(prompt) != 1 {
		return a, errors.New("\"prompt\" must be one string")
	}
	a.text, a.prompt = prompt[0], words(prompt...)
	a.stream, a.endless, a.stop, a.schema = b.Stream, b.IgnoreEOS, stringOrList(b.Stop), b.JSONSchema
	a.boundAbove(b.MaxTokens)
	a.boundAbove(b.NPredict)
	if b.NProbs > 0 {
		a.top = min(b.NProbs, 20)
	}
	return a, nil
}

func streamLlamaCpp(p *answerPlan, w *scribe) {
	running := 0
	for _, e := range p.events {
		running += len(e.tokens)
		o := p.llamaCppOpen(joined(e.tokens), p.tokenIDs(e.tokens), false, running)
		w.add(e.at, sse(encode(p.withProbabilities(o, e.tokens))), len(e.tokens))
	}
	w.add(p.last, sse(encode(p.llamaCppEnd("", nil))), 0)
}

func plainLlamaCpp(p *answerPlan) []byte {
	tokens := p.choices[0].tokens
	return encode(p.llamaCppEnd(joined(tokens), tokens))
}

func (p *answerPlan) llamaCppOpen(content string, ids []int, stop bool, running int) object {
	return object{
		{"index", 0}, {"content", content}, {"tokens", ids}, {"stop", stop}, {"id_slot", 0},
		{"tokens_predicted", running}, {"tokens_evaluated", p.total.Prompt},
	}
}

// llamaCppEnd is the last event of a stream, without content, or the whole of a plain answer.
func (p *answerPlan) llamaCppEnd(content string, tokens []token) object {
	c := p.choices[0]
	stop := "eos"
	switch {
	case c.finish == "length":
		stop = "limit"
	case c.stopped != "":
		stop = "word"
	}
	limit := -1
	if p.bounded {
		limit = p.limit
	}
	o := p.llamaCppOpen(content, []int{}, true, p.total.Completion).with(
		member{"model", p.model}, member{"generation_settings", object{{"n_predict", limit}, {"stream", p.ask.stream}}},
		member{"prompt", p.text}, member{"has_new_line", false}, member{"truncated", false}, member{"stop_type", stop},
		member{"stopping_word", c.stopped}, member{"tokens_cached", p.total.Prompt + p.total.Completion},
	)
	return p.withProbabilities(o, tokens).with(member{"timings", json.RawMessage(p.timings())})
}

func (p *answerPlan) withProbabilities(o object, tokens []token) object {
	if lp := p.logprobsOf(tokens); lp != nil {
		return o.with(member{"completion_probabilities", lp})
	}
	return o
}

func parseSGLang(req Request, o Options) (ask, error) {
	var b struct {
		Text     string `json:"text"`
		InputIDs []int  `json:"input_ids"`
		Stream   bool   `json:"stream"`
		Sampling struct {
			MaxNewTokens *int            `json:"max_new_tokens"`
			Stop         json.RawMessage `json:"stop"`
			IgnoreEOS    bool            `json:"ignore_eos"`
			JSONSchema   string          `json:"json_schema"`
		} `json:"sampling_params"`
	}
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	if b.Text == "" && len(b.InputIDs) == 0 {
		return a, errors.New("either text or input_ids must be given")
	}
	a.prompt = words(b.Text) + len(b.InputIDs)
	a.stream, a.endless, a.stop = b.Stream, b.Sampling.IgnoreEOS, stringOrList(b.Sampling.Stop)
	a.bound(b.Sampling.MaxNewTokens)
	if b.Sampling.JSONSchema != "" {
		a.schema = json.RawMessage(b.Sampling.JSONSchema)
	}
	return a, nil
}

// streamSGLang writes the text so far with each event; the last one holds the finish reason.
func streamSGLang(p *answerPlan, w *scribe) {
	events := p.events
	if len(events) == 0 {
		events = []event{{at: p.last}} // nothing was said, and that too has an end
	}
	var sofar []token
	for i, e := range events {
		sofar = append(sofar, e.tokens...)
		w.add(e.at, sse(p.sglangObject(sofar, i == len(events)-1)), len(e.tokens))
	}
	w.add(p.last, []byte("data: [DONE]\n\n"), 0)
}

func plainSGLang(p *answerPlan) []byte { return p.sglangObject(p.choices[0].tokens, true) }

func (p *answerPlan) sglangObject(tokens []token, end bool) []byte {
	var finish any
	if end {
		finish = p.sglangReason()
	}
	meta := object{
		{"id", p.id}, {"finish_reason", finish}, {"prompt_tokens", p.total.Prompt}, {"completion_tokens", len(tokens)},
		{"cached_tokens", p.total.Cached},
	}
	if end {
		seconds := strconv.FormatFloat(p.last.Seconds(), 'f', -1, 64)
		meta = meta.with(member{"e2e_latency", json.RawMessage(seconds)})
	}
	return encode(object{{"text", joined(tokens)}, {"output_ids", p.tokenIDs(tokens)}, {"meta_info", meta}})
}

func (p *answerPlan) sglangReason() object {
	c := p.choices[0]
	switch {
	case c.finish == "length":
		return object{{"type", "length"}, {"length", p.total.Completion}}
	case c.stopped != "":
		return object{{"type", "stop"}, {"matched", c.stopped}}
	}
	return object{{"type", "stop"}, {"matched", tokenID("")}}
}
