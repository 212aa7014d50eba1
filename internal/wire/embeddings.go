package wire

import (
	"encoding/base64"

	"github.com/valyala/fastjson"
)

// embeddingsKnows are the top-level keys that need not be kept beside the dialect. The durations of Ollama are kept:
// Timings is read from them.
func embeddingsKnows(key string) bool {
	switch key {
	case "id", "object", "created", "model", "data", "usage", "error", "index", "embedding", "embeddings", "predictions":
		return true
	}
	return false
}

// isEmbeddings tells an answer with vectors.
func isEmbeddings(v *fastjson.Value) bool {
	return firstOf(v, "data", "embedding", "embeddings") != nil
}

// readEmbeddings reads the answer of an embeddings endpoint: OpenAI's list, Ollama's /api/embed and /api/embeddings,
// llama.cpp's array of objects, or Gemini's embedContent. Nothing is generated, so there is no finish reason: the answer
// is whole when its JSON is.
func readEmbeddings(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	identity(&a.id, v.Get("id"))
	identity(&a.model, v.Get("model"))
	a.readVectors(v)
	usage, ok := readUsage(v.Get("usage"))
	if n := countOf(v.Get("prompt_eval_count")); !ok && n.ok { // Ollama
		usage.prompt, ok = n, true
	}
	if ok {
		a.takeUsage(usage, false)
	}
	a.readError(v.Get("error"), "")
	a.keepUnknown(v.GetObject(), data, embeddingsKnows)
}

// readVectors counts the vectors of an object, wherever they stand in it.
func (a *answer) readVectors(v *fastjson.Value) {
	if a.quiet {
		return
	}
	for _, key := range [...]string{"data", "embeddings"} {
		list := v.Get(key)
		if list == nil || list.Type() != fastjson.TypeArray {
			continue
		}
		a.ended = true
		for _, e := range list.GetArray() {
			if e.Type() == fastjson.TypeObject {
				a.readVectors(e)
			} else {
				a.countVector(e)
			}
		}
	}
	if e := v.Get("embedding"); present(e) {
		a.ended = true
		a.countVector(e)
	}
	if e := v.Get("values"); e != nil { // Gemini
		a.countVector(e)
	}
}

// countVector counts a vector, or each of the vectors of a text whose tokens were not pooled.
func (a *answer) countVector(v *fastjson.Value) {
	dims := 0
	switch v.Type() {
	case fastjson.TypeArray:
		list := v.GetArray()
		if len(list) > 0 && list[0].Type() == fastjson.TypeArray {
			for _, e := range list {
				if e.Type() == fastjson.TypeArray {
					a.vectors++
					a.vectorDims = max(a.vectorDims, len(e.GetArray()))
				}
			}
			return
		}
		dims = len(list)
	case fastjson.TypeString: // base64 of 32-bit floats
		dims = base64.StdEncoding.DecodedLen(len(text(v))) / 4
	case fastjson.TypeObject:
		a.readVectors(v)
		return
	default:
		return
	}
	a.vectors++
	a.vectorDims = max(a.vectorDims, dims)
}
