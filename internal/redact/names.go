package redact

import "strings"

// Mask stands where a secret was.
const Mask = "***"

// schemes are authorization schemes whose names hold more than letters, or that must be kept whatever their length.
var schemes = map[string]bool{
	"aws4-hmac-sha256": true, "api-key": true, "scram-sha-1": true, "scram-sha-256": true, "oauth2": true,
}

// secretParts mark a name as secret wherever they occur in it.
var secretParts = []string{
	"authorization", "secret", "password", "passwd", "passphrase", "credential", "apikey", "api-key", "accesskey",
	"access-key", "authkey", "privatekey", "private-key", "session", "signature", "cookie", "bearer",
}

// secretWords mark a name as secret when one of its words is exactly this.
var secretWords = map[string]bool{
	"auth": true, "jwt": true, "dpop": true, "pwd": true, "pass": true, "hmac": true, "sas": true, "sig": true,
	"authentication": true,
}

// notSecret are names that look secret and are not.
var notSecret = map[string]bool{
	"idempotency-key": true, "x-idempotency-key": true, "sec-websocket-key": true, "surrogate-key": true,
	"cache-key": true, "x-cache-key": true, "prompt-cache-key": true, "sort-key": true, "partition-key": true,
	"routing-key": true, "x-routing-key": true, "www-authenticate": true, "proxy-authenticate": true,
	"authentication-info": true, "access-control-allow-credentials": true,
}

// plainNames are the usual headers without credentials, as clients and engines write them. Nearly every header of an
// exchange is one of them, and to look a name up costs a thirtieth of searching it.
var plainNames = namesIn(
	"Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive",
	"User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Date", "Server", "Vary", "Expect",
	"Access-Control-Allow-Origin", "X-Request-Id", "X-Stainless-Arch", "X-Stainless-Async", "X-Stainless-Lang",
	"X-Stainless-Os", "X-Stainless-Package-Version", "X-Stainless-Retry-Count", "X-Stainless-Runtime",
	"X-Stainless-Runtime-Version", "X-Stainless-Timeout", "X-Stainless-Read-Timeout", "OpenAI-Version",
)

// namesIn are the names as given and in lower case.
func namesIn(names ...string) map[string]bool {
	m := make(map[string]bool, 2*len(names))
	for _, n := range names {
		m[n], m[strings.ToLower(n)] = true, true
	}
	return m
}

// beforeToken and afterToken are the words beside "token" that make it a unit of text instead of a credential.
var beforeToken = map[string]bool{
	"first": true, "last": true, "next": true, "per": true, "input": true, "output": true, "prompt": true,
	"completion": true, "cached": true, "reasoning": true, "special": true, "eos": true, "bos": true, "pad": true,
	"unk": true, "mask": true, "image": true, "stop": true, "draft": true,
}

var afterToken = map[string]bool{
	"count": true, "usage": true, "budget": true, "limit": true, "remaining": true, "rate": true, "reset": true,
	"latency": true, "length": true, "ms": true, "throughput": true, "ids": true, "bucket": true, "policy": true,
}

// secretQueryNames are secret as names of query parameters only: as words of a header they are too common.
var secretQueryNames = map[string]bool{"key": true, "sign": true, "code": true, "client-assertion": true}

// secretName reports whether a header, parameter, field or flag of this name carries a credential.
func secretName(name string) bool { return !plainNames[name] && searchName(name) }

// searchName looks for the parts and words that make a name secret.
func searchName(name string) bool {
	name = normalName(name)
	if notSecret[name] {
		return false
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	for i, w := range words {
		if secretWords[w] || strings.Contains(w, "token") && tokenIsSecret(words, i) {
			return true
		}
	}
	return len(words) > 1 && words[len(words)-1] == "key"
}

// tokenIsSecret tells a credential from a piece of text: X-Auth-Token from x-ratelimit-remaining-tokens, max_tokens,
// tokenizer and time-to-first-token.
func tokenIsSecret(words []string, i int) bool {
	w := words[i]
	if w != "token" { // joined with other letters: authtoken is secret; tokens, tokenizer, maxtokens and detokenize are not
		return strings.HasSuffix(w, "token")
	}
	if i > 0 && beforeToken[words[i-1]] {
		return false
	}
	return i+1 == len(words) || !afterToken[words[i+1]]
}

// normalName is the name in lower case with one kind of separator.
func normalName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '.' || r == ' ' || r == '[' || r == ']':
			return '-'
		}
		return r
	}, strings.TrimSpace(name))
}

// SecretHeader reports whether the value of a header of this name, or a part of it, is masked.
func SecretHeader(name string) bool { return secretName(name) }

// SecretQuery reports whether the value of a query parameter of this name, already percent-decoded, is masked.
func SecretQuery(name string) bool { return secretQueryNames[normalName(name)] || secretName(name) }

// SecretFlag reports whether the value of a command line flag or environment variable of this name is masked. Flags
// that name a file, a directory or an environment variable hold no secret themselves.
func SecretFlag(name string) bool {
	name = normalName(strings.TrimLeft(name, "-"))
	for _, end := range []string{"-file", "-path", "-dir", "-env"} {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return secretName(name) || name == "key"
}
