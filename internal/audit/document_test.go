package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

const (
	idA = exchange.ID("01J0000000000000000000000A")
	idB = exchange.ID("01J0000000000000000000000B")
)

func read(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Read("file.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFilesAreToldApart(t *testing.T) {
	t.Parallel()
	report, _ := json.Marshal(compare.Report{})
	own, _ := json.Marshal(Audit(&Input{}, "test"))
	for name, test := range map[string]struct{ kind, text string }{
		"comparison":   {KindComparison, string(report)},
		"audit":        {KindAudit, string(own)},
		"gates":        {KindGates, `{"schema":1,"level":"dev","verdicts":[]}`},
		"revalidation": {KindRevalidation, `{"cases":[],"schema":1,"mode":"revalidation","source":{"run":"x"},"incomplete":""}`},
		"validation":   {KindValidation, `{"format_version":1,"execution_plan":{},"engine":"sim","cases":[],"run_complete":true}`},
		"cell":         {KindCell, `{"engine":"e","backend":"b","model":"m","scenario":"s","status":"ok"}`},
		"report":       {KindReport, `{"schema":1,"title":"t","summary":[],"facts":[],"sections":[]}`},
		"limits":       {KindLimits, `{"memory_bandwidth_gb_s":1008}`},
		"other":        {KindUnknown, `{"a":1}`},
		"list":         {KindUnknown, `[1,2]`},
		"broken":       {KindUnknown, `{"level":`},
		"empty":        {KindUnknown, ``},
	} {
		if d := read(t, test.text); d.Kind != test.kind {
			t.Errorf("%s is taken for %s", name, d.Kind)
		}
	}
	for _, text := range []string{`{"level":"dev","verdicts":5}`, `{"mode":"revalidation","judged":"x"}`, `{"execution_plan":{},"cases":{}}`,
		`{"engine":"e","backend":"b","scenario":"s","status":7}`, `{"sections":[],"facts":3}`, `{"pairing":{},"reference":4}`,
		`{"ceilings":{"decode_tps":0}}`, `{"ceilings":{"speed":3}}`, `{"memory_bandwidth_gb_s":-1}`} {
		if d, err := Read("file.json", []byte(text)); err == nil || !strings.Contains(err.Error(), "file.json") {
			t.Errorf("%s: %v %v", text, d, err)
		}
	}
}

// TestWhatFilesState holds what is asked of files, each with the exchanges that are on record.
func TestWhatFilesState(t *testing.T) {
	t.Parallel()
	row := func(decode float64) *exchange.Summary {
		return &exchange.Summary{ID: idA, Metrics: exchange.Figures{measure.DecodeTPS: measured(decode), measure.PrefillTPS: exchange.Absent("tok/s", "cached")}}
	}
	cell := func(more string) string {
		return `{"engine":"e","backend":"b","model":"m","scenario":"s","concurrency":1,"turns":1,` + more + `}`
	}
	for name, test := range map[string]struct {
		text   string
		rows   map[exchange.ID]*exchange.Summary
		check  string
		status Status
		says   string
	}{
		"cell":              {cell(`"status":"ok","decode_tps":41.2,"exchanges":["` + string(idA) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41.22)}, AskTraceable, OK, "1 exchange"},
		"cell other":        {cell(`"status":"ok","decode_tps":51.2,"exchanges":["` + string(idA) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41.22)}, AskComparison, Failure, "decode_tps is 51.2 in the file, and the record gives 41.22"},
		"cell absent":       {cell(`"status":"ok","prefill_tps":51.2,"exchanges":["` + string(idA) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41.22)}, AskComparison, Failure, "the record gives none"},
		"cell of the seeds": {cell(`"status":"ok","decode_tps":41.2`), nil, AskTraceable, Failure, "names no exchange"},
		"cell gone":         {cell(`"status":"ok","decode_tps":41.2,"exchanges":["` + string(idA) + `","` + string(idB) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41)}, AskTraceable, Failure, "1 exchange is of 2 that it names not on record"},
		"cell on the cpu":   {cell(`"status":"ok","cpu_fallback":true,"exchanges":[]`), nil, AskIdentity, Failure, "ran on the CPU"},
		"cell not judged":   {cell(`"status":"ok","decode_tps":41.2,"exchanges":["` + string(idA) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41.2)}, AskGates, Warning, "no gate has judged e of unknown build"},
		"cell failed":       {cell(`"status":"fail","detail":"not ready"`), nil, AskComplete, Warning, "the cell is fail: not ready"},
		"cell not drafting": {cell(`"status":"ok","mtp":true,"decode_tps":41.2,"exchanges":["` + string(idA) + `"]`), map[exchange.ID]*exchange.Summary{idA: row(41.2)}, AskSpeculation, Failure, "not speculating"},
		"validation cut":    {`{"execution_plan":{},"run_complete":false,"cases":[]}`, nil, AskComplete, Failure, "did not come to its end"},
		"validation failed": {`{"execution_plan":{},"run_complete":true,"cases":[{"tag":"json-c1-r0-i0","status":"fail","detail":"no JSON","turns":[]}]}`, nil, AskGates, Failure, "1 of 1 cases failed: json-c1-r0-i0: no JSON"},
		"validation":        {`{"execution_plan":{},"run_complete":true,"cases":[{"tag":"t","status":"ok","turns":[{"exchange":"` + string(idA) + `"}]}]}`, map[exchange.ID]*exchange.Summary{idA: row(1)}, AskTraceable, OK, "1 exchange"},
		"validation gone":   {`{"execution_plan":{},"run_complete":true,"cases":[{"tag":"t","status":"ok","turns":[{"exchange":"` + string(idA) + `"}]}]}`, nil, AskTraceable, Failure, "not on record"},
		"revalidation":      {`{"mode":"revalidation","judged":4,"statuses":{"ok":3,"fail":1},"incomplete":""}`, nil, AskGates, Failure, "1 of 4 exchanges failed"},
		"revalidation open": {`{"mode":"revalidation","judged":4,"statuses":{"ok":3,"not_run":1},"incomplete":""}`, nil, AskGates, Warning, "1 of 4"},
		"revalidation cut":  {`{"mode":"revalidation","judged":4,"statuses":{"ok":4},"complete":false,"incomplete":"2 lost"}`, nil, AskComplete, Warning, "2 lost"},
		"changed":           {`{"mode":"revalidation","judged":4,"statuses":{"ok":4},"complete":true,"incomplete":"","changed_verdicts_total":2}`, nil, AskGates, Warning, "2 verdicts changed"},
		"report":            {`{"sections":[],"facts":[{"name":"run","value":"` + string(idB) + `"}]}`, nil, AskTraceable, Failure, "no run on record"},
		"gates":             {`{"level":"dev","verdicts":[{"gate":"json","status":"ok","evidence":[{"kind":"exchange","id":"` + string(idA) + `"}]}]}`, nil, AskTraceable, Failure, "not on record"},
		"gates with a note": {`{"level":"dev","verdicts":[],"notes":["target and reference are one server"]}`, nil, AskGates, Warning, "one server"},
		"unknown":           {`{"a":1}`, nil, AskDocument, NotApplicable, "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Audit(&Input{Documents: []*Document{read(t, test.text)}, Rows: test.rows}, "test")
			wants(t, r, test.check, test.status, test.says)
		})
	}
	wants(t, Audit(&Input{Documents: []*Document{Unread("big.json", "it has more than 256 MiB")}}, "test"), AskDocument, Failure, "256 MiB")
}

