package redact

import (
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Headers are hs with every secret masked: a copy when there is one, else hs itself.
func Headers(hs []exchange.Header) []exchange.Header {
	out, copied := hs, false
	for i, h := range hs {
		v := HeaderValue(h.Name, h.Value)
		if v == h.Value {
			continue
		}
		if !copied {
			out, copied = append([]exchange.Header(nil), hs...), true
		}
		out[i].Value = v
	}
	return out
}

// HeaderValue is the value of the named header with its secrets masked. An authorization keeps its scheme, cookies
// keep their names and a Set-Cookie its attributes.
func HeaderValue(name, value string) string {
	if !SecretHeader(name) {
		return Text(value)
	}
	if strings.TrimSpace(value) == "" {
		return value
	}
	switch n := normalName(name); {
	case n == "cookie" || n == "cookie2":
		return maskCookies(value)
	case n == "set-cookie" || n == "set-cookie2":
		return maskSetCookie(value)
	case strings.Contains(n, "authorization"):
		return maskAuthorization(value)
	}
	return Mask
}

// maskAuthorization keeps the scheme in front of the credentials. A value of one word is all credential.
func maskAuthorization(value string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok || strings.TrimSpace(rest) == "" || !isScheme(scheme) {
		return Mask
	}
	return scheme + " " + Mask
}

// isScheme reports whether the first word of an authorization is the name of a scheme and not part of a key.
func isScheme(s string) bool {
	if schemes[strings.ToLower(s)] {
		return true
	}
	if s == "" || len(s) > 16 {
		return false
	}
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// maskCookies masks the value of every cookie of a Cookie header.
func maskCookies(value string) string {
	parts := strings.Split(value, ";")
	for i, p := range parts {
		parts[i] = maskPair(p)
	}
	return strings.Join(parts, ";")
}

// maskPair keeps the name of "name=value" and the blanks around it; without a name everything is value.
func maskPair(pair string) string {
	trimmed := strings.TrimSpace(pair)
	if trimmed == "" {
		return pair
	}
	lead := pair[:strings.Index(pair, trimmed)]
	if name, _, ok := strings.Cut(trimmed, "="); ok {
		return lead + name + "=" + Mask
	}
	return lead + Mask
}

// cookieAttributes are the parts of a Set-Cookie that hold no secret.
var cookieAttributes = map[string]bool{
	"expires": true, "max-age": true, "domain": true, "path": true, "secure": true, "httponly": true,
	"samesite": true, "partitioned": true, "priority": true, "version": true,
}

func maskSetCookie(value string) string {
	parts := strings.Split(value, ";")
	for i, p := range parts {
		name, _, _ := strings.Cut(strings.TrimSpace(p), "=")
		if i == 0 || !cookieAttributes[strings.ToLower(name)] {
			parts[i] = maskPair(p)
		}
	}
	return strings.Join(parts, ";")
}
