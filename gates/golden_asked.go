package gates

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// asking is a request as comparisons look at it: the fields of its body by the names that this package uses, those that
// engines keep in an object of their own beside the rest.
type asking struct {
	fields map[string]json.RawMessage // canonical JSON
}

// nestedFields are the objects in which engines keep sampling fields.
var nestedFields = []string{"options", "generationConfig", "sampling_params"}

// spellings map the names of engines to the one used here.
var spellings = map[string]string{
	"repetition_penalty": "repeat_penalty", "max_completion_tokens": "max_tokens", "n_predict": "max_tokens", "num_predict": "max_tokens",
	"max_output_tokens": "max_tokens", "max_new_tokens": "max_tokens", "maxOutputTokens": "max_tokens", "topP": "top_p", "topK": "top_k",
	"stop_sequences": "stop", "stopSequences": "stop", "presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty",
	"candidateCount": "n", "n_cmpl": "n",
}

// The fields that choose tokens. Those of the first list have no effect when the best token is always taken.
var (
	drawFields = []string{"dynatemp_exponent", "dynatemp_range", "min_p", "mirostat", "mirostat_eta", "mirostat_tau", "seed", "tfs_z",
		"top_k", "top_n_sigma", "top_p", "typical_p", "xtc_probability", "xtc_threshold"}
	choiceFields = []string{"bad_words", "best_of", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers",
		"format", "frequency_penalty", "grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "ignore_eos", "json_schema", "logit_bias",
		"min_tokens", "n", "presence_penalty", "repeat_last_n", "repeat_penalty", "response_format", "samplers", "stop", "stop_token_ids", "structured_outputs", "temperature"}
)

// asideFields change neither the prompt nor the choice of tokens: what comes beside the answer, and where it is made.
var asideFields = []string{"cache_prompt", "cache_salt", "id_slot", "keep_alive", "logprobs", "max_tokens", "metadata", "model", "n_probs",
	"post_sampling_probs", "prompt_logprobs", "return_progress", "return_token_ids", "return_tokens", "return_tokens_as_token_ids", "service_tier",
	"sse_ping_interval", "store", "stream", "stream_options", "timings_per_token", "top_logprobs", "user", "verbose"}

// neutral are the values of sampling fields that do nothing, as canonical JSON: a request that names one asks for the
// same as one that does not.
var neutral = map[string][]string{
	"repeat_penalty": {"1", "1.0"}, "presence_penalty": {"0", "0.0"}, "frequency_penalty": {"0", "0.0"}, "top_p": {"1", "1.0"}, "top_k": {"0", "-1"},
	"min_p": {"0", "0.0"}, "typical_p": {"1", "1.0"}, "n": {"1"}, "best_of": {"1"}, "logit_bias": {"{}", "[]"}, "stop": {"[]", `""`}, "ignore_eos": {"false"},
	"response_format": {`{"type":"text"}`}, "mirostat": {"0"}, "dry_multiplier": {"0", "0.0"}, "xtc_probability": {"0", "0.0"}, "grammar": {`""`}, "min_tokens": {"0"},
	"format": {`""`}, "dynatemp_range": {"0", "0.0"},
}

// askedFor reads the request of an exchange. One that is no JSON object asks for nothing that is known.
func askedFor(x *exchange.Exchange) *asking {
	a := &asking{fields: map[string]json.RawMessage{}}
	var body map[string]json.RawMessage
	if json.Unmarshal(x.Request.Body.Bytes(), &body) != nil {
		return a
	}
	for _, outer := range nestedFields {
		var inner map[string]json.RawMessage
		if json.Unmarshal(body[outer], &inner) == nil {
			delete(body, outer)
			a.take(inner)
		}
	}
	a.take(body)
	return a
}

// take adds the fields that are not null.
func (a *asking) take(fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, err := canon.JSON(fields[name])
		if err != nil || string(v) == "null" {
			continue
		}
		if known, ok := spellings[name]; ok {
			name = known
		}
		a.fields[name] = v
	}
}

// number is a field that is a number, nil when there is none.
func (a *asking) number(name string) *float64 {
	f, err := strconv.ParseFloat(string(a.fields[name]), 64)
	if err != nil {
		return nil
	}
	return &f
}

func (a *asking) whole(name string) *int64 {
	n, err := strconv.ParseInt(string(a.fields[name]), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// greedy reports whether the request asks for the best token always.
func (a *asking) greedy() bool {
	t, k := a.number("temperature"), a.number("top_k")
	return t != nil && *t <= 0 || k != nil && *k == 1
}

// sampling are the fields that choose tokens, as canonical JSON, without those that do nothing.
func (a *asking) sampling() json.RawMessage {
	chosen := map[string]json.RawMessage{}
	for name, v := range a.fields {
		switch {
		case slices.Contains(neutral[name], string(v)):
		case slices.Contains(choiceFields, name), slices.Contains(drawFields, name) && !a.greedy():
			chosen[name] = v
		}
	}
	if a.greedy() {
		chosen["temperature"] = json.RawMessage("0")
	}
	return object(chosen)
}

// promptDigest is the digest of the fields that make the prompt: all that are not known to do something else.
func (a *asking) promptDigest() string {
	prompt := map[string]json.RawMessage{}
	for name, v := range a.fields {
		if !slices.Contains(choiceFields, name) && !slices.Contains(drawFields, name) && !slices.Contains(asideFields, name) {
			prompt[name] = v
		}
	}
	sum := sha256.Sum256(object(prompt))
	return exchange.DigestPrefix + hex.EncodeToString(sum[:])
}

// object writes fields as canonical JSON.
func object(fields map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string always has a form
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// firstDifference is the first field in which two sampling objects differ, and both values; "" when they do not.
func firstDifference(a, b json.RawMessage) (field, left, right string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return "sampling", string(a), string(b)
	}
	for _, name := range slices.Sorted(maps.Keys(merged(x, y))) {
		if !sameJSON(x[name], y[name]) {
			return name, orNone(x[name]), orNone(y[name])
		}
	}
	return "", "", ""
}

func merged(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// sameJSON compares two canonical texts, numbers by their value: 0 and 0.0 ask for the same.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	return err1 == nil && err2 == nil && x == y
}

func orNone(v json.RawMessage) string {
	if v == nil {
		return "not named"
	}
	return strings.TrimSpace(string(v))
}
