package wire

import (
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// An answer in the Responses dialect is a list of items, and their content comes more than once: in deltas, at the end
// of each part and item, and in the response that ends the stream. The first time counts; it is a token event, whatever
// its name, and what repeats is none. What came already is known by the item's id, and where engines change the ids on
// the way, or send none, by the text itself.

// items are the output items seen so far.
type items struct {
	byID    map[string]*item  // under every name an item goes by
	byIndex map[int]*item     // the last one announced at a place of the output
	last    [classes]*item    // the last one of each class
	prints  map[textPrint]int // texts that came in events, for the final response to repeat
	calls   int               // calls met in the final response
}

// itemClass is what an item holds.
type itemClass uint8

const (
	classOther itemClass = iota
	classMessage
	classReasoning
	classCall
	classes
)

// item is one output item.
type item struct {
	class itemClass
	tool  *tool // of a call
	parts map[itemPart]textPrint
}

// itemPart is one text of an item; n is its place there, -1 when an engine does not tell places.
type itemPart struct {
	kind    Kind
	summary bool
	n       int
}

func (p itemPart) class() itemClass {
	if p.kind == KindReasoning {
		return classReasoning
	}
	return classMessage
}

// textPrint stands for a text without holding it.
type textPrint struct {
	kind Kind
	sum  uint64
	size int
}

// with is the print of the text with b after it (FNV-1a).
func (p textPrint) with(b []byte) textPrint {
	const offset, prime = 14695981039346656037, 1099511628211
	if p.size == 0 {
		p.sum = offset
	}
	for _, c := range b {
		p.sum = (p.sum ^ uint64(c)) * prime
	}
	p.size += len(b)
	return p
}

// itemStage is the occasion on which an item is shown.
type itemStage uint8

const (
	stageAdded itemStage = iota // it begins
	stageDone                   // it is over
	stageFinal                  // the response that ends the stream, or is the whole body, lists it
)

// clientRuns are the calls that a client is to answer; the engine itself runs the others.
var clientRuns = map[string]bool{
	"function_call": true, "custom_tool_call": true, "computer_call": true, "local_shell_call": true, "shell_call": true,
	"apply_patch_call": true, "mcp_approval_request": true,
}

// argumentKeys are the fields that hold what a tool is called with.
var argumentKeys = []string{"arguments", "input", "code", "action", "actions", "operation", "queries"}

func classOf(kind string) itemClass {
	switch {
	case kind == "message":
		return classMessage
	case kind == "reasoning":
		return classReasoning
	case strings.HasSuffix(kind, "_call") || kind == "mcp_approval_request":
		return classCall
	}
	return classOther
}

func (r *responsesReader) items() *items {
	if r.a.items == nil {
		r.a.items = &items{byID: map[string]*item{}, byIndex: map[int]*item{}, prints: map[textPrint]int{}}
	}
	return r.a.items
}

// placeOf is the place of an item in the output.
func placeOf(v *fastjson.Value) count {
	i, ok := indexOf(v)
	return count{int64(i), ok}
}

// open begins an item under the given names, the empty ones of which are none.
func (r *responsesReader) open(c itemClass, index count, names ...string) *item {
	s := r.items()
	it := &item{class: c}
	s.last[c] = it
	if index.ok {
		s.byIndex[int(index.n)] = it
	}
	s.name(it, names...)
	return it
}

// name lets an item go by further names.
func (s *items) name(it *item, names ...string) {
	for _, n := range names {
		if n != "" {
			s.byID[n] = it
		}
	}
}

// find is the item that goes by one of the names, else the one of that class at the place; nil when there is none.
func (s *items) find(c itemClass, index count, names ...string) *item {
	for _, n := range names {
		if it := s.byID[n]; it != nil {
			return it
		}
	}
	if it := s.byIndex[int(index.n)]; index.ok && it != nil && it.class == c {
		s.name(it, names...)
		return it
	}
	return nil
}

// itemOf is the item that an event about a part of it belongs to. known is false when the event is the first to show it.
func (r *responsesReader) itemOf(v *fastjson.Value, c itemClass) (it *item, known bool) {
	s, id, index := r.items(), string(text(v.Get("item_id"))), placeOf(v.Get("output_index"))
	if it := s.find(c, index, id); it != nil {
		return it, true
	}
	if it := s.last[c]; it != nil && (id == "" && !index.ok || it.waits()) {
		s.name(it, id)
		return it, true
	}
	return r.open(c, index, id), false
}

// waits reports whether an item is a call that has a name and no arguments yet: they may come under another id.
func (it *item) waits() bool {
	return it.tool != nil && it.tool.name.Len() > 0 && it.tool.args.Len() == 0
}

// item reads an output item that is shown as far as it came, or whole.
func (r *responsesReader) item(v *fastjson.Value, index count, at itemStage) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return
	}
	kind := string(text(v.Get("type")))
	c := classOf(kind)
	id, call := string(text(v.Get("id"))), string(text(v.Get("call_id")))
	s := r.items()
	it := s.byID[id]
	if it == nil {
		it = s.byID[call]
	}
	if it == nil && c == classCall {
		it = r.sameCall(v, index, id == "" && call == "", at)
	}
	if c == classCall && at == stageFinal {
		s.calls++
	}
	known := it != nil
	if !known {
		it = r.open(c, index, id, call)
	}
	s.name(it, id, call)
	switch c {
	case classMessage:
		r.message(it, known, v, at)
	case classReasoning:
		r.texts(it, itemPart{kind: KindReasoning, summary: true}, v.Get("summary"), at)
		r.texts(it, itemPart{kind: KindReasoning}, v.Get("content"), at)
	case classCall:
		r.call(it, v, kind, index)
	}
}

