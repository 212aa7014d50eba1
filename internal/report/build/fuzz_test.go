package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/report"
)

// oddValue draws a number of a result file from a byte: mostly sound ones, and what harnesses write where they have none.
func oddValue(b byte) any {
	odd := []any{0, nil, -1, "12.5", 1e308, 1e-300, true, []int{1}, "NaN"}
	if int(b) < len(odd) {
		return odd[b]
	}
	return 1 + float64(b)/3
}

// oddFile is a result file of a matrix, drawn from ten bytes.
func oddFile(b []byte) []byte {
	pick := func(i int, from ...any) any { return from[int(b[i])%len(from)] }
	file := map[string]any{
		"engine": pick(0, "tensorsharp", "llamacpp", "vllm"), "backend": pick(1, "ggml_cuda", "cuda", "ggml_cpu", "cpu"), "model": pick(2, "m", "n"), "scenario": pick(2, "text_short", "prefill_1k", "json_mode"),
		"status": pick(3, "ok", "ok", "ok", "ok", "fail", "skipped", "timeout", ""), "decode_tps": oddValue(b[4]), "ttft_ms": oddValue(b[5]), "prefill_tps": oddValue(b[6]),
		"aggregate_decode_tps": oddValue(b[4]), "steady_tps": oddValue(b[5]), "batch_tps": oddValue(b[6]), "concurrency": pick(7, 1, 1, 4, nil), "requests_ok": pick(7, 1, 1, 3, 4), "tp": pick(7, 1, 2, 0),
		"turns": pick(8, 1, 1, 2, -1), "turns_expected": pick(8, 1, 1, 3), "decode_source": pick(8, "stream_window", "stream_window", "engine", ""), "cpu_fallback": pick(8, nil, false, true),
		"cpu_moe_layers": pick(9, 0, 0, 0, 8, -1), "cpu_moe_threads": pick(9, 0, 8), "mtp": pick(9, false, false, true), "usage_basis": pick(9, "reported", "estimated"), "output_text": pick(9, "", "one two", "{}"),
		"flags": pick(9, nil, []string{"short_answer"}, []string{"not_speculating"}),
	}
	if samples, ok := file["decode_tps"].(float64); ok && b[8]%2 == 0 {
		file["spreads"] = map[string]any{"decode_tps": map[string]any{"n": 3, "samples": []float64{samples, samples * 1.01, samples * 0.99}}} // too few for a permutation, which takes long
	}
	out, _ := json.Marshal(file)
	return out
}

// FuzzOddResults makes grids of odd result files. Whatever they hold: no ratio stands where a side is missing, failed, partial or
// without a number; a ratio is finite and that of the sides turned round is its inverse; ratios, means and what is faster or slower
// do not depend on the order of the files; and every form of the report can be written.
func FuzzOddResults(f *testing.F) {
	f.Add([]byte("0000000000111111111122222222223333333333"))
	f.Add([]byte{0, 0, 0, 0, 50, 60, 70, 0, 0, 0, 1, 0, 0, 0, 40, 50, 60, 0, 0, 0, 0, 0, 0, 0, 9, 60, 70, 2, 0, 0, 1, 0, 0, 4, 200, 8, 60, 2, 0, 0})
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 90, 90, 90, 2, 4, 0, 1, 0, 0, 0, 99, 99, 99, 2, 4, 0}, 3))
	f.Fuzz(holdOdd)
}

// TestOddResults is the same over many grids at once.
func TestOddResults(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		data := make([]byte, 10*(1+r.IntN(8)))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		holdOdd(t, data)
	}
}

