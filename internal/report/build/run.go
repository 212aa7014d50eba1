package build

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Bounds of what is kept of a run, so that a run of any length can be reported.
const (
	mostListed = 2_000 // exchanges in the list of evidence
	mostFalls  = 6     // exchanges drawn one by one
	mostFailed = 200   // failures told one by one
)

// Run gathers one run of the store, exchange by exchange. It belongs to one goroutine at a time.
type Run struct {
	Run      exchange.Run
	Label    string // what the report calls it
	Upstream string // its exchanges are those of this upstream only; "" = of all

	// Entries are kept by the caller for a comparison; nil where there is none.
	Entries []compare.Entry

	all       group
	groups    []*group
	load      *compare.LoadMeter
	gaps      *stat.Histogram // between token events, in ns
	waves     []wave
	waveAt    map[string]int // place of each in waves
	failures  []exchange.Summary
	listed    []exchange.Summary
	unlisted  int
	falls     []fall
	sets      []setSamples
	devices   map[string]int // device that answers name -> exchanges
	clocks    map[exchange.StampClock]int
	cases     map[string][]exchange.ID // of a suite: the exchanges of each case
	scenarios map[string]string        // of a suite: the scenario of each case
}

// wave is the members of a wave so far. One that a replay closed keeps no members: its rates are on record.
type wave struct {
	name    string
	group   *group // of its first member
	members []measure.WaveMember
	ids     []exchange.ID // the first ones
}

// group is the exchanges of a run that belong in one row: one upstream, model and scenario.
type group struct {
	upstream, engine, model, scenario string
	totals                            measure.Totals
	summed                            *measure.Run // of all of totals; nil until it is asked for
	load                              *compare.LoadMeter
	ids                               []exchange.ID // the first ones
	prompt, completion                []float64
	points                            []point
	clocks                            [2][2][]float64 // decode and prefill: ours and the engine's, of exchanges that have both
	drafts                            drafts
	flags                             map[string]int
}

// point is one exchange in a plot against its prompt or its start.
type point struct{ prompt, cached, prefill, ttft float64 }

// drafts are the figures of speculative decoding in a group.
type drafts struct{ acceptance, perStep, waste []float64 }

// fall is one exchange that is drawn.
type fall struct {
	why   string
	row   exchange.Summary
	chart chart.Waterfall
	rank  float64
}

// setSamples are the figures of one definition set over a run.
type setSamples struct {
	set     *measure.Set
	figures map[string]*samples
}

// samples are those of one figure and why there are no more.
type samples struct {
	values    []float64
	ids       []exchange.ID // the first ones
	estimated bool
	missing   map[exchange.Reason]int
}

// NewRun begins to gather a run. sets are the definitions of other tools to measure by as well.
func NewRun(run exchange.Run, upstream string, sets []measure.Set) *Run {
	r := &Run{Run: run, Upstream: upstream, load: compare.NewLoadMeter(nil), gaps: stat.NewHistogram(), devices: map[string]int{}, clocks: map[exchange.StampClock]int{}, cases: map[string][]exchange.ID{}, waveAt: map[string]int{}}
	r.Label = run.Name
	if r.Label == "" {
		r.Label = string(run.ID)
	}
	if upstream != "" {
		r.Label += "@" + upstream
	}
	if slices.ContainsFunc(r.deployments(), func(d exchange.Deployment) bool { return d.CPUFallback }) {
		r.Label += " (CPU fallback)" // in every table
	}
	r.all, r.scenarios = *newGroup("", ""), run.Replay.Scenarios()
	for i := range sets {
		r.sets = append(r.sets, setSamples{&sets[i], map[string]*samples{}})
	}
	return r
}

// sum is the group as it is now.
func (g *group) sum() *measure.Run {
	if g.summed == nil {
		run := g.totals.Run()
		g.summed = &run
	}
	return g.summed
}

// take adds a row to the samples.
func (g *group) take(row *exchange.Summary) {
	g.totals.Add(row)
	g.summed = nil
}

func newGroup(model, scenario string) *group {
	return &group{model: model, scenario: scenario, load: compare.NewLoadMeter(nil), flags: map[string]int{}}
}

// Add takes an exchange of the run with its analysis and its row.
func (r *Run) Add(x *exchange.Exchange, a *measure.Analysis, row *exchange.Summary) {
	r.list(row)
	r.all.take(row)
	if row.Dialect == "" || row.Item != nil && row.Item.Warmup {
		return
	}
	r.load.Add(x, row)
	r.clocks[x.Timeline.Clock]++
	if row.Item != nil && len(r.scenarios) > 0 {
		r.cases[row.Item.CaseID()] = append(r.cases[row.Item.CaseID()], row.ID)
	}
	g := r.groupOf(row)
	for _, into := range []*group{&r.all, g} {
		into.add(a, row)
	}
	g.take(row)
	g.load.Add(x, row)
	for _, ms := range measure.EventGaps(x, a) {
		r.gaps.Add(ms * 1e6)
	}
	if row.Wave != "" {
		r.addWave(x, a, row, g)
	}
	if row.Outcome != exchange.OutcomeComplete && len(r.failures) < mostFailed {
		r.failures = append(r.failures, bare(row))
	}
	r.draw(x, a, row)
	r.addSets(x, a.Transcript, row)
	if t := a.Transcript.Timings; t != nil && t.Device != "" {
		r.devices[t.Device]++
	}
}

