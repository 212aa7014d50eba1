package audit

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// sound is an input that nothing speaks against: a baseline, an older build of it, and a candidate whose gates passed.
func sound() *Input {
	older := newRig("older", Alternative, 40, 40, 40).with(func(g *rig) { g.run.Deployments[0].Version = "b90" })
	return &Input{Runs: []*Run{newRig("base", Baseline, 50, 50, 50).gathered(), older.gathered(), newRig("candidate", Candidate, 60, 61, 62).gathered()},
		Gates: []GateRun{passed()}, Limits: limits()}
}

func TestSoundEvidencePasses(t *testing.T) {
	t.Parallel()
	r := Audit(sound(), "test")
	for _, c := range r.Checks {
		if c.Status != OK && c.Status != NotApplicable {
			t.Errorf("%s %s: %s: %s", c.Status, c.Name, c.Object, c.Detail)
		}
	}
	if err := r.Verdict(); err != nil || r.Word() != "PASS" {
		t.Errorf("%v %s", err, r.Word())
	}
	wants(t, r, AskBaseline, OK, "the fastest of 2 measured builds")
	wants(t, r, AskPlausible, OK, "61 tok/s is 61 % of the ceiling 100")
	wants(t, r, AskGates, OK, "2 verdicts on the measured build")
	wants(t, r, AskTraceable, OK, "3 exchanges")
	again, _ := json.Marshal(Audit(sound(), "test"))
	once, _ := json.Marshal(r)
	if diff := cmp.Diff(string(once), string(again)); diff != "" {
		t.Error(diff)
	}
	for _, c := range r.Claims {
		if len(c.Exchanges) != 3 || c.N != 3 {
			t.Errorf("claim %s of %s comes from %d exchanges", c.Metric, c.Name, len(c.Exchanges))
		}
	}
}

