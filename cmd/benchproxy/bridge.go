package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// bridgeSettings say in which dialect a replay speaks to its targets.
type bridgeSettings struct {
	to      string // --to; "" lets each target decide
	format  string // --format: what answers are read as, whatever else is said
	catalog *engines.Catalog
}

// toRecorded is the value of --to that translates nothing.
const toRecorded = "recorded"

// spoken are the values of --to with the dialect of each.
var spoken = []struct {
	name    string
	dialect wire.Dialect
	beside  []wire.Dialect // spoken by the same APIs
}{
	{"openai", wire.DialectChat, []wire.Dialect{wire.DialectCompletions, wire.DialectResponses, wire.DialectEmbeddings}},
	{"anthropic", wire.DialectAnthropic, nil},
	{"gemini", wire.DialectGemini, nil},
	{"ollama", wire.DialectOllama, nil},
	{toRecorded, wire.DialectNone, nil},
}

func spokenNames() []string {
	var out []string
	for _, s := range spoken {
		out = append(out, s.name)
	}
	return out
}

// bridgeFlags are the flags of replay that translate.
func bridgeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "to", Usage: "`API` to speak to every target: " + strings.Join(spokenNames(), ", ") + " (default: as recorded where the target understands it, else the target's own)"},
		&cli.BoolFlag{Name: "lossy", Usage: "leave out what cannot be said to a target, and drop options it rejects; what is left out is listed and kept with each request"},
	}
}

// replayBridge reads how the targets are spoken to.
func (p *program) replayBridge(c *cli.Context, s *replaySettings) (err error) {
	s.bridge.to, s.bridge.format = c.String("to"), c.String("format")
	if to := s.bridge.to; to != "" && !slices.Contains(spokenNames(), to) {
		return usagef("--to is %s, not %q", strings.Join(spokenNames(), ", "), to)
	}
	s.plan.Changes.Lossy = c.Bool("lossy")
	s.bridge.catalog, err = p.catalog(c)
	return err
}

// discovery is what was found behind a target before anything is sent.
type discovery struct {
	by  *identified
	is  exchange.Deployment
	err error
}

// discover reads what answers behind each target, once.
func (r *replaying) discover(ctx context.Context) error {
	if !r.s.identify || r.found != nil {
		return nil
	}
	if model := r.s.plan.Changes.Model; model != "" {
		for i := range r.s.targets {
			r.s.targets[i].model = model
		}
	}
	i := newIdentifier(captureSettings{upstreams: r.s.targets, device: r.s.device, upstream: r.s.upstream}, r.s.bridge.catalog)
	for _, t := range i.targets {
		t.options.Turn, t.options.Traffic = nil, nil // nothing else runs yet
		d, err := i.catalog.Identify(ctx, t.do, t.url, t.options)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.Upstream, d.Why = t.name, exchange.ReadAtStart
		r.found = append(r.found, discovery{t, d, err})
	}
	return nil
}

// bridgeTargets decides how each target is spoken to, and with which credentials.
func (r *replaying) bridgeTargets(ctx context.Context, w *replay.Workload) error {
	if r.s.bridge.to == "" {
		if err := r.discover(ctx); err != nil {
			return err
		}
	}
	counts := map[wire.Dialect]int{}
	for i := range w.Items {
		counts[wire.DialectOf(w.Items[i].Target)]++
	}
	bridges, any := make([]bridge.Endpoint, len(r.s.targets)), false
	for i := range r.s.targets {
		u := &r.s.targets[i]
		bridges[i] = r.s.bridge.endpoint(*u, r.profile(i))
		translated, heard := bridges[i].Outcome(counts)
		u.credentials = credentialsFor(u.credentials, heard)
		any = any || translated > 0 || bridges[i].Known != nil
		if translated > 0 && !r.s.json && !r.s.quiet {
			note(r.env.Stderr, "%s: %d of %s translated to %s", u.name, translated, countOf(len(w.Items), "request"), bridges[i].Dialect)
		}
	}
	if any {
		r.s.plan.Changes.Bridges = bridges
	}
	return nil
}

// profile is what is known of the engine behind a target: by its label, else by what was found there.
func (r *replaying) profile(target int) engines.Profile {
	label, _, _ := strings.Cut(r.s.targets[target].label, "@")
	if p, ok := r.s.bridge.catalog.Lookup(label); ok && label != "" {
		return p
	}
	if target < len(r.found) && r.found[target].err == nil {
		p, _ := r.s.bridge.catalog.Lookup(r.found[target].is.Engine)
		return p
	}
	return engines.Profile{}
}

