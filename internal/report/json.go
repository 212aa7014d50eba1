package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// schema is the version of the JSON document. Readers refuse newer ones.
const schema = 1

// cellJSON is a cell that is more than a text or a number.
type cellJSON struct {
	Value  *float64        `json:"value"`
	Text   *string         `json:"text,omitempty"`  // of a text cell
	Shown  string          `json:"shown,omitempty"` // words that stand for an absent value
	Basis  exchange.Basis  `json:"basis,omitempty"`
	Reason exchange.Reason `json:"reason,omitempty"`
	Tone   Tone            `json:"tone,omitempty"`
	Title  string          `json:"title,omitempty"`
	Refs   []string        `json:"refs,omitempty"`
	Spread *Spread         `json:"spread,omitempty"`
}

// MarshalJSON writes a plain text as a string, a plain number as a number, and what has a basis, a spread, a reason or
// exchanges as an object; an absent value is null there.
func (c Cell) MarshalJSON() ([]byte, error) {
	plain := c.basis == "" && c.tone == "" && c.title == "" && len(c.refs) == 0 && c.spread == nil
	switch {
	case c.kind == textCell && plain:
		return json.Marshal(c.text)
	case c.kind == numberCell && plain:
		return json.Marshal(c.number)
	}
	out := cellJSON{Basis: c.basis, Reason: c.reason, Tone: c.tone, Title: c.title, Refs: c.refs, Spread: c.spread}
	switch c.kind {
	case numberCell:
		out.Value = &c.number
	case textCell:
		out.Text = &c.text
	case absentCell:
		out.Shown = c.text
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*c = Text(v)
		return nil
	case float64:
		*c = Number(v)
		return nil
	}
	var in cellJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read cell: %w", err)
	}
	switch {
	case in.Value != nil:
		*c = Number(*in.Value)
	case in.Text != nil:
		*c = Text(*in.Text)
	default:
		*c = AbsentAs(in.Shown, in.Reason)
	}
	c.basis, c.tone, c.title, c.refs, c.spread = in.Basis, in.Tone, in.Title, in.Refs, in.Spread
	return nil
}

// versioned is a document with its schema.
type versioned struct {
	Schema int `json:"schema"`
	*Document
}

// JSON writes the document as one JSON object with its schema.
func (d *Document) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(versioned{schema, d})
}

// Read reads a document that JSON wrote, without its drawings. One of a newer schema is refused.
func Read(r io.Reader) (*Document, error) {
	in := versioned{Document: &Document{}}
	switch err := json.NewDecoder(r).Decode(&in); {
	case err != nil:
		return nil, fmt.Errorf("read report: %w", err)
	case in.Schema == 0 || in.Title == "":
		return nil, fmt.Errorf("read report: %w: it is not the JSON of a report", exchange.ErrUsage)
	case in.Schema > schema:
		return nil, fmt.Errorf("read report: %w: its schema %d is newer than %d", exchange.ErrDamaged, in.Schema, schema)
	}
	return in.Document, nil
}