// TestEachDoubtIsTold changes one thing of sound evidence and wants one answer.
func TestEachDoubtIsTold(t *testing.T) {
	t.Parallel()
	candidate := func(change func(*rig)) func(*Input) {
		return func(in *Input) { in.Runs[2] = newRig("candidate", Candidate, 60, 61, 62).with(change).gathered() }
	}
	base := func(change func(*rig)) func(*Input) {
		return func(in *Input) { in.Runs[0] = newRig("base", Baseline, 50, 50, 50).with(change).gathered() }
	}
	verdict := func(change func(*GateRun)) func(*Input) { return func(in *Input) { change(&in.Gates[0]) } }
	for name, test := range map[string]struct {
		change func(*Input)
		check  string
		status Status
		says   string
	}{
		"incomplete":     {candidate(func(g *rig) { g.run.State = exchange.RunIncomplete; g.run.Counts.Dropped = 2 }), AskComplete, Failure, "2 exchanges dropped"},
		"lagged":         {candidate(func(g *rig) { g.run.Replay.Invalid = "it lagged" }), AskComplete, Failure, "it lagged"},
		"broken record":  {candidate(func(g *rig) { g.problem = "its blob is missing" }), AskTraceable, Failure, "1 record of 3 cannot be followed to its bytes: its blob is missing"},
		"lost records":   {candidate(func(g *rig) { g.run.Counts.Stored = 9 }), AskTraceable, Failure, "closed with 9 exchanges, and 3 are there"},
		"empty":          {candidate(func(g *rig) { g.decode, g.run.Counts.Stored = nil, 0 }), AskTraceable, Failure, "no number of the run has a source"},
		"two engines":    {candidate(secondEngine), AskIdentity, Failure, "2 engines answered"},
		"cpu":            {candidate(func(g *rig) { g.run.Deployments[0].CPUFallback = true }), AskIdentity, Failure, "runs on the CPU"},
		"unknown build":  {candidate(func(g *rig) { g.run.Deployments = nil }), AskIdentity, Warning, "of unknown build"},
		"no selftest":    {candidate(func(g *rig) { g.run.Instrument = nil }), AskInstrument, Warning, "no selftest"},
		"old selftest":   {candidate(func(g *rig) { g.run.Instrument.AgeS = ref(86400 * 90.0) }), AskInstrument, Warning, "90 days"},
		"two machines":   {candidate(func(g *rig) { g.run.Instrument.Host.Cores = 64 }), AskMachine, Warning, "2 machines"},
		"not drafting":   {candidate(func(g *rig) { g.run.Drafting = &exchange.Drafting{Method: "mtp"} }), AskSpeculation, Failure, "not speculating"},
		"not drafting 2": {candidate(func(g *rig) { g.run.Deployments[0].Drafting = ref(true) }), AskSpeculation, Failure, "not speculating"},
		"above":          {candidate(func(g *rig) { g.decode = []float64{98, 98, 98} }), AskPlausible, Failure, "98 % of the ceiling"},
		"one above":      {candidate(func(g *rig) { g.decode = []float64{60, 60, 260} }), AskPlausible, Warning, "1 sample is above it, up to 260"},
		"weak baseline":  {base(func(g *rig) { g.decode = []float64{20, 20, 20} }), AskPlausible, Warning, "the baseline may be set up wrongly"},
		"slow baseline":  {base(func(g *rig) { g.decode = []float64{35, 35, 35} }), AskBaseline, Failure, "faster: margins over this one are too large"},
		"no limits":      {func(in *Input) { in.Limits = Limits{} }, AskPlausible, Warning, "--bandwidth and --bytes-per-token"},
		"only build":     {func(in *Input) { in.Runs = append(in.Runs[:1], in.Runs[2:]...) }, AskBaseline, Warning, "no other build"},
		"no baseline":    {func(in *Input) { in.Runs[0].Role = Candidate }, AskBaseline, Warning, "no baseline among them"},
		"no gates":       {func(in *Input) { in.Gates = nil }, AskGates, Failure, "no gate has judged"},
		"other build":    {verdict(func(g *GateRun) { g.Engine.Version = "b99" }), AskGates, Failure, "run again on the build that is measured"},
		"other weights":  {verdict(func(g *GateRun) { g.Weights = digestOf("b") }), AskGates, Failure, "run again on the build that is measured"},
		"weights open":   {verdict(func(g *GateRun) { g.Weights = "" }), AskGates, Warning, "cannot be told"},
		"failed gate":    {verdict(func(g *GateRun) { g.Verdicts[0].Status = exchange.VerdictFail }), AskGates, Failure, "near_tie of short-1 is fail"},
		"open gate":      {verdict(func(g *GateRun) { g.Verdicts[0].Status = exchange.VerdictIncomparable }), AskGates, Warning, "say nothing"},
		"nothing passed": {verdict(func(g *GateRun) { g.Verdicts = nil }), AskGates, Failure, "none of them passed"},
		"cut suite":      {verdict(func(g *GateRun) { g.Complete = false }), AskGates, Warning, "did not come to its end"},
		"deferred":       {verdict(func(g *GateRun) { g.Deferred = []string{"needle_full"} }), AskFullContext, Warning, "needle_full is deferred"},
		"older rule":     {func(in *Input) { in.GateRules = map[string]int{"near_tie": 3} }, AskGates, Warning, "verdicts of near_tie are by an older rule"},
		"unnamed":        {verdict(func(g *GateRun) { g.Engine, g.Weights = exchange.Identity{}, "" }), AskGates, Failure, "run again on the build that is measured"},
		"forged verdict": {stated(exchange.VerdictFail), AskTraceable, Failure, "near_tie of short-1 is ok in the file and fail in the record"},
		"forged, judged": {stated(exchange.VerdictFail), AskGates, Failure, "near_tie of short-1 is fail"},
		"unkept verdict": {func(in *Input) { stated(exchange.VerdictOK)(in); in.Gates = in.Gates[:1] }, AskTraceable, Failure, "2 verdicts are on record in no run"},
		"another policy": {func(in *Input) { // judged later, and passed under it
			in.Gates[0].Verdicts[0].Status = exchange.VerdictFail
			later := passed()
			later.At, later.Verdicts[0].Policy = later.At.AddDate(0, 0, 1), "serial_tool_workflows"
			in.Gates = append(in.Gates, later)
		}, AskGates, Failure, "near_tie of short-1 is fail"},
		"failed case": {candidate(func(g *rig) {
			g.run.Replay.Cases = []exchange.PlannedCase{{Case: exchange.Case{ID: "c"}, Status: exchange.VerdictFail, Reason: "bad"}}
		}), AskCases, Failure, "c is fail: bad"},
		"open case": {candidate(func(g *rig) { g.run.Replay.Cases = []exchange.PlannedCase{{Case: exchange.Case{ID: "c"}}} }), AskCases, Warning, "c is not ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := sound()
			test.change(in)
			r := Audit(in, "test")
			wants(t, r, test.check, test.status, test.says)
			if err := r.Verdict(); !errors.Is(err, exchange.ErrGate) {
				t.Errorf("verdict %v", err)
			}
		})
	}
}

