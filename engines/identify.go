package engines

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

const (
	metricsPath = "/metrics"
	modelsPath  = "/v1/models"
)

// declaring are the documents in which a server may name itself, in the order in which they are asked.
var declaring = []string{modelsPath, "/health", "/.well-known/serviceinfo", "/props"}

// What a Deployment's basis can be.
const (
	BasisLabel = "label" // the user said so
	BasisProbe = "probe" // it was asked
	BasisHost  = "host"  // the host of the URL says so
)

// Identify finds out what answers at base (http or https, a path prefix allowed, with or without /v1) and what it has
// loaded. Engine is Unknown where nothing was proved. The error wraps exchange.ErrUnreachable when nothing answered at
// all, and is the context's when that ended; the deployment says what is known even then.
func (c *Catalog) Identify(ctx context.Context, do Doer, base string, o Options) (exchange.Deployment, error) {
	d := exchange.Deployment{ReadAt: clock.Now().UTC().Round(0), Identity: exchange.Identity{Engine: Unknown, Basis: BasisProbe}}
	p, err := newProber(do, base, o)
	if err != nil {
		return d, err
	}
	v := c.verdict(ctx, p)
	p.held = v.profile.Avoid
	d.Engine, d.Basis, d.Evidence = v.profile.ID, v.basis, v.evidence
	if v.profile.Kind != KindHosted {
		r := reader{catalog: c, profile: v.profile, p: p, d: &d}
		r.read(ctx)
	}
	if label, version, _ := strings.Cut(o.Label, "@"); label != "" {
		d.Engine = v.profile.ID
		if version != "" {
			d.Version = version
		}
	}
	place(&d, o.Requested)
	d.Probes = p.sent
	d.Fingerprint = fingerprint(&d)
	return d, p.failure(ctx)
}

// failure is why nothing is known of a server: nil as soon as it answered anything.
func (p *prober) failure(ctx context.Context) error {
	cause := cmp.Or(p.dead, p.last)
	switch {
	case p.answered > 0 || p.sent == 0 && p.dead == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &exchange.Error{Op: "identify engine", Object: redact.URL(p.base.String()), Side: exchange.SideEngine,
		Cause: fmt.Errorf("%w: %w", exchange.ErrUnreachable, cause), Hint: "is it running, and is this its address?"}
}

// verdict is which profile was proved, by what.
type verdict struct {
	profile  Profile
	basis    string
	evidence string
}

// verdict asks in the order of the package comment and stops at the first proof.
func (c *Catalog) verdict(ctx context.Context, p *prober) verdict {
	if label, _, _ := strings.Cut(p.o.Label, "@"); label != "" {
		profile, ok := c.Lookup(label)
		if !ok {
			profile = Profile{ID: strings.ToLower(label), Name: label, Metadata: c.generic().Metadata}
		}
		return verdict{profile, BasisLabel, "named by the user"}
	}
	if v, ok := c.byHost(p.base.Hostname()); ok {
		return v
	}
	if v, ok := first(ctx, p, c.byNamespace, c.byVersion, c.byDeclaration, c.byShape, c.byNative); ok {
		return v
	}
	if len(p.held) > 0 && (p.o.Traffic == nil || !p.o.Traffic()) {
		p.held, p.released = nil, true // nothing else proved anything, and nobody is disturbed
		if v, ok := first(ctx, p, c.byDeclaration, c.byShape); ok {
			return v
		}
	}
	why := "nothing that it says proves an engine"
	if p.answered == 0 && p.sent > 0 {
		why = "it gave no answer"
	}
	return verdict{Profile{ID: Unknown, Metadata: c.generic().Metadata}, BasisProbe, why}
}

// first is the verdict of the first step that has one.
func first(ctx context.Context, p *prober, steps ...func(context.Context, *prober) (verdict, bool)) (verdict, bool) {
	for _, step := range steps {
		if v, ok := step(ctx, p); ok || p.dead != nil {
			return v, ok
		}
	}
	return verdict{}, false
}

// generic is the profile of servers that were not recognized.
func (c *Catalog) generic() Profile {
	p, _ := c.Lookup("generic")
	return p
}

func (c *Catalog) byHost(host string) (verdict, bool) {
	host = strings.ToLower(host)
	for _, profile := range c.Profiles() {
		for _, h := range profile.Recognize.Hosts {
			if host == h || strings.HasSuffix(host, "."+h) {
				return verdict{profile, BasisHost, "the host is " + h}, true
			}
		}
	}
	return verdict{}, false
}

// byNamespace looks for a native namespace at the start of a metrics line. The profile of the lowest rank wins: an engine
// that also exports the names of another ranks before that one.
func (c *Catalog) byNamespace(ctx context.Context, p *prober) (verdict, bool) {
	a := p.get(ctx, metricsPath)
	if v, ok := c.byMark(a); ok || !a.ok() {
		return v, ok
	}
	ranked := slices.DeleteFunc(c.Profiles(), func(f Profile) bool { return f.Recognize.Rank == 0 })
	slices.SortFunc(ranked, func(x, y Profile) int { return cmp.Compare(x.Recognize.Rank, y.Recognize.Rank) })
	for _, profile := range ranked {
		for _, ns := range profile.Recognize.Namespace {
			if hasNamespace(string(a.body), ns) {
				return verdict{profile, BasisProbe, "GET /metrics has names of " + ns}, true
			}
		}
	}
	return verdict{}, false
}

// hasNamespace reports whether a line of a Prometheus text begins with ns. Comments and labels do not count.
func hasNamespace(text, ns string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ns) {
			return true
		}
	}
	return false
}

