package reportcases

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/field-reports-measuring.json
var files embed.FS

// Case is one report.
type Case struct {
	ID        string
	Source    string // the public report it comes from
	Elsewhere string // for a case that is not about the timeline of one stream: what it is about; else ""
	Variants  []Variant
}

// Variant is one scripted answer and what to make of it.
type Variant struct {
	Case         string
	Name         string // "" when the case has one variant
	Response     *Response
	Frames       []Frame // in the order of sending
	End          End
	RequestBytes int64 // size of the request body where the case wants a large one, else 0
	Expect       Expect
}

// Response is the head of the answer; nil means that nothing listens.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Framing string            `json:"framing"` // chunked, length
}

// Frame is one write of the server: one HTTP chunk in the chunked framing.
type Frame struct {
	At   time.Duration // since the server has read the request
	Data []byte
}

// End is how the server ends.
type End struct {
	At  time.Duration
	How string // clean, reset, fin_without_last_chunk, keep_open
}

// elsewhere lists the cases whose expectations need more than the timeline of one stream.
var elsewhere = map[string]string{
	"AX-21": "race freedom of many aborted streams in parallel: proxy",
	"AX-22": "schedule of an open-loop load: replay",
	"AX-24": "request keys: canon",
	"AX-25": "several takes under one key: recorder",
	"AX-31": "redaction of exported text: replay",
	"AX-32": "aggregate rates of a wave: replay",
	"AX-35": "connections and goroutines after aborted streams: proxy",
}

// Load reads all cases. It never gives an empty list without an error.
func Load() ([]Case, error) {
	raw, err := files.ReadFile("testdata/field-reports-measuring.json")
	if err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	return parse(raw)
}

// caseJSON is a case as it stands in the file.
type caseJSON struct {
	ID     string          `json:"id"`
	Source string          `json:"source"`
	Input  inputJSON       `json:"input"`
	Expect json.RawMessage `json:"expect"`
}

// inputJSON is a scripted answer, or several.
type inputJSON struct {
	Name     string      `json:"name"`
	Variants []inputJSON `json:"variants"`
	Response *Response   `json:"response"`
	Frames   []frameJSON `json:"frames"`
	End      *struct {
		TMS float64 `json:"t_ms"`
		How string  `json:"how"`
	} `json:"end"`
	RequestBodyBytes int64 `json:"request_body_bytes"`

	// Parts that only runs of more than one stream use.
	Requests  json.RawMessage `json:"requests"`
	Client    json.RawMessage `json:"client"`
	Load      json.RawMessage `json:"load"`
	Engine    json.RawMessage `json:"engine"`
	RunUnder  string          `json:"run_under"`
	ProxyMode string          `json:"proxy_mode"`
	Redact    string          `json:"redact"`
	Note      string          `json:"note"`
}

// frameJSON is a frame, or n of them with {i} counting from 0.
type frameJSON struct {
	TMS     float64 `json:"t_ms"`
	EveryMS float64 `json:"every_ms"`
	N       int     `json:"n"`
	Data    string  `json:"data"`
}

func parse(raw []byte) ([]Case, error) {
	var file struct {
		Cases []caseJSON `json:"cases"`
	}
	if err := strict(raw, &file); err != nil {
		return nil, fmt.Errorf("parse cases: %w", err)
	}
	if len(file.Cases) == 0 {
		return nil, fmt.Errorf("parse cases: the file holds none")
	}
	out := make([]Case, 0, len(file.Cases))
	for _, c := range file.Cases {
		variants, err := c.variants()
		if err != nil {
			return nil, fmt.Errorf("parse case %s: %w", c.ID, err)
		}
		out = append(out, Case{ID: c.ID, Source: c.Source, Elsewhere: elsewhere[c.ID], Variants: variants})
	}
	return out, nil
}

// strict decodes JSON whose every key must be known.
func strict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// variants pairs the scripted answers with their expectations. A case without variants is its own only one.
func (c caseJSON) variants() ([]Variant, error) {
	if len(c.Input.Variants) == 0 {
		v, err := c.Input.variant(c.ID, c.Expect)
		return []Variant{v}, err
	}
	var expect struct {
		Variants map[string]json.RawMessage `json:"variants"`
	}
	if err := strict(c.Expect, &expect); err != nil {
		return nil, err
	}
	if len(expect.Variants) != len(c.Input.Variants) {
		return nil, fmt.Errorf("%d variants have %d expectations", len(c.Input.Variants), len(expect.Variants))
	}
	out := make([]Variant, 0, len(c.Input.Variants))
	for _, in := range c.Input.Variants {
		raw, ok := expect.Variants[in.Name]
		if !ok {
			return nil, fmt.Errorf("variant %q has no expectation", in.Name)
		}
		v, err := in.variant(c.ID, raw)
		if err != nil {
			return nil, fmt.Errorf("variant %q: %w", in.Name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (in inputJSON) variant(id string, expect json.RawMessage) (Variant, error) {
	v := Variant{Case: id, Name: in.Name, Response: in.Response, RequestBytes: in.RequestBodyBytes}
	for _, f := range in.Frames {
		v.Frames = append(v.Frames, f.expand()...)
	}
	slices.SortStableFunc(v.Frames, func(a, b Frame) int { return int(a.At - b.At) })
	if in.End != nil {
		v.End = End{At: ms(in.End.TMS), How: in.End.How}
	}
	var err error
	v.Expect, err = parseExpect(expect)
	return v, err
}

func (f frameJSON) expand() []Frame {
	n := max(f.N, 1)
	out := make([]Frame, n)
	for i := range out {
		data := strings.ReplaceAll(f.Data, "{i}", strconv.Itoa(i))
		out[i] = Frame{At: ms(f.TMS + float64(i)*f.EveryMS), Data: []byte(data)}
	}
	return out
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
