package build

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/report"
)

// around are five repeats about a value.
func around(v float64) []float64 { return []float64{v * 0.99, v * 0.995, v, v * 1.005, v * 1.01} }

// TestTuningTable holds that methods and depths are told over all scenarios, with drafter and acceptance, and that one is to be
// used only from 3 % over none on.
func TestTuningTable(t *testing.T) {
	var cells []Cell
	acceptance := 0.75
	for _, scenario := range []string{"a", "b"} {
		add := func(method string, depth int, decode []float64, edit func(*Cell)) {
			c := repeated("e", decode...)
			c.Scenario, c.Method, c.Depth = scenario, method, depth
			if method != "" {
				c.Drafter = "draft.gguf"
			}
			if edit != nil {
				edit(&c)
			}
			cells = append(cells, c)
		}
		add("", 0, around(100), nil)
		add("mtp", 1, around(102), nil)
		add("mtp", 3, around(150), func(c *Cell) { c.Acceptance = &acceptance })
		add("dflash", 5, []float64{120}, nil)
		add("ngram", 0, []float64{1}, func(c *Cell) { c.Status = StatusFail })
	}
	g := NewGrid(cells, "", nil, func(id string) string { return id })
	p, ok := g.tuningPart()
	if !ok || len(p.Table.Rows) != 4 {
		t.Fatalf("%+v", p)
	}
	for drafts, want := range map[string][]string{
		"mtp, depth 1":    {"draft.gguf", "1.02×", " (repeats)", "2", "—", "0", "not the fastest"},
		"mtp, depth 3":    {"draft.gguf", "1.50×", " (repeats)", "2", "75.0", "0", "to be used"},
		"dflash, depth 5": {"draft.gguf", "1.20×", "— (one sample)", "2", "—", "0", "not the fastest"},
		"ngram":           {"draft.gguf", "—", "—", "0", "—", "2", "—"},
	} {
		found := false
		for _, row := range p.Table.Rows {
			if name, _ := row[2].Words(); name != drafts {
				continue
			}
			found = true
			for i, text := range want {
				if got := row[i+3].Show(p.Table.Columns[i+3]); got != text && !(text[0] == ' ' && strings.HasSuffix(got, text)) {
					t.Errorf("%s, %s: %q, want %q", drafts, p.Table.Columns[i+3].Name, got, text)
				}
			}
		}
		if !found {
			t.Errorf("there is no %s", drafts)
		}
	}
	small := NewGrid(cells[:2], "", nil, func(id string) string { return id })
	if p, _ := small.tuningPart(); p.Table.Rows[0][9].Show(report.Column{}) != "none is to be used: the gain is below 3 %" {
		t.Errorf("%+v", p.Table.Rows[0][9])
	}
}

// TestFastestOffload holds which point of layers and threads is named the fastest, and that a point that failed is none.
func TestFastestOffload(t *testing.T) {
	at := func(layers, threads int, decode float64) Cell {
		c := repeated("e", around(decode)...)
		c.CPUMoELayers, c.CPUMoEThreads = layers, threads
		return c
	}
	cells := []Cell{at(8, 4, 30), at(8, 8, 40), at(16, 8, 20), at(-1, 8, 99)}
	cells[3].Status = StatusFail
	g := NewGrid(cells, "", nil, func(id string) string { return id })
	s, _ := g.offloadSection()
	if len(s.Parts) != 1 || len(s.Parts[0].Table.Rows) != 1 {
		t.Fatalf("%+v", s.Parts)
	}
	row := s.Parts[0].Table.Rows[0]
	for i, want := range map[int]string{4: "3", 5: "ncmoe8 t8", 6: "40.0", 7: "ncmoe8 t4", 8: "1.33×"} {
		if got := row[i].Show(s.Parts[0].Table.Columns[i]); got != want {
			t.Errorf("%s: %q, want %q", s.Parts[0].Table.Columns[i].Name, got, want)
		}
	}
	if _, ok := NewGrid(cells[:1], "", nil, func(id string) string { return id }).fastestOffload(); ok {
		t.Error("a single point is the fastest of none")
	}
}

// TestShortAnswersHaveNoRatio holds that a decode rate that rests on short answers is shown and not divided, and that its times
// are.
func TestShortAnswersHaveNoRatio(t *testing.T) {
	a, b := repeated("a", around(100)...), repeated("b", around(50)...)
	a.Flags, a.TTFTMS, b.TTFTMS = []string{"short_answer"}, 10, 20
	for _, sides := range [][2]*Cell{{&a, &b}, {&b, &a}} {
		if q := figures[0].divide(sides[0], sides[1]); q.why != compare.ReasonShort {
			t.Errorf("%+v", q)
		}
		if q := figures[2].divide(sides[0], sides[1]); q.why != "" {
			t.Errorf("%+v", q)
		}
	}
	if got := shownDecode(&a).Show(report.Column{}); got != "100" {
		t.Errorf("%q", got)
	}
}
