package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// Party is an engine of a gate suite. Only one of the parties is up at a time: the suite stops one before it starts the
// other, so that both can be launched on one machine.
type Party interface {
	// Start makes the engine ready, under launch flags beside its usual ones; "" for as it always is. What it gives is good
	// until Stop. The error wraps ErrNoVariant when the engine cannot be launched with flags.
	Start(ctx context.Context, variant string) (Target, error)
	// Stop ends what Start began. It must do so also when ctx has ended.
	Stop(ctx context.Context) error
}

// ErrNoVariant says that nobody here launches an engine, so that it has no other flags than those it runs with.
var ErrNoVariant = fmt.Errorf("%w: the engine is not launched by us", exchange.ErrMiss)

// AlwaysUp is an engine that somebody else runs.
type AlwaysUp struct{ Target Target }

// Start gives the engine as it is.
func (a AlwaysUp) Start(_ context.Context, variant string) (Target, error) {
	if variant != "" {
		return Target{}, fmt.Errorf("%w, with flags %s", ErrNoVariant, variant)
	}
	return a.Target, nil
}

// Stop does nothing: the engine is not ours.
func (a AlwaysUp) Stop(context.Context) error { return nil }

// GateParty is one side of a gate suite: an engine and what is known of it.
type GateParty struct {
	Engine   Party
	Identity exchange.Identity // the version is its build
	Model    string            // to ask for
	Launch   string            // command line of one that is started here, secrets masked; "" otherwise
	URL      string            // of one that somebody else runs
	Told     string            // digest of what that one says of itself: context, slots, devices ...; "" when it was not asked
	Build    string            // digest of what is started here: program, what belongs to it, environment; "" when unknown
	Weights  string            // as Golden.Weights; "" when unknown
	Drafting *bool             // nil when unknown
	Spelling Spelling
	Changes  Changes
	// Meet finds out what a reference is that is started here, when it is up for the first time: nothing is recorded of it
	// before. nil when that is known.
	Meet func(context.Context) (GateMet, error)
}

// GateMet is what is found out of a reference that is up.
type GateMet struct {
	Identity   exchange.Identity
	Model      string // to ask for
	Weights    string // "" when unknown
	Drafting   *bool
	References References // that keep what it answers; nil for none
}

// References keep what a reference has answered, so that it is asked once. Answers are kept by its weights and build.
type References interface {
	// Goldens are the recordings under a request key, of all engines.
	Goldens(key string) ([]*exchange.Golden, error)
	// AddGolden keeps a recording, and gives it as it is kept.
	AddGolden(g exchange.Golden) (exchange.Golden, error)
	// Replies are those of the needs that have been answered before; of a group all or none.
	Replies(needs exchange.Needs) ([]exchange.Reply, error)
	// AddReply keeps the answer to a need.
	AddReply(n exchange.Need, x *exchange.Exchange) error
}

// GateOptions say which cases a gate suite has, and who is judged by whom.
type GateOptions struct {
	Level      gates.Level
	Cases      []scenario.LevelCase
	Gaps       []scenario.LevelGap // of the level, which are told with the verdicts
	Candidate  GateParty
	Reference  *GateParty // nil for none: then only kept goldens are references
	References References // nil for none
	Earlier    *GateReport
	Defer      bool     // put off the cases that fill the whole context
	Variants   []string // launch flags of the reference under which a failure is asked about again
	Unknown    bool     // compare also when the weights of a side are not known
	MaxAge     time.Duration
	// OnRecord says whether all of it is still on record, as it was; nil for nobody who knows. What an earlier verdict rests
	// on must be.
	OnRecord func([]exchange.EvidenceSum) bool
	Session  string // header that carries one value a conversation; "" = none
	Salt     string
	Harness  string
	// Told gets each verdict when it stands; nil for nobody.
	Told func(*GateEntry)
}

