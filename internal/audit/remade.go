package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Remade is a file made again of the record: of the exchanges that it names, measured and judged again.
type Remade struct {
	JSON   []byte   // the same document by the record; nil when it cannot be made
	Why    string   // why it cannot
	Open   bool     // it cannot since that is for somebody else to do, such as for the command of an external gate
	Stated []string // paths of which no record tells anything, with * for any part: they stand as the file says
	Older  bool     // the file is of another version of benchproxy: fields that it does not know yet are none that it hides
}

// shownPartings is how many places one check names.
const shownPartings = 5

// remade holds what a file states against the same made again.
func (a *auditor) remade(d *Document) {
	stating := d.States() && (d.cell != nil || d.Gates != nil || d.Kind == KindRevalidation || d.Kind == KindCaptured || d.Kind == KindValidation)
	switch r := d.Remade; {
	case r == nil && d.Kind == KindReport:
		a.add(AskComparison, d.Source, Warning, "a report repeats what the record gave when it was written, and is not held against it: benchproxy report makes it again")
	case r == nil && !stating:
	case r == nil:
		a.add(AskComparison, d.Source, Warning, "what it states was not measured and judged again")
	case r.JSON == nil && r.Open:
		a.add(AskTraceable, d.Source, Warning, "what it states is not measured and judged again: %s", r.Why)
	case r.JSON == nil:
		a.add(AskTraceable, d.Source, Failure, "what it states cannot be measured and judged again: %s", r.Why)
	default:
		a.parted(d)
	}
}

// parted tells where the file and the record part.
func (a *auditor) parted(d *Document) {
	told, err := decode(d.Raw)
	if err == nil {
		var made any
		if made, err = decode(d.Remade.JSON); err == nil {
			p := &parter{stated: d.Remade.Stated, older: d.Remade.Older}
			p.value("", told, made)
			a.tellPartings(d, p)
			return
		}
	}
	a.add(AskDocument, d.Source, Failure, "%v", err)
}

func (a *auditor) tellPartings(d *Document, p *parter) {
	if len(p.found) == 0 {
		text := fmt.Sprintf("all %d numbers and words are those of the record, measured and judged again", p.equal)
		if len(p.as) > 0 {
			text += "; as the file says, which no record tells: " + strings.Join(slices.Sorted(maps.Keys(p.as)), ", ")
		}
		a.add(AskComparison, d.Source, OK, "%s", text)
		return
	}
	text := strings.Join(p.found[:min(len(p.found), shownPartings)], "; ")
	if n := len(p.found) - shownPartings; n > 0 {
		text += fmt.Sprintf("; and %s more", count(n, "place"))
	}
	a.add(AskComparison, d.Source, Failure, "%s", text).Exchanges = first(d.Exchanges)
}

func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v)
}

// parter walks two forms of one document.
type parter struct {
	stated []string
	older  bool
	found  []string // places where they part, in the order of the paths
	equal  int
	as     map[string]bool // stated paths that the file has
}

// value holds one value against the other.
func (p *parter) value(path string, told, made any) {
	if i := slices.IndexFunc(p.stated, func(pattern string) bool { return pathIs(pattern, path) }); i >= 0 {
		if !empty(told) {
			if p.as == nil {
				p.as = map[string]bool{}
			}
			p.as[p.stated[i]] = true
		}
		return
	}
	switch t := told.(type) {
	case map[string]any:
		if m, ok := made.(map[string]any); ok {
			p.object(path, t, m)
			return
		}
	case []any:
		if m, ok := made.([]any); ok {
			p.list(path, t, m)
			return
		}
	}
	if same(told, made) {
		p.equal++
		return
	}
	p.part(path, told, made)
}

func (p *parter) part(path string, told, made any) {
	p.found = append(p.found, fmt.Sprintf("%s is %s in the file, and the record gives %s", orWord(path, "it"), worded(told), worded(made)))
}

func (p *parter) object(path string, told, made map[string]any) {
	keys := slices.Collect(maps.Keys(told))
	for k := range made {
		if _, there := told[k]; !there && !p.older && !inDetail(path) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		at := k
		if path != "" {
			at = path + "." + k
		}
		p.value(at, told[k], made[k])
	}
}

// inDetail reports whether a path lies in what a gate tells of itself, to which later gates may add.
func inDetail(path string) bool {
	return path == "detail" || strings.HasSuffix(path, ".detail") || strings.Contains(path, ".detail.")
}

func (p *parter) list(path string, told, made []any) {
	for i := range max(len(told), len(made)) {
		var t, m any
		if i < len(told) {
			t = told[i]
		}
		if i < len(made) {
			m = made[i]
		}
		if i >= len(told) || i >= len(made) { // also of what is empty
			p.part(fmt.Sprintf("%s[%d]", path, i), t, m)
			continue
		}
		p.value(fmt.Sprintf("%s[%d]", path, i), t, m)
	}
}

// pathIs reports whether a path is that of a pattern or lies below it. A * in the pattern stands for one name, and for the
// place in a list where it stands in brackets.
func pathIs(pattern, path string) bool {
	want, have := steps(pattern), steps(path)
	if len(have) < len(want) {
		return false
	}
	for i, w := range want {
		if w != "*" && w != have[i] {
			return false
		}
	}
	return true
}

func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// same reports whether a value of a file is that of the record. A number may be rounded to the digits that the file has
// behind its point, as result files are; nothing and the absence of a field are the same.
func same(told, made any) bool {
	t, isNumber := told.(json.Number)
	m, also := made.(json.Number)
	switch {
	case isNumber && also:
		return t == m || sameNumbers(string(t), string(m))
	case isNumber != also:
		return empty(told) && empty(made) && !isNumber && !also
	case empty(told) && empty(made):
		return true
	}
	switch t := told.(type) {
	case string:
		m, ok := made.(string)
		return ok && t == m
	case bool:
		m, ok := made.(bool)
		return ok && t == m
	}
	return false
}

// empty is what stands for nothing: fields that say no more than that may be left out.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// sameNumbers holds a number of a file against one of the record.
func sameNumbers(told, made string) bool {
	t, err := strconv.ParseFloat(told, 64)
	if err != nil {
		return false
	}
	m, err := strconv.ParseFloat(made, 64)
	if err != nil {
		return false
	}
	off := math.Abs(t - m)
	if off <= 1e-9*math.Max(math.Abs(t), math.Abs(m)) {
		return true
	}
	_, digits, _ := strings.Cut(told, ".")
	if len(digits) == 0 || strings.ContainsAny(digits, "eE") {
		return false
	}
	return off <= 0.5*math.Pow10(-len(digits))*(1+1e-9)
}

// worded is a value in a sentence.
func worded(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 120
	if s := []rune(string(b)); len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(b)
}
