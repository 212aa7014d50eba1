package build

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

// comparedRuns is the evidence of two runs with their comparison, which takes its time.
func comparedRuns(t testing.TB) *Evidence {
	before, after := rigs(t)
	e := evidenceOf(t, before, after)
	e.Comparisons = []Compared{after.against(t, before)}
	return e
}

// evidenceOfRuns is the same without the comparison.
func evidenceOfRuns(t testing.TB) *Evidence {
	before, after := rigs(t)
	return evidenceOf(t, before, after)
}

func rigs(t testing.TB) (before, after *rig) {
	sets, _ := Sets("all")
	return newRig(t, "AAAA", "before", sets, workload(1, "")), newRig(t, "BBBB", "after", sets, workload(1.25, "other "))
}

func evidenceOf(t testing.TB, before, after *rig) *Evidence {
	target, err := ParseTarget(" decode_tps >= 90")
	if err != nil {
		t.Fatal(err)
	}
	return &Evidence{Title: "A report", Made: origin.Add(2 * time.Hour), Harness: "test", Runs: []*Run{before.run, after.run},
		Targets: []Target{target}, Notes: "The first part.\r\n\r\nThe second <part>.", Commands: []string{"benchproxy report before after"},
		Gates: []Gates{{Source: "gates.json", Level: "quick", Verdict: "FAIL", Cases: []GateCase{
			{Gate: "json", Case: "c1", Status: exchange.VerdictOK, Seconds: 1.5, Exchanges: []exchange.ID{idOf("AAAA", 1)}},
			{Gate: "json", Case: "c2", Status: exchange.VerdictFail, Lenient: exchange.VerdictOK, Reason: "fenced"},
			{Gate: "needle", Case: "c3", Status: exchange.VerdictNotRun, Reason: "deferred"}}}},
		Files: []report.Fact{{Name: "gates.json", Value: "sha256:00"}}}
}

func TestDocumentOfRuns(t *testing.T) {
	e := comparedRuns(t)
	d := Document(e)
	var md, again, page bytes.Buffer
	if err := d.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.md", md.Bytes())
	if err := Document(e).Markdown(&again); err != nil {
		t.Fatal(err)
	}
	if md.String() != again.String() {
		t.Error("the same evidence gives two documents")
	}
	if err := d.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ratios", "standings", "definitions", "timelines", "chart-gaps", "chart-prefill", "chart-decode_tps", "exchanges-before", string(idOf("AAAA", 1))} {
		if !strings.Contains(page.String(), `id="`+id) {
			t.Errorf("the page has no %s", id)
		}
	}
	var table bytes.Buffer
	if err := Results(e).CSV(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.csv", table.Bytes())
}

// TestChangesAreInNoHeadline holds that what moved since an older report stands in its section alone.
func TestChangesAreInNoHeadline(t *testing.T) {
	var old bytes.Buffer
	e := evidenceOfRuns(t)
	if err := Document(e).JSON(&old); err != nil {
		t.Fatal(err)
	}
	older, err := report.Read(&old)
	if err != nil {
		t.Fatal(err)
	}
	e.Against, e.AgainstName = older, "old.json"
	same := Document(e)
	last := same.Sections[len(same.Sections)-1]
	if last.ID != "changes" || len(last.Table.Rows) != 0 || len(last.Lead) != 1 {
		t.Fatalf("the same report again: %+v", last)
	}
	slow := newRig(t, "CCCC", "before", nil, workload(2, ""))
	e.Runs[0] = slow.run
	moved := Document(e)
	last = moved.Sections[len(moved.Sections)-1]
	found := false
	for _, row := range last.Table.Rows {
		section, _ := row[0].Words()
		name, _ := row[1].Words()
		word, _ := row[6].Words()
		found = found || section == "Decode" && strings.HasPrefix(name, "before") && word == "beyond noise"
	}
	if !found {
		t.Errorf("a run of half the speed: %+v", last.Table.Rows)
	}
	for _, s := range moved.Summary {
		if strings.Contains(s, "older") || strings.Contains(s, "since") {
			t.Errorf("the bottom line tells of the past: %s", s)
		}
	}
}

func matrix(t *testing.T) []Cell {
	t.Helper()
	raw, err := os.ReadFile("testdata/cells.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"notes.txt": {Data: []byte("x")}, "broken.json": {Data: []byte("{")}, "list.json": {Data: []byte("[1]")}, "logs": {Mode: os.ModeDir}}
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		files[string(rune('a'+i/26))+string(rune('a'+i%26))+".json"] = &fstest.MapFile{Data: []byte(line)}
	}
	cells, left, err := ReadCells(files, "results")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"broken.json", "list.json"}, left); diff != "" || len(cells) < 20 {
		t.Fatalf("%d cells, left %v", len(cells), left)
	}
	return cells
}

