package recorder

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// rowVersion is the version of the field list below and the first byte of every row. 0 and 1 are the codec bytes of
// other values, so that no packed text is taken for a row.
const rowVersion = 6

// Rows from plannedRow on have their origin and plan item, those from rulesRow on the versions of the rules that derived
// them, those from waveRow on their wave; oldestRow is the oldest version that is read.
const (
	waveRow    = 6
	rulesRow   = 5
	plannedRow = 4
	oldestRow  = 3
)

// rowMetrics and rowSources are the short forms of words that nearly every row repeats. A word that is in neither is
// stored as text: rows of older and newer metrics survive. Numbers in the store point into the tables, so these only
// grow at their end.
var rowMetrics = [...]string{
	"headers_ms", "first_byte_ms", "first_event_ms", "ttft_ms", "answer_ttft_ms", "last_token_ms", "total_wall_ms",
	"prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "token_events",
	"prefill_tps", "prefill_uncached_tps", "decode_tps", "decode_first_event_tps", "tpot_ms", "wall_tps", "peak_1s_tps",
	"engine_prefill_tps", "engine_decode_tps", "engine_ttft_ms", "prefill_engine_diff", "decode_engine_diff",
	"event_gap_p50_ms", "event_gap_p90_ms", "event_gap_p99_ms", "event_gap_max_ms",
	"tokens_per_event", "events_per_read", "merged_reads", "draft_acceptance", "tokens_per_step",
	"added_p50_us", "added_p99_us", "write_stall_ms", "proxy_queue_ms",
	"queue_ms", "load_ms", "engine_queue_ms", "think_ms", "reasoning_chars", "engine_prefill_max_tps",
	"draft_waste", "draft_window", "verify_steps_per_s", "accepted_goodput_tps",
}

// rowSources are the ways to say where a number comes from: a basis, or a reason for its absence.
var rowSources = [...]exchange.Figure{
	{Basis: exchange.BasisMeasured}, {Basis: exchange.BasisReported}, {Basis: exchange.BasisEstimated},
	{Reason: "not_streamed"}, {Reason: "not_reported"}, {Reason: "no_draft_evidence"}, {Reason: "not_comparable"},
	{Reason: "cached_unknown"}, {Reason: "first_event_tokens_unknown"}, {Reason: "stream_under_1s"}, {Reason: "cached"},
	{Reason: "not_sent"}, {Reason: "no_response"}, {Reason: "no_body"}, {Reason: "no_event"}, {Reason: "no_dialect"},
	{Reason: "no_token_event"}, {Reason: "reasoning_only"}, {Reason: "per_choice_usage"}, {Reason: "echo"},
	{Reason: "buffered"}, {Reason: "hidden_reasoning"}, {Reason: "single_event"}, {Reason: "too_few_tokens"},
	{Reason: "zero_window"}, {Reason: "too_few_reads"}, {Reason: "steps_unknown"}, {Reason: "no_client_write"},
	{Reason: "record_truncated"}, {Reason: "wave_member_failed"}, {Reason: "not_together"},
}

// Sources that are not in the table: the word follows.
const (
	absentText   = 0
	presentText  = 1
	firstInTable = 2
)

// maxInteger bounds the numbers that are stored as integers: below it every integer is a float64 of its own.
const maxInteger = 1 << 53

// appendRow adds the stored form of a summary to dst. It is neither JSON nor compressed: for a small exchange the two took
// longer than all else. Units go with the names of the metrics and are not stored. A figure that is no finite number
// is an error, since no document could show it.
func appendRow(dst []byte, s *exchange.Summary) ([]byte, error) {
	w := &fieldWriter{b: dst}
	w.uint(rowVersion)
	w.int(int64(s.Version))
	for _, t := range []string{string(s.ID), string(s.Run), s.Key, s.SentKey, s.Upstream, s.Method, s.Path, s.Model, s.Engine, s.Dialect, string(s.End), string(s.Outcome), string(s.State)} {
		w.str(t)
	}
	for _, t := range []string{s.Digest, s.RequestSum, s.ResponseSum} {
		w.digest(t)
	}
	w.uint(s.Seq)
	for _, n := range []int64{int64(s.Status), int64(s.ToolCalls), int64(s.ParseErrors), s.RequestBytes, s.ResponseBytes} {
		w.int(n)
	}
	w.time(s.Started)
	w.bool(s.Stream)
	w.bool(s.UsageEstimate)
	if w.bool(s.FinishReason != nil); s.FinishReason != nil {
		w.str(*s.FinishReason)
	}
	w.cause(s.Cause)
	if w.bool(s.Flags != nil); s.Flags != nil {
		w.uint(uint64(len(s.Flags)))
		for _, f := range s.Flags {
			w.str(f)
		}
	}
	if w.bool(s.Interventions != nil); s.Interventions != nil {
		w.interventions(s.Interventions)
	}
	if err := writeFigures(w, s.Metrics); err != nil {
		return nil, err
	}
	w.origin(s.Origin)
	w.item(s.Item)
	w.int(int64(s.Rules.Wire))
	w.int(int64(s.Rules.Measure))
	w.str(s.Wave)
	return w.b, nil
}

