package matrix

import (
	"maps"
	"slices"

	"github.com/benchproxy/benchproxy/internal/redact"
)

// Masked is the plan as it may be printed and kept: the secrets in variables, headers, arguments and addresses are masked.
func (p *Plan) Masked() *Plan {
	out := *p
	out.Groups = slices.Clone(p.Groups)
	for i := range out.Groups {
		l := &out.Groups[i].Launch
		l.URL = redact.URL(l.URL)
		l.Access.Headers = MaskedNames(l.Access.Headers)
		l.Registry.Args = redact.Args(l.Registry.Args)
		l.Registry.Env = MaskedNames(l.Registry.Env)
	}
	return &out
}

// MaskedNames are variables or headers with the values masked that hold a secret.
func MaskedNames(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for name, value := range out {
		if out[name] = redact.Text(value); value != "" && redact.SecretHeader(name) {
			out[name] = redact.Mask
		}
	}
	return out
}
