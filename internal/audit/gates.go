package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// GateRun is one time at which gates judged a build.
type GateRun struct {
	Source   string // file, or name of the run
	Run      exchange.ID
	Engine   exchange.Identity
	Weights  string // digest, "" when not known
	Level    string // dev, fast, quick, full; "" for a run of no suite
	At       time.Time
	Complete bool
	Verdicts []GateVerdict
	Deferred []string // what was left for another time
	Stated   bool     // by a file; otherwise it is the run's own record
}

// GateVerdict is what a gate said of one case.
type GateVerdict struct {
	Gate    string                 `json:"gate"`
	Version int                    `json:"version"`
	Case    string                 `json:"case"`
	Status  exchange.VerdictStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Run     exchange.ID            `json:"run"` // in which it was judged; "" for what was not sent
	Policy  string                 `json:"-"`   // as exchange.Case.Policy
}

func (g *GateRun) build() build { return build{g.Engine.Engine, g.Engine.Version, g.Weights} }

// GatesOfRun are the verdicts that a run of a suite keeps; ok is false for a run that keeps none.
func GatesOfRun(run *exchange.Run) (g GateRun, ok bool) {
	if run.Replay == nil || len(run.Replay.Cases) == 0 {
		return g, false
	}
	b := buildsOf(run)[0]
	g = GateRun{Source: nameOf(run), Run: run.ID, Engine: exchange.Identity{Engine: b.engine, Version: b.version}, Weights: b.weights, At: run.Started,
		Complete: run.State == exchange.RunComplete, Level: run.Labels["level"]}
	for i := range run.Replay.Cases {
		c := &run.Replay.Cases[i]
		for _, v := range c.Verdicts {
			g.Verdicts = append(g.Verdicts, GateVerdict{v.Gate, v.Version, c.ID, v.Status, c.Reason, run.ID, c.Policy})
		}
		if c.Status != "" && len(c.Verdicts) == 0 {
			g.Verdicts = append(g.Verdicts, GateVerdict{Gate: c.Scenario, Case: c.ID, Status: c.Status, Reason: c.Reason, Run: run.ID, Policy: c.Policy})
		}
	}
	return g, true
}

// gates asks of every run with numbers whether its very build was judged, and passed. What a file states of gates is told
// also where no number is of its build.
func (a *auditor) gates() {
	for i := range a.in.Gates {
		if g := &a.in.Gates[i]; g.Stated {
			a.confirm(g)
		}
	}
	for _, r := range a.in.Runs {
		if r.Role != Candidate || len(r.shapes) == 0 {
			continue
		}
		a.judged(nameOf(&r.Run), buildsOf(&r.Run)[0], Failure)
	}
	a.cellGates()
	for i := range a.in.Gates {
		if g := &a.in.Gates[i]; g.Stated && !a.told[g] {
			a.latest(g.Source, []*GateRun{g}, OK)
		}
	}
}

// confirm holds what a file states of gates against the runs that it names: their record has the say.
func (a *auditor) confirm(g *GateRun) {
	var lost, other []string
	for i := range g.Verdicts {
		v := &g.Verdicts[i]
		if v.Run == "" {
			continue
		}
		kept, there := a.kept(v)
		switch {
		case !there:
			lost = append(lost, v.Gate+" of "+v.Case)
			v.Status, v.Reason = exchange.VerdictIncomparable, "run "+string(v.Run)+" does not keep it"
		case kept.Status != v.Status:
			other = append(other, fmt.Sprintf("%s of %s is %s in the file and %s in the record", v.Gate, v.Case, v.Status, kept.Status))
			v.Status, v.Reason = kept.Status, kept.Reason
		}
	}
	if len(other) > 0 {
		a.add(AskTraceable, g.Source, Failure, "%s not what the runs keep: %s", isAre(len(other), "verdict"), strings.Join(other[:min(len(other), shownVerdicts)], "; "))
	}
	if len(lost) > 0 {
		a.add(AskTraceable, g.Source, Failure, "%s on record in no run: %s", isAre(len(lost), "verdict"), strings.Join(lost[:min(len(lost), shownVerdicts)], ", "))
	}
}

// kept is a verdict as its run keeps it.
func (a *auditor) kept(v *GateVerdict) (GateVerdict, bool) {
	for i := range a.in.Gates {
		if g := &a.in.Gates[i]; !g.Stated && g.Run == v.Run {
			if k := slices.IndexFunc(g.Verdicts, func(o GateVerdict) bool { return o.Gate == v.Gate && o.Case == v.Case }); k >= 0 {
				return g.Verdicts[k], true
			}
		}
	}
	return GateVerdict{}, false
}

// shownVerdicts is how many verdicts one check names.
const shownVerdicts = 5

// cellGates asks it of every build whose cells state numbers. Which of them is a baseline a cell does not tell, and that
// one need not be judged.
func (a *auditor) cellGates() {
	var builds []build
	for _, d := range a.in.Documents {
		if d.cell != nil && d.states > 0 && !slices.Contains(builds, d.cell.build()) {
			builds = append(builds, d.cell.build())
		}
	}
	slices.SortFunc(builds, func(x, y build) int { return strings.Compare(x.String(), y.String()) })
	for _, b := range builds {
		a.judged("cells of "+orWord(b.engine, "an unknown engine"), b, Warning)
	}
}

