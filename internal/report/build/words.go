package build

import (
	"strings"
	"unicode"
)

// slug is a text as part of an id of the page: letters and digits, the rest as one dash each.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
}

// joinSpace puts one blank in the place of all white space.
func joinSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// firstRunes are the first n characters of a text, with an ellipsis where more follow.
func firstRunes(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

// lastRunes are the last n characters of a text.
func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

// ShellWords are arguments as a shell would take them.
func ShellWords(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; a == "" || strings.ContainsAny(a, " \t\n\"'$&|;<>()*?[]{}~`\\#") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