// endpoint is how a target is spoken to, and what engines spell differently as this one spells it where that is known.
// Whose answers are read as something else than their paths say is no engine of which a profile tells.
func (s *bridgeSettings) endpoint(u upstream, p engines.Profile) bridge.Endpoint {
	e := s.spokenTo(u, p)
	if s.to != toRecorded && p.ID != "" && (u.dialect == "" || bridge.Reads(wire.Dialect(u.dialect))) {
		e.Known = bridge.SpellingsOf(s.catalog.Profiles())
	}
	return e
}

// spokenTo is how a target is spoken to: as --to says, else in the dialect its config names, else as recorded where its
// engine understands that, and in the first dialect it has where it does not.
func (s *bridgeSettings) spokenTo(u upstream, p engines.Profile) bridge.Endpoint {
	for _, to := range spoken {
		if s.to != to.name {
			continue
		}
		e := bridge.EndpointOf(to.dialect, p)
		for _, d := range to.beside {
			if p.Understands(d) {
				e.Keeps = append(e.Keeps, d)
			}
		}
		return e
	}
	if d := wire.Dialect(u.dialect); d != wire.DialectNone {
		if !slices.Contains(bridge.Dialects(), d) {
			return bridge.Endpoint{}
		}
		return bridge.EndpointOf(d, p)
	}
	for _, name := range p.Speaks {
		if d := wire.Dialect(name); slices.Contains(bridge.Dialects(), d) {
			e := bridge.EndpointOf(d, p)
			for _, other := range wire.Dialects() { // what cannot be translated is tried as it is: profiles do not know everything
				if p.Understands(other) || !bridge.Reads(other) {
					e.Keeps = append(e.Keeps, other)
				}
			}
			return e
		}
	}
	return bridge.EndpointOf(wire.DialectNone, p)
}

// credentialsFor gives a key the headers in which the dialects that are spoken read it: Messages in one of its own, which
// gateways may read instead of a bearer token, and Gemini in its own alone.
func credentialsFor(credentials func() []exchange.Header, spoken []wire.Dialect) func() []exchange.Header {
	if credentials == nil {
		return nil
	}
	hs := credentials()
	at := slices.IndexFunc(hs, func(h exchange.Header) bool { return strings.EqualFold(h.Name, "Authorization") })
	if at < 0 {
		return credentials
	}
	key, isKey := strings.CutPrefix(hs[at].Value, "Bearer ")
	only := func(d wire.Dialect) bool { return len(spoken) == 1 && spoken[0] == d }
	name := ""
	switch {
	case !isKey:
	case only(wire.DialectGemini):
		name = "x-goog-api-key"
	case slices.Contains(spoken, wire.DialectAnthropic):
		name = "x-api-key"
	}
	if _, has := exchange.HeaderValue(hs, name); name == "" || has {
		return credentials
	}
	out := append(slices.Clone(hs), exchange.Header{Name: name, Value: key})
	if only(wire.DialectGemini) {
		out = slices.Delete(out, at, at+1)
	}
	return func() []exchange.Header { return out }
}

// answersOf is what the answers of a target are read as whatever their path; "" is by path.
func (r *replaying) answersOf(target int) string {
	own := r.s.targets[target].dialect
	if r.s.bridge.format != "" {
		return r.s.bridge.format
	}
	if b := r.s.plan.Changes.Bridges; target < len(b) && b[target].Dialect != wire.DialectNone && b[target].Dialect != wire.Dialect(own) {
		return "" // the dialect of its answers is that of what it is asked
	}
	return own
}

// checkPlan makes every request once. What a translation leaves out is told where that is allowed.
func (r *replaying) checkPlan() error {
	err := r.plan.Check()
	if errors.Is(err, replay.ErrLossy) {
		return fmt.Errorf("%w\n--lossy leaves it out", err)
	}
	if err != nil {
		return err
	}
	for i, b := range r.s.plan.Changes.Bridges {
		if n := r.plan.Respelled(i); n > 0 && !r.s.json && !r.s.quiet {
			note(r.env.Stderr, "%s: %d of %s respelled for %s", r.s.targets[i].name, n, countOf(r.plan.Requests, "request"), b.Engine)
		}
	}
	if !r.s.plan.Changes.Lossy || len(r.s.plan.Changes.Bridges) == 0 {
		return nil
	}
	losses, err := r.plan.Losses()
	for _, l := range losses {
		note(r.env.Stderr, "left out: %s", printable(l.String()))
	}
	return err
}