// groupOf is the group of a row, which is made when it is the first of its kind.
func (r *Run) groupOf(row *exchange.Summary) *group {
	scenario := r.scenarioOf(row)
	i := slices.IndexFunc(r.groups, func(g *group) bool {
		return g.model == row.Model && g.scenario == scenario && g.upstream == row.Upstream
	})
	if i < 0 {
		i = len(r.groups)
		g := newGroup(row.Model, scenario)
		g.upstream, g.engine = row.Upstream, row.Engine
		r.groups = append(r.groups, g)
	}
	return r.groups[i]
}

// scenarioOf is the scenario of a case of a suite, else "": the requests of a workload are one kind.
func (r *Run) scenarioOf(row *exchange.Summary) string {
	if row.Item == nil {
		return ""
	}
	return r.scenarios[row.Item.CaseID()]
}

const firstIDs = 8 // that a number names

func (g *group) add(a *measure.Analysis, row *exchange.Summary) {
	if len(g.ids) < firstIDs {
		g.ids = append(g.ids, row.ID)
	}
	for _, f := range row.Flags {
		g.flags[f]++
	}
	if row.Outcome != exchange.OutcomeComplete {
		return
	}
	take := func(into *[]float64, f exchange.Figure) float64 {
		if f.Present() {
			*into = append(*into, f.Value)
		}
		return f.Value
	}
	fs := row.Metrics
	p := point{prompt: take(&g.prompt, fs[measure.PromptTokens]), cached: fs[measure.CachedTokens].Value, prefill: fs[measure.PrefillTPS].Value, ttft: fs[measure.TTFTMS].Value}
	take(&g.completion, fs[measure.CompletionTokens])
	take(&g.drafts.acceptance, fs[measure.DraftAcceptance])
	take(&g.drafts.perStep, fs[measure.TokensPerStep])
	take(&g.drafts.waste, fs[measure.DraftWaste])
	if p.prompt > 0 && (p.prefill > 0 || p.ttft > 0) && len(g.points) < mostListed {
		g.points = append(g.points, p)
	}
	for i, pair := range [2][2]string{{measure.DecodeTPS, measure.EngineDecodeTPS}, {measure.PrefillTPS, measure.EnginePrefillTPS}} {
		ours, why := measure.Sample(row, pair[0])
		if theirs := fs[pair[1]]; why == "" && theirs.Present() {
			g.clocks[i][0], g.clocks[i][1] = append(g.clocks[i][0], ours.Value), append(g.clocks[i][1], theirs.Value)
		}
	}
}

// list keeps what the list of evidence shows of a row.
func (r *Run) list(row *exchange.Summary) {
	if len(r.listed) >= mostListed {
		r.unlisted++
		return
	}
	r.listed = append(r.listed, bare(row))
}

// listedMetrics are those that the list of evidence shows.
var listedMetrics = [...]string{measure.PromptTokens, measure.CachedTokens, measure.CompletionTokens, measure.TTFTMS, measure.PrefillTPS, measure.DecodeTPS,
	measure.TotalWallMS, measure.EngineDecodeTPS, measure.AddedP99US}

// bare is a row with the metrics that the list of evidence shows, and without what takes memory.
func bare(row *exchange.Summary) exchange.Summary {
	out := *row
	out.Interventions = nil
	out.Metrics = make(exchange.Figures, len(listedMetrics))
	for _, name := range listedMetrics {
		out.Metrics[name] = row.Metrics[name]
	}
	return out
}

func (r *Run) addWave(x *exchange.Exchange, a *measure.Analysis, row *exchange.Summary, g *group) {
	i, seen := r.waveAt[row.Wave]
	if !seen {
		i = len(r.waves)
		r.waveAt[row.Wave] = i
		r.waves = append(r.waves, wave{name: row.Wave, group: g})
	}
	if !r.wavesClosed() {
		r.waves[i].members = append(r.waves[i].members, measure.WaveMemberOf(x, a))
	}
	if len(r.waves[i].ids) < firstIDs {
		r.waves[i].ids = append(r.waves[i].ids, row.ID)
	}
}

// wavesClosed reports whether the rates of the waves are on record.
func (r *Run) wavesClosed() bool { return r.Run.Replay != nil && len(r.Run.Replay.Waves) > 0 }

// addSets measures an exchange by the definitions of other tools.
func (r *Run) addSets(x *exchange.Exchange, t *wire.Transcript, row *exchange.Summary) {
	for i := range r.sets {
		s := &r.sets[i]
		result := s.set.Measure(x, t)
		for _, rule := range s.set.Rules {
			into := s.figures[rule.Figure]
			if into == nil {
				into = &samples{missing: map[exchange.Reason]int{}}
				s.figures[rule.Figure] = into
			}
			switch f := result.Figures[rule.Figure]; {
			case row.Outcome != exchange.OutcomeComplete && !result.OK:
				into.missing[measure.ExcludedFailed]++
			case f.Present():
				into.values = append(into.values, f.Value)
				if len(into.ids) < firstIDs {
					into.ids = append(into.ids, row.ID)
				}
				into.estimated = into.estimated || f.Basis == exchange.BasisEstimated
			default:
				into.missing[f.Reason]++
			}
		}
	}
}
