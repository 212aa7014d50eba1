package build

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// repeated is a cell of an engine with these decode rates over its repeats.
func repeated(engine string, samples ...float64) Cell {
	c := Cell{Source: "results", Engine: engine, Model: "m", Scenario: "s", Status: StatusOK, TP: 1, Concurrency: 1, DecodeSource: "stream_window", ObservedDevice: "cuda"}
	c.DecodeTPS = samples[0]
	if len(samples) > 1 {
		sum := stat.Summarize(samples)
		c.DecodeTPS = *sum.Median
		c.Spreads = map[string]Spread{fieldDecode: {Lo: *sum.Min, Hi: *sum.Max, N: len(samples), Range: true, Samples: samples}}
	}
	return c
}

// TestRatiosOfRepeats holds which ratios of cells are told from 1, which have an interval, and that only those that are told
// have a color and stand among what is faster or slower.
func TestRatiosOfRepeats(t *testing.T) {
	for _, tc := range []struct {
		name               string
		subject, reference Cell
		why                exchange.Reason
		words              string
		tone               report.Tone
		faster, slower     int
	}{
		{"one measurement each", repeated("a", 50), repeated("b", 100), reasonOneSample, "— (n 1, 1)", "", 0, 0},
		{"one side without samples", repeated("a", 50), repeated("b", 100, 101, 102, 103, 104), reasonOneSample, "— (n 1, 5)", "", 0, 0},
		{"three against three", repeated("a", 49, 50, 51), repeated("b", 99, 100, 101), compare.ReasonTooFew, "— (n 3, 3)", "", 0, 0},
		{"noise", repeated("a", 90, 95, 100, 105, 112), repeated("b", 91, 96, 99, 104, 108), compare.ReasonNoise, " (n 5, 5)", "", 0, 0},
		{"slower", repeated("a", 49, 49.5, 50, 50.5, 51), repeated("b", 99, 99.5, 100, 100.5, 101), "", " (n 5, 5)", report.Bad, 0, 1},
		{"faster", repeated("a", 99, 99.5, 100, 100.5, 101), repeated("b", 49, 49.5, 50, 50.5, 51), "", " (n 5, 5)", report.Good, 1, 0},
	} {
		g := NewGrid([]Cell{tc.subject, tc.reference}, "", nil, func(id string) string { return id })
		q := figures[0].divide(&g.Cells[0], &g.Cells[1])
		p := g.proofs.of(q)
		cells := g.proofs.cells(q)
		if p.why != tc.why || !strings.HasSuffix(p.words(), tc.words) || cells[1].Show(report.Column{}) != p.words() {
			t.Errorf("%s: %s, %q", tc.name, p.why, p.words())
		}
		if p.interval != nil && (p.interval.Lo > q.value || p.interval.Hi < q.value || p.interval.Lo == p.interval.Hi) {
			t.Errorf("%s: %v to %v around %v", tc.name, p.interval.Lo, p.interval.Hi, q.value)
		}
		if got := cells[0].Tone(); got != tc.tone {
			t.Errorf("%s: tone %q", tc.name, got)
		}
		faster, slower, open := (&Evidence{Grid: g}).standings(nil)
		if len(faster) != tc.faster || len(slower) != tc.slower || len(open) != 1-tc.faster-tc.slower {
			t.Errorf("%s: %d faster, %d slower, %d not told", tc.name, len(faster), len(slower), len(open))
		}
	}
}

// TestTimesAreTurned holds that a ratio of times above 1 is the faster subject, with its interval.
func TestTimesAreTurned(t *testing.T) {
	c := func(engine string, ms float64) Cell {
		cell := repeated(engine, 1)
		cell.TTFTMS = ms
		cell.Spreads = map[string]Spread{fieldTTFT: {N: 5, Samples: []float64{ms - 1, ms - 0.5, ms, ms + 0.5, ms + 1}}}
		return cell
	}
	g := NewGrid([]Cell{c("a", 50), c("b", 100)}, "", nil, func(id string) string { return id })
	q := figures[2].divide(&g.Cells[0], &g.Cells[1])
	if p := g.proofs.of(q); q.value != 2 || p.why != "" || p.interval.Lo <= 1.5 || p.interval.Hi >= 2.5 {
		t.Errorf("%v, %+v", q.value, p)
	}
}

// TestEqualSamplesAreNoDifference holds that most pairs of one distribution are not told apart.
func TestEqualSamplesAreNoDifference(t *testing.T) {
	told := 0
	const pairs = 40
	for i := range pairs {
		side := func(shift int) Cell {
			var samples []float64
			for k := range 5 {
				samples = append(samples, 100+float64((i*37+k*53+shift*29)%41))
			}
			return repeated("e", samples...)
		}
		a, b := side(1), side(7)
		if (proofs{}).of(figures[0].divide(&a, &b)).why == "" {
			told++
		}
	}
	if told > pairs/8 {
		t.Errorf("%d of %d equal pairs are told apart", told, pairs)
	}
}