// decodeRow is the inverse of appendRow. It shares no memory with b. A newer version, of the form or of the row in it,
// is refused.
func decodeRow(b []byte) (s exchange.Summary, err error) {
	r := &fieldReader{b: b}
	form := r.uint()
	if form < oldestRow || form > rowVersion {
		return s, fmt.Errorf("read summary of form %d: %w", form, exchange.ErrDamaged)
	}
	if s.Version = int(r.int()); s.Version > exchange.SummaryVersion {
		return s, fmt.Errorf("read summary of version %d: %w", s.Version, exchange.ErrDamaged)
	}
	for _, p := range []*string{(*string)(&s.ID), (*string)(&s.Run), &s.Key, &s.SentKey, &s.Upstream, &s.Method, &s.Path, &s.Model, &s.Engine, &s.Dialect, (*string)(&s.End), (*string)(&s.Outcome), (*string)(&s.State)} {
		*p = r.str()
	}
	s.Digest, s.RequestSum, s.ResponseSum = r.digest(), r.digest(), r.digest()
	s.Seq = r.uint()
	s.Status, s.ToolCalls, s.ParseErrors = int(r.int()), int(r.int()), int(r.int())
	s.RequestBytes, s.ResponseBytes = r.int(), r.int()
	s.Started, s.Stream, s.UsageEstimate = r.time(), r.bool(), r.bool()
	if r.bool() {
		reason := r.str()
		s.FinishReason = &reason
	}
	s.Cause = r.cause()
	if r.bool() {
		s.Flags = make([]string, r.count())
		for i := range s.Flags {
			s.Flags[i] = r.str()
		}
	}
	if r.bool() {
		if s.Interventions = r.interventions(); s.Interventions == nil {
			s.Interventions = []exchange.Intervention{}
		}
	}
	s.Metrics = readFigures(r)
	if form >= plannedRow {
		s.Origin, s.Item = r.origin(), r.item()
	}
	if form >= rulesRow {
		s.Rules = exchange.Rules{Wire: int(r.int()), Measure: int(r.int())}
	}
	if form >= waveRow {
		s.Wave = r.str()
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return exchange.Summary{}, fmt.Errorf("read summary: %w: %w", exchange.ErrDamaged, r.err)
	}
	return s, nil
}

// writeFigures writes the metrics of the table in its order, then the others by name.
func writeFigures(w *fieldWriter, fs exchange.Figures) error {
	w.uint(uint64(len(fs)))
	known := 0
	for i, name := range rowMetrics {
		if f, ok := fs[name]; ok {
			known++
			w.uint(uint64(i + 1))
			if err := writeFigure(w, f); err != nil {
				return fmt.Errorf("code metric %s: %w", name, err)
			}
		}
	}
	if known == len(fs) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fs)) {
		if slices.Contains(rowMetrics[:], name) {
			continue
		}
		w.uint(0)
		w.str(name)
		if err := writeFigure(w, fs[name]); err != nil {
			return fmt.Errorf("code metric %q: %w", name, err)
		}
	}
	return nil
}

func readFigures(r *fieldReader) exchange.Figures {
	n := r.count()
	fs := make(exchange.Figures, n)
	for range n {
		name := ""
		switch i := r.uint(); {
		case i == 0:
			name = r.str()
		case i <= uint64(len(rowMetrics)):
			name = rowMetrics[i-1]
		default:
			r.fail()
		}
		f := readFigure(r)
		if r.err != nil {
			return nil
		}
		fs[name] = f
	}
	return fs
}

// writeFigure writes the source, with one bit that tells an integer from a float, the word of a source that is not in
// the table, and the value of a present figure.
func writeFigure(w *fieldWriter, f exchange.Figure) error {
	present := f.Present()
	if present && (math.IsNaN(f.Value) || math.IsInf(f.Value, 0)) {
		return fmt.Errorf("%v is no finite number", f.Value)
	}
	source, text := sourceOf(f)
	integer := present && math.Trunc(f.Value) == f.Value && math.Abs(f.Value) < maxInteger && (f.Value != 0 || !math.Signbit(f.Value))
	tag := uint64(source) << 1
	if integer {
		tag |= 1
	}
	w.uint(tag)
	if source < firstInTable {
		w.str(text)
	}
	switch {
	case integer:
		w.int(int64(f.Value))
	case present:
		w.float(f.Value)
	}
	return nil
}

func sourceOf(f exchange.Figure) (source int, text string) {
	for i := range rowSources {
		if k := &rowSources[i]; k.Basis == f.Basis && (f.Basis != "" || k.Reason == f.Reason) {
			return firstInTable + i, ""
		}
	}
	if f.Present() {
		return presentText, string(f.Basis)
	}
	return absentText, string(f.Reason)
}

func readFigure(r *fieldReader) (f exchange.Figure) {
	tag := r.uint()
	integer := tag&1 != 0
	switch source := tag >> 1; {
	case source == absentText:
		f.Reason = exchange.Reason(r.str())
	case source == presentText:
		f.Basis = exchange.Basis(r.str())
	case source-firstInTable < uint64(len(rowSources)):
		f = rowSources[source-firstInTable]
	default:
		r.fail()
	}
	switch {
	case !f.Present():
		if integer {
			r.fail() // an absent figure has no value
		}
	case integer:
		f.Value = float64(r.int())
	default:
		if f.Value = r.float(); math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			r.fail()
		}
	}
	return f
}
