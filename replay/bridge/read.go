package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Change is one thing that is not in the translated request as it was in the recorded one.
type Change struct {
	Path   string // in the recorded request
	From   string // JSON text that stood there; "" for none
	To     string // what stands for it now; "" for nothing
	Reason string
	Lost   bool // what was asked for there is not asked for any more
}

// reader reads a request and gathers what cannot be carried.
type reader struct {
	changes []Change
	calls   []seenCall // so far, in order
}

// seenCall is a call with the id under which its result is looked for.
type seenCall struct {
	Call
	said     string // id in the recorded request, "" when it had none
	answered bool
}

func (r *reader) lose(path string, raw json.RawMessage, reason string) {
	r.changes = append(r.changes, Change{Path: path, From: string(raw), Reason: reason, Lost: true})
}

func (r *reader) tell(path string, raw json.RawMessage, to, reason string) {
	r.changes = append(r.changes, Change{Path: path, From: string(raw), To: to, Reason: reason})
}

const (
	reasonUnknown = "the bridge does not know this field"
	reasonNeutral = "it asks for nothing of the answer"
	reasonHint    = "a hint for caches"
)

// fields are the members of an object of a request. What is not taken out is lost.
type fields struct {
	r     *reader
	path  string
	list  object
	taken []bool
}

// fields opens an object. Any other value is lost, and has no fields.
func (r *reader) fields(v Value) *fields {
	list, ok := parseObject(v.Raw)
	if !ok && v.Raw != nil {
		r.lose(v.Path, v.Raw, "it is no object")
	}
	return &fields{r: r, path: v.Path, list: list, taken: make([]bool, len(list))}
}

// value takes a field out. One that is null counts as absent.
func (f *fields) value(names ...string) Value {
	v := Value{}
	for i, m := range f.list {
		if !f.taken[i] && slices.Contains(names, m.name) {
			f.taken[i] = true
			if string(m.value) != "null" {
				v = Value{m.value, below(f.path, m.name)}
			}
		}
	}
	return v
}

// text takes a string out. Any other value is lost.
func (f *fields) text(names ...string) string {
	v := f.value(names...)
	s, ok := parseText(v.Raw)
	if !ok && v.Raw != nil {
		f.r.lose(v.Path, v.Raw, "it is no text")
	}
	return s
}

// flag takes a boolean out. Any other value is lost, and false.
func (f *fields) flag(names ...string) (on bool, v Value) {
	v = f.value(names...)
	switch string(v.Raw) {
	case "true":
		return true, v
	case "false", "":
		return false, v
	}
	f.r.lose(v.Path, v.Raw, "it is neither true nor false")
	return false, Value{}
}

// array takes a list out, with the path of each element. Any other value is lost.
func (f *fields) array(names ...string) []Value {
	v := f.value(names...)
	list, ok := parseArray(v.Raw)
	if !ok && v.Raw != nil {
		f.r.lose(v.Path, v.Raw, "it is no list")
	}
	out := make([]Value, len(list))
	for i, raw := range list {
		out[i] = Value{raw, at(v.Path, i)}
	}
	return out
}

// drop takes out fields that ask for nothing of the answer. They are told, and not missed.
func (f *fields) drop(reason string, names ...string) {
	for _, name := range names {
		if v := f.value(name); v.Raw != nil {
			f.r.tell(v.Path, v.Raw, "", reason)
		}
	}
}

// done loses what was not taken out.
func (f *fields) done() {
	for i, m := range f.list {
		if !f.taken[i] && string(m.value) != "null" {
			f.r.lose(below(f.path, m.name), m.value, reasonUnknown)
		}
	}
}

// sampling takes options out, each under its name in the dialect. Those with a value that asks for nothing are left out.
func (f *fields) sampling(q *Request, names map[string]Option) {
	for i, m := range f.list {
		o, ok := names[m.name]
		if !ok || f.taken[i] {
			continue
		}
		f.taken[i] = true
		if string(m.value) == "null" || slices.Contains(idle[o], string(m.value)) {
			continue
		}
		if q.Sampling == nil {
			q.Sampling = map[Option]Value{}
		}
		q.Sampling[o] = Value{m.value, below(f.path, m.name)}
	}
}

// limit takes the output limit out. One that is not above 0 means none, as engines read it.
func (f *fields) limit(names ...string) Value {
	v := f.value(names...)
	if v.Raw == nil {
		return v
	}
	n, err := strconv.ParseInt(string(v.Raw), 10, 64)
	switch {
	case err != nil:
		f.r.lose(v.Path, v.Raw, "it is no whole number")
		return Value{}
	case n <= 0:
		f.r.tell(v.Path, v.Raw, "", "a limit that is not above 0 means none")
		return Value{}
	}
	return v
}

