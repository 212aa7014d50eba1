package telemetry

import (
	"bytes"
	"encoding/json"
)

// eachField calls f with the names of a JSON object and their values as they stand. It passes over what it does not look
// at, which a body has much of, without taking it apart; so it is for values that are read one by one after. It ends where
// b is no object any more.
func eachField(b []byte, f func(name []byte, value json.RawMessage)) {
	b = bytes.TrimLeft(b, jsonBlanks)
	if len(b) == 0 || b[0] != '{' {
		return
	}
	for b = b[1:]; ; {
		b = bytes.TrimLeft(b, jsonBlanks)
		n := stringEnd(b)
		if n == 0 {
			return
		}
		name := b[1 : n-1]
		if b = bytes.TrimLeft(b[n:], jsonBlanks); len(b) == 0 || b[0] != ':' {
			return
		}
		b = bytes.TrimLeft(b[1:], jsonBlanks)
		if n = valueEnd(b); n == 0 {
			return
		}
		f(nameOf(name), json.RawMessage(b[:n]))
		if b = bytes.TrimLeft(b[n:], jsonBlanks); len(b) == 0 || b[0] != ',' {
			return
		}
		b = b[1:]
	}
}

const jsonBlanks = " \t\r\n"

// nameOf is a name as it is meant.
func nameOf(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted
	}
	var name string
	if json.Unmarshal(append(append([]byte{'"'}, quoted...), '"'), &name) != nil {
		return nil
	}
	return []byte(name)
}

// stringEnd is the length of the string that b begins with, 0 when it does not begin with one.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		slashes := 0
		for k := i + n - 1; k > 0 && b[k] == '\\'; k-- {
			slashes++
		}
		if i += n; slashes%2 == 0 {
			return i + 1
		}
	}
	return 0
}

// valueEnd is the length of the value that b begins with, 0 when there is none that ends.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n == 0 {
				return 0
			}
			if i += n - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}
