package wire

import (
	"bytes"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// RequestOf takes the facts from a sealed exchange, read by the dialect that was pinned for it, if one was.
func RequestOf(x *exchange.Exchange) RequestFacts {
	d := Dialect(x.Dialect)
	if d == DialectNone {
		d = DialectOf(x.Request.Target)
	}
	return readRequest(d, x.Request.Target, x.Request.Headers, x.Request.Body.Bytes())
}

// ReadRequest takes the facts from a request body. Garbage gives the zero facts with N = 1; it never fails.
func ReadRequest(path string, headers []exchange.Header, body []byte) RequestFacts {
	return readRequest(DialectOf(path), path, headers, body)
}

func readRequest(dialect Dialect, target string, headers []exchange.Header, body []byte) RequestFacts {
	r := requestReader{facts: RequestFacts{N: 1}}
	r.path(dialect, target)
	coding, _ := exchange.HeaderValue(headers, "Content-Encoding")
	body, ok := decodeAll(coding, body)
	if !ok || len(body) > maxValue || len(body) > maxUnchecked && !valid(body) {
		return r.facts
	}
	p := jsonParsers.Get()
	defer giveBack(p, len(body))
	v, err := p.ParseBytes(body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return r.facts
	}
	r.facts.JSON = true
	r.facts.Stream = r.facts.Stream || dialect == DialectOllama // streams unless told not to
	v.GetObject().Visit(r.field)
	for _, l := range r.limits {
		if l.ok {
			r.facts.MaxTokens = l.ptr()
			break
		}
	}
	return r.facts
}

// requestReader gathers the facts of one request.
type requestReader struct {
	facts  RequestFacts
	limits [len(limitKeys)]count
}

// path takes what the path tells where the dialect says it there: the model, and with Gemini whether to stream.
func (r *requestReader) path(dialect Dialect, target string) {
	model, method := methodInPath(target)
	if method == "" || dialect != DialectGemini && dialect != DialectAnthropic && dialect != DialectEmbeddings {
		return
	}
	r.facts.Model = model
	r.facts.Stream = method == "streamGenerateContent" || method == "streamRawPredict"
}

// field reads one top-level field.
func (r *requestReader) field(key []byte, v *fastjson.Value) {
	switch k := string(key); k {
	case "model":
		if b := text(v); len(b) > 0 {
			r.facts.Model = string(b)
		}
	case "stream":
		if present(v) {
			r.facts.Stream = isTrue(v)
		}
	case "n", "n_cmpl": // n_cmpl: llama.cpp
		if n := countOf(v); n.n > 0 {
			r.facts.N = n.n
		}
	case "echo":
		r.facts.Echo = isTrue(v)
	case "stream_options":
		r.facts.IncludeUsage = isTrue(v.Get("include_usage"))
	case "generationConfig", "generation_config": // Gemini
		r.generationConfig(v)
	case "request": // of Google's Code Assist, which wraps it
		r.generationConfig(v.Get("generationConfig"))
	case "prompt", "text", "input_ids":
		r.facts.Prompts = max(r.facts.Prompts, promptsIn(v))
	case "options": // Ollama
		r.limit("num_predict", v.Get("num_predict"))
	case "sampling_params": // SGLang
		r.limit("max_new_tokens", v.Get("max_new_tokens"))
		if n := countOf(v.Get("n")); n.n > 0 {
			r.facts.N = n.n
		}
	default:
		r.limit(k, v)
	}
}

// generationConfig reads Gemini's options, which it takes in either spelling.
func (r *requestReader) generationConfig(v *fastjson.Value) {
	for _, key := range [...]string{"maxOutputTokens", "max_output_tokens"} {
		if m := v.Get(key); present(m) {
			r.limit("max_output_tokens", m)
		}
	}
	for _, key := range [...]string{"candidateCount", "candidate_count"} {
		if n := countOf(v.Get(key)); n.ok && n.n > 0 {
			r.facts.N = n.n
		}
	}
}

// limitKeys are the names of the output limit, the one that wins first.
var limitKeys = [...]string{"max_completion_tokens", "max_tokens", "max_output_tokens", "num_predict", "n_predict", "max_new_tokens", "maxTokens"}

// limit keeps an output limit; negative ones mean "none".
func (r *requestReader) limit(key string, v *fastjson.Value) {
	for i, k := range limitKeys {
		if k == key {
			r.limits[i] = countOf(v)
		}
	}
}

// promptsIn is the number of prompts in a list of texts or of token lists. A list of tokens is one prompt.
func promptsIn(v *fastjson.Value) int64 {
	list, _ := v.Array()
	if len(list) == 0 || list[0].Type() == fastjson.TypeNumber {
		return 0
	}
	return int64(len(list))
}

func isTrue(v *fastjson.Value) bool { return v != nil && v.Type() == fastjson.TypeTrue }

// decodeAll undoes the content coding of a body that is there as a whole.
func decodeAll(coding string, body []byte) ([]byte, bool) {
	c := newCodedBody(coding)
	if c == nil {
		return body, true
	}
	var out bytes.Buffer
	c.add(body, 0)
	err := c.decode(func(b []byte, _ int) { out.Write(b) })
	return out.Bytes(), err == nil
}
