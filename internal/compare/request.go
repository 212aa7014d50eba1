package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Fields are what a request asked for: path of a field -> canonical JSON, or a digest of it where it is long. Output
// limit and streaming stand under one name whatever the dialect calls them.
type Fields map[string]string

const (
	fieldLimit  = "output_limit"
	fieldStream = "stream"
)

// longField is the length from which a field is kept as a digest.
const longField = 80

// nested are objects whose fields are options of their own.
var nested = []string{"options", "generationConfig", "generation_config", "sampling_params", "chat_template_kwargs", "thinkingConfig", "reasoning", "thinking"}

// renamed are fields that the dialects spell differently and that Fields holds under a name of its own.
var renamed = []string{"max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens", "num_predict", "n_predict", "max_new_tokens", "maxTokens", "stream"}

func readFields(body []byte, facts wire.RequestFacts) Fields {
	f := Fields{fieldStream: strconv.FormatBool(facts.Stream)}
	if facts.MaxTokens != nil {
		f[fieldLimit] = strconv.FormatInt(*facts.MaxTokens, 10)
	}
	f.object("", body)
	return f
}

// object takes the fields of a JSON object. What is none gives nothing: its request is told by its key alone.
func (f Fields) object(prefix string, text []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return
	}
	for name, value := range fields {
		switch {
		case slices.Contains(renamed, name):
		case slices.Contains(nested, name) && strings.HasPrefix(string(value), "{"):
			f.object(prefix+name+".", value)
		default:
			f[prefix+name] = fieldText(value)
		}
	}
}

func fieldText(value []byte) string {
	text, err := canon.JSON(value)
	if err != nil {
		text = value
	}
	if len(text) > longField {
		sum := sha256.Sum256(text)
		return "sha256:" + hex.EncodeToString(sum[:6])
	}
	return string(text)
}

// groupOf is the reason for which pairs that differ in the field are not compared; "" when they are.
func groupOf(field string) exchange.Reason {
	name := field[strings.LastIndexByte(field, '.')+1:]
	switch {
	case field == fieldStream:
		return ReasonStream
	case field == fieldLimit:
		return ReasonLimit
	case slices.Contains(samplingFields, name):
		return ReasonSampling
	case slices.Contains(structureFields, name):
		return ReasonStructure
	case slices.Contains(thinkingFields, name):
		return ReasonThinking
	}
	return ""
}

var samplingFields = []string{"temperature", "top_p", "topP", "top_k", "topK", "min_p", "typical_p", "n", "candidateCount", "best_of",
	"presence_penalty", "presencePenalty", "frequency_penalty", "frequencyPenalty", "repetition_penalty", "repeat_penalty",
	"logit_bias", "mirostat", "dry_multiplier", "xtc_probability", "ignore_eos", "min_tokens"}

var structureFields = []string{"tools", "tool_choice", "functions", "function_call", "parallel_tool_calls", "response_format", "format", "json_schema",
	"grammar", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "output_config", "responseSchema", "responseMimeType", "stop"}

var thinkingFields = []string{"think", "enable_thinking", "reasoning_effort", "effort", "thinking_budget", "thinkingBudget", "budget_tokens", "type", "include_thoughts", "includeThoughts"}

// difference is a field in which two requests differ; a side that does not name it is "".
type difference struct {
	field                string
	reference, candidate string
}

// differences are sorted by field.
func differences(a, b Fields) []difference {
	all := maps.Clone(a)
	if all == nil {
		all = Fields{}
	}
	maps.Copy(all, b)
	var out []difference
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if a[field] != b[field] {
			out = append(out, difference{field, a[field], b[field]})
		}
	}
	return out
}

// forbids are the reasons for which two requests that differ so are not compared. Sampling options, limits and streaming
// count where one side leaves them open too: what an engine does unasked is not known. Structure is spelled by dialect,
// and thinking by engine, so that these count only where both sides speak of them in the same words; thinking is also seen
// in the answers.
func forbids(ds []difference, sameDialect bool) []exchange.Reason {
	var out []exchange.Reason
	for _, d := range ds {
		why := groupOf(d.field)
		switch why {
		case "":
			continue
		case ReasonThinking:
			if d.reference == "" || d.candidate == "" {
				continue
			}
		case ReasonStructure, ReasonSampling:
			if !sameDialect && (d.reference == "" || d.candidate == "") {
				continue
			}
		}
		if !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return out
}
