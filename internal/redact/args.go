package redact

import "strings"

// Args are the words of a command line with secrets masked: --api-key VALUE, --api-key=VALUE, NAME_TOKEN=VALUE,
// header arguments ("Authorization: Bearer ..."), curl's -u user:password, URLs and well-known keys. It is a copy.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	for i, a := range argv {
		prev := ""
		if i > 0 {
			prev = argv[i-1]
		}
		out[i] = maskArg(prev, a)
	}
	return out
}

// maskArg masks one word; prev is the word before it, which may be the flag it is the value of.
func maskArg(prev, a string) string {
	if a == "" {
		return a
	}
	if strings.HasPrefix(prev, "-") && !strings.ContainsAny(prev, "=: ") && SecretFlag(prev) {
		return Mask
	}
	if user, _, ok := strings.Cut(a, ":"); ok && (prev == "-u" || prev == "--user" || prev == "--proxy-user") {
		return user + ":" + Mask
	}
	if name, value, ok := strings.Cut(a, "="); ok && !strings.ContainsAny(name, " /:?") {
		if value != "" && SecretFlag(name) {
			return name + "=" + Mask
		}
		return name + "=" + maskArg(name, value)
	}
	if name, value, ok := strings.Cut(a, ":"); ok && !strings.ContainsAny(name, " /?") && SecretHeader(strings.TrimPrefix(name, "-H")) {
		lead := value[:len(value)-len(strings.TrimLeft(value, " "))]
		return name + ":" + lead + HeaderValue(strings.TrimPrefix(name, "-H"), strings.TrimSpace(value))
	}
	return Text(a)
}
