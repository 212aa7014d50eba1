package audit

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// ranked are the rates by which the builds of a baseline are told apart.
var ranked = [...]string{measure.DecodeTPS, measure.PrefillTPS}

// slower is by which share another build may be faster and still be called as fast: rates vary by as much from run to run.
const slower = 0.03

// baselines asks of each baseline whether a faster build of the same engine was there to be taken.
func (a *auditor) baselines() {
	var baselines, candidates int
	for _, r := range a.in.Runs {
		switch r.Role {
		case Baseline:
			baselines++
		case Candidate:
			candidates++
		}
	}
	switch {
	case baselines == 0 && candidates < 2:
		a.add(AskBaseline, "", NotApplicable, "one run alone claims no margin")
		return
	case baselines == 0:
		a.add(AskBaseline, "", Warning, "several runs and no baseline among them: --baseline RUN names the one that margins are of")
		return
	}
	for _, r := range a.in.Runs {
		if r.Role == Baseline {
			a.fastest(r)
		}
	}
}

// fastest asks whether a baseline is the fastest qualified build.
func (a *auditor) fastest(base *Run) {
	object := nameOf(&base.Run)
	mine := buildsOf(&base.Run)[0]
	others, compared := 0, 0
	for _, r := range a.in.Runs {
		if r.Role != Alternative || mine.engine == "" {
			continue
		}
		others++
		why := unqualified(base, r)
		if failing := a.failing(buildsOf(&r.Run)[0]); why == "" && failing != "" {
			why = "its gates did not pass: " + failing
		}
		if why != "" {
			a.add(AskBaseline, object, NotApplicable, "run %s is no other baseline: %s", nameOf(&r.Run), why)
			continue
		}
		for _, metric := range ranked {
			for _, shape := range base.ordered() {
				b, _, ok := base.claimOf(shape, metric)
				if !ok || r.shapes[shape] == nil {
					continue
				}
				o, _, ok := r.claimOf(shape, metric)
				if !ok {
					continue
				}
				compared++
				if o.Value > (1+slower)*b.Value {
					a.add(AskBaseline, object, Failure, "%s %s: %.4g %s here and %.4g by %s in run %s, which is faster: margins over this one are too large",
						metric, shape, b.Value, b.Unit, o.Value, buildsOf(&r.Run)[0], nameOf(&r.Run)).Exchanges = first(append(b.Exchanges, o.Exchanges...))
				}
			}
		}
	}
	switch {
	case mine.engine == "":
		a.add(AskBaseline, object, Warning, "which engine it is was not found out, so that no other build can be held against it")
	case compared == 0 && others == 0:
		a.add(AskBaseline, object, Warning, "no other build of %s was measured: nothing shows that this is the fastest", mine.engine)
	case compared == 0:
		a.add(AskBaseline, object, Warning, "no other build of %s answered the same requests: nothing shows that this is the fastest", mine.engine)
	case !a.failed(AskBaseline, object):
		a.add(AskBaseline, object, OK, "the fastest of %d measured builds of %s, over %s", others+1, mine.engine, count(compared, "rate"))
	}
}

// unqualified says why a run cannot be the baseline, "" when it can.
func unqualified(base, r *Run) string {
	mine, other := buildsOf(&base.Run), buildsOf(&r.Run)
	switch {
	case other[0].engine != mine[0].engine:
		return fmt.Sprintf("its engine is %s", orWord(other[0].engine, "not known"))
	case len(other) > 1:
		return "several engines answered in it"
	case r.State != exchange.RunComplete || len(r.broken) > 0:
		return "it is not whole"
	case !agree(mine[0].weights, other[0].weights):
		return fmt.Sprintf("its weights are %s", other[0].weights)
	}
	for i := range r.Deployments {
		if r.Deployments[i].CPUFallback {
			return "it fell back to the CPU"
		}
	}
	return ""
}

func (a *auditor) failed(name, object string) bool {
	for _, c := range a.report.Checks {
		if c.Name == name && c.Object == object && c.Status == Failure {
			return true
		}
	}
	return false
}
