package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func ref[T any](v T) *T { return &v }

// digestOf is a digest of weights.
func digestOf(name string) string { return exchange.DigestPrefix + strings.Repeat(name, 64/len(name)) }

// run is a complete run of one engine with a selftest, and of n answers at a decode rate. Changes change it before it is
// gathered.
type rig struct {
	run     exchange.Run
	role    Role
	decode  []float64
	prompt  float64
	drafts  float64 // acceptance; 0 = the answers tell of none
	window  float64 // drafted a step; 0 = not told
	problem string  // of the second record
}

func newRig(name string, role Role, decode ...float64) *rig {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := exchange.ID("01J0000000000000000000" + strings.ToUpper(fmt.Sprintf("%04x", len(name)*7+int(name[0]))))
	return &rig{role: role, decode: decode, prompt: 100, run: exchange.Run{ID: id, Name: name, Mode: "replay", State: exchange.RunComplete, Started: started,
		Counts:     exchange.RunCounts{Stored: int64(len(decode))},
		Instrument: &exchange.Instrument{ID: "01J00000000000000000000001", AgeS: ref(60.0), Host: exchange.Host{OS: "linux", Cores: 4}},
		Deployments: []exchange.Deployment{{Why: exchange.ReadAtStart, Identity: exchange.Identity{Engine: "llamacpp", Version: "b100"},
			WeightsDigest: ref(digestOf("a"))}},
		Replay: &exchange.Replay{Driver: "closed", Settings: exchange.ReplaySettings{Concurrency: 1}}}}
}

func (g *rig) with(change func(*rig)) *rig {
	change(g)
	return g
}

func measured(v float64) exchange.Figure {
	return exchange.Figure{Value: v, Basis: exchange.BasisMeasured}
}

func (g *rig) gathered() *Run {
	r := NewRun(g.run, g.role)
	for i, v := range g.decode {
		row := exchange.Summary{ID: exchange.ID(fmt.Sprintf("%s%03d", string(g.run.ID)[:23], i)), Run: g.run.ID, Dialect: "chat", Path: "/v1/chat/completions", Model: "m",
			Outcome: exchange.OutcomeComplete, Metrics: exchange.Figures{measure.DecodeTPS: measured(v), measure.PromptTokens: measured(g.prompt), measure.TTFTMS: measured(10)}}
		if g.drafts > 0 {
			row.Metrics[measure.DraftAcceptance] = measured(g.drafts)
		}
		if g.window > 0 {
			row.Metrics[measure.DraftWindow] = measured(g.window)
		}
		problem := ""
		if i == 1 {
			problem = g.problem
		}
		r.Add(&row, problem)
	}
	return r
}

// passed are gates that passed on the build of newRig.
func passed() GateRun {
	return GateRun{Source: "gates.json", Engine: exchange.Identity{Engine: "llamacpp", Version: "b100"}, Weights: digestOf("a"), Level: "quick",
		At: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Complete: true,
		Verdicts: []GateVerdict{{Gate: "near_tie", Version: 2, Case: "short-1", Status: exchange.VerdictOK}, {Gate: "vision", Version: 1, Case: "chart", Status: exchange.VerdictUnsupported}}}
}

func limits() Limits {
	return Limits{Bandwidth: 100e9, BytesPerToken: 1e9, Source: "the test", Stated: map[string]float64{}}
}

// answers are the checks of one name: status and detail.
func answers(r *Report, name string) (out []Check) {
	for _, c := range r.Checks {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// wants holds that a check of that name has the status and says a text, and that no other status of that name is worse.
func wants(t *testing.T, r *Report, name string, status Status, says string) {
	t.Helper()
	for _, c := range answers(r, name) {
		if c.Status == status && strings.Contains(c.Detail, says) {
			return
		}
	}
	t.Errorf("no %s %s that says %q among %+v", name, status, says, answers(r, name))
}