// byVersion looks for a version document of the form that one engine gives it. Many servers tell a version so: it proves
// the engine together with the name in the listing of models, and not when the server names itself something else.
func (c *Catalog) byVersion(ctx context.Context, p *prober) (verdict, bool) {
	for _, profile := range c.Profiles() {
		doc := profile.Recognize.Version
		if doc == nil {
			continue
		}
		a := p.get(ctx, doc.Path)
		if v, ok := c.byMark(a); ok {
			return v, true
		}
		if other, _, named := c.declared(a); named && other.ID != profile.ID {
			continue
		}
		evidence, ok := doc.match(a)
		if !ok {
			continue
		}
		if who, named, ok := c.declared(p.get(ctx, modelsPath)); ok && who.ID == profile.ID {
			return verdict{profile, BasisProbe, named + "; " + evidence}, true
		}
	}
	return verdict{}, false
}

// byMark looks for a response header that only one engine sends, whatever the status.
func (c *Catalog) byMark(a *answer) (verdict, bool) {
	for _, profile := range c.Profiles() {
		for _, h := range profile.Recognize.Headers {
			if a.header.Get(h) != "" {
				return verdict{profile, BasisProbe, fmt.Sprintf("GET %s has the header %s", a.path, h)}, true
			}
		}
	}
	return verdict{}, false
}

// byDeclaration believes the first name that a server gives itself.
func (c *Catalog) byDeclaration(ctx context.Context, p *prober) (verdict, bool) {
	for _, path := range declaring {
		a := p.get(ctx, path)
		if v, ok := c.byMark(a); ok {
			return v, true
		}
		if profile, evidence, ok := c.declared(a); ok {
			return verdict{profile, BasisProbe, evidence}, true
		}
		if path == modelsPath && !p.released {
			p.held = c.risky(a)
		}
	}
	return verdict{}, false
}

// risky are the paths that would make an engine work which may be this one still. An engine that proves itself by its
// listing of models is none whose listing, or its absence, was seen.
func (c *Catalog) risky(listing *answer) []string {
	_, listed := listing.object()
	var paths []string
	for _, profile := range c.profiles {
		if !profile.provesByListing() || !listed && listing.status != http.StatusNotFound {
			paths = append(paths, profile.Avoid...)
		}
	}
	return paths
}

// provesByListing reports whether a listing of models names the engine.
func (p Profile) provesByListing() bool {
	return len(p.Recognize.Headers) > 0 ||
		slices.ContainsFunc(p.Recognize.Declared, func(d Declared) bool { return d.In == InOwnedBy })
}

// declared is the profile whose name a 200 answer gives, with the evidence. The document's own field is believed before
// the Server header, which a hop in between may have written.
func (c *Catalog) declared(a *answer) (Profile, string, bool) {
	if !a.ok() {
		return Profile{}, "", false
	}
	for _, said := range selfNames(a) {
		if profile, ok := c.declarer(said); ok {
			return profile, fmt.Sprintf("GET %s: %s is %q", a.path, said.In, clip(said.Name)), true
		}
	}
	return Profile{}, "", false
}

// declarer is the profile whose name a server gave itself.
func (c *Catalog) declarer(said Declared) (Profile, bool) {
	for _, profile := range c.profiles {
		if profile.declares(said) {
			return profile, true
		}
	}
	return Profile{}, false
}

// selfNames are what an answer says of who gives it.
func selfNames(a *answer) []Declared {
	var out []Declared
	add := func(in, at string) {
		if s, ok := textAt(a.doc, at); ok {
			out = append(out, Declared{in, s})
		}
	}
	switch a.path {
	case modelsPath:
		add(InOwnedBy, "data.0.owned_by")
	case "/health":
		add(InService, "service")
	case "/.well-known/serviceinfo":
		add(InSoftware, "software.name")
	case "/props":
		add(InBuildInfo, "build_info")
	}
	if s := a.header.Get("Server"); s != "" {
		out = append(out, Declared{InServer, s})
	}
	return out
}