// stated makes the gates of an input those of a file, and the record of their run say something else of the first one.
func stated(kept exchange.VerdictStatus) func(*Input) {
	return func(in *Input) {
		run := exchange.ID("01J00000000000000000000009")
		record := passed()
		record.Run, record.Source = run, "the run"
		for i := range record.Verdicts {
			record.Verdicts[i].Run = run
		}
		record.Verdicts[0].Status = kept
		file := in.Gates[0]
		file.Stated, file.Run, file.Verdicts = true, run, append([]GateVerdict{}, file.Verdicts...)
		for i := range file.Verdicts {
			file.Verdicts[i].Run = run
		}
		in.Gates = []GateRun{file, record}
	}
}

// TestStatedGatesAreTold holds that what a file says of gates is told without any number, and that one that the record bears
// out passes.
func TestStatedGatesAreTold(t *testing.T) {
	t.Parallel()
	in := sound()
	stated(exchange.VerdictOK)(in)
	in.Documents = []*Document{{Source: "gates.json", Kind: KindGates}}
	if r := Audit(in, "test"); r.Verdict() != nil {
		t.Errorf("%+v", r.Checks)
	}
	in.Runs = nil
	wants(t, Audit(in, "test"), AskGates, OK, "2 verdicts on the measured build")
	in.Gates[0].Deferred = []string{"needle_full"}
	wants(t, Audit(in, "test"), AskFullContext, Warning, "needle_full is deferred")
	in.Gates[0].Verdicts[0].Status, in.Gates[1].Verdicts[0].Status = exchange.VerdictFail, exchange.VerdictFail
	wants(t, Audit(in, "test"), AskGates, Failure, "near_tie of short-1 is fail")
	if in.Gates[0].Verdicts[1].Status != exchange.VerdictUnsupported || in.Gates[0].Verdicts[0].Status != exchange.VerdictFail {
		t.Error("an audit changes what it is given")
	}
}

func secondEngine(g *rig) {
	second := g.run.Deployments[0]
	second.Version = "b101"
	g.run.Deployments = append(g.run.Deployments, second)
}

func TestNothingToAudit(t *testing.T) {
	t.Parallel()
	r := Audit(&Input{}, "test")
	wants(t, r, AskEvidence, Failure, "nothing to audit")
}

// TestLaterVerdictsCount holds that a case that was judged again has its newer verdict, whichever came to us first.
func TestLaterVerdictsCount(t *testing.T) {
	t.Parallel()
	in := sound()
	later := passed()
	later.At = later.At.AddDate(0, 0, 1)
	later.Verdicts = []GateVerdict{{Gate: "near_tie", Version: 2, Case: "short-1", Status: exchange.VerdictFail, Reason: "gap 3"}}
	in.Gates = []GateRun{later, in.Gates[0]}
	wants(t, Audit(in, "test"), AskGates, Failure, "gap 3")

	in = sound()
	in.Gates[0].Verdicts[0].Status = exchange.VerdictFail
	in.Gates[0].Deferred = []string{"needle_full"}
	again := passed()
	again.At = again.At.AddDate(0, 0, 1)
	again.Verdicts = append(again.Verdicts, GateVerdict{Gate: "needle", Case: "needle_full", Status: exchange.VerdictOK})
	in.Gates = append(in.Gates, again)
	if r := Audit(in, "test"); r.Verdict() != nil {
		t.Errorf("%+v", answers(r, AskGates))
	}
}

