package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	// maxRemovals bounds the removals that are told one by one.
	maxRemovals = 128
	// maxFinished bounds the choices whose end is remembered.
	maxFinished = 1024
)

// usageJudge knows an added event of usage, and keeps account of what was done.
type usageJudge struct {
	finished []int64 // choices that have their finish reason

	removals []exchange.Intervention
	more     int // removals behind these
	kept     [keptReasons]int
	moved    bool     // timings went back to their finish event
	lost     []string // fields that went away with the usage
}

// keptReason is why an event that reports usage is passed on.
type keptReason int

const (
	keptNull    keptReason = iota // "usage":null in events of other content
	keptFinish                    // the finish reason is in it: TabbyAPI moves it there; some engines always report there
	keptContent                   // content is in it: running usage
	keptEarly                     // an empty choice that has not finished
	keptError                     // an error is in it
	keptChoices                   // no list of choices
	keptReasons                   // how many there are
)

var keptTexts = [keptReasons]string{"usage_null", "finish_reason_inside", "content_inside", "finish_not_seen", "error_inside", "no_choices"}

// ordinary are the fields that every event of a stream has: nothing is lost with them.
var ordinary = [...]string{"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "obfuscation"}

// finding is what an event is.
type finding struct {
	remove  bool
	finish  bool   // a choice finishes in it
	timings []byte // raw; of an event to remove
}

// read judges one event by its payload. An event that names neither usage nor an end is not parsed.
func (j *usageJudge) read(data []byte) finding {
	named, usage := names(data, `"usage"`)
	_, finish := names(data, `"finish_reason"`)
	if !usage && named {
		j.kept[keptNull]++
	}
	if !usage && !finish {
		return finding{}
	}
	p := jsonParsers.Get()
	defer giveBack(p, len(data))
	v, err := p.ParseBytes(data)
	if err != nil || v.Type() != fastjson.TypeObject {
		return finding{}
	}
	u := v.Get("usage")
	if u == nil || u.Type() != fastjson.TypeObject {
		return finding{finish: j.choices(v).finish}
	}
	why, finishes := j.why(v)
	if why < keptReasons {
		j.kept[why]++
		return finding{finish: finishes}
	}
	return finding{remove: true, timings: j.takeFields(data)}
}

// names reports whether the text names a key, given with its quotes, and whether any of its values is not null.
func names(data []byte, key string) (seen, value bool) {
	for {
		_, rest, ok := bytes.Cut(data, []byte(key))
		if !ok {
			return seen, false
		}
		i := skipSpace(rest, 0)
		if i < len(rest) && rest[i] == ':' {
			seen = true
			if !bytes.HasPrefix(rest[skipSpace(rest, i+1):], []byte("null")) {
				return true, true
			}
		}
		data = rest
	}
}

// why is the reason for which an event with usage is not the added one; keptReasons when it is.
func (j *usageJudge) why(v *fastjson.Value) (why keptReason, finish bool) {
	list := v.Get("choices")
	if list == nil || list.Type() != fastjson.TypeArray {
		return keptChoices, false
	}
	c := j.choices(v)
	switch {
	case present(v.Get("error")):
		return keptError, c.finish
	case c.finish:
		return keptFinish, true
	case c.content:
		return keptContent, false
	case c.early:
		return keptEarly, false
	}
	return keptReasons, false
}

// choicesSeen is what the choices of one event hold.
type choicesSeen struct {
	finish  bool // a finish reason
	content bool // anything else
	early   bool // an empty choice that had not finished
}

func (j *usageJudge) choices(v *fastjson.Value) (seen choicesSeen) {
	for _, c := range v.GetArray("choices") {
		obj, err := c.Object()
		if err != nil {
			seen.content = true
			continue
		}
		index, _ := indexOf(c.Get("index"))
		finished := slices.Contains(j.finished, int64(index))
		switch {
		case len(text(c.Get("finish_reason"))) > 0:
			seen.finish = true
			if !finished && len(j.finished) < maxFinished {
				j.finished = append(j.finished, int64(index))
			}
		case !saysNothing(obj, "index"):
			seen.content = true
		case !finished:
			seen.early = true
		}
	}
	return seen
}

// saysNothing reports whether all fields of an object, but the one that is named, are null or hold nothing.
func saysNothing(obj *fastjson.Object, but string) bool {
	nothing := true
	obj.Visit(func(key []byte, v *fastjson.Value) {
		if string(key) != but {
			nothing = nothing && holdsNothing(v)
		}
	})
	return nothing
}

func holdsNothing(v *fastjson.Value) bool {
	switch v.Type() {
	case fastjson.TypeNull:
		return true
	case fastjson.TypeString:
		return len(text(v)) == 0
	case fastjson.TypeArray:
		list, _ := v.Array()
		return len(list) == 0
	case fastjson.TypeObject:
		obj, _ := v.Object()
		return saysNothing(obj, "")
	}
	return false
}

// takeFields notes what an event to remove says beside usage, and gives back its timings.
func (j *usageJudge) takeFields(data []byte) (timings []byte) {
	eachField(data, func(key, value []byte) {
		name := string(key)
		switch {
		case string(value) == "null" || slices.Contains(ordinary[:], name):
		case name == "timings":
			timings = value
		default:
			j.lose(name)
		}
	})
	return bytes.Clone(timings)
}

// lose notes a field that the client does not get.
func (j *usageJudge) lose(name string) {
	if len(j.lost) < maxExtras && !slices.Contains(j.lost, name) {
		j.lost = append(j.lost, name)
	}
}

// removed notes a removal; back says that timings went back to the finish event.
func (j *usageJudge) removed(offset, length int64, back bool) {
	j.moved = j.moved || back
	if len(j.removals) == maxRemovals {
		j.more++
		return
	}
	j.removals = append(j.removals, exchange.Intervention{
		Kind: "response_removed", Where: exchange.SideClient, Name: "usage", Reason: usageReason, Offset: offset, Length: length,
	})
}

// alsoRemoved lengthens the last removal.
func (j *usageJudge) alsoRemoved(n int64) {
	if j.more == 0 {
		j.removals[len(j.removals)-1].Length += n
	}
}

func (j *usageJudge) notes() []exchange.Intervention {
	out := slices.Clone(j.removals)
	note := func(kind, name, to, reason string) {
		out = append(out, exchange.Intervention{Kind: kind, Where: exchange.SideClient, Name: name, To: to, Reason: reason})
	}
	if j.more > 0 {
		note("response_removed", "usage", fmt.Sprintf("%d more events", j.more), usageReason)
	}
	for why, n := range j.kept {
		if n > 0 {
			note("event_kept", "usage", fmt.Sprintf("%d events", n), keptTexts[why])
		}
	}
	if j.moved {
		note("field_moved", "timings", "the finish event", "sent_with_usage")
	}
	for _, name := range j.lost {
		note("field_removed", name, "", "sent_with_usage")
	}
	return out
}
