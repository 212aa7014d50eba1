package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

const defaultDimensions = 16 // of a vector when the request names none

// inputs reads the input of an embedding request: a text, a list of texts, token ids, or a list of lists of them. The
// prompt has as many tokens as the texts have words, or as there are ids.
func inputs(raw json.RawMessage) (seeds []string, tokens int, err error) {
	var ids []int
	var lists [][]int
	switch list := stringOrList(raw); {
	case len(list) > 0:
		return list, words(list...), nil
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		return []string{string(raw)}, len(ids), nil
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
		for _, l := range lists {
			seeds = append(seeds, string(encode(l)))
			tokens += len(l)
		}
		return seeds, tokens, nil
	}
	return nil, 0, errors.New("input is missing")
}

// vector is the embedding of a text: of length 1, and the same for the same text.
func vector(text string, dimensions int, o Options) []float32 {
	rng := rand.New(rand.NewPCG(uint64(tokenID(text)), o.Seed))
	v, sum := make([]float32, dimensions), 0.0
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	norm := float32(math.Sqrt(sum))
	for i := range v {
		v[i] /= norm
	}
	return v
}

// packed is a vector as base64 of little-endian 32-bit numbers.
func packed(v []float32) string {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// dimensionsOf checks the length of vectors that a request asks for.
func dimensionsOf(asked *int) (int, error) {
	switch {
	case asked == nil:
		return defaultDimensions, nil
	case *asked < 1 || *asked > 1<<16:
		return 0, errors.New("dimensions must be between 1 and 65536")
	}
	return *asked, nil
}

// embedded is a body that is sent when the prompt has been read.
func embedded(body []byte, tokens int, o Options) *Script {
	s := jsonScript(200, body)
	s.Steps[0].At = embeddedAt(tokens, o)
	s.Usage = Usage{Prompt: tokens}
	return s
}

func embeddedAt(tokens int, o Options) time.Duration { return o.TTFT + perSecond(tokens, o.PrefillTPS) }

// embedOpenAI answers /v1/embeddings.
func (s *Server) embedOpenAI(req Request, o Options) *Script {
	var b struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Format     string          `json:"encoding_format"`
		Dimensions *int            `json:"dimensions"`
	}
	err := readBody(req, &b)
	var texts []string
	var tokens, dimensions int
	if err == nil {
		texts, tokens, err = inputs(b.Input)
	}
	if err == nil {
		dimensions, err = dimensionsOf(b.Dimensions)
	}
	if err != nil {
		return errorScript(400, "invalid_request_error", err.Error())
	}
	if b.Model == "" {
		b.Model = s.cfg.Model
	}
	data := array{}
	for i, text := range texts {
		var value any = vector(text, dimensions, o)
		if b.Format == "base64" {
			value = packed(vector(text, dimensions, o))
		}
		data = append(data, object{{"object", "embedding"}, {"index", i}, {"embedding", value}})
	}
	return embedded(encode(object{
		{"object", "list"}, {"data", data}, {"model", b.Model}, {"usage", object{{"prompt_tokens", tokens}, {"total_tokens", tokens}}},
	}), tokens, o)
}

// embedOllama answers /api/embed, and the older /api/embeddings, which takes one prompt and tells no counts.
func (s *Server) embedOllama(req Request, o Options) *Script {
	var b struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Prompt     json.RawMessage `json:"prompt"`
		Dimensions *int            `json:"dimensions"`
	}
	old := req.Path() == "/api/embeddings"
	err := readBody(req, &b)
	if old {
		b.Input = b.Prompt
	}
	var texts []string
	var tokens, dimensions int
	if err == nil {
		texts, tokens, err = inputs(b.Input)
	}
	if err == nil {
		dimensions, err = dimensionsOf(b.Dimensions)
	}
	if err != nil {
		return refuse(refuseOllama, 400, "", err.Error())
	}
	if old {
		return embedded(encode(object{{"embedding", vector(texts[0], dimensions, o)}}), tokens, o)
	}
	if b.Model == "" {
		b.Model = s.cfg.Model
	}
	vectors := array{}
	for _, text := range texts {
		vectors = append(vectors, vector(text, dimensions, o))
	}
	return embedded(encode(object{
		{"model", b.Model}, {"embeddings", vectors}, {"total_duration", int(embeddedAt(tokens, o))}, {"prompt_eval_count", tokens},
	}), tokens, o)
}
