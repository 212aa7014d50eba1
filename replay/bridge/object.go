package bridge

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// member is one name of an object with the text of its value.
type member struct {
	name  string
	value json.RawMessage
}

// object is a JSON object with the order of its members.
type object []member

// parseObject reads an object; ok is false for any other value.
func parseObject(raw json.RawMessage) (o object, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		if m.name, ok = name.(string); !ok {
			return nil, false
		}
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		o = append(o, m)
	}
	_, err := dec.Token()
	return o, err == nil
}

// parseArray reads an array; ok is false for any other value.
func parseArray(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	if !isArray(raw) {
		return nil, false
	}
	return list, json.Unmarshal(raw, &list) == nil
}

func isArray(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '['
}

// parseText reads a string; ok is false for any other value.
func parseText(raw json.RawMessage) (s string, ok bool) {
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) == 0 || t[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// put adds a member.
func (o *object) put(name string, v any) { *o = append(*o, member{name, encode(v)}) }

// putText adds a text that is not empty.
func (o *object) putText(name, s string) {
	if s != "" {
		o.put(name, s)
	}
}

// putValue adds a value that is there.
func (o *object) putValue(name string, v Value) {
	if v.Raw != nil {
		o.put(name, v.Raw)
	}
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, encode(m.name)...), ':'), m.value...)
	}
	return append(b, '}'), nil
}

// encode is the compact JSON of v with no character escaped that need not be.
func encode(v any) json.RawMessage {
	if raw, ok := v.(json.RawMessage); ok {
		return compact(raw)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // what is encoded here is made of strings, lists and JSON that was read before
		return json.RawMessage("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// compact is JSON without blanks; text that is no JSON stays as it is.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

var pathEscaper = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `]`, `\]`)

// below is the path of a member, in the form in which users name fields.
func below(path, name string) string {
	if path == "" {
		return pathEscaper.Replace(name)
	}
	return path + "." + pathEscaper.Replace(name)
}

// at is the path of an element.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
