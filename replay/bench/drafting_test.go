package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

func TestDraftingMethods(t *testing.T) {
	rec := func(method, cell string, rate float64) *matrix.Record {
		r := &matrix.Record{Engine: "e", Scenario: "s", Method: method, Cell: cell, Status: matrix.StatusOK, DecodeSource: measure.SourceStreamWindow}
		if rate > 0 {
			r.AggregateDecodeTPS = &rate
		}
		return r
	}
	with := func(r *matrix.Record, change func(*matrix.Record)) *matrix.Record { change(r); return r }
	failed := func(r *matrix.Record) { r.Status = matrix.StatusFail }
	exactly := func(v float64) func(*matrix.Record) {
		return func(r *matrix.Record) {
			r.Spreads = map[string]matrix.Spread{measure.AggregateDecodeTPS: {N: 1, Median: v}}
		}
	}
	ratio := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		name string
		in   []*matrix.Record
		want []Drafting
	}{
		{"the axis is not used", []*matrix.Record{rec("", "a", 1), rec("", "b", 2)}, nil},
		{"no baseline", []*matrix.Record{rec("mtp", "m", 2), rec("ngram", "n", 3)}, nil},
		{"fastest wins", []*matrix.Record{rec("none", "0", 100), rec("mtp", "m", 150), rec("ngram", "n", 125)}, []Drafting{{Baseline: "0", Winner: "m", Ratio: ratio(1.5)}}},
		{"just under the margin", []*matrix.Record{rec("mtp", "m", 102), rec("none", "0", 100)}, []Drafting{{Baseline: "0", Winner: "0", Ratio: ratio(1.02)}}},
		{"files round, ratios do not", []*matrix.Record{with(rec("none", "0", 1), exactly(0.96875)), with(rec("mtp", "m", 1), exactly(1.03125))}, []Drafting{{Baseline: "0", Winner: "m", Ratio: ratio(1.03125 / 0.96875)}}},
		{"short answers", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 200), func(r *matrix.Record) { r.Flags = []string{measure.FlagShortAnswer} })},
			[]Drafting{{Baseline: "0", Winner: "0"}}},
		{"slower", []*matrix.Record{rec("none", "0", 100), rec("mtp", "m", 50)}, []Drafting{{Baseline: "0", Winner: "0", Ratio: ratio(0.5)}}},
		{"rejected", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 0), failed)}, []Drafting{{Baseline: "0", Winner: "0", Failed: []string{"m"}}}},
		{"silent", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 200), func(r *matrix.Record) { r.Flags = []string{FlagNotSpeculating} })},
			[]Drafting{{Baseline: "0", Winner: "0", Silent: []string{"m"}}}},
		{"skipped", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 0), func(r *matrix.Record) { r.Status = matrix.StatusSkipped })}, nil},
		{"failed baseline", []*matrix.Record{with(rec("none", "0", 100), failed), rec("mtp", "m", 200)}, []Drafting{{Baseline: "0", Winner: "0"}}},
		{"another formula", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 200), func(r *matrix.Record) { r.DecodeSource = measure.SourceRequestWall })},
			[]Drafting{{Baseline: "0", Winner: "0"}}},
		{"each scenario for itself", []*matrix.Record{rec("none", "0", 100), with(rec("mtp", "m", 200), func(r *matrix.Record) { r.Scenario = "other" })}, nil},
	} {
		if diff := cmp.Diff(c.want, Draftings(c.in)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// TestDraftsOfAnEarlierSitting holds that a method is held against a baseline that was measured before, as long as it is of
// the same definition.
func TestDraftsOfAnEarlierSitting(t *testing.T) {
	plan := planOf([]string{"a"}, []string{"text_short", "json_mode", "multi_turn"}, 1, 1)
	cells := plan.Groups[0].Cells
	dir := t.TempDir()
	cells[0].Do, cells[1].Do = matrix.DoKeep, matrix.DoLeave
	for i, definition := range []string{cells[0].Definition, "c1:other"} {
		rec := matrix.NewRecord(plan, &plan.Groups[0], &cells[i])
		rec.Definition = definition
		if err := matrix.WriteRecord(dir, &rec); err != nil {
			t.Fatal(err)
		}
	}
	now := matrix.NewRecord(plan, &plan.Groups[0], &cells[2])
	got := Standing(dir, plan, []*matrix.Record{&now})
	if len(got) != 2 || got[0].Cell != cells[0].Name || got[1] != &now {
		t.Errorf("%d records stand", len(got))
	}
}