// TestDrafts holds that the fastest method needs 3 % over none, that what did not draft has no ratio, and that a rejected
// method is listed as failed.
func TestDrafts(t *testing.T) {
	with := func(method string, decode float64, edit func(*Cell)) Cell {
		c := repeated("a", decode)
		c.Method, c.Drafter = method, "draft.gguf"
		if edit != nil {
			edit(&c)
		}
		return c
	}
	acceptance := 0.5
	cells := []Cell{repeated("a", 100), with("slow", 102, nil), with("fast", 104, func(c *Cell) { c.Acceptance = &acceptance }), with("faster", 110, nil),
		with("idle", 150, func(c *Cell) { c.Flags = []string{flagNotSpeculating} }), with("silent", 103.5, func(c *Cell) { c.Flags = []string{flagNotCounted}; c.Drafter = "" }),
		with("refused", 0, func(c *Cell) { c.Status, c.Detail = StatusFail, "unknown argument" })}
	g := NewGrid(cells, "", nil, func(id string) string { return id })
	s, ok := g.draftSection()
	if !ok || len(s.Table.Rows) != 6 || len(s.Notes) != 1 || !strings.HasSuffix(s.Notes[0], noteNotCounted) {
		t.Fatalf("%+v", s)
	}
	want := [][]string{
		{"slow", "draft.gguf", "100.0", "102.0", "1.02×", "— (n 1, 1)", "—", "not the fastest"},
		{"fast", "draft.gguf", "100.0", "104.0", "1.04×", "— (n 1, 1)", "50.0", "not the fastest"},
		{"faster", "draft.gguf", "100.0", "110.0", "1.10×", "— (n 1, 1)", "—", "fastest, by 3 % or more over none (not told from 1.00×: one sample)"},
		{"idle", "draft.gguf", "100.0", "150.0", "—", "—", "—", "not speculating"},
		{"silent ¹", "—", "100.0", "103.5", "1.03×", "— (n 1, 1)", "—", "not the fastest"},
		{"refused", "draft.gguf", "100.0", "fail", "—", "—", "—", "failed"},
	}
	for i, row := range s.Table.Rows {
		var got []string
		for k, c := range row[3:] {
			got = append(got, c.Show(s.Table.Columns[k+3]))
		}
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q, want %q", got, want[i])
		}
	}
	few := NewGrid(cells[:2], "", nil, func(id string) string { return id })
	if f := few.fastestDrafts(); len(f) != 0 {
		t.Errorf("2 %% over none wins: %+v", f)
	}
}

