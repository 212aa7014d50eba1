package engines

import (
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// at is the value at a dotted path: keys of objects and indexes of arrays, "\." for a dot inside a key. The empty path is
// v itself. ok is false when something on the way is missing.
func at(v any, dotted string) (any, bool) {
	for _, key := range splitPath(dotted) {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func splitPath(dotted string) []string {
	if dotted == "" {
		return nil
	}
	parts := strings.Split(strings.ReplaceAll(dotted, `\.`, "\x00"), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", ".")
	}
	return parts
}

// textAt is the non-empty text at a dotted path.
func textAt(v any, dotted string) (string, bool) {
	found, ok := at(v, dotted)
	s, isText := found.(string)
	s = strings.TrimSpace(s)
	return s, ok && isText && s != ""
}

// integer is a whole number; a text, a truth value and a fraction are none.
func integer(v any) *int64 {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	i, err := n.Int64()
	if err != nil {
		return nil
	}
	return &i
}

// count is a whole number above 0: engines write 0 and -1 for "no limit" and "not known".
func count(v any) *int64 {
	if n := integer(v); n != nil && *n > 0 {
		return n
	}
	return nil
}

func text(v any) *string {
	s, ok := v.(string)
	if s = strings.TrimSpace(s); !ok || s == "" {
		return nil
	}
	return &s
}

func stringArray(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := []string{}
	for _, e := range list {
		s, isText := e.(string)
		if !isText {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

var buildPattern = regexp.MustCompile(`^b[0-9]+(-\S+)?$`)

// isBuild reports whether s has the form in which llama.cpp writes its build.
func isBuild(s string) bool { return buildPattern.MatchString(strings.TrimSpace(s)) }

// baseName is the last part of a path of either kind of system. Directories of the engine's machine are nobody's business.
func baseName(s string) string { return path.Base(strings.ReplaceAll(s, `\`, "/")) }

// rootName keeps the name of a checkpoint in a model hub and the base name of a path in a file system.
func rootName(s string) string {
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "~") || strings.Contains(s, `\`) || strings.Contains(s, ":/") {
		return baseName(s)
	}
	return s
}

func pointer[T any](v T) *T { return &v }