func TestGatesOfFiles(t *testing.T) {
	t.Parallel()
	report := replay.GateReport{Schema: 1, Level: "full", Run: idB, Started: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
		Target: replay.GateSubject{Identity: exchange.Identity{Engine: "llamacpp", Version: "b100"}, Weights: digestOf("a")},
		Verdicts: []replay.GateEntry{{Verdict: exchange.Verdict{Gate: "near_tie", Version: 2, Case: "short-1", Status: exchange.VerdictOK,
			Evidence: []exchange.EvidenceSum{{Kind: "exchange", ID: string(idA)}, {Kind: "golden", ID: string(idB)}}}}},
		Deferred: []replay.GateDeferred{{Case: "needle_full"}}}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, string(text))
	g := d.Gates
	if g == nil || g.build() != (build{"llamacpp", "b100", digestOf("a")}) || g.Complete || g.At.IsZero() || len(g.Verdicts) != 1 || g.Verdicts[0].Gate != "near_tie" ||
		strings.Join(g.Deferred, " ") != "needle_full" || len(d.Exchanges) != 1 || d.Exchanges[0] != idA {
		t.Errorf("%+v", d)
	}
}

func TestGatesOfRuns(t *testing.T) {
	t.Parallel()
	run := newRig("suite", Candidate).run
	if _, ok := GatesOfRun(&run); ok {
		t.Error("a run without cases has gates")
	}
	run.Replay.Cases = []exchange.PlannedCase{
		{Case: exchange.Case{ID: "a", Scenario: "json"}, Status: exchange.VerdictOK, Verdicts: []exchange.CaseVerdict{{Gate: "json", Version: 3, Status: exchange.VerdictOK}}},
		{Case: exchange.Case{ID: "b", Scenario: "json"}, Status: exchange.VerdictFail, Reason: "stopped"},
	}
	g, ok := GatesOfRun(&run)
	if !ok || len(g.Verdicts) != 2 || g.Verdicts[1].Status != exchange.VerdictFail || !g.build().known() {
		t.Errorf("%+v", g)
	}
}

