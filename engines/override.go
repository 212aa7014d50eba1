package engines

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// Override lays a part of a profile over the one that is called name, or makes a new one of it when there is none. Of
// objects only the keys that patch has are changed, and null takes a key out; lists and values are replaced whole. A key
// that profiles do not have is refused, with those they have. The error wraps exchange.ErrUsage, and the catalog is then
// as it was.
func (c *Catalog) Override(name string, patch []byte) error {
	fail := func(err error) error { return fmt.Errorf("%w: engine %s: %w", exchange.ErrUsage, name, err) }
	if err := strict.Decode(patch, &Profile{}, "engines."+name); err != nil {
		return fail(err)
	}
	base := Profile{Schema: ProfileVersion, ID: strings.ToLower(name)}
	if have, ok := c.Lookup(name); ok {
		base = have
	}
	under, err := json.Marshal(base)
	if err != nil { // a profile was read from JSON
		return fail(err)
	}
	merged, err := json.Marshal(merge(decodeJSON(under), decodeJSON(patch)))
	if err != nil {
		return fail(err)
	}
	var p Profile
	if err := json.Unmarshal(merged, &p); err != nil {
		return fail(err)
	}
	if p.ID != base.ID {
		return fail(fmt.Errorf("its id is %q and cannot become %q", base.ID, p.ID))
	}
	return c.Add(merged)
}

// merge lays a JSON value over another one.
func merge(under, over any) any {
	patch, ok := over.(map[string]any)
	if !ok {
		return over
	}
	out := map[string]any{}
	if o, ok := under.(map[string]any); ok {
		out = o
	}
	for key, v := range patch {
		if v == nil {
			delete(out, key)
		} else {
			out[key] = merge(out[key], v)
		}
	}
	return out
}