func nameOf(id string) string {
	return map[string]string{"tensorsharp": "TensorSharp", "llamacpp": "llama.cpp", "vllm": "vLLM"}[id]
}

func TestDocumentOfMatrix(t *testing.T) {
	other := matrix(t)[:3]
	for i := range other {
		other[i].Source = "old"
	}
	e := &Evidence{Title: "A matrix", Made: origin, Harness: "test", Engine: nameOf, Grid: NewGrid(append(matrix(t), other...), "", nil, nameOf), CellsLeft: []string{"list.json"}}
	d := Document(e)
	var md, table bytes.Buffer
	if err := d.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.md", md.Bytes())
	if err := Results(e).CSV(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.csv", table.Bytes())
	if err := d.HTML(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(table.String(), "\n"); !strings.HasPrefix(head, "engine,backend,model,scenario,mtp,tp,cpu_moe_layers,cpu_moe_threads,concurrency,status,detail,prompt_tokens,completion_tokens,"+
		"ttft_ms,prefill_tps,decode_tps,aggregate_decode_tps,requests_ok,turns,turns_expected,total_wall_ms,finish_reason,tool_call_ok,requested_device,observed_device,cpu_fallback,") {
		t.Errorf("columns: %s", head)
	}
}

// TestOneSideHasNoRatio holds that a side that is missing, failed, partial, or measured by another formula gives a dash and
// its reason, in both directions.
func TestOneSideHasNoRatio(t *testing.T) {
	yes := true
	good := Cell{Engine: "a", Status: StatusOK, DecodeTPS: 10, PrefillTPS: 10, TTFTMS: 10, DecodeSource: "stream_window"}
	for why, bad := range map[exchange.Reason]*Cell{
		reasonNoRecord: nil, reasonNotOK: {Status: StatusFail, DecodeTPS: 5}, reasonPartial: {Status: StatusOK, Turns: 1, TurnsExpected: 3, DecodeTPS: 5},
		reasonNoValue: {Status: StatusOK, DecodeSource: "stream_window"}, reasonSources: {Status: StatusOK, DecodeTPS: 5, DecodeSource: "engine"},
		reasonFallback: {Status: StatusOK, DecodeTPS: 5, DecodeSource: "stream_window", CPUFallback: &yes},
	} {
		for _, q := range []quotient{figures[0].divide(&good, bad), figures[0].divide(bad, &good)} {
			cell := (proofs{}).cell(q)
			text, err := json.Marshal(cell)
			if _, ok := cell.Value(); ok || q.why != why || cell.Show(ratioColumn("")) != "—" || err != nil || !strings.Contains(string(text), string(why)) {
				t.Errorf("%s: %s, %s (%v)", why, q.why, text, err)
			}
		}
	}
	skipped := figures[0].divide(&good, &Cell{Status: StatusSkipped})
	if skipped.why != reasonNotOK {
		t.Errorf("skipped: %+v", skipped)
	}
	unknown := Cell{Status: StatusOK, DecodeTPS: 5}
	if q := figures[0].divide(&unknown, &unknown); q.value != 1 || !q.unknown || (proofs{}).cell(q).Show(ratioColumn("")) != "1.00×" {
		t.Errorf("unknown against unknown: %+v", q)
	}
}

// TestComparisonThatCannotBeMade holds that it is a sentence and no number.
func TestComparisonThatCannotBeMade(t *testing.T) {
	e := evidenceOfRuns(t)
	e.Comparisons = []Compared{{Reference: "before", Candidate: "after", Failed: "no requests of the two belong together"}}
	d := Document(e)
	if d.Summary[0] != "after / before: no ratio, no requests of the two belong together." {
		t.Errorf("%q", d.Summary)
	}
	if b := Badge(e); b.Value != "—" {
		t.Errorf("badge %+v", b)
	}
}

func TestBadges(t *testing.T) {
	e := comparedRuns(t)
	if b := Badge(e); b.Label != "decode against before" || !strings.HasPrefix(b.Value, "0.80× (n 1") || b.Tone != report.Bad {
		t.Errorf("of a comparison: %+v", b)
	}
	e.Comparisons = nil
	if b := Badge(e); b.Value != "1 of 3" || b.Tone != report.Bad {
		t.Errorf("of gates: %+v", b)
	}
	e.Gates = nil
	if b := Badge(e); b.Label != "decode" || !strings.HasSuffix(b.Value, "tok/s (n 13)") {
		t.Errorf("of a run: %+v", b)
	}
	if b := Badge(&Evidence{}); b.Value != "no number" {
		t.Errorf("of nothing: %+v", b)
	}
	e.Grid = NewGrid(matrix(t), "", nil, nameOf)
	if b := Badge(e); !strings.HasPrefix(b.Label, "decode, TensorSharp / llama.cpp") {
		t.Errorf("of a matrix: %+v", b)
	}
}

func TestTargets(t *testing.T) {
	e := evidenceOfRuns(t)
	s, ok := e.targetsSection()
	if !ok || len(s.Table.Rows) != 2 {
		t.Fatalf("%+v", s)
	}
	first, _ := s.Table.Rows[0][3].Words()
	second, _ := s.Table.Rows[1][3].Words()
	if first != "missed" || second != "reached" {
		t.Errorf("%s before %s", first, second)
	}
	for _, bad := range []string{"", "decode_tps", "decode_tps>=x", "speed>=1", "decode_tps=3"} {
		if _, err := ParseTarget(bad); err == nil {
			t.Errorf("target %q passes", bad)
		}
	}
	low, err := ParseTarget("ttft_ms<=1")
	if _, missed, known := low.missed(e.Runs[0]); err != nil || !missed || !known {
		t.Errorf("%v: missed %v, known %v", err, missed, known)
	}
	none, err := ParseTarget("draft_waste<=1")
	if _, missed, known := none.missed(e.Runs[0]); err != nil || missed || known {
		t.Errorf("%v: missed %v, known %v", err, missed, known)
	}
}

func TestParseGates(t *testing.T) {
	ours := `{"level":"quick","complete":false,"verdicts":[{"gate":"json","case":"a","status":"ok","seconds":2,"evidence":[{"kind":"exchange","id":"X"}]},{"gate":"json","case":"b","status":"fail","reason":"no"}]}`
	g, err := ParseGates([]byte(ours), "gates.json")
	if err != nil || len(g.Cases) != 2 || g.Verdict != "incomplete" || g.Cases[0].Exchanges[0] != "X" || g.Cases[1].Reason != "no" {
		t.Errorf("%v: %+v", err, g)
	}
	other := `{"verdict":"FAIL","level":"dev","gates":{"compare":{"verdict":"PASS","seconds":41},"agent":"FAIL","needle_full":{"verdict":"deferred"},"vision":"skipped","odd":3,"none":{}}}`
	g, err = ParseGates([]byte(other), "gates.json")
	want := []exchange.VerdictStatus{exchange.VerdictFail, exchange.VerdictOK, exchange.VerdictNotRun, exchange.VerdictSkipped}
	var got []exchange.VerdictStatus
	for _, c := range g.Cases {
		got = append(got, c.Status)
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || g.Verdict != "FAIL" {
		t.Errorf("%v: %s", err, diff)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"gates":{"a":{}}}`} {
		if _, err := ParseGates([]byte(bad), "x"); err == nil {
			t.Errorf("%s is taken for gates", bad)
		}
	}
	e := &Evidence{Gates: []Gates{g}}
	s := Suites(e)
	if s.Counts != (report.Counts{Tests: 4, Failures: 1, Errors: 1, Skipped: 1}) {
		t.Errorf("counts %+v", s.Counts)
	}
}

// TestGatesOfARun holds that cases lead to their exchanges, and that a case without a verdict is no pass.
func TestGatesOfARun(t *testing.T) {
	r := newRig(t, "AAAA", "suite", nil, nil)
	r.run.Run.Replay = &exchange.Replay{Cases: []exchange.PlannedCase{{Case: exchange.Case{ID: "c1", Scenario: "json"}, Status: exchange.VerdictOK, Verdicts: []exchange.CaseVerdict{{Gate: "json", Version: 1, Status: exchange.VerdictOK}}},
		{Case: exchange.Case{ID: "c2", Scenario: "recall"}}}}
	run := NewRun(r.run.Run, "", nil)
	r.run = run
	r.add(answer{seq: 1, model: "m", prompt: 10, tokens: 4, ttft: 10, gap: 5, item: &exchange.PlanItem{Item: "c1", Turns: 1}}.written("AAAA"))
	g, ok := GatesOf(run)
	if !ok || len(g.Cases) != 2 || len(g.Cases[0].Exchanges) != 1 || g.Cases[1].Status != exchange.VerdictNotRun || run.groups[0].scenario != "json" {
		t.Errorf("%v: %+v", ok, g)
	}
	if _, ok := GatesOf(newRig(t, "AAAA", "plain", nil, nil).run); ok {
		t.Error("a run without cases has gates")
	}
}

// TestNothing holds that no evidence gives a report that says so.
func TestNothing(t *testing.T) {
	d := Document(&Evidence{Title: "Nothing", Made: origin})
	if len(d.Summary) != 1 || !strings.Contains(d.Summary[0], "no evidence") {
		t.Errorf("%q", d.Summary)
	}
	empty := newRig(t, "AAAA", "empty", measure.Sets(), nil)
	d = Document(&Evidence{Title: "Empty", Made: origin, Runs: []*Run{empty.run, empty.run}, Comparisons: []Compared{empty.against(t, empty)}})
	if err := d.HTML(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := Sets("nobody"); ok || len(SetNames()) != len(measure.Sets())+1 {
		t.Errorf("sets %v", SetNames())
	}
}