// sameCall finds the call that a whole one repeats under another id, or without any: at its end the one at that place of
// the output or the last one, in the final response the one that has as many before it. It must call the same tool with
// the same arguments.
func (r *responsesReader) sameCall(v *fastjson.Value, index count, unnamed bool, at itemStage) *item {
	s, all := r.items(), r.c.tools.all
	var it *item
	switch {
	case at == stageDone && index.ok:
		it = s.byIndex[int(index.n)]
	case at == stageDone && unnamed:
		it = s.last[classCall]
	case at == stageFinal && s.calls < len(all):
		it = &item{class: classCall, tool: all[s.calls]}
	}
	if it == nil || it.tool == nil || it.tool.name.String() != callName(v) {
		return nil
	}
	if args := argumentText(firstOf(v, argumentKeys...)); it.tool.args.Len() > 0 && !it.tool.provisional && it.tool.args.String() != args {
		return nil
	}
	return it
}

// callName is the tool that a call is for; the engine's own tools are named by the type of their calls.
func callName(v *fastjson.Value) string {
	if name := text(v.Get("name")); len(name) > 0 {
		return string(name)
	}
	return strings.TrimSuffix(string(text(v.Get("type"))), "_call")
}

// argumentText is the text that arguments come to.
func argumentText(v *fastjson.Value) string {
	switch {
	case !present(v):
		return ""
	case v.Type() == fastjson.TypeString:
		return string(text(v))
	}
	return string(v.MarshalTo(nil))
}

// message reads the parts of a message.
func (r *responsesReader) message(it *item, known bool, v *fastjson.Value, at itemStage) {
	for i, p := range v.GetArray("content") {
		r.messagePart(it, known, p, i, at)
	}
	if at == stageFinal { // some gateways send a plain text
		r.whole(it, known, itemPart{kind: KindText}, v.Get("content"), at)
	}
}

func (r *responsesReader) messagePart(it *item, known bool, p *fastjson.Value, n int, at itemStage) {
	switch string(text(p.Get("type"))) {
	case "output_text", "text":
		if r.whole(it, known, itemPart{kind: KindText, n: n}, p.Get("text"), at) {
			r.logprobs(p)
		}
	case "refusal":
		r.whole(it, known, itemPart{kind: KindRefusal, n: n}, p.Get("refusal"), at)
	case "output_audio":
		r.whole(it, known, itemPart{kind: KindText, n: n}, p.Get("transcript"), at)
	case "reasoning_text":
		r.whole(it, known, itemPart{kind: KindReasoning, n: n}, p.Get("text"), at)
	}
}