// TestCellsOfTheMatrix reads the record that the matrix writes.
func TestCellsOfTheMatrix(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(matrix.Record{Engine: "llamacpp", Backend: "cuda", Model: "m", Scenario: "decode", Status: matrix.StatusOK, DecodeTPS: ref(41.2), DecodeSource: measure.SourceStreamWindow,
		Concurrency: 1, Turns: 1, Run: idB, Exchanges: []exchange.ID{idA}, Identity: exchange.Identity{Engine: "llamacpp", Version: "b100"}, Weights: digestOf("a")})
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, string(text))
	d.Remade = &Remade{JSON: text}
	row := &exchange.Summary{ID: idA, Metrics: exchange.Figures{measure.DecodeTPS: measured(41.23)}}
	r := Audit(&Input{Documents: []*Document{d}, Gates: []GateRun{passed()}, Rows: map[exchange.ID]*exchange.Summary{idA: row}}, "test")
	if r.Verdict() != nil || r.Word() != "PASS" {
		t.Errorf("%+v", r.Checks)
	}
	row.Metrics[measure.DecodeTPS] = measured(40)
	wants(t, Audit(&Input{Documents: []*Document{d}, Rows: map[exchange.ID]*exchange.Summary{idA: row}}, "test"), AskComparison, Failure, "the record gives 40")
}

// TestComparisonsAreMadeAgain holds a comparison of a file against the one of the record.
func TestComparisonsAreMadeAgain(t *testing.T) {
	t.Parallel()
	told := ComparisonDocument{Reference: ComparedRun{ID: idA}, Candidate: ComparedRun{ID: idB}, Metrics: []ComparedMetric{{Name: "decode_tps", Reference: ref(40.0), Candidate: ref(50.0), Ratio: ref(1.25)}, {Name: "ttft_ms"}}}
	other := told
	other.Metrics = []ComparedMetric{{Name: "decode_tps", Reference: ref(40.0), Candidate: ref(44.0), Ratio: ref(1.1)}}
	accepted := told
	accepted.Accepted, accepted.Refused = []exchange.Reason{"other_weights"}, []exchange.Reason{"incomplete"}
	itself := told
	itself.Candidate = told.Reference
	for name, test := range map[string]struct {
		c      Comparison
		status Status
		says   string
		check  string
	}{
		"same":     {Comparison{"c.json", told, &told, ""}, OK, "1 ratio of run", AskComparison},
		"other":    {Comparison{"c.json", told, &other, ""}, Failure, "the record gives another ratio decode_tps: 1.1, and 1.25 stated; another ttft_ms: none", AskComparison},
		"gone":     {Comparison{"c.json", told, nil, "no such run"}, Failure, "1 ratio cannot be followed: no such run", AskTraceable},
		"accepted": {Comparison{"c.json", accepted, &accepted, ""}, Warning, "accepted by hand: other_weights", AskComparison},
		"refused":  {Comparison{"c.json", accepted, &accepted, ""}, Warning, "claims nothing: incomplete", AskComparison},
		"itself":   {Comparison{"c.json", itself, &itself, ""}, Warning, "one run", AskComparison},
	} {
		wants(t, Audit(&Input{Comparisons: []Comparison{test.c}}, "test"), test.check, test.status, test.says)
		_ = name
	}
	base := newRig("older", Alternative, 1).gathered()
	told.Reference.ID = base.ID
	wants(t, Audit(&Input{Runs: []*Run{base}, Comparisons: []Comparison{{"c.json", told, &told, ""}}}, "test"), AskBaseline, Failure, "which is not the baseline")
}
