package exchange

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ToolCall is one tool call of an answer, its fragments joined.
type ToolCall struct {
	Index     int    `json:"index"`
	ID        string `json:"id,omitempty"`
	Type      string `json:"type,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as sent; an object argument as compact JSON
}

// SummaryVersion is the version of the row below; readers accept older rows and refuse newer ones.
const SummaryVersion = 1

// Summary is the row that listings, filters and pages read: everything about an exchange but its texts, bytes and
// timeline. It is derived; `store check` can rebuild it.
type Summary struct {
	Version       int            `json:"schema"`
	ID            ID             `json:"id"`
	Run           ID             `json:"run"`
	Seq           uint64         `json:"seq"`
	Key           string         `json:"key"`                // h1:<16 hex>, of the request as the client sent it
	SentKey       string         `json:"sent_key,omitempty"` // key of the request as the engine got it, where its body was changed
	Digest        string         `json:"digest"`             // sha256 of the request by the interchange recipe, "" when it is not JSON
	Started       time.Time      `json:"started"`
	Upstream      string         `json:"upstream,omitempty"`
	Method        string         `json:"method"`
	Path          string         `json:"path"`
	Model         string         `json:"model"`
	Engine        string         `json:"engine"`
	Dialect       string         `json:"dialect,omitempty"`
	Status        int            `json:"status"` // HTTP status, 0 when no head came
	End           End            `json:"end"`
	Outcome       Outcome        `json:"outcome"`
	Cause         *Cause         `json:"cause"`
	Stream        bool           `json:"stream"` // the answer came as a stream
	FinishReason  *string        `json:"finish_reason"`
	ToolCalls     int            `json:"n_tool_calls"`
	UsageEstimate bool           `json:"usage_estimated"`
	ParseErrors   int            `json:"parse_errors"`
	Flags         []string       `json:"flags"`
	State         State          `json:"state"`
	RequestBytes  int64          `json:"request_bytes"`
	ResponseBytes int64          `json:"response_bytes"`
	RequestSum    string         `json:"request_body_digest"`
	ResponseSum   string         `json:"response_body_digest"`
	Interventions []Intervention `json:"interventions"`
	Origin        *Origin        `json:"origin,omitempty"` // what it repeats
	Item          *PlanItem      `json:"item,omitempty"`   // what it carried out of a plan
	Wave          string         `json:"wave,omitempty"`   // set of requests that were sent together, "" when none
	Rules         Rules          `json:"rules"`            // by which it was derived
	Metrics       Figures        `json:"-"`                // written as metrics, basis and absent
}

// Rules are the versions of the rules by which something was derived: of reading bodies, and of the metrics. 0 = not
// known, or nothing was derived.
type Rules struct {
	Wire    int `json:"wire"`
	Measure int `json:"measure"`
}

// figuresJSON is how figures stand in every JSON document: one object of values (null when absent) and beside it the
// basis of each present one and the reason of each absent one.
type figuresJSON struct {
	Metrics map[string]*float64 `json:"metrics"`
	Basis   map[string]Basis    `json:"basis"`
	Absent  map[string]Reason   `json:"absent"`
}

func (fs Figures) split() figuresJSON {
	out := figuresJSON{Metrics: make(map[string]*float64, len(fs)), Basis: map[string]Basis{}, Absent: map[string]Reason{}}
	for name, f := range fs {
		if f.Present() {
			v := f.Value
			out.Metrics[name], out.Basis[name] = &v, f.Basis
		} else {
			out.Metrics[name], out.Absent[name] = nil, f.Reason
		}
	}
	return out
}

func (j figuresJSON) join() Figures {
	fs := make(Figures, len(j.Metrics))
	for name, v := range j.Metrics {
		if v == nil {
			fs[name] = Figure{Reason: j.Absent[name]}
		} else {
			fs[name] = Figure{Value: *v, Basis: j.Basis[name]}
		}
	}
	return fs
}

// plainSummary has the fields of Summary without its methods.
type plainSummary Summary

// MarshalJSON writes the row with its figures as metrics, basis and absent. Units go with the names of the metrics and
// are not repeated.
func (s Summary) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plainSummary(s))
	if err != nil {
		return nil, err
	}
	return s.Metrics.appendTo(b)
}

// UnmarshalJSON reads what MarshalJSON writes. A row of a newer version is refused.
func (s *Summary) UnmarshalJSON(b []byte) error {
	var in struct {
		plainSummary
		figuresJSON
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	if in.Version > SummaryVersion {
		return fmt.Errorf("read summary: row version %d is newer than %d", in.Version, SummaryVersion)
	}
	*s = Summary(in.plainSummary)
	s.Metrics = in.join()
	return nil
}

// Detail is one exchange for people and scripts: the summary row, the texts, and the timeline. It is derived.
type Detail struct {
	Summary
	DetailBody
}

// DetailBody is what a Detail has beside its summary row.
type DetailBody struct {
	OutputText    string                     `json:"output_text"`
	ReasoningText string                     `json:"reasoning_text"`
	RefusalText   string                     `json:"refusal_text,omitempty"`
	Calls         []ToolCall                 `json:"tool_calls"`
	Choices       []ChoiceText               `json:"choices,omitempty"`        // when the answer has more than one
	Error         *AnswerError               `json:"error"`                    // the error the engine sent inside its answer
	Timings       json.RawMessage            `json:"engine_timings,omitempty"` // normalized; the engine's own clock
	Extras        map[string]json.RawMessage `json:"engine_extras,omitempty"`  // the engine's own fields, verbatim
	EngineClock   []int64                    `json:"engine_clock,omitempty"`   // what the engine wrote on each event, ns since 1970 by its own clock, 0 for none
	Phases        []PhaseSpan                `json:"phases,omitempty"`         // what the engine was at before the first token, where its events say so
	PrefillCurve  []PrefillPoint             `json:"prefill_curve,omitempty"`  // how far the prompt was read when
	Suspect       string                     `json:"suspect,omitempty"`        // a sign of an error that the answer does not call one
	Request       HeadView                   `json:"request"`
	Response      HeadView                   `json:"response"`
	Timeline      TimelineView               `json:"timeline"`
	Tunnel        *Tunnel                    `json:"tunnel,omitempty"`
	Instrument    *Instrument                `json:"instrument,omitempty"` // of the run, where the run is known
}

// MarshalJSON writes the fields of the row and of the detail as one object.
func (d Detail) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainSummary
		figuresJSON
		DetailBody
	}{plainSummary(d.Summary), d.Metrics.split(), d.DetailBody})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Detail) UnmarshalJSON(b []byte) error {
	if err := d.Summary.UnmarshalJSON(b); err != nil {
		return err
	}
	return json.Unmarshal(b, &d.DetailBody)
}

// ChoiceText is one choice of an answer with several.
type ChoiceText struct {
	Index        int        `json:"index"`
	OutputText   string     `json:"output_text"`
	Reasoning    string     `json:"reasoning_text"`
	FinishReason *string    `json:"finish_reason"`
	Calls        []ToolCall `json:"tool_calls,omitempty"`
}

// AnswerError is an error inside an answer.
type AnswerError struct {
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Where   string `json:"where"`
}

// PhaseSpan is a time in which the events of an answer named one phase.
type PhaseSpan struct {
	Phase   string  `json:"phase"`    // queue, load, prompt
	FirstMS float64 `json:"first_ms"` // first event of it, from t0
	LastMS  float64 `json:"last_ms"`  // last event of it, from t0: the phase lasted at least until then
	Events  int     `json:"events"`
}

// PrefillPoint is how much of the prompt was read at a moment.
type PrefillPoint struct {
	Tokens    float64  `json:"tokens"`              // prompt tokens, cached ones included
	Cached    *int64   `json:"cached,omitempty"`    // of them from a cache, where the engine says
	MS        float64  `json:"ms"`                  // the event that tells it, from t0
	EngineMS  *float64 `json:"engine_ms,omitempty"` // time spent so far, by the engine's own clock
	Estimated bool     `json:"estimated,omitempty"` // tokens are a share of the prompt that the engine tells, not a count
}

// WithFlags is the row with more flags, sorted. The flags of s stay as they are.
func (s Summary) WithFlags(flags []string) Summary {
	if len(flags) > 0 {
		s.Flags = slices.Concat(s.Flags, flags)
		slices.Sort(s.Flags)
	}
	return s
}

// HeadView is a message without its body.
type HeadView struct {
	Line          string   `json:"line"` // request or status line
	Headers       []Header `json:"headers"`
	Trailers      []Header `json:"trailers,omitempty"`
	Informational []int    `json:"informational,omitempty"`
	BodyBytes     int64    `json:"body_bytes"`
	BodyKept      int64    `json:"body_kept"`
	BodyDigest    string   `json:"body_digest"`
}

// TimelineView is a timeline with its reads as arrays: [stamp ns, body bytes, ns until written to the client].
type TimelineView struct {
	Timeline
	Reads [][3]int64 `json:"reads"`
}

// View is the timeline in the form documents carry.
func (t Timeline) View() TimelineView {
	v := TimelineView{Timeline: t, Reads: make([][3]int64, len(t.Reads))}
	for i, r := range t.Reads {
		v.Reads[i] = [3]int64{r.At, int64(r.Size), r.Write}
	}
	return v
}
