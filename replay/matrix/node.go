package matrix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/benchproxy/benchproxy/internal/strict"
)

// node is a JSON value that knows where it stands. Objects keep the order of their keys: registries are ordered.
type node struct {
	kind   nodeKind
	text   string // of a scalar: the string itself, or the literal
	keys   []string
	fields map[string]*node
	items  []*node
	from   origin
	line   int // of the file, from 1; 0 elsewhere
}

type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

// String is the kind as people call it.
func (k nodeKind) String() string {
	return [...]string{"null", "true or false", "a number", "a text", "a list", "an object"}[k]
}

// origin is what a node was read from.
type origin struct {
	source Source
	name   string // the file, the variable, or the flag
}

// at says where a node stands, for people.
func (n *node) at() string {
	if n.line > 0 {
		return fmt.Sprintf("%s:%d", n.from.name, n.line)
	}
	return n.from.name
}

// isComment reports whether a key is a comment.
func isComment(key string) bool { return strings.HasPrefix(key, "_") }

// get is the value of a key; nil when there is none, or a null, which says as much as nothing.
func (n *node) get(key string) *node {
	if n == nil || n.kind != objectNode {
		return nil
	}
	if f := n.fields[key]; f != nil && f.kind != nullNode {
		return f
	}
	return nil
}

// set puts a value in, behind the keys that there are.
func (n *node) set(key string, value *node) {
	if n.fields == nil {
		n.fields = map[string]*node{}
	}
	if _, there := n.fields[key]; !there {
		n.keys = append(n.keys, key)
	}
	n.fields[key] = value
}

// member is the object at a key, made when it is missing.
func (n *node) member(key string) *node {
	m := n.get(key)
	if m == nil || m.kind != objectNode {
		m = &node{kind: objectNode, from: n.from}
		n.set(key, m)
	}
	return m
}

// ids are the keys of an object that are no comments and have a value, in order.
func (n *node) ids() []string {
	var out []string
	if n == nil {
		return nil
	}
	for _, k := range n.keys {
		if !isComment(k) && n.get(k) != nil {
			out = append(out, k)
		}
	}
	return out
}

// value is the node as it is written in one line of JSON, without comments.
func (n *node) value() string {
	switch n.kind {
	case stringNode:
		return n.text
	case arrayNode:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.value()
		}
		return strings.Join(parts, ",")
	case objectNode:
		b, err := json.Marshal(n.plain())
		if err != nil {
			return ""
		}
		return string(b)
	}
	return n.text
}

// plain is the node as encoding/json would have read it, without comments.
func (n *node) plain() any {
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		return json.Number(n.text)
	case stringNode:
		return n.text
	case arrayNode:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.plain()
		}
		return out
	case objectNode:
		out := map[string]any{}
		for _, k := range n.ids() {
			out[k] = n.fields[k].plain()
		}
		return out
	}
	return nil
}

// parseNode reads the one JSON value of a text with comments.
func parseNode(raw []byte, from origin) (*node, error) {
	plain := strict.Plain(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")))
	p := parser{raw: plain, from: from, dec: json.NewDecoder(bytes.NewReader(plain))}
	p.dec.UseNumber()
	n, err := p.value()
	if err == nil {
		if _, more := p.dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", from.name, p.line(), err)
	}
	return n, nil
}

type parser struct {
	raw  []byte
	from origin
	dec  *json.Decoder
}

// line is that of the token that was read last.
func (p *parser) line() int {
	return 1 + bytes.Count(p.raw[:min(int(p.dec.InputOffset()), len(p.raw))], []byte("\n"))
}

func (p *parser) value() (*node, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, readable(err)
	}
	n := &node{from: p.from, line: p.line()}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return n, p.object(n)
		}
		return n, p.array(n)
	case string:
		n.kind, n.text = stringNode, t
	case json.Number:
		n.kind, n.text = numberNode, t.String()
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(t)
	}
	return n, nil
}

func (p *parser) object(n *node) error {
	n.kind, n.fields = objectNode, map[string]*node{}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return readable(err)
		}
		name, isText := key.(string)
		if !isText {
			return fmt.Errorf("%v is no key", key)
		}
		if n.fields[name] != nil && !isComment(name) {
			return fmt.Errorf("the key %q is given twice", name)
		}
		value, err := p.value()
		if err != nil {
			return err
		}
		n.set(name, value)
	}
	_, err := p.dec.Token()
	return readable(err)
}

func (p *parser) array(n *node) error {
	n.kind = arrayNode
	for p.dec.More() {
		item, err := p.value()
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.Token()
	return readable(err)
}

// readable tells of an early end what it is.
func readable(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends early")
	}
	return err
}

// merge lays top over base: sections key by key, registries entry by entry, everything else as a whole. What top has
// comes first.
func merge(base, top *node, registries map[string]bool) *node {
	out := &node{kind: objectNode, from: top.from, line: top.line}
	for _, k := range top.keys {
		b, t := base.get(k), top.get(k)
		switch {
		case t == nil:
			continue
		case b == nil || b.kind != objectNode || t.kind != objectNode:
			out.set(k, t)
		case registries[k]:
			out.set(k, union(b, t))
		default:
			out.set(k, merge(b, t, nil))
		}
	}
	for _, k := range base.keys {
		if out.get(k) == nil {
			out.set(k, base.fields[k])
		}
	}
	return out
}

// union is the entries of top, and behind them those of base that top does not have.
func union(base, top *node) *node {
	out := &node{kind: objectNode, from: top.from, line: top.line}
	for _, n := range []*node{top, base} {
		for _, k := range n.keys {
			if _, there := out.fields[k]; !there {
				out.set(k, n.fields[k])
			}
		}
	}
	return out
}
