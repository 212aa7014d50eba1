package strict

import "bytes"

// Plain is the JSON of a text that people write: // and /* */ comments outside of strings, and commas behind the last
// item of an object or array, are blanked out. Length and line ends stay, so that positions in errors do.
func Plain(b []byte) []byte {
	out := bytes.Clone(b)
	comma := -1 // place of a comma with nothing but blanks behind it so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(out[i:], []byte("//")):
			i = blank(out, i, []byte("\n"), 0)
		case bytes.HasPrefix(out[i:], []byte("/*")):
			i = blank(out, i, []byte("*/"), 2)
		case c == ',':
			comma = i
			if !follows(out, i) {
				comma = -1
			}
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// follows reports whether a value ends before the comma at i: only then does the comma stand behind an item.
func follows(b []byte, i int) bool {
	before := bytes.TrimRight(b[:i], " \t\r\n")
	return len(before) > 0 && !bytes.ContainsAny(before[len(before)-1:], ",[{:")
}

// blank overwrites b from i to the next end mark and as many bytes of the mark as told, and gives the last place of it.
func blank(b []byte, i int, end []byte, more int) int {
	stop := len(b)
	if n := bytes.Index(b[i+len(end):], end); n >= 0 {
		stop = i + len(end) + n + more
	}
	for j := i; j < stop; j++ {
		if b[j] != '\n' {
			b[j] = ' '
		}
	}
	return stop - 1
}