// judged asks it of one build. worst is the answer where nothing has judged it.
func (a *auditor) judged(object string, mine build, worst Status) {
	var of, open, others []*GateRun
	for i := range a.in.Gates {
		g := &a.in.Gates[i]
		switch b := g.build(); {
		case b.known() && mine.known() && b == mine:
			of = append(of, g)
		case mayBe(b, mine, g.Stated):
			open = append(open, g)
		default:
			others = append(others, g)
		}
	}
	for _, g := range append(slices.Clone(of), open...) {
		a.told[g] = true
	}
	switch {
	case len(of) > 0:
		a.latest(object, of, OK)
	case len(open) > 0:
		a.add(AskGates, object, Warning, "%s was judged (%s): that this is the measured build %s cannot be told", open[0].build(), sourcesOf(open), mine)
		a.latest(object, open, Warning)
	case len(others) > 0:
		a.add(AskGates, object, worst, "the measured build is %s, and the gates judged %s (%s): they are to be run again on the build that is measured", mine, others[len(others)-1].build(), sourcesOf(others))
	default:
		a.add(AskGates, object, worst, "no gate has judged %s: speed without a check of the output says nothing", mine)
	}
}

// mayBe reports whether two builds may be one: nothing speaks against it, and something for it. Of what nobody named
// nothing does, unless a file that lies beside the numbers states it.
func mayBe(b, mine build, stated bool) bool {
	for _, f := range [...][2]string{{b.engine, mine.engine}, {b.version, mine.version}, {b.weights, mine.weights}} {
		if !agree(f[0], f[1]) {
			return false
		}
	}
	return b.engine != "" && b.engine == mine.engine || b.weights != "" && b.weights == mine.weights || stated && (b == build{} || mine == build{})
}

func sourcesOf(gs []*GateRun) string {
	var names []string
	for _, g := range gs {
		names = append(names, g.Source)
	}
	return strings.Join(slices.Compact(names), ", ")
}

// caseOfGate is one question that gates have answered, perhaps several times. One that was asked under another policy is
// another question.
type caseOfGate struct{ gate, id, policy string }

// name is the question as people read it.
func (k caseOfGate) name() string {
	if k.policy == "" {
		return k.gate + " of " + k.id
	}
	return k.gate + " of " + k.id + " (" + k.policy + ")"
}

// latest tells what the newest verdicts of one build come to. A case that was judged again has the newer verdict.
func (a *auditor) latest(object string, gs []*GateRun, best Status) {
	slices.SortStableFunc(gs, func(x, y *GateRun) int { return x.At.Compare(y.At) })
	now := map[caseOfGate]GateVerdict{}
	deferred := map[string]bool{}
	whole := false
	for _, g := range gs {
		whole = whole || g.Complete
		for _, v := range g.Verdicts {
			now[caseOfGate{v.Gate, v.Case, v.Policy}] = v
			delete(deferred, v.Case)
		}
		for _, d := range g.Deferred {
			deferred[d] = true
		}
	}
	a.verdicts(object, now, whole, best, sourcesOf(gs))
	a.rules(object, now)
	for _, d := range slices.Sorted(maps.Keys(deferred)) {
		a.add(AskFullContext, object, Warning, "%s is deferred: the full context was not asked for on this build; gate --suite full on it runs what is left", d)
	}
}

// verdicts tells whether all passed.
func (a *auditor) verdicts(object string, now map[caseOfGate]GateVerdict, whole bool, best Status, sources string) {
	passed, bad := 0, []string{}
	failed := false
	for _, k := range slices.SortedFunc(maps.Keys(now), func(x, y caseOfGate) int {
		return cmp.Or(strings.Compare(x.gate, y.gate), strings.Compare(x.id, y.id), strings.Compare(x.policy, y.policy))
	}) {
		v := now[k]
		if fine(v.Status) {
			if v.Status == exchange.VerdictOK {
				passed++
			}
			continue
		}
		failed = failed || v.Status == exchange.VerdictFail
		bad = append(bad, strings.TrimSuffix(k.name()+" is "+string(v.Status)+": "+v.Reason, ": "))
	}
	text := strings.Join(bad[:min(len(bad), shownVerdicts)], "; ")
	switch {
	case failed:
		a.add(AskGates, object, Failure, "%d of %d verdicts did not pass (%s): %s", len(bad), len(now), sources, text)
	case len(bad) > 0:
		a.add(AskGates, object, Warning, "%d of %d verdicts say nothing (%s): %s", len(bad), len(now), sources, text)
	case passed == 0:
		a.add(AskGates, object, Failure, "the gates were asked and none of them passed (%s)", sources)
	case !whole:
		a.add(AskGates, object, Warning, "%s passed, and the suite did not come to its end (%s)", count(passed, "verdict"), sources)
	case best == OK:
		a.add(AskGates, object, OK, "%s on the measured build, all passed or not applicable (%s)", count(len(now), "verdict"), sources)
	}
}

// rules tells of verdicts by rules that are older than those of today.
func (a *auditor) rules(object string, now map[caseOfGate]GateVerdict) {
	older := map[string]bool{}
	for _, v := range now {
		if today, known := a.in.GateRules[v.Gate]; known && v.Version > 0 && v.Version < today {
			older[v.Gate] = true
		}
	}
	if len(older) > 0 {
		a.add(AskGates, object, Warning, "verdicts of %s are by an older rule than that of today: replay --revalidate judges the recording again", strings.Join(slices.Sorted(maps.Keys(older)), ", "))
	}
}