// leadingName is the first word of a name in lower case: what stands before white space or a slash.
func leadingName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if i := strings.IndexAny(s, " \t\r\n/"); i >= 0 {
		s = s[:i]
	}
	return s
}

// clip shortens what a server said for a line of evidence.
func clip(s string) string {
	const longest = 60
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}

// byShape looks for documents that only one engine gives. A document in which another server names itself is not one.
func (c *Catalog) byShape(ctx context.Context, p *prober) (verdict, bool) {
	for _, profile := range c.Profiles() {
		for _, shape := range profile.Recognize.Shapes {
			for _, path := range shape.Paths {
				a := p.get(ctx, path)
				if o, ok := a.object(); !ok || c.names(a, profile) {
					continue
				} else if keys, ok := shape.match(o); ok {
					return verdict{profile, BasisProbe, fmt.Sprintf("GET %s has %s, as only %s's has", path, keys, profile.Name)}, true
				}
			}
		}
	}
	return verdict{}, false
}

// names reports whether an answer names another server than profile: a known one, or any that is no build of llama.cpp in
// the place where that writes its build. A front's listing names the engine behind it, which is none.
func (c *Catalog) names(a *answer, profile Profile) bool {
	for _, said := range selfNames(a) {
		if said.In == InBuildInfo && !isBuild(said.Name) && !profile.declares(said) {
			return true
		}
		if said.In == InOwnedBy && profile.Kind == KindFront || !a.ok() {
			continue
		}
		if other, ok := c.declarer(said); ok {
			return other.ID != profile.ID
		}
	}
	return false
}

func (p Profile) declares(said Declared) bool {
	return slices.Contains(p.Recognize.Declared, Declared{In: said.In, Name: leadingName(said.Name)})
}

// byNative asks a server that lists models for the documents of engines that give themselves no name.
func (c *Catalog) byNative(ctx context.Context, p *prober) (verdict, bool) {
	listing := p.get(ctx, modelsPath)
	if o, ok := listing.object(); !ok || o["object"] == nil && o["data"] == nil {
		return verdict{}, false
	}
	for _, profile := range c.Profiles() {
		if len(profile.Recognize.Native) == 0 {
			continue
		}
		var proofs []string
		for _, doc := range profile.Recognize.Native {
			proof, ok := doc.match(p.get(ctx, doc.Path))
			if !ok {
				proofs = nil
				break
			}
			proofs = append(proofs, proof)
		}
		if proofs != nil {
			return verdict{profile, BasisProbe, strings.Join(proofs, "; ")}, true
		}
	}
	return verdict{}, false
}

// match reports whether an answer is the document, and says what it shows.
func (doc Document) match(a *answer) (string, bool) {
	switch {
	case a.status != http.StatusOK:
		return "", false
	case doc.Text != "":
		said := strings.Trim(strings.TrimSpace(string(a.body)), `"`)
		return fmt.Sprintf("GET %s says %q", doc.Path, doc.Text), said == doc.Text
	case doc.Array:
		_, ok := stringArray(a.doc)
		return fmt.Sprintf("GET %s is a list of names", doc.Path), ok
	case doc.Key == "":
		_, ok := a.object()
		return fmt.Sprintf("GET %s is an object", doc.Path), ok
	}
	v, ok := at(a.doc, doc.Key)
	said, isText := v.(string)
	if o, _ := a.object(); doc.Only && (len(o) != 1 || !isText) {
		return "", false
	}
	if doc.Value != "" {
		ok = ok && isText && said == doc.Value
	}
	if isText {
		return fmt.Sprintf("GET %s: %s is %q", doc.Path, doc.Key, clip(said)), ok && said != ""
	}
	return fmt.Sprintf("GET %s has %s", doc.Path, doc.Key), ok && v != nil
}

// match reports whether an object has one of the wanted sets, and names its keys.
func (s Shape) match(o map[string]any) (string, bool) {
	for _, set := range s.AnyOf {
		var keys []string
		for _, w := range set {
			if w.holds(o) {
				keys = append(keys, w.Key)
			}
		}
		if len(keys) == len(set) {
			return strings.Join(keys, " and "), true
		}
	}
	return "", false
}

func (w Want) holds(o map[string]any) bool {
	v, ok := at(o, w.Key)
	if !ok {
		return false
	}
	switch w.Type {
	case WantPresent:
		return true
	case WantObject:
		_, ok := v.(map[string]any)
		return ok
	case WantBuild:
		s, ok := v.(string)
		return ok && isBuild(s)
	case WantCount:
		n := count(v)
		return n != nil
	}
	n := integer(v)
	return n != nil
}
