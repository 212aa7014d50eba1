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
	return readRequest(d, x.Request.Headers, x.Request.Body.Bytes())
}

// ReadRequest takes the facts from a request body. Garbage gives the zero facts with N = 1; it never fails.
func ReadRequest(path string, headers []exchange.Header, body []byte) RequestFacts {
	return readRequest(DialectOf(path), headers, body)
}

func readRequest(dialect Dialect, headers []exchange.Header, body []byte) RequestFacts {
	r := requestReader{facts: RequestFacts{N: 1}}
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
	r.facts.Stream = dialect == DialectOllama // streams unless told not to
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

// field reads one top-level field.
func (r *requestReader) field(key []byte, v *fastjson.Value) {
	switch k := string(key); k {
	case "model":
		r.facts.Model = string(text(v))
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
