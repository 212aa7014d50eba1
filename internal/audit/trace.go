package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// trace asks whether the run is whole and every record of it is evidence.
func (a *auditor) trace(r *Run) {
	object := nameOf(&r.Run)
	var lacks []string
	if r.State != exchange.RunComplete {
		lacks = append(lacks, "the run is "+string(r.State))
	}
	if n := r.Counts.Dropped; n > 0 {
		lacks = append(lacks, count(int(n), "exchange")+" dropped")
	}
	if p := r.Replay; p != nil {
		for _, why := range []string{p.Incomplete, p.Invalid} {
			if why != "" {
				lacks = append(lacks, why)
			}
		}
	}
	if len(lacks) > 0 {
		a.add(AskComplete, object, Failure, "%s", strings.Join(lacks, "; "))
	} else {
		a.add(AskComplete, object, OK, "every exchange ended and was kept")
	}
	a.traceable(r, object)
	a.cases(r, object)
}

// traceable asks whether every record of the run can be followed.
func (a *auditor) traceable(r *Run, object string) {
	var ids []exchange.ID
	for _, b := range r.broken {
		ids = append(ids, b.id)
	}
	switch {
	case len(r.broken) > 0:
		c := a.add(AskTraceable, object, Failure, "%s of %d cannot be followed to its bytes: %s", count(len(r.broken), "record"), r.rows, r.broken[0].why)
		c.Exchanges = first(ids)
	case r.State != exchange.RunOpen && r.Counts.Stored != int64(r.rows):
		a.add(AskTraceable, object, Failure, "the run was closed with %d exchanges, and %d are there", r.Counts.Stored, r.rows)
	case r.rows == 0:
		a.add(AskTraceable, object, Failure, "no exchange is on record, so that no number of the run has a source")
	case len(r.shapes) == 0:
		a.add(AskTraceable, object, Warning, "%s on record, none of them a measured request for an answer: the run has no numbers", count(r.rows, "exchange"))
	default:
		a.add(AskTraceable, object, OK, "every number comes from %s, each whole and derived again from its bytes", count(r.rows, "exchange"))
	}
}

// cases asks whether the cases that the run keeps passed.
func (a *auditor) cases(r *Run, object string) {
	if r.Replay == nil || len(r.Replay.Cases) == 0 {
		return
	}
	passed, why, failed := 0, "", false
	for i := range r.Replay.Cases {
		c := &r.Replay.Cases[i]
		if fine(c.Status) {
			passed++
			continue
		}
		failed = failed || c.Status == exchange.VerdictFail
		if why == "" {
			why = fmt.Sprintf("%s is %s: %s", c.ID, orWord(string(c.Status), "not ended"), c.Reason)
		}
	}
	status := OK
	switch {
	case failed:
		status = Failure
	case why != "":
		status = Warning
	}
	text := fmt.Sprintf("%d of %d cases passed when they were sent", passed, len(r.Replay.Cases))
	if why != "" {
		text += "; " + why
	}
	a.add(AskCases, object, status, "%s", text)
}

