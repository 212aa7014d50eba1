package bridge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Spellings are how engines spell in chat what its dialect leaves open. They say what a field of a recorded request
// means, whichever engine it was recorded from.
type Spellings struct {
	limits, repetitions, efforts, budgets []string
	switches                              []spelling
}

// spelling is an object that turns thinking on or off, as the values in it.
type spelling struct {
	mode   Switch
	leaves []leaf
}

// leaf is a value that is no object, by its path.
type leaf struct {
	path  string
	value string // JSON text, compact
}

// SpellingsOf gathers what the profiles of engines state that have chat.
func SpellingsOf(profiles []engines.Profile) *Spellings {
	s := &Spellings{repetitions: []string{string(OptionRepetition)}}
	for _, p := range profiles {
		if !p.Understands(wire.DialectChat) {
			continue
		}
		q := p.Requests
		s.limits = union(s.limits, limitsOf(q)...)
		s.efforts = union(s.efforts, q.Effort...)
		s.budgets = union(s.budgets, q.Budget...)
		if q.Repetition != "" && q.Repetition != engines.RepetitionNone {
			s.repetitions = union(s.repetitions, q.Repetition)
		}
		if q.Thinking != nil {
			s.add(*q.Thinking)
		}
		for _, also := range q.ThinkingAlso {
			s.add(also)
		}
	}
	// A word for how much to think is read as one: that some engine calls its switch so says less.
	s.switches = slices.DeleteFunc(s.switches, func(sp spelling) bool {
		return slices.ContainsFunc(sp.leaves, func(l leaf) bool { return slices.Contains(s.efforts, l.path) })
	})
	return s
}

func union(list []string, more ...string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func (s *Spellings) add(t engines.Switch) {
	for _, sp := range []spelling{{On, leavesOf("", t.On)}, {Off, leavesOf("", t.Off)}} {
		if len(sp.leaves) > 0 && !slices.ContainsFunc(s.switches, sp.equal) {
			s.switches = append(s.switches, sp)
		}
	}
}

// leavesOf are the values of an object within objects, none for what is no object.
func leavesOf(path string, raw json.RawMessage) []leaf {
	o, isObject := parseObject(raw)
	if !isObject {
		if path == "" {
			return nil
		}
		return []leaf{{path, string(compact(raw))}}
	}
	var out []leaf
	for _, m := range o {
		out = append(out, leavesOf(below(path, m.name), m.value)...)
	}
	return out
}

func (s spelling) equal(other spelling) bool {
	return s.mode == other.mode && slices.Equal(s.leaves, other.leaves)
}

// cutPath parts a path at its last dot: the object, "" for the body, and the name in it.
func cutPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
