package report

import (
	"encoding/json"
	"io"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// schema is the version of the JSON document.
const schema = 1

// MarshalJSON writes a text as a string, a number as a number with its basis where it has one, and an absent value as
// null with its reason.
func (c Cell) MarshalJSON() ([]byte, error) {
	switch {
	case c.kind == textCell:
		return json.Marshal(c.text)
	case c.kind == numberCell && c.basis == "":
		return json.Marshal(c.number)
	}
	out := struct {
		Value  *float64        `json:"value"`
		Basis  exchange.Basis  `json:"basis,omitempty"`
		Reason exchange.Reason `json:"reason,omitempty"`
	}{Basis: c.basis, Reason: c.reason}
	if c.kind == numberCell {
		out.Value = &c.number
	}
	return json.Marshal(out)
}

// JSON writes the document as one JSON object with its schema.
func (d *Document) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Schema int `json:"schema"`
		*Document
	}{schema, d})
}
