package exchange

import "encoding/json"

// Basis says where a number comes from.
type Basis string

const (
	BasisMeasured  Basis = "measured"  // our clock, and counts the engine states
	BasisReported  Basis = "reported"  // the engine's own word
	BasisEstimated Basis = "estimated" // built on a count of events, not of tokens
)

// Reason says why a number is absent. The words are part of the JSON contract.
type Reason string

// Figure is one number with its source, or the reason for its absence. The zero value is an absent figure without a
// reason, which no code should publish.
type Figure struct {
	Value  float64 // meaningless when absent
	Unit   string  // ms, tok/s, tokens, ratio, events
	Basis  Basis   // "" when absent
	Reason Reason  // "" when present
}

// Present reports whether there is a value.
func (f Figure) Present() bool { return f.Basis != "" }

// Absent is a figure that cannot be had.
func Absent(unit string, why Reason) Figure { return Figure{Unit: unit, Reason: why} }

// Figures are the metrics of one exchange by their name, as internal/measure defines them.
type Figures map[string]Figure

// MarshalJSON writes {"value", "unit", "basis", "reason"}, value null when absent.
func (f Figure) MarshalJSON() ([]byte, error) {
	out := struct {
		Value  *float64 `json:"value"`
		Unit   string   `json:"unit,omitempty"`
		Basis  Basis    `json:"basis,omitempty"`
		Reason Reason   `json:"reason,omitempty"`
	}{Unit: f.Unit, Basis: f.Basis, Reason: f.Reason}
	if f.Present() {
		out.Value = &f.Value
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var in struct {
		Value  *float64 `json:"value"`
		Unit   string   `json:"unit"`
		Basis  Basis    `json:"basis"`
		Reason Reason   `json:"reason"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*f = Figure{Unit: in.Unit, Basis: in.Basis, Reason: in.Reason}
	if in.Value != nil {
		f.Value = *in.Value
	} else {
		f.Basis = ""
	}
	return nil
}
