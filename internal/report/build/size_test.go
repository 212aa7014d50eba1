package build

import (
	"fmt"
	"io"
	"testing"
)

// largeMatrix is a matrix of a thousand cells on each side, five repeats each.
func largeMatrix() []Cell {
	var cells []Cell
	for i := range 1000 {
		for k, engine := range []string{"a", "b"} {
			c := repeated(engine, around(100+float64((i*7+k*13)%40))...)
			c.Model, c.Scenario = fmt.Sprintf("model-%d", i/50), fmt.Sprintf("scenario_%d", i%50)
			c.TTFTMS, c.PrefillTPS = 10+float64(i%9), 1000+float64(i%17)
			for _, field := range []string{fieldTTFT, fieldPrefill} {
				c.Spreads[field] = Spread{N: 5, Range: true, Samples: around(map[string]float64{fieldTTFT: c.TTFTMS, fieldPrefill: c.PrefillTPS}[field])}
			}
			c.Exchanges = append(c.Exchanges, idOf("AAAA", i))
			cells = append(cells, c)
		}
	}
	return cells
}

// BenchmarkMatrix builds and writes a report of 2,000 cells.
func BenchmarkMatrix(b *testing.B) {
	for b.Loop() {
		d := Document(&Evidence{Title: "t", Engine: func(id string) string { return id }, Grid: NewGrid(largeMatrix(), "", nil, func(id string) string { return id })})
		if err := d.HTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
