package redact

import (
	"bytes"
	"strings"
)

// Head is a raw head block, start line and header lines, with its secrets masked. Line ends, order, case and blanks
// stay as they are. A line that continues a secret header is secret too, and so is a header hidden behind a leading
// blank or a bare CR: whatever some parser might read as a credential goes.
func Head(head []byte) []byte {
	text := string(head)
	var out strings.Builder
	copied := 0                     // text[:copied] is in out; nearly always nothing has to be
	secret, started := false, false // whether the header in hand is secret; whether the start line was seen
	for at := 0; at < len(text); {
		line, end := cutLine(text[at:])
		masked := line
		switch {
		case strings.TrimSpace(line) == "":
		case !started && !isHeaderLine(line):
			masked, started = maskStartLine(line), true
		default:
			masked, secret = maskLine(line, secret)
			started = true
		}
		if masked != line {
			out.WriteString(text[copied:at])
			out.WriteString(masked)
			copied = at + len(line)
		}
		at += len(line) + len(end)
	}
	if copied == 0 {
		return head
	}
	out.WriteString(text[copied:])
	return []byte(out.String())
}

// cutLine gives the first line of s and its end: CRLF, LF, or nothing for a last line that has none.
func cutLine(s string) (line, end string) {
	i := strings.IndexByte(s, '\n')
	if i < 0 {
		return s, ""
	}
	if i > 0 && s[i-1] == '\r' {
		i--
	}
	return s[:i], s[i : strings.IndexByte(s, '\n')+1]
}

// isHeaderLine reports whether a first line is a header already: a name without blanks before the colon.
func isHeaderLine(line string) bool {
	name, _, ok := strings.Cut(line, ":")
	return ok && name != "" && !strings.ContainsAny(name, " \t/")
}

// maskStartLine masks the target of a request line. A status line has no target.
func maskStartLine(line string) string {
	method, rest, ok := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if !ok || strings.HasPrefix(method, "HTTP/") {
		return Text(line)
	}
	if i < 0 { // HTTP/0.9 form: no protocol
		return method + " " + Target(rest)
	}
	return method + " " + Target(rest[:i]) + rest[i:]
}

// maskLine masks one header line and says whether the header it belongs to is secret, for the lines that continue it.
func maskLine(line string, prevSecret bool) (string, bool) {
	folded := line[0] == ' ' || line[0] == '\t'
	name, value, isHeader := strings.Cut(line, ":")
	if prevSecret && (folded || !isHeader) {
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		return lead + Mask, true
	}
	if !isHeader {
		return Text(line), false
	}
	lead := value[:len(value)-len(strings.TrimLeft(value, " \t"))]
	if !SecretHeader(name) {
		if v := maskBareCR(value); v != value {
			line = name + ":" + v
		}
		return line, false
	}
	tail := value[len(strings.TrimRight(value, " \t")):]
	if strings.TrimSpace(value) == "" {
		tail = ""
	}
	return name + ":" + lead + HeaderValue(name, strings.TrimSpace(value)) + tail, true
}

// maskBareCR treats what follows a bare CR in a value as a line of its own, as some parsers do.
func maskBareCR(value string) string {
	first, rest, ok := strings.Cut(value, "\r")
	if !ok {
		return Text(value)
	}
	return Text(first) + "\r" + string(Head(bytes.Clone([]byte(rest))))
}
