package reportcases

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Expect is what a right instrument shows. Zero values mean that the case does not say.
type Expect struct {
	Figures      map[string]*float64        // metric -> value, nil when it must be absent
	Absent       map[string]exchange.Reason // metric -> why it is absent
	Outcome      exchange.Outcome
	HTTPStatus   int
	Success      *bool // whether the exchange may count as a sample
	FinishReason string
	ToolCalls    []exchange.ToolCall // name and arguments only
	Flags        []string
	TokenBasis   exchange.Basis // of completion_tokens
	PeakAtLeast  float64        // peak_1s_tps is at least so many times decode_tps
	Live         map[string]json.RawMessage
}

// outcomes maps the words of the cases to ours.
var outcomes = map[string]exchange.Outcome{
	"complete":       exchange.OutcomeComplete,
	"truncated":      exchange.OutcomeUpstreamTruncated,
	"client_aborted": exchange.OutcomeClientAbort,
	"engine_error":   exchange.OutcomeStreamError,
	"http_error":     exchange.OutcomeUpstreamError,
	"connect_error":  exchange.OutcomeUpstreamError,
}

// figures maps the keys of the cases that are metrics to their names.
var figures = map[string]string{
	"first_byte_ms":                    "first_byte_ms",
	"first_event_ms":                   "first_event_ms",
	"ttft_ms":                          "ttft_ms",
	"ttfo_ms":                          "answer_ttft_ms",
	"prompt_tokens":                    "prompt_tokens",
	"completion_tokens":                "completion_tokens",
	"reasoning_tokens":                 "reasoning_tokens",
	"token_events":                     "token_events",
	"tokens_per_event":                 "tokens_per_event",
	"prefill_tps":                      "prefill_tps",
	"decode_tps":                       "decode_tps",
	"decode_tps_first_event_corrected": "decode_first_event_tps",
	"event_gap_p50_ms":                 "event_gap_p50_ms",
	"max_token_gap_ms":                 "event_gap_max_ms",
}

// live are the keys that a live run or another package settles.
var live = []string{
	"achieved_rate_per_s", "aggregate_any_tps", "artifact", "artifact_complete_or_marked_cut", "client_added_ttft_ms_max",
	"client_body_sha256_equals_sent", "client_event_span_ms", "client_events_per_read_max", "client_ttft_ms_minus_server",
	"cross_request_bytes", "different_key", "distinct_texts", "documented_choice", "export_contains_secret",
	"export_event_count", "foreign_bytes", "gate", "goroutine_growth", "idle_upstream_connections_max",
	"latency_from_intended_p99_ms", "latency_from_sent_p99_ms", "max_concurrent_decoding", "must_not_be",
	"per_request_decode_tps", "race_reports", "recorded_reads", "replay_bytes_equal", "replay_order",
	"response_bytes_order_preserved", "same_key", "takes", "timings_unchanged",
}

func parseExpect(raw json.RawMessage) (Expect, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return Expect{}, fmt.Errorf("parse expectation: %w", err)
	}
	e := Expect{Figures: map[string]*float64{}, Live: map[string]json.RawMessage{}}
	for key, value := range keys {
		if err := e.take(key, value); err != nil {
			return Expect{}, fmt.Errorf("parse expectation %q: %w", key, err)
		}
	}
	return e, nil
}

// take reads one expectation. A key it does not know is an error.
func (e *Expect) take(key string, raw json.RawMessage) error {
	if name, ok := figures[key]; ok {
		var v *float64
		err := json.Unmarshal(raw, &v)
		e.Figures[name] = v
		return err
	}
	if slices.Contains(live, key) {
		e.Live[key] = raw
		return nil
	}
	switch key {
	case "status":
		return e.takeOutcome(raw)
	case "http_status":
		return json.Unmarshal(raw, &e.HTTPStatus)
	case "counts_as_success":
		return json.Unmarshal(raw, &e.Success)
	case "finish_reason":
		return json.Unmarshal(raw, &e.FinishReason)
	case "tool_calls":
		return json.Unmarshal(raw, &e.ToolCalls)
	case "flags":
		return json.Unmarshal(raw, &e.Flags)
	case "absent_reason":
		return json.Unmarshal(raw, &e.Absent)
	case "token_count_source":
		return e.takeBasis(raw)
	case "invariant":
		return e.takeInvariant(raw)
	}
	return fmt.Errorf("unknown key")
}

func (e *Expect) takeOutcome(raw json.RawMessage) error {
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return err
	}
	var ok bool
	if e.Outcome, ok = outcomes[word]; !ok {
		return fmt.Errorf("unknown outcome %q", word)
	}
	return nil
}

func (e *Expect) takeBasis(raw json.RawMessage) error {
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return err
	}
	switch word {
	case "usage":
		e.TokenBasis = exchange.BasisReported
	case "events_estimate":
		e.TokenBasis = exchange.BasisEstimated
	default:
		return fmt.Errorf("unknown source %q", word)
	}
	return nil
}

func (e *Expect) takeInvariant(raw json.RawMessage) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if _, err := fmt.Sscanf(text, "peak_1s_tps >= decode_tps * %g", &e.PeakAtLeast); err != nil {
		return fmt.Errorf("unknown invariant %q", text)
	}
	return nil
}
