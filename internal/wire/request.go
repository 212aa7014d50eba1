package wire

import (
	"bytes"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ReadRequest takes the facts from a request body. Garbage gives the zero facts with N = 1; it never fails.
func ReadRequest(path string, headers []exchange.Header, body []byte) RequestFacts {
	f := RequestFacts{N: 1}
	ce, _ := exchange.HeaderValue(headers, "Content-Encoding")
	body, ok := decodeAll(ce, body)
	if !ok || len(body) > maxUnchecked && !valid(body) || len(body) > maxValue {
		return f
	}
	var p fastjson.Parser
	v, err := p.ParseBytes(body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return f
	}
	f.JSON = true
	f.Stream = DialectOf(path) == DialectOllama // streams unless told not to
	var limits [len(limitKeys)]count
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		switch k := string(key); k {
		case "model":
			f.Model = string(text(v))
		case "stream":
			if present(v) {
				f.Stream = v.Type() == fastjson.TypeTrue
			}
		case "n":
			if n := countOf(v); n.ok && n.n > 0 {
				f.N = n.n
			}
		case "echo":
			f.Echo = v.Type() == fastjson.TypeTrue
		case "stream_options":
			f.IncludeUsage = isTrue(v.Get("include_usage"))
		case "options":
			readLimit(&limits, "num_predict", v.Get("num_predict"))
		default:
			readLimit(&limits, k, v)
		}
	})
	for _, l := range limits {
		if l.ok {
			f.MaxTokens = l.ptr()
			break
		}
	}
	return f
}

// limitKeys are the names of the output limit, the one that wins first.
var limitKeys = [...]string{"max_completion_tokens", "max_tokens", "max_output_tokens", "num_predict", "n_predict"}

// readLimit keeps an output limit; negative ones mean "none".
func readLimit(limits *[len(limitKeys)]count, key string, v *fastjson.Value) {
	for i, k := range limitKeys {
		if k == key {
			limits[i] = countOf(v)
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
