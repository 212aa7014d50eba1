package engines

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

//go:embed profiles/*.json
var profileFiles embed.FS

// Catalog is a set of profiles. It is safe for concurrent use as long as nothing is added.
type Catalog struct {
	profiles []Profile
	byName   map[string]int // ids and aliases, lower case
}

// Builtin is the catalog of the embedded profiles. The error is one of this program's own making.
func Builtin() (*Catalog, error) {
	files, err := fs.Glob(profileFiles, "profiles/*.json")
	if err != nil {
		return nil, err
	}
	c := &Catalog{byName: map[string]int{}}
	for _, f := range files {
		raw, err := profileFiles.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := c.Add(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
	}
	return c, nil
}

// Add takes in the JSON of a profile. One with the id of a profile that is there replaces it. A key or word that the
// schema does not know, and an alias that another profile has, is an error that wraps exchange.ErrUsage.
func (c *Catalog) Add(raw []byte) error {
	p, err := parseProfile(raw)
	if err != nil {
		return fmt.Errorf("read profile: %w: %w", exchange.ErrUsage, err)
	}
	at := slices.IndexFunc(c.profiles, func(have Profile) bool { return have.ID == p.ID })
	for _, name := range p.names() {
		if have, taken := c.byName[name]; taken && have != at {
			return fmt.Errorf("read profile: %w: %s and %s are both called %q", exchange.ErrUsage, c.profiles[have].ID, p.ID, name)
		}
	}
	if at < 0 {
		at = len(c.profiles)
		c.profiles = append(c.profiles, Profile{})
	}
	for name, i := range c.byName {
		if i == at {
			delete(c.byName, name)
		}
	}
	c.profiles[at] = p
	for _, name := range p.names() {
		c.byName[name] = at
	}
	return nil
}

// Profiles are all profiles, sorted by id.
func (c *Catalog) Profiles() []Profile {
	out := slices.Clone(c.profiles)
	slices.SortFunc(out, func(a, b Profile) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Lookup finds a profile by its id or an alias, without case.
func (c *Catalog) Lookup(name string) (Profile, bool) {
	i, ok := c.byName[strings.ToLower(name)]
	if !ok {
		return Profile{}, false
	}
	return c.profiles[i], true
}

// names are the id and the aliases, in lower case.
func (p Profile) names() []string {
	out := []string{strings.ToLower(p.ID)}
	for _, a := range p.Aliases {
		out = append(out, strings.ToLower(a))
	}
	return out
}

func parseProfile(raw []byte) (Profile, error) {
	var p Profile
	if err := strict.Decode(raw, &p, ""); err != nil {
		return p, err
	}
	return p, p.check()
}

var profileID = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func (p Profile) check() error {
	switch {
	case p.Schema != ProfileVersion:
		return fmt.Errorf("schema %d is not %d", p.Schema, ProfileVersion)
	case !profileID.MatchString(p.ID) || p.ID == Unknown:
		return fmt.Errorf("id %q is not lower case letters and digits, or is %s", p.ID, Unknown)
	case p.Name == "":
		return fmt.Errorf("%s has no name", p.ID)
	case !slices.Contains([]string{KindServer, KindFront, KindHosted}, p.Kind):
		return fmt.Errorf("%s: there is no kind %q", p.ID, p.Kind)
	case p.Kind == KindHosted && len(p.Recognize.Hosts) == 0:
		return fmt.Errorf("%s: a hosted API is recognized by its host", p.ID)
	}
	for _, part := range []func() error{p.checkRecognize, p.checkSpeaks, p.checkMetadata, p.checkRequests, p.checkCounters, p.checkControl} {
		if err := part(); err != nil {
			return fmt.Errorf("%s: %w", p.ID, err)
		}
	}
	return nil
}

func (p Profile) checkRecognize() error {
	r := p.Recognize
	if (len(r.Namespace) > 0) != (r.Rank > 0) {
		return fmt.Errorf("namespaces and rank go together")
	}
	for _, d := range r.Declared {
		if !slices.Contains([]string{InOwnedBy, InServer, InService, InSoftware, InBuildInfo}, d.In) || d.Name == "" || leadingName(d.Name) != d.Name {
			return fmt.Errorf("declared %q in %q is not a lower case name in a known place", d.Name, d.In)
		}
	}
	for _, s := range r.Shapes {
		for _, w := range slices.Concat(s.AnyOf...) {
			if !slices.Contains([]string{WantPresent, WantInteger, WantCount, WantObject, WantBuild}, w.Type) || w.Key == "" {
				return fmt.Errorf("a shape wants %q to be %q", w.Key, w.Type)
			}
		}
		if len(s.Paths) == 0 || len(s.AnyOf) == 0 {
			return fmt.Errorf("a shape needs paths and any_of")
		}
	}
	docs := r.Native
	if r.Version != nil {
		docs = append(slices.Clone(docs), *r.Version)
	}
	for _, d := range docs {
		if !strings.HasPrefix(d.Path, "/") || p.avoids(d.Path) {
			return fmt.Errorf("a document at %q cannot be asked for", d.Path)
		}
	}
	return nil
}

func (p Profile) checkMetadata() error {
	for _, r := range p.Metadata {
		switch {
		case !slices.Contains(fields, r.Field):
			return fmt.Errorf("there is no field %q", r.Field)
		case !strings.HasPrefix(r.Path, "/") || p.avoids(r.Path):
			return fmt.Errorf("%s cannot be read at %q", r.Field, r.Path)
		case r.As != "" && !slices.Contains(transforms(), r.As):
			return fmt.Errorf("%s cannot be read as %q", r.Field, r.As)
		}
	}
	return nil
}

// avoids reports whether a path makes the engine work.
func (p Profile) avoids(path string) bool { return slices.Contains(p.Avoid, path) }

func (p Profile) checkRequests() error {
	q := p.Requests
	if !slices.Contains([]string{"", UsageRequested, UsageAlways}, q.Usage) {
		return fmt.Errorf("there is no usage %q", q.Usage)
	}
	objects := []json.RawMessage{q.Logprobs, q.TokenIDs, q.NoCache, q.Timings, q.Bare}
	for _, s := range []*Switch{q.Thinking, q.Drafts} {
		if s != nil {
			objects = append(objects, s.On, s.Off)
		}
	}
	for _, s := range q.ThinkingAlso {
		objects = append(objects, s.On, s.Off)
	}
	if slices.Contains(slices.Concat(q.Limit, q.Effort, q.Budget), "") {
		return fmt.Errorf("a field of a request has no name")
	}
	for _, o := range objects {
		if !isObject(o) {
			return fmt.Errorf("%s is not an object to merge into a request", o)
		}
	}
	return nil
}

// isObject is true for a JSON object, for null and for nothing.
func isObject(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return len(raw) == 0 || json.Unmarshal(raw, &o) == nil
}

func (p Profile) checkControl() error {
	if p.Daemon != nil {
		if err := p.Daemon.check(); err != nil {
			return err
		}
	}
	if p.Launch != nil {
		if err := p.Launch.check(); err != nil {
			return err
		}
	}
	for _, call := range []*Call{p.Load, p.Unload} {
		if call != nil && (!strings.HasPrefix(call.Path, "/") || call.Method == "" || !isObject(call.Body)) {
			return fmt.Errorf("load and unload need a method and a path")
		}
	}
	if r := p.Ready; r != nil && (!strings.HasPrefix(r.Path, "/") || p.avoids(r.Path)) {
		return fmt.Errorf("the ready check cannot ask %q", r.Path)
	}
	return nil
}
