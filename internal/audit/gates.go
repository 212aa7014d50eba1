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
	// Reference is the engine that the answers were held against, with its weights; zero for none.
	Reference        exchange.Identity
	ReferenceWeights string
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
	// Question is the digest of what was asked first, "" where that is not known: one tag may have been asked under other
	// limits, or with thinking.
	Question string `json:"-"`
	// Again is the verdict of today on the same evidence, with its reason; "" where it was not judged again.
	Again    exchange.VerdictStatus `json:"-"`
	AgainWhy string                 `json:"-"`
}

// stands is a verdict with what the same evidence comes to today: what passed and does not any more is a failure, and so is
// what rests on evidence that is gone. What did not pass stays as it is.
func (v GateVerdict) stands() (status exchange.VerdictStatus, why string) {
	if v.Again == "" || !fine(v.Status) || fine(v.Again) {
		return v.Status, v.Reason
	}
	return exchange.VerdictFail, fmt.Sprintf("it was %s, and is %s when it is judged again: %s", v.Status, v.Again, v.AgainWhy)
}

// CaseAgain is a case of a run, judged again.
type CaseAgain struct {
	Case     string
	Question string             // digest of what was asked first
	Verdicts []exchange.Verdict // one for each check of the case; none where its evidence is not whole
	Status   exchange.VerdictStatus
	Reason   string
}

// wholeCase is the gate of a verdict on a case as a whole, where none of its checks tells why it did not pass.
const wholeCase = "conversation"

// JudgedAgain notes what a case of the run comes to today.
func (g *GateRun) JudgedAgain(c *CaseAgain) {
	checks := 0
	for i := range g.Verdicts {
		if v := &g.Verdicts[i]; v.Case == c.Case && v.Gate != wholeCase {
			checks++
		}
	}
	n := 0
	for i := range g.Verdicts {
		v := &g.Verdicts[i]
		if v.Case != c.Case {
			continue
		}
		v.Question, v.Again, v.AgainWhy = c.Question, c.Status, c.Reason
		if v.Gate == wholeCase {
			continue
		}
		if len(c.Verdicts) == checks && c.Verdicts[n].Gate == v.Gate {
			v.Again, v.AgainWhy = c.Verdicts[n].Status, c.Verdicts[n].Reason
		}
		n++
	}
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
	if level, told := strings.CutPrefix(run.Replay.Source, "gates, level "); told {
		g.Level = level
	}
	if r := run.Replay.Reference; r != nil {
		g.Reference, g.ReferenceWeights = r.Identity, r.Weights
	}
	if slices.Contains(run.MadeBy, "--defer-long") {
		g.Deferred = []string{longCases}
	}
	for i := range run.Replay.Cases {
		g.add(run.ID, &run.Replay.Cases[i])
	}
	return g, true
}

// longCases are what a suite puts off that was asked to; which they are its report tells.
const longCases = "what is long"

// add takes the verdicts of one case. A conversation that stopped has failed, whatever was said of its turns.
func (g *GateRun) add(run exchange.ID, c *exchange.PlannedCase) {
	bad := false
	for _, v := range c.Verdicts {
		g.Verdicts = append(g.Verdicts, GateVerdict{Gate: v.Gate, Version: v.Version, Case: c.ID, Status: v.Status, Reason: c.Reason, Run: run, Policy: c.Policy})
		bad = bad || !fine(v.Status)
	}
	whole := GateVerdict{Gate: wholeCase, Case: c.ID, Status: c.Status, Reason: c.Reason, Run: run, Policy: c.Policy}
	switch {
	case c.Status != "" && len(c.Verdicts) == 0:
		whole.Gate = c.Scenario
		g.Verdicts = append(g.Verdicts, whole)
	case c.Status != "" && !fine(c.Status) && !bad:
		g.Verdicts = append(g.Verdicts, whole)
	}
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
	a.baselineGates()
	a.cellGates()
	for i := range a.in.Gates {
		if g := &a.in.Gates[i]; g.Stated && !a.told[g] {
			a.latest(g.Source, []*GateRun{g}, OK)
		}
	}
}

