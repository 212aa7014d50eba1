package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// RelaxRule names a place of a JSON body in which a request may differ from a recorded one: another value, or none. An
// element of a list may have another value, but must be there.
type RelaxRule struct {
	text  string
	parts []jsonPath // of the elements of a list between two of them
}

// ParseRelax reads a rule: "$" and a path of names and places, where [*] is every element of a list, as in $.temperature,
// $.messages[0].content or $.messages[*].id. The error wraps exchange.ErrUsage.
func ParseRelax(text string) (RelaxRule, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok || rest == "" || rest[0] != '.' && rest[0] != '[' {
		return RelaxRule{}, fmt.Errorf("%w: relax rule %q is not a path like $.temperature", exchange.ErrUsage, text)
	}
	r := RelaxRule{text: text}
	for i, part := range strings.Split(rest, "[*]") {
		var path jsonPath
		if part = strings.TrimPrefix(part, "."); part != "" {
			var err error
			if path, err = parsePath(part); err != nil {
				return RelaxRule{}, fmt.Errorf("%w: relax rule %q: %w", exchange.ErrUsage, text, err)
			}
		} else if i == 0 && !strings.HasPrefix(rest, "[*]") {
			return RelaxRule{}, fmt.Errorf("%w: relax rule %q has an empty name", exchange.ErrUsage, text)
		}
		r.parts = append(r.parts, path)
	}
	return r, nil
}

// String is the rule as it was written.
func (r RelaxRule) String() string { return r.text }

// blotted stands in a list for an element that a rule takes out: the others keep their places.
type blotted struct{}

// MarshalJSON writes something that no request means.
func (blotted) MarshalJSON() ([]byte, error) { return []byte(`"\u0000relaxed"`), nil }

// without takes the places of the rule out of v.
func (r RelaxRule) without(v any) any { return withoutParts(v, r.parts) }

func withoutParts(v any, parts []jsonPath) any {
	if path := parts[0]; len(path) > 0 {
		return withoutStep(v, path, parts)
	}
	if len(parts) == 1 {
		return blotted{}
	}
	if list, ok := v.([]any); ok {
		for i := range list {
			list[i] = withoutParts(list[i], parts[1:])
		}
	}
	return v
}

// withoutStep goes one step down the first part.
func withoutStep(v any, path jsonPath, parts []jsonPath) any {
	step := path[0]
	rest := append([]jsonPath{path[1:]}, parts[1:]...)
	last := len(path) == 1 && len(parts) == 1
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[step.name]
		switch {
		case step.index >= 0 || !ok:
		case last:
			delete(v, step.name)
		default:
			v[step.name] = withoutParts(child, rest)
		}
	case []any:
		if step.index >= 0 && step.index < len(v) {
			v[step.index] = withoutParts(v[step.index], rest)
		}
	}
	return v
}

// relaxedKey is the key of a request without what the rules take out; ok is false without rules, and for a body that is
// no JSON of certain meaning: such a one has no places.
func relaxedKey(req *exchange.Request, rules []RelaxRule) (k canon.Key, ok bool) {
	if len(rules) == 0 || !req.Body.Whole() {
		return k, false
	}
	form, err := canon.JSON(req.Body.Bytes())
	if err != nil {
		return k, false
	}
	v, err := decodeNumbers(form)
	if err != nil {
		return k, false
	}
	for _, r := range rules {
		v = r.without(v)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return k, false
	}
	relaxed := *req
	relaxed.Body = exchange.NewBody(body)
	return canon.RequestKey(&relaxed), true
}

// decodeNumbers reads JSON and keeps numbers as they are spelled.
func decodeNumbers(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