// GateSuite sends the cases of a level to an engine and judges them, with what the gates need of it and of a reference.
// It is used once.
type GateSuite struct {
	o     GateOptions
	suite *Suite
	cases []*gateCase
	// reused are the verdicts of an earlier suite that still stand.
	reused   []GateEntry
	deferred []GateDeferred
	prompts  string
}

// gateCase is one case on its way to its verdicts.
type gateCase struct {
	*SuiteCase
	plan     scenario.LevelCase
	question string
	met      []exchange.MetNeed
	goldens  bool   // the recordings of the reference were looked for
	lacks    string // why there are none
	verdicts []exchange.Verdict
	settled  bool
	spent    time.Duration // with engines
}

// NewGateSuite plans a gate suite. Nothing is sent; the error is that of a request or a check that cannot be made.
func NewGateSuite(o GateOptions) (*GateSuite, error) {
	g := &GateSuite{o: o}
	var members []scenario.Member
	var planned []*gateCase
	all := newGateDigest()
	for _, c := range o.Cases {
		m := scenario.Member{Scenario: c.Scenario, Concurrency: 1}
		if c.Together {
			m.Concurrency = c.Turns
		}
		prompt, question, err := g.question(c)
		if err != nil {
			return nil, fmt.Errorf("plan case %s: %w", c.ID, err)
		}
		all.add(c.ID, prompt)
		switch entries := o.Earlier.passed(&o, c, question); {
		case entries != nil:
			g.reused = append(g.reused, entries...)
		case c.Long && o.Defer:
			g.deferred = append(g.deferred, GateDeferred{Case: m.Tag(), Family: c.Family, Reason: "put off: it fills the whole context"})
		default:
			members = append(members, m)
			planned = append(planned, &gateCase{plan: c, question: question})
		}
	}
	g.prompts = all.sum()
	var err error
	g.suite, err = NewSuite(SuiteOptions{Members: members, Options: scenario.Options{Model: o.Candidate.Model}, Spelling: o.Candidate.Spelling,
		Changes: o.Candidate.Changes, Session: o.Session, Salt: o.Salt, Untagged: true, Unjudged: true})
	if err != nil {
		return nil, err
	}
	i := 0
	for _, wave := range g.suite.waves {
		for _, c := range wave {
			planned[i].SuiteCase = c
			i++
		}
	}
	g.cases = planned
	g.suite.planned.Source = "gates, level " + o.Level.String()
	return g, g.refer()
}

// refer puts what is known of the reference into the checks of every case and into what the run keeps.
func (g *GateSuite) refer() (err error) {
	g.suite.mu.Lock()
	defer g.suite.mu.Unlock()
	g.suite.planned.Reference = g.o.referenceEngine()
	for _, c := range g.cases {
		if c.Case.Checks, err = g.checks(c.plan.Case(c.Case.ID, scenario.Options{}).Checks, g.o.build()); err != nil {
			return fmt.Errorf("plan case %s: %w", c.Case.ID, err)
		}
		g.suite.kept[c.at].Case.Checks = c.Case.Checks
	}
	return nil
}

// build is the version of the reference, of which recordings must be; "" for any.
func (o *GateOptions) build() string {
	if o.Reference == nil {
		return ""
	}
	return o.Reference.Identity.Version
}

// referenceEngine says whose recordings the cases are held against; nil for none of a known engine.
func (o *GateOptions) referenceEngine() *exchange.ReferenceEngine {
	if o.Reference == nil {
		return nil
	}
	r := o.Reference
	return &exchange.ReferenceEngine{Weights: r.Weights, Identity: r.Identity, Launch: r.Launch, Build: r.Build}
}

// Suite is what sends the cases: a run keeps its plan, and tallies its exchanges.
func (g *GateSuite) Suite() *Suite { return g.suite }

// Planned is how many cases are to be sent, and how many stand as an earlier suite left them.
func (g *GateSuite) Planned() (asked, reused int) {
	cases := map[string]bool{}
	for _, e := range g.reused {
		cases[e.Scenario] = true
	}
	return len(g.cases), len(cases)
}

