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
