package build

import (
	"io"
	"runtime"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// BenchmarkReport gathers and renders a run of 10,000 exchanges of 100 tokens in every form, with all definition sets.
func BenchmarkReport(b *testing.B) {
	const exchanges, kinds = 10_000, 50
	var written []*exchange.Exchange
	for i := range kinds {
		w := answer{model: "m-9b", prompt: 100 * (i%20 + 1), tokens: 100, ttft: 50 + float64(i), gap: 10, limit: 100, engine: 99}
		written = append(written, w.written("AAAA"))
	}
	b.ReportAllocs()
	for b.Loop() {
		r := newRig(b, "AAAA", "run", measure.Sets(), nil)
		for i := range exchanges {
			x := *written[i%kinds]
			x.ID, x.Seq = idOf("AAAA", i+1), uint64(i+1)
			a := measure.Analyze(&x)
			row := measure.Summarize(&x, a)
			r.run.Add(&x, a, &row)
		}
		e := &Evidence{Title: "Large", Made: origin, Runs: []*Run{r.run}}
		d := Document(e)
		for _, write := range []func(io.Writer) error{d.HTML, d.Markdown, d.JSON, Results(e).CSV} {
			if err := write(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
}
