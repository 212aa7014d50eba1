package audit

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestPartings holds what of two forms of a file is a difference, and what is none.
func TestPartings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ told, made, says string }{
		"same":               {`{"a":[1,{"b":"x"}],"c":true}`, `{"c":true,"a":[1,{"b":"x"}]}`, ""},
		"nothing":            {`{"a":null}`, `{"b":[],"c":"","d":{},"e":false}`, ""},
		"one decimal":        {`{"v":41.2}`, `{"v":41.2340000001}`, ""},
		"no decimal":         {`{"v":41}`, `{"v":41.23}`, "v is 41 in the file, and the record gives 41.23"},
		"other decimal":      {`{"v":41.3}`, `{"v":41.234}`, "v is 41.3 in the file, and the record gives 41.234"},
		"written otherwise":  {`{"v":1e3,"w":0.1}`, `{"v":1000,"w":1.0e-1}`, ""},
		"exponent":           {`{"v":1.2e3}`, `{"v":1203}`, "v is 1.2e3"},
		"zero for nothing":   {`{"v":0}`, `{"v":null}`, "v is 0 in the file, and the record gives nothing"},
		"nothing for zero":   {`{}`, `{"v":0}`, "v is nothing in the file, and the record gives 0"},
		"number as text":     {`{"v":"1"}`, `{"v":1}`, `v is "1" in the file, and the record gives 1`},
		"word":               {`{"a":[{"status":"ok"}]}`, `{"a":[{"status":"fail"}]}`, `a[0].status is "ok" in the file, and the record gives "fail"`},
		"switch":             {`{"v":true}`, `{}`, "v is true in the file, and the record gives nothing"},
		"left out":           {`{"a":[1]}`, `{"a":[1,2]}`, "a[1] is nothing in the file, and the record gives 2"},
		"added":              {`{"a":[1,""]}`, `{"a":[1]}`, `a[1] is "" in the file, and the record gives nothing`},
		"object for a list":  {`{"a":{}}`, `{"a":[1]}`, "a is {} in the file"},
		"stated":             {`{"h":"1","a":[{"s":3}]}`, `{"h":"2","a":[{"s":4}]}`, ""},
		"stated and another": {`{"h":"1","a":[{"s":3,"t":1}]}`, `{"h":"2","a":[{"s":4,"t":2}]}`, "a[0].t is 1"},
		"detail grows":       {`{"detail":{"a":1}}`, `{"detail":{"a":1,"b":2}}`, ""},
		"detail shrinks":     {`{"detail":{"a":1,"b":2}}`, `{"detail":{"a":1}}`, "detail.b is 2"},
		"no JSON any more":   {`{"a":1}`, `{`, "unexpected EOF"},
	} {
		d := &Document{Source: "f.json", Kind: KindValidation, Raw: []byte(test.told), states: 1, Runs: []exchange.ID{idA},
			Remade: &Remade{JSON: []byte(test.made), Stated: []string{"h", "a.*.s"}}}
		r := Audit(&Input{Documents: []*Document{d}, Runs: []*Run{newRig("r", Supporting, 1).gathered()}}, "test")
		told := ""
		for _, c := range r.Checks {
			if c.Object == "f.json" && c.Status == Failure && c.Name != AskTraceable {
				told = c.Detail
			}
		}
		if test.says == "" && told != "" || !strings.Contains(told, test.says) {
			t.Errorf("%s: %q, want %q", name, told, test.says)
		}
	}
}

// TestFilesThatCannotBeMadeAgain holds that what nobody measured again is no pass.
func TestFilesThatCannotBeMadeAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		remade *Remade
		name   string
		status Status
		says   string
	}{
		"nobody did":    {nil, AskComparison, Warning, "was not measured and judged again"},
		"cannot":        {&Remade{Why: "no such run"}, AskTraceable, Failure, "cannot be measured and judged again: no such run"},
		"somebody else": {&Remade{Why: "its command", Open: true}, AskTraceable, Warning, "its command"},
		"older":         {&Remade{JSON: []byte(`{"new":3}`), Older: true}, AskComparison, OK, "all 0 numbers"},
		"hides":         {&Remade{JSON: []byte(`{"new":3}`)}, AskComparison, Failure, "new is nothing in the file"},
	} {
		d := &Document{Source: "f.json", Kind: KindCaptured, Raw: []byte(`{}`), states: 1, Remade: test.remade}
		t.Run(name, func(t *testing.T) {
			wants(t, Audit(&Input{Documents: []*Document{d}}, "test"), test.name, test.status, test.says)
		})
	}
}

