package build

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// TestEveryNumberSaysWhereItIsFrom walks whole reports: a table of numbers has a source, one of measured numbers also formula and
// sample, and each measured number leads to exchanges or to a section that does.
func TestEveryNumberSaysWhereItIsFrom(t *testing.T) {
	before, after := suiteRig(t, "AAAA", "before", 1, 1), suiteRig(t, "BBBB", "after", 0.5, 2)
	suites := &Evidence{Title: "t", Runs: []*Run{before.run, after.run}, Comparisons: []Compared{after.against(t, before)}}
	for name, e := range map[string]*Evidence{"runs": comparedRuns(t), "suites": suites, "matrix": evidencedMatrix(t), "all": allSections(t)} {
		d := Document(e)
		w := walk{anchors: map[string]bool{}}
		for i := range d.Sections {
			w.learn(&d.Sections[i])
		}
		for i := range d.Sections {
			w.section(&d.Sections[i])
		}
		for _, found := range w.found {
			t.Errorf("%s: %s", name, found)
		}
		if w.numbers < 100 {
			t.Errorf("%s: only %d numbers were looked at", name, w.numbers)
		}
	}
}

// allSections is evidence with what runs have only at times: drafts, a selftest, a schedule, a comparison of a file, an older report.
func allSections(t *testing.T) *Evidence {
	e := comparedRuns(t)
	older := comparedRuns(t)
	older.Runs[0] = newRig(t, "CCCC", "before", nil, workload(2, "")).run
	e.Against, e.AgainstName = Document(older), "old.json"
	saved := e.Comparisons[0]
	saved.File = "saved.json"
	e.Comparisons = append(e.Comparisons, saved)
	run := &e.Runs[0].Run
	run.Drafting = &exchange.Drafting{Method: "eagle", BaselineTPS: pointer(50.0)}
	run.Instrument = &exchange.Instrument{ID: "01SELFTEST", Time: origin, Noise: []exchange.NoiseFloor{{Load: exchange.LoadIdle, Streams: 1, US: pointer(12.5)}, {Load: exchange.LoadBusy, Streams: 1, US: pointer(40.5)}}}
	some := exchange.Spread{N: 5, P50: pointer(1.5), P99: pointer(2.5), Max: pointer(3.5)}
	run.Replay = &exchange.Replay{Driver: "rate", Schedule: &exchange.Schedule{Planned: 9, Sent: 9, PlannedRate: pointer(8.5), AchievedRate: pointer(8.4), LagMS: some, SentTTFT: some, IntendedTTFT: some, SentMS: some, IntendedMS: some}}
	return e
}

// evidencedMatrix is the matrix as our own harness writes it: each cell names its exchanges, waves on both sides.
func evidencedMatrix(t *testing.T) *Evidence {
	cells := matrix(t)
	for i := range cells {
		c := &cells[i]
		for k := range 6 {
			c.Exchanges = append(c.Exchanges, idOf("CELL", 100*i+k))
		}
	}
	for _, engine := range []string{"tensorsharp", "llamacpp"} {
		c := together(engine, 100, 101, 102, 103)
		c.Model, c.Scenario, c.Backend, c.Exchanges = cells[0].Model, cells[0].Scenario, "ggml_cuda", []exchange.ID{idOf("WAVE", 1), idOf("WAVE", 2)}
		cells = append(cells, c)
	}
	return &Evidence{Title: "t", Engine: nameOf, Grid: NewGrid(cells, "", nil, nameOf)}
}

// walk looks at the numbers of a report.
type walk struct {
	anchors map[string]bool
	numbers int
	found   []string
}

func (w *walk) learn(s *report.Section) {
	w.anchors[s.ID] = true
	for i := range s.Parts {
		w.learn(&s.Parts[i])
	}
}

func (w *walk) say(s *report.Section, format string, args ...any) {
	w.found = append(w.found, s.ID+": "+fmt.Sprintf(format, args...))
}

func (w *walk) section(s *report.Section) {
	any, measured := false, false
	for _, c := range s.Table.Columns {
		any, measured = any || c.Number && !c.Key, measured || isMeasured(c)
	}
	if any && s.Table.Source == "" {
		w.say(s, "numbers without a source")
	}
	if measured && (s.Table.Formula == "" || s.Table.Sample == "") {
		w.say(s, "measured numbers without formula or sample: %q, %q", s.Table.Formula, s.Table.Sample)
	}
	for _, row := range s.Table.Rows {
		w.row(s, row)
	}
	for i := range s.Parts {
		w.section(&s.Parts[i])
	}
}

// isMeasured reports whether a column has numbers that were measured: counts have no digits behind the point.
func isMeasured(c report.Column) bool { return c.Number && !c.Key && c.Digits > 0 }

func (w *walk) row(s *report.Section, row []report.Cell) {
	whole := false // the row as a whole leads somewhere
	for _, c := range row {
		if _, text := c.Words(); text && len(c.Refs()) > 0 || c.Anchor() != "" {
			whole = true
		}
	}
	for i, c := range row {
		if _, ok := c.Value(); !ok || !isMeasured(s.Table.Columns[i]) {
			continue
		}
		w.numbers++
		if len(c.Refs()) == 0 && !whole {
			w.say(s, "%s of %s leads nowhere", s.Table.Columns[i].Name, row[0].Show(s.Table.Columns[0]))
		}
		for _, ref := range c.Refs() {
			if !strings.HasPrefix(ref, "01") && !w.anchors[ref] {
				w.say(s, "%s leads to %s, which is no section", s.Table.Columns[i].Name, ref)
			}
		}
	}
}
