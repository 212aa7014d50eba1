package wire

import (
	"encoding/json"

	"github.com/valyala/fastjson"
)

// timingSources are the fields that carry an engine's own times, the surest first. Each reader fills what is still
// absent, so two of them (TensorFold sends stats and draft counts apart) add up.
var timingSources = []struct {
	key  string
	read func(t *Timings, v *fastjson.Value)
}{
	{"timings", readLlamaTimings},     // llama.cpp, Strata: milliseconds
	{"metrics", readVLLMMetrics},      // vLLM: milliseconds
	{"telemetry", readPrismTelemetry}, // Prism: seconds
	{"tensorfold", readTensorFold},    // seconds
	{"speculative", readTensorFoldDraft},
	{"stats", readLMStudioStats}, // LM Studio REST v0: seconds
	{"x_groq", readGroq},         // usage within: seconds
	{"usage", readUsageTimes},    // TabbyAPI: seconds
}

// The units engines speak, in milliseconds.
const (
	inMS = 1.0
	inS  = 1e3
	inNS = 1e-6
)

// timingsOf reads the engine's times out of the kept extras; nil when there are none. It is done when a transcript is
// asked for, not for each event: engines repeat their times in every chunk, and the last ones count.
func timingsOf(extras map[string]json.RawMessage) *Timings {
	if len(extras) == 0 {
		return nil
	}
	var t Timings
	p, largest := jsonParsers.Get(), 0
	for _, s := range timingSources {
		raw, ok := extras[s.key]
		if !ok {
			continue
		}
		largest = max(largest, len(raw))
		v, err := p.ParseBytes(raw)
		if err != nil || v.Type() != fastjson.TypeObject {
			continue
		}
		before := t
		s.read(&t, v)
		if t != before && t.Source == "" {
			t.Source = s.key
		}
	}
	giveBack(p, largest)
	readOllamaDurations(&t, extras)
	if t == (Timings{}) {
		return nil
	}
	return &t
}

// ms sets an absent time from a number in the given unit.
func ms(dst **float64, v *fastjson.Value, unit float64) {
	if f := number(v); *dst == nil && f != nil {
		*f *= unit
		*dst = f
	}
}

// n sets an absent count.
func n(dst **int64, v *fastjson.Value) {
	if *dst == nil {
		*dst = countOf(v).ptr()
	}
}

func readLlamaTimings(t *Timings, v *fastjson.Value) {
	n(&t.CachedN, v.Get("cache_n"))
	n(&t.PrefillN, v.Get("prompt_n"))
	ms(&t.PrefillMS, v.Get("prompt_ms"), inMS)
	ms(&t.PrefillTPS, v.Get("prompt_per_second"), 1)
	n(&t.DecodeN, v.Get("predicted_n"))
	ms(&t.DecodeMS, v.Get("predicted_ms"), inMS)
	ms(&t.DecodeTPS, v.Get("predicted_per_second"), 1)
	n(&t.DraftN, v.Get("draft_n"))
	n(&t.DraftAccepted, v.Get("draft_n_accepted"))
}

func readVLLMMetrics(t *Timings, v *fastjson.Value) {
	ms(&t.QueueMS, v.Get("queue_time_ms"), inMS)
	ms(&t.TTFTMS, v.Get("time_to_first_token_ms"), inMS)
	ms(&t.DecodeMS, v.Get("generation_time_ms"), inMS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
	spec := v.Get("speculative_decoding")
	n(&t.DraftN, spec.Get("num_draft_tokens"))
	n(&t.DraftAccepted, spec.Get("num_accepted_draft_tokens"))
	n(&t.DraftSteps, spec.Get("num_spec_steps"))
}

func readPrismTelemetry(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("ttft_sec"), inS)
	ms(&t.DecodeTPS, v.Get("decode_tok_per_sec"), 1)
	if t.Device == "" {
		t.Device = string(text(v.Get("device")))
	}
}

func readTensorFold(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("ttft"), inS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
}

// readTensorFoldDraft leaves "rounds" alone: they are not verification steps.
func readTensorFoldDraft(t *Timings, v *fastjson.Value) {
	n(&t.DraftN, v.Get("drafted"))
	n(&t.DraftAccepted, v.Get("accepted"))
}

func readLMStudioStats(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("time_to_first_token"), inS)
	ms(&t.DecodeMS, v.Get("generation_time"), inS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
	n(&t.DraftN, v.Get("total_draft_tokens_count"))
	n(&t.DraftAccepted, v.Get("accepted_draft_tokens_count"))
}

func readGroq(t *Timings, v *fastjson.Value) {
	if u := v.Get("usage"); u != nil {
		readUsageTimes(t, u)
	}
}

func readUsageTimes(t *Timings, v *fastjson.Value) {
	ms(&t.QueueMS, v.Get("queue_time"), inS)
	ms(&t.PrefillMS, v.Get("prompt_time"), inS)
	ms(&t.DecodeMS, v.Get("completion_time"), inS)
	ms(&t.TotalMS, v.Get("total_time"), inS)
	ms(&t.PrefillTPS, v.Get("prompt_tokens_per_sec"), 1)
	ms(&t.DecodeTPS, v.Get("completion_tokens_per_sec"), 1)
}

// readOllamaDurations reads the fields of Ollama's last line. Its prompt duration covers the uncached part only, but
// its prompt count covers all: the two must not be divided (Source tells).
func readOllamaDurations(t *Timings, extras map[string]json.RawMessage) {
	var p fastjson.Parser
	field := func(key string) *fastjson.Value {
		raw, ok := extras[key]
		if !ok { // nearly every engine: an error text of the reader would cost more than the rest
			return nil
		}
		v, err := p.ParseBytes(raw)
		if err != nil {
			return nil
		}
		return v
	}
	before := *t
	ms(&t.LoadMS, field("load_duration"), inNS)
	ms(&t.PrefillMS, field("prompt_eval_duration"), inNS)
	ms(&t.DecodeMS, field("eval_duration"), inNS)
	ms(&t.TotalMS, field("total_duration"), inNS)
	n(&t.PrefillN, field("prompt_eval_count"))
	n(&t.DecodeN, field("eval_count"))
	if *t != before && t.Source == "" {
		t.Source = "durations"
	}
}