// fine are verdicts that speak against nothing.
func fine(s exchange.VerdictStatus) bool {
	return s == exchange.VerdictOK || s == exchange.VerdictSkipped || s == exchange.VerdictUnsupported
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// build is what answered, as far as numbers and verdicts depend on it.
type build struct {
	engine, version, weights string // "" = not known
}

func (b build) String() string {
	return fmt.Sprintf("%s %s with weights %s", orWord(b.engine, "an engine"), orWord(b.version, "of unknown build"), orWord(b.weights, "unknown"))
}

// known reports whether two such builds can be told to be the same.
func (b build) known() bool { return b.engine != "" && b.version != "" && b.weights != "" }

// buildsOf are those that answered in a run, in the order in which they were read. One of which an account of another
// moment knows less is the same one.
func buildsOf(run *exchange.Run) (out []build) {
	for i := range run.Deployments {
		d := &run.Deployments[i]
		b := build{engine: d.Engine, version: d.Version}
		switch {
		case d.WeightsDigest != nil:
			b.weights = *d.WeightsDigest
		case d.Weights != nil:
			b.weights = d.Weights.Digest
		}
		j := slices.IndexFunc(out, func(o build) bool {
			return agree(o.engine, b.engine) && agree(o.version, b.version) && agree(o.weights, b.weights)
		})
		if j < 0 {
			out = append(out, b)
			continue
		}
		for _, f := range [...][2]*string{{&out[j].engine, &b.engine}, {&out[j].version, &b.version}, {&out[j].weights, &b.weights}} {
			if *f[0] == "" {
				*f[0] = *f[1]
			}
		}
	}
	if len(out) == 0 {
		out = []build{{engine: run.Identity.Engine, version: run.Identity.Version}}
	}
	return out
}

// agree reports whether nothing speaks against two values being the same.
func agree(a, b string) bool { return a == "" || b == "" || a == b }

// identity asks what answered.
func (a *auditor) identity(r *Run) {
	object := nameOf(&r.Run)
	builds := buildsOf(&r.Run)
	fallback := slices.ContainsFunc(r.Deployments, func(d exchange.Deployment) bool { return d.CPUFallback })
	switch b := builds[0]; {
	case fallback:
		a.add(AskIdentity, object, Failure, "a GPU was asked for and the engine says that it runs on the CPU")
	case len(builds) > 1:
		var texts []string
		for _, b := range builds {
			texts = append(texts, b.String())
		}
		a.add(AskIdentity, object, Failure, "%d engines answered in one run, and its numbers are of all of them: %s", len(builds), strings.Join(texts, "; "))
	case !b.known():
		a.add(AskIdentity, object, Warning, "%s: what is not known cannot be told to be the same anywhere else", b)
	default:
		a.add(AskIdentity, object, OK, "%s", b)
	}
}

// staleSelftest is from which age on a selftest says little about the machine of today, in seconds.
const staleSelftest = 30 * 24 * 3600

// instrument asks what is known of the measuring machine.
func (a *auditor) instrument(r *Run) {
	object := nameOf(&r.Run)
	switch in := r.Instrument; {
	case in == nil:
		a.add(AskInstrument, object, Warning, "no selftest is on record, so that the error of the measuring machine is not known: run benchproxy selftest before the next run")
	case in.AgeS != nil && *in.AgeS > staleSelftest:
		a.add(AskInstrument, object, Warning, "the selftest was %.0f days old when the run began", *in.AgeS/(24*3600))
	default:
		a.add(AskInstrument, object, OK, "selftest %s of %s", in.ID, in.Host.Fingerprint())
	}
}

// machines asks whether one machine measured all runs.
func (a *auditor) machines() {
	seen := map[string]string{} // fingerprint -> first run
	for _, r := range a.in.Runs {
		if r.Instrument != nil {
			if print := r.Instrument.Host.Fingerprint(); seen[print] == "" {
				seen[print] = nameOf(&r.Run)
			}
		}
	}
	if len(seen) > 1 {
		a.add(AskMachine, "", Warning, "%d machines, or states of one, measured these runs: part of every ratio between them is theirs", len(seen))
	}
}

// speculates reports whether the run is to draft, by the word of its user or of its engine.
func speculates(r *Run) bool {
	return r.Drafting != nil || slices.ContainsFunc(r.Deployments, func(d exchange.Deployment) bool { return d.Drafting != nil && *d.Drafting })
}

// speculation asks whether an engine that is to draft does. It reports whether drafts were seen.
func (a *auditor) speculation(r *Run) bool {
	object := nameOf(&r.Run)
	seen := len(r.drafts.acceptance) > 0
	switch {
	case seen:
		a.add(AskSpeculation, object, OK, "drafts in %s, %.0f %% of the drafted tokens accepted", count(len(r.drafts.acceptance), "answer"), 100*median(r.drafts.acceptance))
	case speculates(r):
		a.add(AskSpeculation, object, Failure, "not speculating: the run is to draft, and no answer tells of a drafted token; a ratio of drafting on to off says nothing")
	default:
		a.add(AskSpeculation, object, NotApplicable, "nothing drafts")
	}
	return seen
}