// TestHostileCells holds what becomes of result files that no harness should write, and does.
func TestHostileCells(t *testing.T) {
	base := `"engine":"e","model":"m","scenario":"s","status":"ok"`
	for _, tc := range []struct {
		name, file string
		check      func(c *Cell) bool
	}{
		{"numbers that are none", `{` + base + `,"ttft_ms":NaN,"decode_tps":-Infinity,"prefill_tps":Infinity,"output_text":"a \"NaN\" and Infinity\\"}`,
			func(c *Cell) bool {
				return c.TTFTMS == 0 && c.DecodeTPS == 0 && c.PrefillTPS == 0 && c.Output == `a "NaN" and Infinity\`
			}},
		{"beyond a float", `{` + base + `,"decode_tps":1e999,"ttft_ms":5}`, func(c *Cell) bool { return c.DecodeTPS == 0 && c.TTFTMS == 5 }},
		{"huge counts", `{` + base + `,"prompt_tokens":99999999999999999999999,"concurrency":-3,"tp":0}`, func(c *Cell) bool { return c.PromptTokens == 1<<40 && c.Concurrency == 1 && c.TP == 1 }},
		{"other types", `{` + base + `,"decode_tps":"fast","spreads":[1],"absent":3,"flags":"x","exchanges":{},"tool_call_ok":"yes"}`,
			func(c *Cell) bool {
				return c.DecodeTPS == 0 && c.Spreads == nil && c.Flags == nil && c.Exchanges == nil && c.ToolCallOK == nil
			}},
		{"a method of none", `{` + base + `,"method":"none"}`, func(c *Cell) bool { return c.baseline() }},
		{"a drafter of a command", `{` + base + `,"method":"draft-simple","command":["llama-server","-md","C:\\models\\d.gguf"]}`, func(c *Cell) bool { return c.Drafter == "d.gguf" }},
		{"a drafter of its own", `{` + base + `,"mtp":true,"drafter":"dir/d.gguf","command":["x","-md"]}`, func(c *Cell) bool { return c.Drafter == "d.gguf" }},
		{"a median that the file rounds", `{` + base + `,"ttft_ms":0.7,"spreads":{"ttft_ms":{"n":3,"min":0.6,"max":0.8,"samples":[0.8,0.727,0.6]}}}`, func(c *Cell) bool { return c.TTFTMS == 0.727 }},
		{"samples of something else", `{` + base + `,"ttft_ms":5,"spreads":{"ttft_ms":{"samples":[1,2,3]}}}`, func(c *Cell) bool { return c.TTFTMS == 5 }},
		{"samples without a value", `{` + base + `,"decode_tps":null,"spreads":{"decode_tps":{"samples":[1,2,3]}}}`, func(c *Cell) bool { return c.DecodeTPS == 0 }},
		{"samples without a count", `{` + base + `,"spreads":{"decode_tps":{"samples":[1,2,3]}}}`, func(c *Cell) bool { return c.Spreads[fieldDecode].N == 3 }},
	} {
		c, err := ParseCell([]byte(tc.file))
		if err != nil || !tc.check(&c) {
			t.Errorf("%s: %v, %+v", tc.name, err, c)
		}
	}
	for _, bad := range []string{``, `null`, `[NaN]`, `{"engine":NaN}`, `{` + base, `NaN`, `{` + base + `,"x":NaN`} {
		if c, err := ParseCell([]byte(bad)); err == nil {
			t.Errorf("%q is a cell: %+v", bad, c)
		}
	}
}

// TestOneOfTwo holds that of two cells of one point the last counts, and that the report says so.
func TestOneOfTwo(t *testing.T) {
	g := NewGrid([]Cell{repeated("a", 1), repeated("a", 2)}, "", nil, func(id string) string { return id })
	if c := g.cell(g.Cells[0].column(), "m", "s", (*Cell).baseline); c.DecodeTPS != 2 {
		t.Errorf("%+v", c)
	}
	e := &Evidence{Grid: g}
	if lead := e.limitsSection().Lead; !slices.ContainsFunc(lead, func(s string) bool { return strings.HasPrefix(s, "1 cells have the point of another") }) {
		t.Errorf("%q", lead)
	}
}

// TestChartWithoutValues holds that a chart of nothing is a line that says so.
func TestChartWithoutValues(t *testing.T) {
	a, b := repeated("a", 0), repeated("b", 0)
	s := NewGrid([]Cell{a, b}, "", nil, func(id string) string { return id }).figureSection(figures[0], "m")
	if len(s.Charts) != 0 || !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, "Not drawn") }) {
		t.Errorf("%+v", s)
	}
}

// TestUnknownDeviceOfARun holds that every table with numbers of a run says so where its device is not on record.
func TestUnknownDeviceOfARun(t *testing.T) {
	known, blind := newRig(t, "AAAA", "known", nil, workload(1, "")), newRig(t, "BBBB", "blind", nil, workload(2, ""))
	blind.run.Run.Deployments = nil
	e := &Evidence{Engine: nameOf, Made: origin, Runs: []*Run{known.run, blind.run}, Comparisons: []Compared{blind.against(t, known)}}
	marked := 0
	var walk func(ss []report.Section)
	walk = func(ss []report.Section) {
		for i := range ss {
			s := &ss[i]
			has := slices.Contains(s.Notes, "The device is not on record: blind.")
			if of := len(s.Table.Rows) > 0 && tells(s, "blind"); of && !has {
				t.Errorf("%s does not say so", s.Title)
			}
			if has {
				marked++
			}
			walk(s.Parts)
		}
	}
	walk(Document(e).Sections)
	if marked < 8 {
		t.Errorf("%d tables", marked)
	}
	e = &Evidence{Engine: nameOf, Made: origin, Runs: []*Run{known.run}}
	for _, s := range Document(e).Sections {
		if slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "not on record") }) {
			t.Errorf("%s: %q", s.Title, s.Notes)
		}
	}
}

// BenchmarkManyCells is a report of 100,000 cells of foreign tools.
func BenchmarkManyCells(b *testing.B) {
	var cells []Cell
	for i := range 100_000 {
		c := repeated([]string{"a", "b"}[i%2], float64(i%97+1))
		c.Model, c.Scenario = fmt.Sprintf("m%d", i/2%50), fmt.Sprintf("s%d", i/100)
		cells = append(cells, c)
	}
	for b.Loop() {
		Document(&Evidence{Grid: NewGrid(cells, "", nil, func(id string) string { return id })})
	}
}
