package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Difference is one place in which two requests differ. Values are JSON, cut to where they part; null where there is none.
type Difference struct {
	Path     string  `json:"path"` // $.messages[0].content; query or body where that is no JSON
	Recorded *string `json:"recorded"`
	Asked    *string `json:"asked"`
}

// String is "$.temperature (0.5, recorded 0)".
func (d Difference) String() string {
	switch {
	case d.Recorded == nil:
		return d.Path + " (not recorded)"
	case d.Asked == nil:
		return d.Path + " (recorded only)"
	}
	return fmt.Sprintf("%s (%s, recorded %s)", d.Path, *d.Asked, *d.Recorded)
}

// differ counts the places in which two requests differ.
type differ struct {
	relax  []RelaxRule
	n      int // differing places
	weight int // bytes of the differing values
	told   []Difference
}

func (d *differ) add(path string, recorded, asked []byte) {
	d.n++
	d.weight += len(recorded) + len(asked)
	if len(d.told) == mostDiffs {
		return
	}
	r, a := parting(masked(recorded), masked(asked))
	d.told = append(d.told, Difference{Path: path, Recorded: r, Asked: a})
}

// requests compares query and body.
func (d *differ) requests(recorded, asked *exchange.Request) {
	_, rq, _ := strings.Cut(recorded.Target, "?")
	_, aq, _ := strings.Cut(asked.Target, "?")
	if rq != aq {
		d.add("query", []byte(rq), []byte(aq))
	}
	if plain, ok := decodedRequest(recorded); ok {
		recorded = &plain
	}
	if plain, ok := decodedRequest(asked); ok {
		asked = &plain
	}
	r, rerr := d.document(recorded)
	a, aerr := d.document(asked)
	switch rb, ab := recorded.Body.Bytes(), asked.Body.Bytes(); {
	case rerr == nil && aerr == nil:
		d.values("$", r, a)
	case !bytes.Equal(rb, ab):
		d.add("body", rb, ab)
	}
}

// document is a body as a value, without what the relax rules take out.
func (d *differ) document(r *exchange.Request) (any, error) {
	if !r.Body.Whole() {
		return nil, fmt.Errorf("body cut")
	}
	form, err := canon.JSON(r.Body.Bytes())
	if err != nil {
		return nil, err
	}
	v, err := decodeNumbers(form)
	for _, rule := range d.relax {
		v = rule.without(v)
	}
	return v, err
}

// values compares two values and goes down where both are objects or lists.
func (d *differ) values(path string, recorded, asked any) {
	switch r := recorded.(type) {
	case map[string]any:
		if a, ok := asked.(map[string]any); ok {
			d.objects(path, r, a)
			return
		}
	case []any:
		if a, ok := asked.([]any); ok {
			for i := range max(len(r), len(a)) {
				at := path + "[" + strconv.Itoa(i) + "]"
				switch {
				case i >= len(r):
					d.add(at, nil, asJSONText(a[i]))
				case i >= len(a):
					d.add(at, asJSONText(r[i]), nil)
				default:
					d.values(at, r[i], a[i])
				}
			}
			return
		}
	}
	if r, a := asJSONText(recorded), asJSONText(asked); !bytes.Equal(r, a) {
		d.add(path, r, a)
	}
}

func (d *differ) objects(path string, recorded, asked map[string]any) {
	names := slices.Collect(maps.Keys(recorded))
	for name := range asked {
		if _, both := recorded[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := path + "." + pathEscaper.Replace(name)
		r, inRecorded := recorded[name]
		a, inAsked := asked[name]
		switch {
		case !inRecorded:
			d.add(at, nil, asJSONText(a))
		case !inAsked:
			d.add(at, asJSONText(r), nil)
		default:
			d.values(at, r, a)
		}
	}
}

// asJSONText is a decoded value as JSON again; it is never nil.
func asJSONText(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // it was JSON
		return []byte("?")
	}
	return b
}

// masked is a text without its secrets; nil stays nil.
func masked(text []byte) []byte {
	if text == nil {
		return nil
	}
	return []byte(redact.Text(strings.ToValidUTF8(string(text), "?")))
}

// parting cuts two texts to where they part. A nil one stays nil.
func parting(recorded, asked []byte) (r, a *string) {
	same := 0
	for recorded != nil && asked != nil && same < min(len(recorded), len(asked)) && recorded[same] == asked[same] {
		same++
	}
	return excerpt(recorded, same), excerpt(asked, same)
}

// excerpt is what stands around the byte at of text.
func excerpt(text []byte, at int) *string {
	const before, most = 20, 80
	if text == nil {
		return nil
	}
	from, to := 0, len(text)
	if to > most {
		from = max(0, min(at-before, to-most))
		to = min(to, from+most)
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	s := string(text[from:to])
	if from > 0 {
		s = "..." + s
	}
	if to < len(text) {
		s += "..."
	}
	return &s
}