// texts reads the parts of a reasoning item. Engines that stream one kind of them may list the other, so what came
// already is known by its text also in an item that is known.
func (r *responsesReader) texts(it *item, p itemPart, list *fastjson.Value, at itemStage) {
	for i, e := range list.GetArray() {
		p.n = i
		r.whole(it, false, p, e.Get("text"), at)
	}
}

// call reads a tool call that is shown whole, or as far as it came.
func (r *responsesReader) call(it *item, v *fastjson.Value, kind string, index count) {
	t := r.toolOf(it, index)
	f := fragment{id: text(v.Get("call_id")), kind: []byte(kind), byEngine: !clientRuns[kind]}
	if len(f.id) == 0 {
		f.id = text(v.Get("id"))
	}
	if t.name.Len() == 0 {
		f.name = []byte(callName(v))
	}
	args := firstOf(v, argumentKeys...)
	switch {
	case t.args.Len() == 0:
		f.args = args
	case t.provisional && present(args): // it says in its own way what the pieces said
		t.args.Reset()
		t.args.WriteString(argumentText(args))
		t.provisional = false
	}
	r.a.growTool(r.c, t, f)
	if _, seen := it.parts[itemPart{kind: KindMedia}]; !seen && len(text(v.Get("result"))) > 0 { // a picture
		r.a.addMedia(v.Get("result"))
		it.mark(itemPart{kind: KindMedia}, textPrint{})
	}
}

// toolOf is the tool call of an item, which also an item that was never announced has.
func (r *responsesReader) toolOf(it *item, index count) *tool {
	if it.tool == nil {
		n := r.c.tools.top
		if index.ok && r.c.tools.byIndex[int(index.n)] == nil {
			n = int(index.n)
		}
		it.tool = r.c.tools.open(n)
	}
	return it.tool
}

// arguments adds a piece of a call's arguments; whole says that it repeats the pieces before it, if there are any. The
// streams that bring no argument field but a part of one (the commands of a shell) are joined until the call is whole.
func (r *responsesReader) arguments(stream []byte, v, args *fastjson.Value, whole bool) {
	it, _ := r.itemOf(v, classCall)
	t := r.toolOf(it, placeOf(v.Get("output_index")))
	if whole && t.args.Len() > 0 {
		return
	}
	_, field, _ := strings.Cut(string(stream), "_call")
	r.a.growTool(r.c, t, fragment{args: args, provisional: !slices.Contains(argumentKeys, strings.Trim(field, "_."))})
}

// add adds a piece of a text.
func (r *responsesReader) add(it *item, p itemPart, b []byte, at itemStage) {
	to := &r.c.text
	switch p.kind {
	case KindReasoning:
		to = &r.c.reasoning
	case KindRefusal:
		to = &r.c.refusal
	}
	r.a.add(to, p.kind, b)
	before := it.parts[p]
	after := textPrint{kind: p.kind, sum: before.sum, size: before.size}.with(b)
	it.mark(p, after)
	if at == stageFinal {
		return
	}
	prints := r.items().prints
	if prints[before] > 1 {
		prints[before]--
	} else {
		delete(prints, before)
	}
	prints[after]++
}

func (it *item) mark(p itemPart, as textPrint) {
	if it.parts == nil {
		it.parts = map[itemPart]textPrint{}
	}
	it.parts[p] = as
}

// whole takes a text that is shown whole, and reports whether it is new. A text is not new when its part came before;
// nor, where the item or the part is not known, when the same text came.
func (r *responsesReader) whole(it *item, known bool, p itemPart, v *fastjson.Value, at itemStage) bool {
	b := text(v)
	if len(b) == 0 {
		return false
	}
	_, came := it.parts[p]
	if !came {
		anywhere := p
		anywhere.n = -1
		_, came = it.parts[anywhere]
	}
	s, same := r.items(), textPrint{kind: p.kind}.with(b)
	listed := s.prints[same] > 0
	if at == stageFinal && listed {
		s.prints[same]-- // it is accounted for: the next one like it is another
	}
	if came || listed && (!known || p.n < 0) {
		return false
	}
	r.add(it, p, b, at)
	return true
}

// logprobs counts the log-probability entries beside a text; an empty list is sent when none were asked for.
func (r *responsesReader) logprobs(v *fastjson.Value) {
	if l := v.Get("logprobs"); len(l.GetArray()) > 0 {
		r.a.countLogprobs(l)
	}
}