// TestVerdictsAreJudgedAgain holds what a run of gates says against what its evidence comes to today.
func TestVerdictsAreJudgedAgain(t *testing.T) {
	t.Parallel()
	again := func(status exchange.VerdictStatus, verdicts ...exchange.Verdict) *CaseAgain {
		return &CaseAgain{Case: "short-1", Question: "q", Status: status, Reason: "golden 1 is gone", Verdicts: verdicts}
	}
	in := sound()
	in.Gates[0].JudgedAgain(again(exchange.VerdictNotRun))
	wants(t, Audit(in, "test"), AskGates, Failure, "near_tie of short-1 is fail: it was ok, and is not_run when it is judged again: golden 1 is gone")
	in = sound()
	in.Gates[0].JudgedAgain(again(exchange.VerdictOK, exchange.Verdict{Gate: "near_tie", Status: exchange.VerdictFail, Reason: "gap 3"}))
	wants(t, Audit(in, "test"), AskGates, Failure, "is fail when it is judged again: gap 3")
	in = sound()
	in.Gates[0].Verdicts[0].Status, in.Gates[0].Verdicts[0].Reason = exchange.VerdictFail, "then"
	in.Gates[0].JudgedAgain(again(exchange.VerdictOK, exchange.Verdict{Gate: "near_tie", Status: exchange.VerdictOK}))
	wants(t, Audit(in, "test"), AskGates, Failure, "near_tie of short-1 is fail: then")

	in = sound() // the same tag, asked in other words, is another question
	in.Gates[0].Verdicts[0].Status, in.Gates[0].Verdicts[0].Question = exchange.VerdictFail, "q1"
	later := passed()
	later.At, later.Verdicts[0].Question = later.At.AddDate(0, 0, 1), "q2"
	in.Gates = append(in.Gates, later)
	wants(t, Audit(in, "test"), AskGates, Failure, "near_tie of short-1 is fail")
}

// TestStoppedConversationsFail holds that a conversation that stopped has failed, though every check of its turns passed.
func TestStoppedConversationsFail(t *testing.T) {
	t.Parallel()
	run := newRig("suite", Candidate).run
	run.Replay.Source, run.MadeBy = "gates, level full", []string{"gate", "--suite", "full", "--defer-long"}
	run.Replay.Reference = &exchange.ReferenceEngine{Weights: "w", Identity: exchange.Identity{Engine: "e", Version: "1"}}
	run.Replay.Cases = []exchange.PlannedCase{{Case: exchange.Case{ID: "a", Scenario: "agentic"}, Status: exchange.VerdictFail, Reason: "turn 2/3 was not answered",
		Verdicts: []exchange.CaseVerdict{{Gate: "usage_present", Version: 1, Status: exchange.VerdictOK}}}}
	g, _ := GatesOfRun(&run)
	if g.Level != "full" || g.Reference.Engine != "e" || g.ReferenceWeights != "w" {
		t.Errorf("%+v", g)
	}
	in := sound()
	in.Gates = []GateRun{g}
	r := Audit(in, "test")
	wants(t, r, AskGates, Failure, "conversation of a is fail: turn 2/3 was not answered")
	wants(t, r, AskFullContext, Warning, "what is long is deferred")
}

// TestBaselinesAreQualifiedByGates holds that the fastest build is one whose gates did not fail, and that the baseline is
// asked for its own.
func TestBaselinesAreQualifiedByGates(t *testing.T) {
	t.Parallel()
	in := sound()
	in.Runs[0] = newRig("base", Baseline, 35, 35, 35).gathered() // the older build is faster
	older := passed()
	older.Engine.Version, older.Verdicts[0].Status = "b90", exchange.VerdictFail
	in.Gates = append(in.Gates, older)
	r := Audit(in, "test")
	wants(t, r, AskBaseline, NotApplicable, "is no other baseline: its gates did not pass: near_tie of short-1 is fail")
	for _, c := range answers(r, AskBaseline) {
		if c.Status == Failure {
			t.Errorf("%+v", c)
		}
	}
	in = sound()
	in.Runs[0] = newRig("base", Baseline, 50, 50, 50).with(func(g *rig) { g.run.Deployments[0].Version = "b80" }).gathered()
	wants(t, Audit(in, "test"), AskGates, Warning, "the measured build is llamacpp b80")
	in.Gates[0].Reference, in.Gates[0].ReferenceWeights = exchange.Identity{Engine: "llamacpp", Version: "b80"}, digestOf("a")
	wants(t, Audit(in, "test"), AskGates, OK, "it is the reference that the gates held others against")
}

// TestCapturedRevalidations reads what comes of the answers that another tool captured.
func TestCapturedRevalidations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		name   string
		status Status
		says   string
	}{
		`"recorded_cases":4,"passed":3,"failed":1,"complete":true`:  {AskGates, Failure, "1 of 4 captured cases"},
		`"recorded_cases":4,"passed":4,"failed":0,"complete":false`: {AskComplete, Failure, "not whole"},
		`"recorded_cases":0,"passed":0,"failed":0,"complete":true`:  {AskGates, Warning, "nothing was judged"},
	} {
		d := read(t, `{"mode":"captured_response_revalidation","source_report":"r.json","source_report_sha256":"ab",`+text+`}`)
		if d.Kind != KindCaptured || d.Captured != (CapturedSource{"r.json", "ab"}) {
			t.Errorf("%+v", d)
		}
		wants(t, Audit(&Input{Documents: []*Document{d}}, "test"), want.name, want.status, want.says)
	}
	if _, err := Read("f.json", []byte(`{"mode":"captured_response_revalidation","passed":"x"}`)); err == nil {
		t.Error("a count that is none is read")
	}
}

// TestConcerns says which runs of gates are to be judged again.
func TestConcerns(t *testing.T) {
	t.Parallel()
	g, in := passed(), sound()
	if !in.Concerns(&g) {
		t.Error("gates of the measured build have no say")
	}
	g.Engine.Version, g.Run = "b70", idB
	if in.Concerns(&g) {
		t.Error("gates of another build have a say")
	}
	in.Documents = []*Document{{Gates: &GateRun{Verdicts: []GateVerdict{{Run: idB}}}}}
	if !in.Concerns(&g) {
		t.Error("gates that a file names have no say")
	}
}