// question digests what a case asks and by what it is judged: prompt whatever engine it is asked, asked as this candidate is.
func (g *GateSuite) question(c scenario.LevelCase) (prompt, asked string, err error) {
	plain, mine := newGateDigest(), newGateDigest()
	turns := 1
	if c.Together {
		turns = c.Turns
	}
	for n := range turns {
		r, err := c.Request(scenario.Options{Model: g.o.Candidate.Model}, make([]scenario.Answer, n))
		if err != nil {
			return "", "", err
		}
		plain.add(r.Method, r.Path, string(r.Body), fmt.Sprint(r.Thinking, r.Cold, c.Turns))
		d, err := g.o.Candidate.draft(&Item{ID: c.ID, Turn: n, At: AtUnknown, Method: r.Method, Target: r.Path, Headers: jsonHeaders()}, r)
		if err != nil {
			return "", "", err
		}
		mine.add(d.method, d.target, string(d.body), fmt.Sprint(d.headers))
	}
	checks, err := g.checks(c.Case(c.ID, scenario.Options{}).Checks, "")
	if err != nil {
		return "", "", err
	}
	for _, check := range checks {
		plain.add(check.Gate, string(check.Params))
	}
	prompt = plain.sum()
	mine.add(prompt)
	return prompt, mine.sum(), nil
}

// draft is a request as a party is asked it.
func (p *GateParty) draft(it *Item, r scenario.Request) (*draft, error) {
	body, err := p.Spelling.spell(r, false)
	if err != nil {
		return nil, fmt.Errorf("spell turn %d of case %s: %w", it.Turn, it.ID, err)
	}
	it.Body = body
	changes := p.Changes
	changes.Model = p.Model
	return changes.draftOf(it, 0, "", exchange.Header{})
}

// checks are those of a case with what is known of this sitting: which weights and which build a recording must be of.
func (g *GateSuite) checks(of []exchange.Check, build string) ([]exchange.Check, error) {
	out := make([]exchange.Check, len(of))
	for i, c := range of {
		out[i] = c
		if !comparesGoldens(c.Gate) && c.Gate != gateSampling {
			continue
		}
		params := map[string]any{}
		if len(c.Params) > 0 {
			if err := json.Unmarshal(c.Params, &params); err != nil {
				return nil, fmt.Errorf("read parameters of %s: %w", c.Gate, err)
			}
		}
		if g.know(params, c.Gate); build != "" {
			params["build"] = build
		}
		b, err := json.Marshal(params)
		if err != nil {
			return nil, fmt.Errorf("write parameters of %s: %w", c.Gate, err)
		}
		out[i].Params = b
		if err := gates.Validate(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// know puts what is known of this sitting into the parameters of a gate.
func (g *GateSuite) know(params map[string]any, gate string) {
	set := func(name string, value any, holds bool) {
		if holds {
			params[name] = value
		}
	}
	set("weights", g.o.Candidate.Weights, g.o.Candidate.Weights != "")
	set("unknown_weights", true, g.o.Unknown)
	set("max_age_s", g.o.MaxAge.Seconds(), g.o.MaxAge > 0)
	tie := gate == gateNearTie || gate == gateNeedle
	set("variants", g.o.Variants, tie && len(g.o.Variants) > 0)
	set("re_recordings", gateRecordings, tie && g.o.Reference != nil)
	set("reference", true, gate == gateNeedle && g.o.Reference != nil)
}

// gateRecordings is how often a failure has its reference recorded again: it is not the same from run to run.
const gateRecordings = 2

// The gates that the suite treats apart.
const (
	gateNearTie  = "near_tie"
	gateNeedle   = "needle"
	gateVision   = "vision"
	gateAgent    = "agent_turns"
	gateSampling = "sampling"
)

// comparesGoldens reports whether a gate holds answers against recordings of a reference.
func comparesGoldens(gate string) bool {
	switch gate {
	case gateNearTie, gateNeedle, gateVision, gateAgent:
		return true
	}
	return false
}
