package bridge

import (
	"encoding/json"
	"slices"
	"strconv"
)

// writer makes a request in the dialect of its target and gathers what it has no place for.
type writer struct {
	to      Endpoint
	changes []Change
	headers []member // name and value of each header the dialect needs
	ids     map[string]string
}

func (w *writer) lose(path string, raw json.RawMessage, reason string) {
	w.changes = append(w.changes, Change{Path: path, From: string(raw), Reason: reason, Lost: true})
}

func (w *writer) tell(path string, raw json.RawMessage, to, reason string) {
	w.changes = append(w.changes, Change{Path: path, From: string(raw), To: to, Reason: reason})
}

func (w *writer) loseValue(v Value, reason string) {
	if v.Raw != nil {
		w.lose(v.Path, v.Raw, reason)
	}
}

// noPlace is the reason for what the dialect cannot say.
func (w *writer) noPlace() string { return string(w.to.Dialect) + " has no place for it" }

// sampling puts the options that the dialect has, under its names. The others are lost.
func (w *writer) sampling(o *object, q *Request, names map[Option]string) {
	for _, opt := range options {
		v, ok := q.Sampling[opt]
		switch name := names[opt]; {
		case ok && name != "":
			o.put(name, v.Raw)
		case ok:
			w.loseValue(v, w.noPlace())
		}
	}
}

// opening parts the conversation into what the system says at its beginning and the rest. What it says later is
// put there too, which loses its place.
func (w *writer) opening(q *Request) (system []Part, rest []Message) {
	for i, m := range q.Messages {
		if m.Role != RoleSystem {
			rest = append(rest, m)
			continue
		}
		if i > 0 {
			w.lose(m.Path, nil, string(w.to.Dialect)+" has a system message at the beginning only")
		}
		system = append(system, m.Parts...)
	}
	return w.onlyText(system), rest
}

// onlyText leaves texts. Other parts are lost.
func (w *writer) onlyText(parts []Part) []Part {
	var out []Part
	for _, p := range parts {
		if p.Kind == PartText {
			out = append(out, p)
		} else {
			w.lose(p.Path, nil, w.noPlace())
		}
	}
	return out
}

// orphan loses the place of a result that no call could be found for, where results name their calls.
func (w *writer) orphan(p Part) {
	if p.Result.ID == "" {
		w.lose(p.Path, nil, "a result names its call there, and no call is open")
	}
}

// foreign tells that a signature is not sent: it is of use to the engine alone that gave it.
func (w *writer) foreign(p Part) {
	if p.Signature != "" {
		w.tell(p.Path, encode(p.Signature), "", "a signature is of use to the engine alone that gave it")
	}
}

// id is the id of a call in the characters that Anthropic takes. The same call has the same one everywhere.
func (w *writer) id(id, path string) string {
	if known, ok := w.ids[id]; ok {
		return known
	}
	clean := []byte(id)
	for i, c := range clean {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			clean[i] = '_'
		}
	}
	out := string(clean)
	for n := 2; w.taken(out); n++ {
		out = string(clean) + "_" + strconv.Itoa(n)
	}
	if out != id {
		w.tell(path, encode(id), string(encode(out)), "ids have letters, digits, _ and - only")
	}
	if w.ids == nil {
		w.ids = map[string]string{}
	}
	w.ids[id] = out
	return out
}

func (w *writer) taken(id string) bool {
	for _, have := range w.ids {
		if have == id {
			return true
		}
	}
	return false
}

// parameters are those of a tool, which must be there.
func (t *Tool) parameters() json.RawMessage {
	if t.Parameters == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}

// merge lays the members of an object over those of o, object within object.
func (o *object) merge(add object) {
	for _, m := range add {
		i := slices.IndexFunc(*o, func(have member) bool { return have.name == m.name })
		if i < 0 {
			*o = append(*o, m)
			continue
		}
		inner, isObject := parseObject((*o)[i].value)
		more, moreToo := parseObject(m.value)
		if !isObject || !moreToo {
			(*o)[i].value = m.value
			continue
		}
		inner.merge(more)
		(*o)[i].value = encode(inner)
	}
}
