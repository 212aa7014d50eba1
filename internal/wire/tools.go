package wire

import (
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// tool is one tool call being put together from its fragments.
type tool struct {
	index    int
	id, kind string
	name     strings.Builder
	args     strings.Builder

	byEngine    bool // the engine runs it itself: the answer does not stop for it
	provisional bool // the arguments are those the call was opened with, which fragments replace
	closed      bool // its block has ended
}

// toolList are the calls of one choice.
type toolList struct {
	all     []*tool // in order of appearance
	byIndex map[int]*tool
	byID    map[string]*tool
	top     int  // first index above all in use
	moved   bool // a call stands under an index that is not its own
}

// fragment is one piece of a tool call as the wire brings it. Absent parts are empty.
type fragment struct {
	index    int
	hasIndex bool
	id, kind []byte
	name     []byte
	args     *fastjson.Value // string, or an object that came whole

	byEngine, provisional bool // see tool
}

// readToolCalls reads the tool_calls list of a delta or a message. With whole set every entry is a call of its own.
func (a *answer) readToolCalls(c *choice, v *fastjson.Value, whole bool) {
	for _, call := range v.GetArray() {
		if call.Type() != fastjson.TypeObject {
			continue
		}
		var f fragment
		call.GetObject().Visit(func(key []byte, v *fastjson.Value) {
			switch string(key) {
			case "index":
				f.index, f.hasIndex = indexOf(v)
			case "id":
				f.id = text(v)
			case "type":
				f.kind = text(v)
			case "function":
				f.function(v)
			}
		})
		if whole {
			f.index, f.hasIndex = c.tools.top, true
		}
		a.addFragment(c, f)
	}
}

// function reads the function part of a fragment.
func (f *fragment) function(v *fastjson.Value) {
	f.name = text(v.Get("name"))
	f.args = v.Get("arguments")
}

// addFragment joins a fragment to its call. What a fragment repeats (an id, a whole name) is not new content.
func (a *answer) addFragment(c *choice, f fragment) {
	if a.quiet {
		return
	}
	a.growTool(c, c.tools.find(f), f)
}

// growTool adds a fragment to the call it belongs to.
func (a *answer) growTool(c *choice, t *tool, f fragment) {
	grew := false
	if t.id == "" && len(f.id) > 0 {
		t.id, grew = string(f.id), true
		c.tools.byID[t.id] = t
	}
	if t.kind == "" {
		t.kind = string(f.kind)
	}
	if len(f.name) > 0 && t.name.String() != string(f.name) {
		t.name.Write(f.name)
		grew = true
	}
	t.byEngine = t.byEngine || f.byEngine
	if f.provisional {
		t.provisional = true
	} else if t.provisional && len(text(f.args)) > 0 {
		t.provisional = false
		t.args.Reset()
	}
	if n := t.args.Len(); present(f.args) {
		if f.args.Type() == fastjson.TypeString {
			t.args.Write(text(f.args))
		} else {
			t.args.Write(f.args.MarshalTo(nil))
		}
		grew = grew || t.args.Len() > n
	}
	if grew {
		a.event.kinds |= KindTool
	}
}

// find gives the call a fragment belongs to: by index, without one by id, without both the last. Two whole calls under
// one index (some gateways number every call 0) are told apart by a new id that comes with a name.
func (l *toolList) find(f fragment) *tool {
	if f.hasIndex {
		t := l.byIndex[f.index]
		if t == nil {
			return l.open(f.index)
		}
		if t.id == "" || len(f.id) == 0 || len(f.name) == 0 || t.id == string(f.id) {
			return t
		}
	} else if len(f.id) == 0 && len(l.all) > 0 {
		return l.all[len(l.all)-1]
	}
	if t := l.byID[string(f.id)]; t != nil {
		return t
	}
	return l.open(l.top)
}

// begin makes room for a call whose block opens with an index of its own. Some gateways give that index to one block
// after the other: a new block takes it over, and what comes under the index from there on is the new block's. The call
// gets the next free index, since that of the answer is taken. A block that opens again (the same id, or no id and no
// end in between) is the same call.
func (l *toolList) begin(f fragment) {
	old := l.byIndex[f.index]
	switch {
	case old == nil:
		if !l.moved || f.index >= l.top {
			return // find opens it
		}
	case old.id == string(f.id) && (old.id != "" || !old.closed):
		return
	case !old.closed && (old.id == "" || len(f.id) == 0 || len(f.name) == 0):
		return
	}
	t := l.byID[string(f.id)]
	if t == nil {
		index := l.top
		t = l.open(index)
		delete(l.byIndex, index)
	}
	l.byIndex[f.index], l.moved = t, true
}

// open begins a call.
func (l *toolList) open(index int) *tool {
	if l.byIndex == nil {
		l.byIndex, l.byID = map[int]*tool{}, map[string]*tool{}
	}
	t := &tool{index: index}
	l.all = append(l.all, t)
	l.byIndex[index] = t
	l.top = max(l.top, index+1)
	return t
}

// stopped reports whether there is a call that the answer stopped for: one the client is to run.
func (l *toolList) stopped() bool {
	return slices.ContainsFunc(l.all, func(t *tool) bool { return !t.byEngine })
}

func (t *tool) snapshot() ToolCall {
	return ToolCall{Index: t.index, ID: t.id, Type: t.kind, Name: t.name.String(), Arguments: t.args.String()}
}
