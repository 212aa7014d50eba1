package matrix

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// binder reads nodes into values of Go. Tags of a struct's fields say more than their types: json the key, default what is
// taken where the file says nothing, enum the words there are, min the least number, max the greatest, doc what it means (schema.go).
// Everything that is wrong is gathered, so that a person sees all of it at once.
type binder struct {
	problems []string
	settings []Setting
	warnings []string
	getenv   func(string) string
	vars     map[string]string // placeholders
	here     string            // directory that paths are below
	engines  []string          // ids and aliases of engines, as keys of backends and models
}

// bindable is a value that reads itself, because several kinds of JSON mean it.
type bindable interface {
	bindNode(b *binder, n *node, key string)
}

// problem notes what is wrong with a node.
func (b *binder) problem(n *node, key, format string, args ...any) {
	where := n.at()
	if key != "" {
		where = strings.TrimPrefix(where+": "+key, ": ")
	}
	b.problems = append(b.problems, where+": "+fmt.Sprintf(format, args...))
}

// err is all problems, as one error of usage.
func (b *binder) err() error {
	if len(b.problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", exchange.ErrUsage, strings.Join(b.problems, "\n  "))
}

// note keeps where a value came from.
func (b *binder) note(n *node, key, value string) {
	s := Setting{Key: key, Value: value, Source: n.from.source}
	if s.Source != SourceBuiltin {
		s.At = n.at()
	}
	b.settings = append(b.settings, s)
}

func below(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// bind reads n into v.
func (b *binder) bind(n *node, v reflect.Value, key string) {
	if reads, ok := v.Addr().Interface().(bindable); ok {
		reads.bindNode(b, n, key)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bind(n, v.Elem(), key)
	case reflect.Struct:
		b.bindStruct(n, v, key, nil)
	case reflect.Map:
		b.bindMap(n, v, key)
	case reflect.Slice:
		b.bindList(n, v, key)
	default:
		b.bindScalar(n, v, key)
	}
}

// bindStruct reads an object. Keys that the struct does not have go to rest, and are problems where that is nil.
func (b *binder) bindStruct(n *node, v reflect.Value, key string, rest func(name string, n *node)) {
	if n.kind != objectNode {
		b.problem(n, key, "it is %s and has to be an object", n.kind)
		return
	}
	known := map[string]bool{}
	for _, f := range fieldsOf(v.Type()) {
		known[f.name] = true
		at := v.Field(f.index)
		child := n.get(f.name)
		if child == nil {
			if f.standard == "" {
				continue
			}
			child = literal(f.standard, at.Kind())
		}
		before := len(b.problems)
		b.bind(child, at, below(key, f.name))
		if len(b.problems) == before {
			b.checkTags(child, at, below(key, f.name), f)
		}
	}
	for _, name := range n.ids() {
		switch {
		case known[name]:
		case rest != nil:
			rest(name, n.get(name))
		default:
			b.problem(n.fields[name], key, "there is no key %q%s", name, suggest(name, namesOf(v.Type())))
		}
	}
}

// field is what the tags of a struct's field say.
type field struct {
	index    int
	name     string
	standard string // default
	enum     []string
	min      string
	max      string
	doc      string
}

func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := field{index: i, name: name, standard: tag.Get("default"), min: tag.Get("min"), max: tag.Get("max"), doc: tag.Get("doc")}
		if e := tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, ",")
		}
		out = append(out, f)
	}
	return out
}

