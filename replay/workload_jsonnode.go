package replay

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonNode is a JSON value by its place in a body. Reading never fails: what is cut or broken is read as far as it goes.
type jsonNode struct {
	kind     byte // '{', '[', '"' or 'x' for a number or a word
	from, to int  // first byte and one past the last; of a string, of what is between its quotes
	names    []*jsonNode
	values   []*jsonNode // of an object, one for each name; else the elements
}

// maxNodeDepth bounds the nesting that is followed.
const maxNodeDepth = 512

// jsonTexts are the values of a body of JSON: one, one a line, or those of a list that is streamed.
func jsonTexts(raw []byte) (events []*jsonNode) {
	p := nodeParser{raw: raw, to: len(raw)}
	for {
		n := p.value(0)
		if n == nil {
			return events
		}
		if n.kind == '[' {
			events = append(events, n.values...)
			continue
		}
		events = append(events, n)
	}
}

// sseTexts are the values in the data lines of an event stream, cut ones included.
func sseTexts(raw []byte) (events []*jsonNode) {
	for at := 0; at < len(raw); {
		end := at + lineLength(raw[at:])
		if data, ok := bytes.CutPrefix(raw[at:end], []byte("data:")); ok {
			p := nodeParser{raw: raw, at: end - len(data), to: end}
			for n := p.value(0); n != nil; n = p.value(0) {
				events = append(events, n)
			}
		}
		at = end + 1
	}
	return events
}

// lineLength is the number of bytes before the end of the line that b begins with.
func lineLength(b []byte) int {
	if i := bytes.IndexAny(b, "\r\n"); i >= 0 {
		return i
	}
	return len(b)
}

// nodeParser reads values from raw[at:to].
type nodeParser struct {
	raw    []byte
	at, to int
}

// value reads the next value; nil at the end, and where no value begins.
func (p *nodeParser) value(depth int) *jsonNode {
	for p.blanks(); p.at < p.to && depth <= maxNodeDepth; p.blanks() {
		switch c := p.raw[p.at]; c {
		case '{', '[':
			return p.container(c, depth)
		case '"':
			return p.str()
		case '}', ']': // a stray one
			p.at++
			continue
		}
		n := &jsonNode{kind: 'x', from: p.at}
		for p.at < p.to && strings.IndexByte("{}[]\",: \t\r\n", p.raw[p.at]) < 0 {
			p.at++
		}
		n.to = p.at
		return n
	}
	return nil
}

// blanks passes what separates values.
func (p *nodeParser) blanks() {
	for p.at < p.to && strings.IndexByte(" \t\r\n,:", p.raw[p.at]) >= 0 {
		p.at++
	}
}

func (p *nodeParser) container(open byte, depth int) *jsonNode {
	n := &jsonNode{kind: open, from: p.at}
	p.at++
	for {
		p.blanks()
		if p.at >= p.to {
			break
		}
		if c := p.raw[p.at]; c == '}' || c == ']' {
			p.at++
			break
		}
		if open == '{' {
			name := p.value(depth + 1)
			p.blanks()
			if name != nil && p.at < p.to && (p.raw[p.at] == '}' || p.raw[p.at] == ']') {
				continue
			}
			n.names = append(n.names, name)
		}
		v := p.value(depth + 1)
		if v == nil {
			p.at = p.to // too deep, or over
			n.names = n.names[:min(len(n.names), len(n.values))]
			break
		}
		n.values = append(n.values, v)
	}
	n.to = p.at
	return n
}

func (p *nodeParser) str() *jsonNode {
	p.at++
	n := &jsonNode{kind: '"', from: p.at}
	for p.at < p.to && p.raw[p.at] != '"' {
		if p.raw[p.at] == '\\' {
			p.at++
		}
		p.at++
	}
	p.at = min(p.at, p.to)
	n.to = p.at
	p.at = min(p.at+1, p.to)
	return n
}

// units gives the characters of a string: their place in raw and what they mean.
func (n *jsonNode) units(raw []byte, visit func(from, to int, text string)) {
	for at := n.from; at < n.to; {
		size, text := unit(raw[at:n.to])
		visit(at, at+size, text)
		at += size
	}
}