func holdOdd(t *testing.T, data []byte) {
	const size = 10
	var cells []Cell
	points := map[string]bool{}
	for len(data) >= size && len(cells) < 8 {
		c, err := ParseCell(oddFile(data[:size]))
		data = data[size:]
		point := fmt.Sprint(c.place(), c.point())
		if err != nil || points[point] { // of one point the last file counts, which is an order
			continue
		}
		points[point] = true
		c.Source = "results"
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return
	}
	g := NewGrid(slices.Clone(cells), "tensorsharp", []string{"llamacpp", "vllm"}, nameOf)
	holdQuotients(t, g)
	turned := slices.Clone(cells)
	slices.Reverse(turned)
	back := NewGrid(turned, "tensorsharp", []string{"llamacpp", "vllm"}, nameOf)
	if a, b := toldBy(g), toldBy(back); a != b {
		t.Errorf("in one order\n%s\nin the other\n%s", a, b)
	}
	e := &Evidence{Title: "t", Engine: nameOf, Grid: g}
	d := Document(e)
	var out bytes.Buffer
	for _, err := range []error{d.HTML(&out), d.Markdown(&out), d.JSON(&out), Results(e).CSV(&out), Badge(e).SVG(&out)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// holdQuotients holds every pair of cells to what a ratio is.
func holdQuotients(t *testing.T, g *Grid) {
	all := slices.Concat(figures[:], parallelFigures[:])
	for i := range g.Cells {
		for k := range g.Cells[:i+1] {
			for _, f := range all {
				holdQuotient(t, g.proofs, f, &g.Cells[i], &g.Cells[k])
			}
		}
		for _, f := range all {
			if q := f.divide(&g.Cells[i], nil); q.why == "" || q.value != 0 {
				t.Errorf("a missing side: %+v", q)
			}
		}
	}
}

func holdQuotient(t *testing.T, ps proofs, f figure, a, b *Cell) {
	q, back := f.divide(a, b), f.divide(b, a)
	sound := a.ok() && b.ok() && f.of(a) > 0 && f.of(b) > 0
	shown := ps.cells(q)
	_, number := shown[0].Value()
	switch {
	case (q.why == "") != (back.why == ""):
		t.Errorf("%s: %q one way, %q the other", f.name, q.why, back.why)
	case q.why == "" && !sound:
		t.Errorf("%s of %+v over %+v is %v", f.name, a, b, q.value)
	case q.why == "" && (!(q.value > 0) || math.IsInf(q.value, 0) || math.Abs(q.value*back.value-1) > 1e-9):
		t.Errorf("%s: %v and %v", f.name, q.value, back.value)
	case number != (q.why == "") || !number && shown[0].Show(report.Column{}) != "—":
		t.Errorf("%s: shown as %s for %q", f.name, shown[0].Show(report.Column{}), q.why)
	}
	if raw, _ := json.Marshal(shown[0]); q.why != "" && !strings.Contains(string(raw), string(q.why)) {
		t.Errorf("the reason %q is not in %s", q.why, raw)
	}
}

// toldBy is what a grid says of its ratios, in an order of its own.
func toldBy(g *Grid) string {
	var lines []string
	faster, slower, open := (&Evidence{Grid: g}).standings(nil)
	for word, list := range map[string][]standing{"faster": faster, "slower": slower, "open": open} {
		for _, s := range list {
			lines = append(lines, fmt.Sprintf("%s %s %s %.9f %s %s %s", word, s.what, s.where, s.ratio, s.interval, s.n, s.why))
		}
	}
	for _, row := range g.headline().Table.Rows {
		var words []string
		for _, c := range row {
			words = append(words, c.Show(report.Column{Digits: 6}))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// FuzzCells holds that no file makes the reader fail, and that what it reads is written and shown.
func FuzzCells(f *testing.F) {
	f.Add(`{"engine":"e","model":"m","scenario":"s","status":"ok","decode_tps":NaN,"spreads":{"decode_tps":{"samples":[null]}}}`)
	f.Add(`{"engine":"e","model":"m","scenario":"s","status":"ok","command":[""],"identity":7,"memory":{"gpu_growth":-1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCell([]byte(text))
		if err != nil {
			return
		}
		for _, v := range []float64{c.DecodeTPS, c.PrefillTPS, c.TTFTMS, c.AggregateTPS, c.SteadyTPS, c.Batch} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v is no number", v)
			}
		}
		e := &Evidence{Title: "t", Engine: func(id string) string { return id }, Grid: NewGrid([]Cell{c}, "", nil, func(id string) string { return id })}
		var out bytes.Buffer
		if err := Document(e).JSON(&out); err != nil {
			t.Error(err)
		}
	})
}