// confirm holds what a file states of gates against the runs that it names: their record has the say. A verdict of a case
// that names no run has none behind it, and passes nothing.
func (a *auditor) confirm(g *GateRun) {
	var lost, other []string
	nth := map[caseOfGate]int{}
	for i := range g.Verdicts {
		v := &g.Verdicts[i]
		if v.Run == "" && (v.Case == "" || !fine(v.Status)) {
			if v.Status == exchange.VerdictOK {
				lost = append(lost, v.Gate)
				v.Status, v.Reason = exchange.VerdictIncomparable, "it is of no case"
			}
			continue
		}
		at := caseOfGate{gate: v.Gate, id: v.Case, question: string(v.Run)}
		kept, there := a.kept(v, nth[at])
		nth[at]++
		switch {
		case !there:
			lost = append(lost, v.Gate+" of "+v.Case)
			v.Status, v.Reason = exchange.VerdictIncomparable, "run "+orWord(string(v.Run), "that is named nowhere")+" does not keep it"
		case kept.Status != v.Status:
			other = append(other, fmt.Sprintf("%s of %s is %s in the file and %s in the record", v.Gate, v.Case, v.Status, kept.Status))
			*v = kept
		default:
			*v = kept
		}
	}
	if len(other) > 0 {
		a.add(AskTraceable, g.Source, Failure, "%s not what the runs keep: %s", isAre(len(other), "verdict"), strings.Join(other[:min(len(other), shownVerdicts)], "; "))
	}
	if len(lost) > 0 {
		a.add(AskTraceable, g.Source, Failure, "%s on record in no run: %s", isAre(len(lost), "verdict"), strings.Join(lost[:min(len(lost), shownVerdicts)], ", "))
	}
}