func namesOf(t reflect.Type) []string {
	var out []string
	for _, f := range fieldsOf(t) {
		if !isComment(f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// literal is the node of a default.
func literal(text string, kind reflect.Kind) *node {
	n := &node{kind: stringNode, text: text, from: origin{source: SourceBuiltin}}
	switch kind {
	case reflect.Bool:
		n.kind = boolNode
	case reflect.Int:
		n.kind = numberNode
	}
	return n
}

func (b *binder) checkTags(n *node, v reflect.Value, key string, f field) {
	if f.enum != nil && v.Kind() == reflect.String {
		if !contains(f.enum, v.String()) {
			b.problem(n, key, "there is no %q%s", v.String(), suggest(v.String(), f.enum))
		}
	}
	if least, err := strconv.Atoi(f.min); err == nil && v.Kind() == reflect.Int && v.Int() < int64(least) {
		b.problem(n, key, "%d is below %d", v.Int(), least)
	}
	if most, err := strconv.Atoi(f.max); err == nil && v.Kind() == reflect.Int && v.Int() > int64(most) {
		b.problem(n, key, "%d is above %d", v.Int(), most)
	}
}

func (b *binder) bindMap(n *node, v reflect.Value, key string) {
	if n.kind != objectNode {
		b.problem(n, key, "it is %s and has to be an object", n.kind)
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range n.ids() {
		item := reflect.New(v.Type().Elem()).Elem()
		b.bind(n.fields[name], item, below(key, name))
		v.SetMapIndex(reflect.ValueOf(name), item)
	}
}

// bindList reads an array; a text with commas is one, too, as flags and people write them. Its setting is the whole.
func (b *binder) bindList(n *node, v reflect.Value, key string) {
	items, ok := listOf(n)
	if !ok {
		b.problem(n, key, "it is %s and has to be a list", n.kind)
		return
	}
	mark := len(b.settings)
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		b.bind(item, out.Index(i), key)
	}
	v.Set(out)
	b.settings = b.settings[:mark]
	b.note(n, key, n.value())
}

// listOf is a list as its items. Of a text the parts between commas are; an empty text is an empty list.
func listOf(n *node) ([]*node, bool) {
	switch n.kind {
	case arrayNode:
		return n.items, true
	case stringNode:
		var out []*node
		for part := range strings.SplitSeq(n.text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, &node{kind: stringNode, text: part, from: n.from, line: n.line})
			}
		}
		return out, true
	case boolNode, numberNode:
		return []*node{n}, true
	}
	return nil, false
}

func (b *binder) bindScalar(n *node, v reflect.Value, key string) {
	switch v.Kind() {
	case reflect.String:
		if n.kind != stringNode {
			b.problem(n, key, "it is %s and has to be a text", n.kind)
			return
		}
		v.SetString(n.text)
	case reflect.Bool:
		on, err := strconv.ParseBool(n.text)
		if err != nil || n.kind != boolNode && n.from.written() {
			b.problem(n, key, "it is %s and has to be true or false", n.kind)
			return
		}
		v.SetBool(on)
	case reflect.Int:
		i, err := strconv.Atoi(n.text)
		if err != nil || n.kind != numberNode && n.from.written() {
			b.problem(n, key, "%q is not a whole number", n.value())
			return
		}
		v.SetInt(int64(i))
	default:
		panic("matrix: a document field has the kind " + v.Kind().String())
	}
	b.note(n, key, n.text)
}

// written reports whether a node is of a file, where a number is no text; variables and flags have nothing but texts.
func (o origin) written() bool { return o.source == SourceFile || o.source == SourceBuiltin }

// entry is an entry of a registry.
type entry[T any] struct {
	id   string
	line *node
	doc  T
}

// registry is an object whose keys are ids. It keeps their order.
type registry[T any] []entry[T]

func (r *registry[T]) bindNode(b *binder, n *node, key string) {
	if n.kind != objectNode {
		b.problem(n, key, "it is %s and has to be an object of entries by id", n.kind)
		return
	}
	lower := map[string]string{}
	for _, id := range n.ids() {
		e := entry[T]{id: id, line: n.fields[id]}
		if other, taken := lower[strings.ToLower(id)]; taken {
			b.problem(e.line, key, "%q and %q differ only by case", other, id)
		}
		lower[strings.ToLower(id)] = id
		b.bind(e.line, reflect.ValueOf(&e.doc).Elem(), below(key, id))
		*r = append(*r, e)
	}
}
