package bridge

import (
	"encoding/json"
	"slices"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Edit is a change of one field of a body. Its path leads into objects only.
type Edit struct {
	Path  string
	Value json.RawMessage // nil takes the field out
}

// Respelled is what makes a request that is not translated ask an engine for what it asked the recorded one for.
type Respelled struct {
	Edits   []Edit // in order
	Changes []Change
}

// Respells reports whether requests of a dialect are looked at that are not translated.
func (e Endpoint) Respells(d wire.Dialect) bool {
	return e.Known != nil && (d == wire.DialectChat || d == wire.DialectCompletions) && !e.Translates(d)
}

// Respell finds the fields of a request that the engine spells otherwise. Fields that it spells as they are stay, and so
// does everything of which its profile says nothing. A body that is no JSON object needs no edit.
func (e Endpoint) Respell(d wire.Dialect, body []byte) Respelled {
	var out Respelled
	o, ok := parseObject(body)
	if !ok || !e.Respells(d) {
		return out
	}
	r := &respeller{to: e, body: o}
	limits := e.Limits
	if d == wire.DialectCompletions {
		limits = []string{"max_tokens"}
	}
	switch {
	case e.Hosted || e.Repetition == engines.RepetitionNone:
		r.refuse(e.Known.repetitions)
	case e.Repetition != "":
		r.rename(e.Known.repetitions, []string{e.Repetition})
	}
	if e.Hosted {
		r.refuse([]string{string(OptionTopK), string(OptionMinP)})
	}
	r.rename(e.Known.limits, limits)
	if d == wire.DialectChat {
		if r.rename(e.Known.budgets, e.Budgets); e.Hosted && len(e.Budgets) == 0 {
			r.refuse(e.Known.budgets)
		}
		r.thinking()
	}
	return Respelled{append(r.removals(), r.sets...), r.changes}
}

// respeller works on one body.
type respeller struct {
	to      Endpoint
	body    object
	gone    []string // paths that are taken out
	sets    []Edit
	changes []Change
}

const (
	reasonTwice  = "it stands there twice, and which one counts is for each engine to say"
	reasonBeside = "it stands beside another field that asks for something else, and which one counts is for each engine to say"
)

// at is the value at a path; nil for none and for null. twice means that one of its names stands there twice.
func (r *respeller) at(path string) (v json.RawMessage, twice bool) {
	in, name := r.body, path
	if parent, inner := cutPath(path); parent != "" {
		v, twice = r.at(parent)
		in, _ = parseObject(v)
		name = inner
	}
	n := 0
	v = nil
	for _, m := range in {
		if m.name == name {
			n++
			v = m.value
		}
	}
	if string(v) == "null" {
		v = nil
	}
	return v, twice || n > 1
}

// lose takes a field out and says that it is lost.
func (r *respeller) lose(path string, v json.RawMessage, reason string) {
	r.gone = append(r.gone, path)
	r.changes = append(r.changes, Change{Path: path, From: string(v), Reason: reason, Lost: true})
}

// tell takes a field out for which something else stands.
func (r *respeller) tell(path string, v json.RawMessage, to object) {
	r.gone = append(r.gone, path)
	r.changes = append(r.changes, Change{Path: path, From: string(v), To: string(encode(to)), Reason: "spelled as " + r.to.name() + " spells it"})
}

// name is what the engine is called in reasons.
func (e Endpoint) name() string {
	if e.Engine == "" {
		return "the engine"
	}
	return e.Engine
}

// set puts a value at a path. An object on the way that is null is made anew.
func (r *respeller) set(path string, v json.RawMessage) {
	parent, name := cutPath(path)
	if parent != "" {
		if i := slices.IndexFunc(r.body, func(m member) bool { return m.name == parent }); i >= 0 && string(r.body[i].value) == "null" {
			path, v = parent, encode(nested(name, v))
		}
	}
	r.sets = append(r.sets, Edit{path, v})
}

// open reports whether a value can be set at a path: what leads there is an object, null or nothing.
func (r *respeller) open(path string) bool {
	parent, _ := cutPath(path)
	v, twice := r.at(parent)
	_, isObject := parseObject(v)
	return parent == "" || !twice && (v == nil || isObject)
}

// refuse loses the fields of which the engine says that it has none of the kind.
func (r *respeller) refuse(known []string) {
	for _, path := range known {
		if v, _ := r.at(path); v != nil {
			r.lose(path, v, r.to.name()+" has no such option")
		}
	}
}

// rename gives a field the name that the engine has for it. known are its names in all engines, own those that this one
// understands, of which the first is to be used; without any, nothing is known and nothing done.
func (r *respeller) rename(known, own []string) {
	if len(own) == 0 {
		return
	}
	moved := false
	var have json.RawMessage
	for _, path := range own {
		if v, _ := r.at(path); v != nil {
			have = v
		}
	}
	for _, path := range known {
		v, twice := r.at(path)
		switch {
		case v == nil || slices.Contains(own, path):
		case twice:
			r.lose(path, v, reasonTwice)
		case have == nil && r.open(own[0]):
			have, moved = v, true
			r.set(own[0], v)
			r.tell(path, v, nested(own[0], v))
		case string(have) != string(v):
			r.lose(path, v, reasonBeside)
		case r.to.Hosted || moved:
			r.tell(path, v, nested(own[0], v))
		}
	}
}

// removals take out what is gone, and the objects that nothing is left in.
func (r *respeller) removals() []Edit {
	var out []Edit
	left := map[string]int{}
	for _, path := range r.gone {
		parent, _ := cutPath(path)
		if parent == "" {
			continue
		}
		if _, counted := left[parent]; !counted {
			v, _ := r.at(parent)
			o, _ := parseObject(v)
			left[parent] = len(o)
		}
		left[parent]--
	}
	for _, path := range r.gone {
		parent, _ := cutPath(path)
		if n, inside := left[parent]; inside && n == 0 {
			path = parent
		}
		if !slices.ContainsFunc(out, func(e Edit) bool { return e.Path == path }) {
			out = append(out, Edit{Path: path})
		}
	}
	return out
}