// TestCeilingsOfDraftingRuns holds the factor, the order in which an acceptance is looked for, and that without one there
// is no ceiling.
func TestCeilingsOfDraftingRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*rig)
		limits  func(*Limits)
		ceiling float64 // 0 = none
		why     exchange.Reason
		of      string
	}{
		"no drafts":       {func(*rig) {}, nil, 100, "", ""},
		"both told":       {func(g *rig) { g.drafts, g.window = 0.5, 4 }, nil, 300, "", "these requests"},
		"stated depth":    {func(g *rig) { g.drafts = 0.5 }, func(l *Limits) { l.DraftDepth = 2 }, 200, "", "these requests"},
		"no depth":        {func(g *rig) { g.drafts = 0.5 }, nil, 0, ReasonNoDepth, ""},
		"no acceptance":   {func(g *rig) { g.run.Deployments[0].Drafting = ref(true) }, func(l *Limits) { l.DraftDepth = 2 }, 0, ReasonNoAcceptance, ""},
		"stated":          {func(g *rig) { g.drafts, g.window = 0.5, 4 }, func(l *Limits) { l.Stated[measure.DecodeTPS] = 80 }, 240, "", "these requests"},
		"stated of shape": {func(*rig) {}, func(l *Limits) { l.Stated[measure.DecodeTPS], l.Stated["decode_tps@128"] = 80, 70 }, 70, "", ""},
		"of the file":     {func(g *rig) { g.run.Deployments[0].Weights = &exchange.Weights{Name: "m.gguf", Bytes: 2e9} }, func(l *Limits) { l.BytesPerToken = 0 }, 50, "", ""},
		"nothing":         {func(*rig) {}, func(l *Limits) { l.Bandwidth = 0 }, 0, ReasonNoLimit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &Input{Runs: []*Run{newRig("candidate", Candidate, 40, 40, 40).with(test.change).gathered()}, Gates: []GateRun{passed()}, Limits: limits()}
			if test.limits != nil {
				test.limits(&in.Limits)
			}
			for _, c := range Audit(in, "test").Claims {
				switch {
				case c.Metric == measure.TTFTMS && c.NoCeiling != ReasonNoBound:
					t.Errorf("ttft has a ceiling: %+v", c.Ceiling)
				case c.Metric != measure.DecodeTPS:
				case c.NoCeiling != test.why || (c.Ceiling == nil) != (test.ceiling == 0):
					t.Errorf("%+v %s", c.Ceiling, c.NoCeiling)
				case c.Ceiling != nil && (c.Ceiling.Value != test.ceiling || c.Ceiling.Of != test.of):
					t.Errorf("%+v, want %g", c.Ceiling, test.ceiling)
				}
			}
		})
	}
}

// TestAcceptanceOfOtherRequests is the fallback, which says so.
func TestAcceptanceOfOtherRequests(t *testing.T) {
	t.Parallel()
	r := newRig("candidate", Candidate, 40, 40).with(func(g *rig) { g.drafts, g.window = 0.5, 4 }).gathered()
	long := newRig("candidate", Candidate, 40, 40, 40).with(func(g *rig) { g.prompt = 5000 }).gathered()
	for s, n := range long.shapes {
		r.shapes[s] = n
	}
	in := &Input{Runs: []*Run{r}, Limits: limits()}
	found := false
	for _, c := range Audit(in, "test").Claims {
		if c.Metric == measure.DecodeTPS && c.Ceiling != nil && c.Ceiling.Of != "these requests" {
			found = true
			if c.Ceiling.Value != 300 {
				t.Errorf("%+v", c.Ceiling)
			}
		}
	}
	if !found {
		t.Error("no ceiling rests on the acceptance of other requests")
	}
}

// TestAssumedCeilingOnlyWarns: where all bytes of the file are only assumed to be read, a number above is no proof.
func TestAssumedCeilingOnlyWarns(t *testing.T) {
	t.Parallel()
	in := sound()
	in.Limits.BytesPerToken = 0
	in.Runs[2] = newRig("candidate", Candidate, 60, 61, 62).with(func(g *rig) { g.run.Deployments[0].Weights = &exchange.Weights{Name: "m.gguf", Bytes: 2e9} }).gathered()
	r := Audit(in, "test")
	wants(t, r, AskPlausible, Warning, "state --bytes-per-token")
	for _, c := range answers(r, AskPlausible) {
		if c.Status == Failure {
			t.Errorf("%+v", c)
		}
	}
}