// maxUnit is the most bytes that stand for one character: two escapes of a pair of surrogates.
const maxUnit = 12

// unit is the length and the meaning of the character that b begins with. A run of bytes without escapes is taken one
// byte at a time, whatever they are.
func unit(b []byte) (size int, text string) {
	if b[0] != '\\' || len(b) == 1 {
		return 1, string(b[:1])
	}
	if b[1] != 'u' {
		if i := strings.IndexByte(`"\/bfnrt`, b[1]); i >= 0 {
			return 2, "\"\\/\b\f\n\r\t"[i : i+1]
		}
		return 2, string(b[1:2])
	}
	r, ok := hexRune(b)
	if !ok {
		return min(2, len(b)), "u"
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hexRune(b[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return 12, string(pair)
			}
		}
		return 6, string(utf8.RuneError)
	}
	return 6, string(r)
}

// hexRune reads the \uXXXX that b begins with.
func hexRune(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if i < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	return r, true
}

// places are the members of an object that tell texts of the same name apart.
var places = map[string]bool{"index": true, "output_index": true, "content_index": true, "item_id": true}

// strings visits the strings of a value under the name of the text that they are a piece of: the path to them, and what
// their objects say of their place. Elements of a list that say nothing continue each other.
func (n *jsonNode) strings(raw []byte, path string, visit func(name string, leaf *jsonNode)) {
	switch n.kind {
	case '"':
		visit(path, n)
	case '[':
		for _, v := range n.values {
			v.strings(raw, path+"[]", visit)
		}
	case '{':
		mark := ""
		for i, name := range n.names {
			key := string(raw[name.from:name.to])
			// Only the events of whole dialects are told apart by their type: a piece of a tool call has it just once.
			if v := n.values[i]; places[key] || path == "" && key == "type" {
				if v.kind == 'x' || v.kind == '"' {
					mark += "#" + key + "=" + string(raw[v.from:v.to])
				}
			}
		}
		for i, name := range n.names {
			n.values[i].strings(raw, path+mark+"."+string(raw[name.from:name.to]), visit)
		}
	}
}

// tokenFields hold the tokens of an answer beside its text: as texts, bytes or numbers of a vocabulary.
var tokenFields = map[string]bool{
	"logprobs": true, "top_logprobs": true, "completion_probabilities": true, "probs": true, "top_probs": true,
	"tokens": true, "token_ids": true, "prompt_token_ids": true, "output_ids": true, "output_token_ids": true,
	"output_token_logprobs": true, "output_top_logprobs": true, "context": true,
}

// plainFields are the names of numbers in such fields; any other name of a number is a token itself.
var plainFields = map[string]bool{"logprob": true, "prob": true, "id": true, "rank": true, "index": true, "logit": true}

// maskTokens masks the tokens in an event in which a secret was found: whoever has them has the text. The numbers of
// log probabilities stay, since they tell no token.
func (n *jsonNode) maskTokens(raw []byte, inside bool) {
	switch n.kind {
	case '"':
		if inside {
			stars(raw[n.from:n.to])
		}
	case '[':
		for _, v := range n.values {
			v.maskTokens(raw, inside)
			if inside {
				v.maskWhole(raw)
			}
		}
	case '{':
		for i, name := range n.names {
			key, v := string(raw[name.from:name.to]), n.values[i]
			v.maskTokens(raw, inside || tokenFields[key])
			switch {
			case !inside || v.kind != 'x':
			case key == "id":
				v.maskWhole(raw)
			case !plainFields[key]:
				stars(raw[name.from:name.to])
			}
		}
	}
}

// maskWhole makes a whole number another one of the same length.
func (n *jsonNode) maskWhole(raw []byte) {
	if n.kind != 'x' || bytes.ContainsAny(raw[n.from:n.to], ".eEaflrsun") {
		return
	}
	for i := n.from; i < n.to; i++ {
		if raw[i] != '-' {
			raw[i] = '1'
		}
	}
}