// stop takes the texts out that end an answer: one, or a list.
func (f *fields) stop(names ...string) Stop {
	v := f.value(names...)
	if v.Raw == nil {
		return Stop{}
	}
	if s, ok := parseText(v.Raw); ok {
		if s == "" {
			return Stop{}
		}
		return Stop{[]string{s}, v.Path}
	}
	var list []string
	if !isArray(v.Raw) || json.Unmarshal(v.Raw, &list) != nil {
		f.r.lose(v.Path, v.Raw, "it is neither a text nor a list of texts")
		return Stop{}
	}
	if len(list) == 0 {
		return Stop{}
	}
	return Stop{list, v.Path}
}

// schema is the compact form of a schema; one that says nothing of its members is none.
func schema(raw json.RawMessage) json.RawMessage {
	raw = compact(raw)
	switch string(raw) {
	case "", "null", "{}", `{"type":"object"}`, `{"type":"object","properties":{}}`:
		return nil
	}
	return raw
}

// called notes a call. One without an id gets one, and so does one whose id an earlier call has: engines count calls from
// the beginning in every answer, and others refuse an id that is there twice.
func (r *reader) called(c Call, path string) Call {
	seen := seenCall{said: c.ID}
	for n := 1; c.ID == "" || slices.ContainsFunc(r.calls, func(have seenCall) bool { return have.ID == c.ID }); n++ {
		c.ID = fmt.Sprintf("call_%d", n)
		if seen.said != "" {
			c.ID = fmt.Sprintf("%s_%d", seen.said, n+1)
		}
	}
	if seen.said != "" && seen.said != c.ID {
		r.tell(path, encode(seen.said), string(encode(c.ID)), "an earlier call has that id")
	}
	seen.Call = c
	r.calls = append(r.calls, seen)
	return c
}

// answers finds the call that a result belongs to: by its id, or by its name where it has none, or else any; each time the
// first one that is open, and of those with its id the last one when none is.
func (r *reader) answers(res Result) Result {
	found := -1
	for i, c := range r.calls {
		fits := res.ID == c.said && res.ID != "" || res.ID == "" && !c.answered && (res.Name == "" || res.Name == c.Name)
		if fits {
			found = i
			if !c.answered {
				break
			}
		}
	}
	if found >= 0 {
		c := &r.calls[found]
		c.answered = true
		res.ID, res.Name = c.ID, c.Name
	}
	return res
}

// arguments are those of a call as an object; what is none is lost.
func (r *reader) arguments(v Value) json.RawMessage {
	if _, ok := parseObject(v.Raw); ok {
		return compact(v.Raw)
	}
	if len(v.Raw) > 0 {
		r.lose(v.Path, v.Raw, "the arguments are no object")
	}
	return json.RawMessage("{}")
}

// image reads an address, which may hold the data itself.
func image(url string) Media {
	rest, ok := strings.CutPrefix(url, "data:")
	kind, data, isData := strings.Cut(rest, ";base64,")
	if ok && isData {
		kind, _, _ = strings.Cut(kind, ";") // parameters of a type are of no use to those who want it alone
		if kind == "" {
			kind = imageType(data)
		}
		return Media{Type: kind, Data: data}
	}
	return Media{URL: url}
}

// magic are the first characters of images in base64.
var magic = [...]struct{ begins, kind string }{
	{"iVBORw0KGgo", "image/png"}, {"/9j/", "image/jpeg"}, {"R0lGOD", "image/gif"}, {"UklGR", "image/webp"},
}

// imageType is the type of an image by its first bytes; "" when they do not tell.
func imageType(base64 string) string {
	for _, m := range magic {
		if strings.HasPrefix(base64, m.begins) {
			return m.kind
		}
	}
	return ""
}

// add puts a message behind the others. Results in a row, and what the system says at the beginning, are one message.
func (q *Request) add(m Message) {
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == m.Role && (m.Role == RoleTool || m.Role == RoleSystem && n == 1) {
		q.Messages[n-1].Parts = append(q.Messages[n-1].Parts, m.Parts...)
		return
	}
	q.Messages = append(q.Messages, m)
}

// addTurn puts what a user said behind the others: the results of calls first, as a message of their own.
func (q *Request) addTurn(m Message) {
	var results, rest []Part
	for _, p := range m.Parts {
		if p.Kind == PartResult {
			results = append(results, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(results) > 0 {
		q.add(Message{Role: RoleTool, Parts: results, Path: m.Path})
	}
	if len(rest) > 0 || len(results) == 0 {
		q.add(Message{Role: RoleUser, Parts: rest, Path: m.Path})
	}
}
