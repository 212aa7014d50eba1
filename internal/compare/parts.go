package compare

import (
	"cmp"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Part is the comparison of the requests of one model and scenario.
type Part struct {
	kind
	Pairs   int      `json:"pairs"`
	Metrics []Metric `json:"metrics"`
}

// WavePart is the comparison of requests that ran together, so many at a time.
type WavePart struct {
	kind
	Streams int      `json:"streams"`
	Metrics []Metric `json:"metrics"` // the rates of a wave: aggregate_decode_tps, steady_tps, batch_tps
}

// kind is what requests of one part have in common.
type kind struct {
	Model    string `json:"model,omitempty"`    // as the reference names it
	Scenario string `json:"scenario,omitempty"` // of a suite or a matrix
}

// kindOf is that of an exchange of a side.
func (c *comparison) kindOf(side int, e *Entry) kind {
	k := kind{Model: e.Row.Model}
	if e.Row.Item != nil {
		k.Scenario = c.scenarios[side][e.Row.Item.CaseID()]
	}
	return k
}

// nameModels learns from the pairs what the reference calls the models of the candidate.
func (c *comparison) nameModels() {
	c.named = map[string]string{}
	for i := range c.pairing.pairs {
		a, b := c.pairing.pairs[i].both()
		if c.named[b.Row.Model] == "" {
			c.named[b.Row.Model] = a.Row.Model
		}
	}
}

// kinds are those of the pairs, in the order in which the reference sent them.
func (c *comparison) kinds() (order []kind, pairs map[kind][]*pair) {
	pairs = map[kind][]*pair{}
	for i := range c.pairing.pairs {
		p := &c.pairing.pairs[i]
		k := c.kindOf(0, p.reference[0])
		if _, seen := pairs[k]; !seen {
			order = append(order, k)
		}
		pairs[k] = append(pairs[k], p)
	}
	return order, pairs
}

// parts are the ratios of each model and scenario; nil where all requests are of one kind, which the whole says already.
func (c *comparison) parts() []Part {
	order, pairs := c.kinds()
	if len(order) < 2 {
		return nil
	}
	out := make([]Part, len(order))
	for i, k := range order {
		out[i] = Part{kind: k, Pairs: len(pairs[k])}
		for _, m := range metrics {
			out[i].Metrics = append(out[i].Metrics, c.measureMetric(m, pairs[k]))
		}
	}
	return out
}

// waveSide are the waves of one side that are of one kind and size.
type waveSide struct {
	rates map[string][]float64 // by metric
	whys  map[string]map[exchange.Reason]int
	ids   []exchange.ID // exchanges of the first of them
}

// wavePart is both sides of one kind and size.
type wavePart struct {
	kind
	streams int
	sides   [2]waveSide
}

// waveMetrics are the rates of a wave.
var waveMetrics = [...]string{measure.AggregateDecodeTPS, measure.SteadyTPS, measure.BatchTPS}

// waves are the ratios of the rates of requests that ran together, the waves of one kind and size being the takes. Waves of
// which the other side has none of that kind and size are left out.
func (c *comparison) waves() []WavePart {
	var all []wavePart
	for side := range c.runs {
		all = c.gatherWaves(side, all)
	}
	var out []WavePart
	for i := range all {
		p := &all[i]
		if len(p.sides[0].ids) == 0 || len(p.sides[1].ids) == 0 {
			continue
		}
		w := WavePart{kind: p.kind, Streams: p.streams}
		for _, name := range waveMetrics {
			w.Metrics = append(w.Metrics, c.waveMetric(p, name))
		}
		out = append(out, w)
	}
	return out
}

// gatherWaves adds the waves of a side, each with the kind of its exchanges. The candidate's have the model of the reference's
// where the pairs say which that is.
func (c *comparison) gatherWaves(side int, all []wavePart) []wavePart {
	run := c.runs[side].Run.Replay
	if run == nil {
		return all
	}
	kinds, ids := map[string]kind{}, map[string][]exchange.ID{}
	for i := range c.runs[side].Entries {
		e := &c.runs[side].Entries[i]
		if e.Row.Wave == "" || !e.measured() {
			continue
		}
		ids[e.Row.Wave] = append(ids[e.Row.Wave], e.Row.ID)
		if _, seen := kinds[e.Row.Wave]; !seen {
			k := c.kindOf(side, e)
			if side == 1 {
				k.Model = cmp.Or(c.named[k.Model], k.Model)
			}
			kinds[e.Row.Wave] = k
		}
	}
	for _, w := range run.Waves {
		k, known := kinds[w.Wave]
		if !known || w.Streams < 2 {
			continue
		}
		i := slices.IndexFunc(all, func(p wavePart) bool { return p.kind == k && p.streams == w.Streams })
		if i < 0 {
			i = len(all)
			all = append(all, wavePart{kind: k, streams: w.Streams})
		}
		all[i].sides[side].add(&w, ids[w.Wave])
	}
	return all
}

func (s *waveSide) add(w *exchange.WaveRate, ids []exchange.ID) {
	if s.rates == nil {
		s.rates, s.whys, s.ids = map[string][]float64{}, map[string]map[exchange.Reason]int{}, ids[:min(len(ids), behind)]
	}
	for _, name := range waveMetrics {
		f := w.Figures[name]
		if f.Present() {
			s.rates[name] = append(s.rates[name], f.Value)
			continue
		}
		if s.whys[name] == nil {
			s.whys[name] = map[exchange.Reason]int{}
		}
		s.whys[name][cmp.Or(f.Reason, measure.ReasonNotReported)]++
	}
}

// waveMetric compares one rate of the waves of one kind and size.
func (c *comparison) waveMetric(p *wavePart, name string) Metric {
	out := Metric{Name: name, Unit: "tok/s", Better: "higher", Excluded: map[exchange.Reason]int{}, LeftOut: map[exchange.Reason]int{}}
	for side := range p.sides {
		for why, n := range p.sides[side].whys[name] {
			out.LeftOut[why] += n
		}
	}
	var things []stat.Matched
	if a, b := p.sides[0].rates[name], p.sides[1].rates[name]; len(a) > 0 && len(b) > 0 {
		things = append(things, stat.Matched{Reference: a, Candidate: b})
	} else {
		out.Excluded, out.LeftOut = out.LeftOut, out.Excluded
	}
	c.weigh(&out, metric{name: name, moreBetter: true}, things)
	if out.Ratio != nil {
		out.Exchanges = slices.Concat(p.sides[0].ids, p.sides[1].ids)
	}
	return out
}
