package build

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// vector is the acceptance case of ratio cells, geometric means and text similarity.
type vector struct {
	ID, Title, Area, Seed, Confidence, Notes string
	Input                                    struct {
		Numerator  string
		References []string
		Records    []json.RawMessage
		Pairs      []struct{ Name, A, B string } `json:"similarity_pairs"`
		JSON       []string                      `json:"json_valid"`
	}
	Expected struct {
		Decode       map[string][]string `json:"decode_cells"`
		RatioDecode  map[string]string   `json:"ratio_decode"`
		RatioPrefill map[string]string   `json:"ratio_prefill"`
		RatioTTFT    map[string]string   `json:"ratio_ttft"`
		GeoMean      struct {
			Decode, Prefill, TTFT string
			Raw                   struct{ Decode, Prefill, TTFT float64 }
		}
		VLLM       bool `json:"vllm_ratio_column_present"`
		Degrees    bool `json:"tp2_compared_with_tp1"`
		Parallel   bool `json:"concurrency_4_in_baseline_tables"`
		Similarity []struct {
			Name           string
			Ratio, Without *float64 `json:"-"`
			Raw            *float64 `json:"ratio"`
			Plain          *float64 `json:"ratio_without_autojunk"`
			Shown, Verdict string
		}
		JSON []bool `json:"json_valid"`
	}
	Tolerance struct{ Ratio float64 }
}

func readVector(t *testing.T) (v vector) {
	t.Helper()
	raw, err := os.ReadFile("testdata/report_ratios_similarity.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if v.ID != "report_ratios_similarity" || len(v.Input.Records) == 0 || len(v.Input.Pairs) != len(v.Expected.Similarity) {
		t.Fatalf("not the vector: %+v", v)
	}
	return v
}

func (v *vector) grid(t *testing.T) *Grid {
	t.Helper()
	var cells []Cell
	for _, raw := range v.Input.Records {
		c, err := ParseCell(raw)
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		cells = append(cells, c)
	}
	g := NewGrid(cells, "", nil, func(id string) string { return id })
	if g.Subject != v.Input.Numerator || cmp.Diff(g.References, v.Input.References) != "" {
		t.Fatalf("%s against %v", g.Subject, g.References)
	}
	return g
}

func TestRatioVector(t *testing.T) {
	v := readVector(t)
	g := v.grid(t)
	decode := map[string][]string{}
	sides := []column{{"", "tensorsharp", "ggml_cuda", 1}, {"", "llamacpp", "ggml_cuda", 1}}
	for scenario := range v.Expected.Decode {
		for _, col := range sides {
			c := g.cell(col, "m", scenario, (*Cell).baseline)
			decode[scenario] = append(decode[scenario], shown(c, c.DecodeTPS, fieldDecode).Show(report.Column{Digits: 1}))
		}
	}
	if diff := cmp.Diff(v.Expected.Decode, decode); diff != "" {
		t.Errorf("decode cells: %s", diff)
	}
	pairs := g.comparisons("m")
	if len(pairs) != 1 || pairs[0] != (against{"llamacpp", "ggml_cuda", 1, ""}) {
		t.Fatalf("comparisons %+v: vLLM %v, degrees %v", pairs, v.Expected.VLLM, v.Expected.Degrees)
	}
	want := []struct {
		cells map[string]string
		raw   float64
		shown string
	}{{v.Expected.RatioDecode, v.Expected.GeoMean.Raw.Decode, v.Expected.GeoMean.Decode}, {v.Expected.RatioPrefill, v.Expected.GeoMean.Raw.Prefill, v.Expected.GeoMean.Prefill},
		{v.Expected.RatioTTFT, v.Expected.GeoMean.Raw.TTFT, v.Expected.GeoMean.TTFT}}
	for i, f := range figures {
		var values []float64
		for scenario, text := range want[i].cells {
			q := g.quotient(pairs[0], f, "m", scenario)
			if got := (proofs{}).cell(q).Show(ratioColumn("")); got != text {
				t.Errorf("%s of %s: %s (%s), want %s", f.name, scenario, got, q.why, text)
			}
			values = append(values, q.value)
		}
		mean, _, _ := stat.GeoMean(values)
		if math.Abs(mean-want[i].raw) > v.Tolerance.Ratio {
			t.Errorf("mean of %s: %v, want %v", f.name, mean, want[i].raw)
		}
		head := g.headline().Table
		if got := head.Rows[0][2+i].Show(head.Columns[2+i]); got != want[i].shown || len(head.Rows) != 1 {
			t.Errorf("headline of %s: %s, want %s; %d rows", f.name, got, want[i].shown, len(head.Rows))
		}
	}
}

// TestParallelCellsAreInNoBaselineTable holds that a cell of four requests at a time is in none of the first tables.
func TestParallelCellsAreInNoBaselineTable(t *testing.T) {
	v := readVector(t)
	found := false
	for _, p := range v.grid(t).modelSection("m").Parts[:3] {
		for _, row := range p.Table.Rows {
			for _, c := range row {
				value, _ := c.Value()
				found = found || value == 999 || value == 9999
			}
		}
	}
	if found != v.Expected.Parallel {
		t.Errorf("found: %v", found)
	}
}

func TestSimilarityVector(t *testing.T) {
	v := readVector(t)
	for i, p := range v.Input.Pairs {
		want := v.Expected.Similarity[i]
		ratio, ok := similarity(p.A, p.B)
		if p.Name != want.Name || ok != (want.Raw != nil) || ok && math.Abs(ratio-*want.Raw) > v.Tolerance.Ratio {
			t.Errorf("%s: %v, %v; want %v", p.Name, ratio, ok, want.Raw)
		}
		cell, verdict := report.Absent("no_text"), "—"
		if ok {
			cell, verdict = report.Number(ratio), compare.Grade(ratio)
		}
		if got := cell.Show(report.Column{Digits: 2}); got != want.Shown || verdict != want.Verdict {
			t.Errorf("%s: %s, %s; want %s, %s", p.Name, got, verdict, want.Shown, want.Verdict)
		}
	}
	for i, text := range v.Input.JSON {
		if got := jsonValid(text); got != v.Expected.JSON[i] {
			t.Errorf("JSON %q: %v", text, got)
		}
	}
}
