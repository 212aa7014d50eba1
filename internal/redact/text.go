package redact

import (
	"net/url"
	"strings"
)

// keyPrefixes begin the keys of well-known services. A word that starts with one and is long enough is a key wherever
// it stands.
var keyPrefixes = []string{"sk-", "sk_", "hf_", "gsk_", "ghp_", "gho_", "github_pat_", "glpat-", "nvapi-", "xai-", "AIza", "AKIA", "eyJ"}

// minKeyLength is the shortest word taken for a key by its prefix alone, in bytes.
const minKeyLength = 20

// Target is a request target with the values of key-like query parameters masked, and in absolute form the user and
// password too.
func Target(target string) string { return URL(target) }

// URL is a URL, or what a user typed as one, with user and password and the values of key-like query parameters
// masked.
func URL(u string) string {
	i := strings.IndexAny(u, "?#")
	if i < 0 {
		return maskUser(u)
	}
	return maskUser(u[:i]) + u[i:i+1] + maskQuery(u[i+1:])
}

// maskUser masks "user:password@" in front of the host. Without a scheme it is one when an @ comes before the path.
func maskUser(u string) string {
	start := 0
	if i := strings.Index(u, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(u)
	if i := strings.IndexByte(u[start:], '/'); i >= 0 {
		end = start + i
	}
	at := strings.LastIndexByte(u[start:end], '@')
	if at < 0 {
		return u
	}
	return u[:start] + Mask + u[start+at:]
}

// maskQuery masks the values of secret parameters. '&', '?' and '#' separate parameters; ';' does so for some servers,
// so a secret name behind it counts, while a secret value runs over it.
func maskQuery(q string) string {
	var out strings.Builder
	for q != "" {
		piece := q
		if i := strings.IndexAny(q, "&?#"); i >= 0 {
			piece = q[:i]
		}
		out.WriteString(maskParameter(piece))
		q = q[len(piece):]
		if q != "" {
			out.WriteByte(q[0])
			q = q[1:]
		}
	}
	return out.String()
}

func maskParameter(piece string) string {
	for at := 0; at < len(piece); {
		name, value, ok := strings.Cut(piece[at:], "=")
		if i := strings.IndexByte(name, ';'); i >= 0 { // a parameter without a value
			at += i + 1
			continue
		}
		if !ok {
			break
		}
		if value != "" && SecretQuery(decodeName(name)) {
			return piece[:at+len(name)+1] + Mask
		}
		i := strings.IndexByte(value, ';')
		if i < 0 {
			break
		}
		at += len(name) + 1 + i + 1
	}
	return piece
}

func decodeName(name string) string {
	if s, err := url.QueryUnescape(name); err == nil {
		return s
	}
	return name
}

// Text is free text, a header value or a message, with the URLs and well-known keys in it masked.
func Text(s string) string {
	if !mayHide(s) { // nearly all text
		return s
	}
	var out strings.Builder
	for s != "" {
		n := strings.IndexAny(s, textBreaks)
		switch {
		case n < 0:
			n = len(s)
		case n == 0:
			out.WriteByte(s[0])
			s = s[1:]
			continue
		}
		out.WriteString(maskWord(s[:n]))
		s = s[n:]
	}
	return out.String()
}

// textBreaks end a word of a text; none of them can stand in a URL unescaped.
const textBreaks = " \t\r\n\"'<>(),"

// What a byte of a text can be the sign of.
const (
	hidesNothing = iota
	hidesURL     // a query, a fragment or a user
	hidesKey     // the prefix of a well-known key
)

// signs is the sign of every byte.
var signs = signTable()

func signTable() (t [256]byte) {
	for _, c := range []byte("?#@") {
		t[c] = hidesURL
	}
	for _, p := range keyPrefixes {
		t[p[0]] = hidesKey
	}
	return t
}

// mayHide reports whether a secret can be in s: in one pass, for every header of every exchange comes through here.
func mayHide(s string) bool {
	for i := range len(s) {
		switch signs[s[i]] {
		case hidesURL:
			return true
		case hidesKey:
			if len(s) >= minKeyLength && hasKeyPrefix(s[i:]) {
				return true
			}
		}
	}
	return false
}

func hasKeyPrefix(s string) bool {
	for _, p := range keyPrefixes {
		if s[0] == p[0] && strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func maskWord(w string) string {
	if len(w) >= minKeyLength && hasKeyPrefix(w) {
		return Mask
	}
	i := strings.IndexAny(w, "?#")
	switch {
	case strings.Contains(w, "://"):
		return URL(w)
	case i >= 0:
		return w[:i+1] + maskQuery(w[i+1:])
	}
	return w
}