// kept is a verdict as its run keeps it: the n-th of that gate on that case.
func (a *auditor) kept(v *GateVerdict, n int) (GateVerdict, bool) {
	for i := range a.in.Gates {
		g := &a.in.Gates[i]
		if g.Stated || v.Run == "" || g.Run != v.Run {
			continue
		}
		for _, o := range g.Verdicts {
			if o.Gate != v.Gate || o.Case != v.Case {
				continue
			}
			if n == 0 {
				return o, true
			}
			n--
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

// baselineGates asks it of the baselines: one is qualified by gates, too, or by being the reference of those that judged the
// others.
func (a *auditor) baselineGates() {
	for _, r := range a.in.Runs {
		if r.Role != Baseline || len(r.shapes) == 0 {
			continue
		}
		mine := buildsOf(&r.Run)[0]
		if source, is := a.refers(mine); is {
			a.add(AskGates, nameOf(&r.Run), OK, "it is the reference that the gates held others against (%s)", source)
			continue
		}
		a.judged(nameOf(&r.Run), mine, Warning)
	}
}

// refers reports whether a build is the reference of gates, and of which.
func (a *auditor) refers(mine build) (source string, is bool) {
	for i := range a.in.Gates {
		g := &a.in.Gates[i]
		if of := (build{g.Reference.Engine, g.Reference.Version, g.ReferenceWeights}); mine.known() && of == mine && g.build() != mine {
			return g.Source, true
		}
	}
	return "", false
}

// Concerns reports whether a run of gates has a say: it judged a build that has numbers here, as far as that can be told, or
// a file names it.
func (in *Input) Concerns(g *GateRun) bool {
	may := func(b build) bool { return b.known() && b == g.build() || mayBe(g.build(), b, false) }
	for _, r := range in.Runs {
		if r.Role != Supporting && may(buildsOf(&r.Run)[0]) {
			return true
		}
	}
	for _, d := range in.Documents {
		if d.cell != nil && may(d.cell.build()) || slices.Contains(d.Runs, g.Run) {
			return true
		}
		if d.Gates != nil && slices.ContainsFunc(d.Gates.Verdicts, func(v GateVerdict) bool { return v.Run == g.Run }) {
			return true
		}
	}
	return false
}

// judges are the runs of gates by what they judged: that very build, one that may be it, and others.
func (a *auditor) judges(mine build) (of, open, others []*GateRun) {
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
	return of, open, others
}

// failing says why a build is not qualified by its gates, "" when they passed or never judged it.
func (a *auditor) failing(mine build) string {
	of, _, _ := a.judges(mine)
	now, _, _ := standing(of)
	for _, k := range slices.SortedFunc(maps.Keys(now), caseOfGate.compare) {
		if status, why := now[k].stands(); status == exchange.VerdictFail {
			return strings.TrimSuffix(k.name()+" is fail: "+why, ": ")
		}
	}
	return ""
}

// judged asks it of one build. worst is the answer where nothing has judged it.
func (a *auditor) judged(object string, mine build, worst Status) {
	of, open, others := a.judges(mine)
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

// caseOfGate is one question that gates have answered, perhaps several times. One that was asked under another policy, or
// in other words, is another question.
type caseOfGate struct {
	gate, id, policy, question string
	nth                        int // of the verdicts of that gate on the case
}

// name is the question as people read it.
func (k caseOfGate) name() string {
	if k.policy == "" {
		return k.gate + " of " + k.id
	}
	return k.gate + " of " + k.id + " (" + k.policy + ")"
}

func (k caseOfGate) compare(o caseOfGate) int {
	return cmp.Or(strings.Compare(k.gate, o.gate), strings.Compare(k.id, o.id), strings.Compare(k.policy, o.policy), strings.Compare(k.question, o.question), cmp.Compare(k.nth, o.nth))
}

// latest tells what the newest verdicts of one build come to.
func (a *auditor) latest(object string, gs []*GateRun, best Status) {
	now, deferred, whole := standing(gs)
	a.verdicts(object, now, whole, best, sourcesOf(gs))
	a.rules(object, now)
	for _, d := range slices.Sorted(maps.Keys(deferred)) {
		a.add(AskFullContext, object, Warning, "%s is deferred: the full context was not asked for on this build; gate --suite full on it runs what is left", d)
	}
}

// standing are the newest verdicts of runs of gates, what they left for another time and none has made up for, and whether
// one of them came to its end. A case that was judged again has the newer verdict.
func standing(gs []*GateRun) (now map[caseOfGate]GateVerdict, deferred map[string]bool, whole bool) {
	gs = slices.Clone(gs)
	slices.SortStableFunc(gs, func(x, y *GateRun) int { return x.At.Compare(y.At) })
	now, deferred = map[caseOfGate]GateVerdict{}, map[string]bool{}
	told := map[exchange.ID]bool{} // runs whose report tells what was put off
	for _, g := range gs {
		told[g.Run] = told[g.Run] || g.Stated && len(g.Deferred) > 0
	}
	for _, g := range gs {
		whole = whole || g.Complete
		if g.Level == "full" && g.Complete && len(g.Deferred) == 0 {
			delete(deferred, longCases)
		}
		nth := map[caseOfGate]int{}
		for _, v := range g.Verdicts {
			k := caseOfGate{gate: v.Gate, id: v.Case, policy: v.Policy, question: v.Question}
			n := nth[k]
			nth[k]++
			k.nth = n
			now[k] = v
			delete(deferred, v.Case)
		}
		for _, d := range g.Deferred {
			if d != longCases || !told[g.Run] {
				deferred[d] = true
			}
		}
	}
	return now, deferred, whole
}

// verdicts tells whether all passed.
func (a *auditor) verdicts(object string, now map[caseOfGate]GateVerdict, whole bool, best Status, sources string) {
	passed, bad := 0, []string{}
	failed := false
	for _, k := range slices.SortedFunc(maps.Keys(now), caseOfGate.compare) {
		status, why := now[k].stands()
		if fine(status) {
			if status == exchange.VerdictOK {
				passed++
			}
			continue
		}
		failed = failed || status == exchange.VerdictFail
		bad = append(bad, strings.TrimSuffix(k.name()+" is "+string(status)+": "+why, ": "))
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
