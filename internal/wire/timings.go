package wire

import (
	"encoding/json"

	"github.com/valyala/fastjson"
)

// timingSources are the fields that carry an engine's own times, the surest first. Each reader fills what is still
// absent, so two of them add up.
var timingSources = []struct {
	key  string
	read func(t *Timings, v *fastjson.Value)
}{
	{"timings", readLlamaTimings},      // llama.cpp, Strata: milliseconds
	{"metrics", readVLLMMetrics},       // vLLM: milliseconds
	{"telemetry", readPrismTelemetry},  // Prism: seconds
	{"tensorfold", readTensorFold},     // seconds
	{"stats", readLMStudioStats},       // LM Studio: seconds
	{"meta_info", readSGLangMetaTimes}, // SGLang /generate: seconds
	{"x_groq", readGroq},               // usage within: seconds
	{"usage", readUsageTimes},          // TabbyAPI: seconds
}

// draftSources are the fields that carry draft counts of this very answer: what the engine says of the response first,
// then its timings. The first that says what was accepted counts alone, since a ratio of two sources would be nobody's.
var draftSources = []struct {
	key, source string
	names       [3]string // drafted, accepted, verification steps; "" for one that is never sent
}{
	{"metrics", draftsOfResponse, [3]string{"num_draft_tokens", "num_accepted_draft_tokens", "num_spec_steps"}}, // vLLM, in speculative_decoding
	{"metrics", draftsOfResponse, [3]string{"num_draft_tokens", "num_accepted_tokens", "num_verify_steps"}},     // other builds of it
	{"speculative", draftsOfResponse, [3]string{"drafted", "accepted", ""}},                                     // TensorFold on MLX; its rounds are no steps
	{"tensorfold", draftsOfResponse, [3]string{"drafted", "accepted", ""}},                                      // TensorFold on CUDA
	{"stats", draftsOfResponse, [3]string{"total_draft_tokens_count", "accepted_draft_tokens_count", ""}},       // LM Studio
	{"meta_info", draftsOfResponse, [3]string{"spec_draft_token_num", "spec_accept_token_num", "spec_verify_ct"}},
	{"timings", draftsOfTimings, [3]string{"draft_n", "draft_n_accepted", ""}}, // llama.cpp, Strata
}

// The words of Timings.DraftSource.
const (
	draftsOfResponse = "response"
	draftsOfTimings  = "timings"
)

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
	r := extrasReader{extras: extras}
	for _, s := range timingSources {
		v := r.object(s.key)
		if v == nil {
			continue
		}
		before := t
		s.read(&t, v)
		if t != before && t.Source == "" {
			t.Source = s.key
		}
	}
	readDrafts(&t, &r)
	readTopLevel(&t, &r)
	r.done()
	if t == (Timings{}) {
		return nil
	}
	return &t
}

// extrasReader parses kept extras one at a time: a value is good until the next is asked for.
type extrasReader struct {
	extras  map[string]json.RawMessage
	json    *fastjson.Parser
	largest int

	last string // key of the value that is good now: two tables ask for the same ones
	kept *fastjson.Value
}

// value is the extra under a key, nil when there is none. Most engines have none of the keys that are asked for, and then
// nothing is parsed.
func (r *extrasReader) value(key string) *fastjson.Value {
	if key == r.last {
		return r.kept
	}
	raw, ok := r.extras[key]
	if !ok {
		return nil
	}
	if r.json == nil {
		r.json = jsonParsers.Get()
	}
	r.largest = max(r.largest, len(raw))
	v, err := r.json.ParseBytes(raw)
	if err != nil {
		v = nil
	}
	r.last, r.kept = key, v
	return v
}

func (r *extrasReader) object(key string) *fastjson.Value {
	if v := r.value(key); v != nil && v.Type() == fastjson.TypeObject {
		return v
	}
	return nil
}

func (r *extrasReader) done() {
	if r.json != nil {
		giveBack(r.json, r.largest)
	}
}

// readDrafts takes the draft counts of the first source that has any.
func readDrafts(t *Timings, r *extrasReader) {
	for _, s := range draftSources {
		v := r.object(s.key)
		if v == nil {
			continue
		}
		if s.key == "metrics" {
			v = v.Get("speculative_decoding")
		}
		n(&t.DraftN, v.Get(s.names[0]))
		n(&t.DraftAccepted, v.Get(s.names[1]))
		if t.DraftAccepted == nil { // drafts of which nobody says how they went
			t.DraftN = nil
			continue
		}
		if s.names[2] != "" {
			n(&t.DraftSteps, v.Get(s.names[2]))
		}
		t.DraftSource = s.source
		if t.Source == "" {
			t.Source = s.key
		}
		return
	}
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
}

func readVLLMMetrics(t *Timings, v *fastjson.Value) {
	ms(&t.QueueMS, v.Get("queue_time_ms"), inMS)
	ms(&t.TTFTMS, v.Get("time_to_first_token_ms"), inMS)
	ms(&t.DecodeMS, v.Get("generation_time_ms"), inMS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
}

func readPrismTelemetry(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("ttft_sec"), inS)
	ms(&t.PrefillMS, v.Get("prompt_eval_duration_sec"), inS)
	n(&t.PrefillN, v.Get("prompt_tokens"))
	ms(&t.DecodeTPS, v.Get("decode_tok_per_sec"), 1)
	if t.Device == "" {
		t.Device = string(text(v.Get("device")))
	}
}

func readTensorFold(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("ttft"), inS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
}

// readLMStudioStats reads the names of the REST API v0 and those of v1.
func readLMStudioStats(t *Timings, v *fastjson.Value) {
	ms(&t.TTFTMS, v.Get("time_to_first_token"), inS)
	ms(&t.TTFTMS, v.Get("time_to_first_token_seconds"), inS)
	ms(&t.LoadMS, v.Get("model_load_time_seconds"), inS)
	ms(&t.DecodeMS, v.Get("generation_time"), inS)
	ms(&t.DecodeTPS, v.Get("tokens_per_second"), 1)
}

func readSGLangMetaTimes(t *Timings, v *fastjson.Value) {
	ms(&t.TotalMS, v.Get("e2e_latency"), inS)
	ms(&t.QueueMS, v.Get("queue_time"), inS)
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

// readTopLevel reads the times that stand in an event itself: Ollama's nanoseconds, LM Studio's event at the end of a
// model load, and the last event of TensorSharp's page, whose rate is over the whole request and therefore no decode
// rate.
func readTopLevel(t *Timings, r *extrasReader) {
	before := *t
	ms(&t.LoadMS, r.value("load_duration"), inNS)
	ms(&t.LoadMS, r.value("load_time_seconds"), inS)
	ms(&t.PrefillMS, r.value("prompt_eval_duration"), inNS)
	ms(&t.DecodeMS, r.value("eval_duration"), inNS)
	ms(&t.TotalMS, r.value("total_duration"), inNS)
	if r.extras["tokPerSec"] != nil {
		ms(&t.TotalMS, r.value("elapsed"), inS)
	}
	if n(&t.PrefillN, r.value("prompt_eval_count")); t.PrefillN != before.PrefillN {
		t.PrefillCounts = true
	}
	n(&t.DecodeN, r.value("eval_count"))
	if *t != before && t.Source == "" {
		t.Source = "durations"
	}
}
