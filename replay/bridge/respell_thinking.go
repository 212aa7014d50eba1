package bridge

import (
	"encoding/json"
	"slices"
)

// asked is one place of a request that says whether to think, or how much.
type asked struct {
	leaves []leaf
	mode   Switch
	effort string // the word for how much; "" for a switch alone
	own    bool   // the engine spells it so
	twice  bool
}

// thinking respells what asks for thinking. A request that says it in a spelling of the engine stays as it is.
func (r *respeller) thinking() {
	found := append(r.switches(), r.efforts()...)
	if len(found) == 0 || r.to.ThinkingOn == nil && r.to.ThinkingOff == nil && len(r.to.Efforts) == 0 {
		return
	}
	own := slices.ContainsFunc(found, func(a asked) bool { return a.own })
	switch {
	case slices.ContainsFunc(found, func(a asked) bool { return a.twice && !a.own }):
		r.loseForeign(found, reasonTwice)
	case own && !slices.ContainsFunc(found, func(a asked) bool { return !a.own }):
	case !agree(found):
		r.loseForeign(found, reasonBeside)
	case own && !r.to.Hosted:
	case own:
		r.replace(found, nil)
	default:
		r.respell(found)
	}
}

// switches are the switches of a request that some engine spells so.
func (r *respeller) switches() []asked {
	own := map[string]bool{}
	for _, raw := range append([]json.RawMessage{r.to.ThinkingOn, r.to.ThinkingOff}, r.to.ThinkingAlso...) {
		own[leavesText(leavesOf("", raw))] = true
	}
	var out []asked
	for _, sp := range r.to.Known.switches {
		a := asked{leaves: sp.leaves, mode: sp.mode, own: own[leavesText(sp.leaves)]}
		all := true
		for _, l := range sp.leaves {
			v, twice := r.at(l.path)
			all = all && v != nil && string(compact(v)) == l.value
			a.twice = a.twice || twice
		}
		if all {
			out = append(out, a)
		}
	}
	return out
}

// leavesText tells sets of values apart.
func leavesText(leaves []leaf) string {
	text := ""
	for _, l := range leaves {
		text += l.path + "=" + l.value + "\n"
	}
	return text
}

// efforts are the words for how much to think. The word none turns it off.
func (r *respeller) efforts() []asked {
	off := leavesText(leavesOf("", r.to.ThinkingOff))
	var out []asked
	for _, path := range r.to.Known.efforts {
		v, twice := r.at(path)
		word, isText := parseText(v)
		if !isText || word == "" {
			continue
		}
		a := asked{leaves: []leaf{{path, string(compact(v))}}, mode: On, effort: word, own: slices.Contains(r.to.Efforts, path), twice: twice}
		if word == "none" {
			a.mode, a.effort, a.own = Off, "", off == leavesText(a.leaves)
		}
		out = append(out, a)
	}
	return out
}

// agree reports whether all places ask for the same.
func agree(found []asked) bool {
	mode, effort := found[0].mode, ""
	for _, a := range found {
		if a.mode != mode || effort != "" && a.effort != "" && a.effort != effort {
			return false
		}
		if a.effort != "" {
			effort = a.effort
		}
	}
	return true
}

// loseForeign takes out what is not in a spelling of the engine.
func (r *respeller) loseForeign(found []asked, reason string) {
	for _, a := range found {
		for _, l := range a.leaves {
			if !a.own {
				r.lose(l.path, json.RawMessage(l.value), reason)
			}
		}
	}
}

// replace takes out what is not in a spelling of the engine, since something else stands for it.
func (r *respeller) replace(found []asked, by object) {
	for _, a := range found {
		for _, l := range a.leaves {
			if !a.own {
				r.tell(l.path, json.RawMessage(l.value), by)
			}
		}
	}
}

// respell says in the spelling of the engine what is said in none of its own.
func (r *respeller) respell(found []asked) {
	mode, effort, switched := found[0].mode, "", false
	for _, a := range found {
		if a.effort != "" {
			effort = a.effort
		} else {
			switched = true
		}
	}
	var said object
	if effort != "" && len(r.to.Efforts) > 0 {
		said.merge(nested(r.to.Efforts[0], encode(effort)))
	} else {
		switched = true
	}
	if turn, known := parseObject(r.to.thinking(mode)); known && switched {
		turn.merge(said) // a word for how much says more than a switch of the same name
		said = turn
	}
	leaves := leavesOf("", encode(said))
	if len(said) == 0 || slices.ContainsFunc(leaves, func(l leaf) bool { return !r.open(l.path) }) {
		r.loseForeign(found, "nothing is known of how "+r.to.name()+" turns thinking "+string(mode))
		return
	}
	for _, l := range leaves {
		r.set(l.path, json.RawMessage(l.value))
	}
	if effort == "" || len(r.to.Efforts) > 0 {
		r.replace(found, said)
		return
	}
	for _, a := range found {
		if a.effort == "" {
			r.replace([]asked{a}, said)
			continue
		}
		r.loseForeign([]asked{a}, "nothing is known of how "+r.to.name()+" is told how much to think, only that it is to")
	}
}
