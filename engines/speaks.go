package engines

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// checkSpeaks refuses dialects that nobody knows.
func (p Profile) checkSpeaks() error {
	for _, d := range p.Speaks {
		if !slices.Contains(wire.Dialects(), wire.Dialect(d)) {
			return fmt.Errorf("speaks: there is no dialect %q", d)
		}
	}
	return nil
}

// Understands reports whether an engine has endpoints of a dialect. One of which that is not known counts as having them.
func (p Profile) Understands(d wire.Dialect) bool {
	return len(p.Speaks) == 0 || slices.Contains(p.Speaks, string(d))
}
