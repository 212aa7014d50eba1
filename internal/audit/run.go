package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// claimed are the metrics whose numbers people publish. Those of which more is better are held against ceilings.
var claimed = [...]string{measure.DecodeTPS, measure.PrefillTPS, measure.TTFTMS, measure.EngineDecodeTPS, measure.EnginePrefillTPS, measure.WallTPS}

// Shape is what requests must have in common for their numbers to be one number.
type Shape struct {
	Model   string
	Path    string
	Prompt  int // the prompt has at most so many tokens, a power of two; 0 when its tokens are not known
	Streams int // requests at once, itself included; 0 when not known
}

// Key is how a stated ceiling names the shape: 2048, or 2048x4 for four at once.
func (s Shape) Key() string {
	key := fmt.Sprint(s.Prompt)
	if s.Streams > 1 {
		key += fmt.Sprintf("x%d", s.Streams)
	}
	return key
}

// String is the shape for people.
func (s Shape) String() string {
	text := s.Model + " " + s.Path
	if s.Prompt > 0 {
		text += fmt.Sprintf(", prompt up to %d tokens", s.Prompt)
	}
	if s.Streams > 1 {
		text += fmt.Sprintf(", %d at once", s.Streams)
	}
	return text
}

// Run is a recorded run with what its exchanges come to. It is filled row by row, in the order of acceptance, by one
// goroutine; NewRun makes one.
type Run struct {
	exchange.Run
	Role Role

	shapes map[Shape]*numbers
	rows   int
	broken []brokenRecord
	drafts drafting
}

type brokenRecord struct {
	id  exchange.ID
	why string
}

// numbers are the samples of the requests of one shape.
type numbers struct {
	samples map[string][]sampled
	drafts  drafting
}

type sampled struct {
	value float64
	basis exchange.Basis
	id    exchange.ID
}

// drafting is what answers tell of drafts.
type drafting struct {
	acceptance []float64
	window     []float64 // tokens drafted in one step
}

// NewRun begins to gather a run.
func NewRun(run exchange.Run, role Role) *Run {
	return &Run{Run: run, Role: role, shapes: map[Shape]*numbers{}}
}

// Add takes one exchange: its row, derived by the rules of today, and why its record is no evidence ("" when it is).
func (r *Run) Add(row *exchange.Summary, problem string) {
	r.rows++
	if problem != "" {
		r.broken = append(r.broken, brokenRecord{row.ID, problem})
		return
	}
	if row.Dialect == "" || row.Item != nil && row.Item.Warmup {
		return
	}
	shape := r.shapeOf(row)
	n := r.shapes[shape]
	if n == nil {
		n = &numbers{samples: map[string][]sampled{}}
		r.shapes[shape] = n
	}
	for _, name := range claimed {
		if f, why := measure.Sample(row, name); why == "" {
			n.samples[name] = append(n.samples[name], sampled{f.Value, f.Basis, row.ID})
		}
	}
	for _, d := range [...]*drafting{&n.drafts, &r.drafts} {
		d.add(row)
	}
}

func (d *drafting) add(row *exchange.Summary) {
	if f, why := measure.Sample(row, measure.DraftAcceptance); why == "" {
		d.acceptance = append(d.acceptance, f.Value)
	}
	if f, why := measure.Sample(row, measure.DraftWindow); why == "" {
		d.window = append(d.window, f.Value)
	}
}

// shapeOf is the shape of a request.
func (r *Run) shapeOf(row *exchange.Summary) Shape {
	s := Shape{Model: row.Model, Path: row.Path}
	if f := row.Metrics[measure.PromptTokens]; f.Present() && f.Value >= 1 {
		s.Prompt = 1 << bits.Len64(uint64(f.Value)-1)
	}
	switch plan := r.Replay; {
	case plan == nil:
	case row.Wave != "":
		for _, w := range plan.Waves {
			if w.Wave == row.Wave {
				s.Streams = w.Streams
			}
		}
	case plan.Schedule == nil:
		s.Streams = plan.Settings.Concurrency
	}
	return s
}

// ordered are the shapes in an order that does not depend on the order of the exchanges.
func (r *Run) ordered() []Shape {
	return slices.SortedFunc(maps.Keys(r.shapes), func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Prompt, b.Prompt), cmp.Compare(a.Streams, b.Streams))
	})
}

// Claim is one number of a run with the exchanges that it comes from.
type Claim struct {
	Run       exchange.ID     `json:"run"`
	Name      string          `json:"name,omitempty"` // of the run
	Role      Role            `json:"role"`
	Shape     string          `json:"requests"` // what the requests have in common
	Metric    string          `json:"metric"`
	Unit      string          `json:"unit"`
	Value     float64         `json:"value"` // median
	N         int             `json:"n"`
	Basis     exchange.Basis  `json:"basis"`
	Exchanges []exchange.ID   `json:"exchanges"` // the first ones
	Ceiling   *Ceiling        `json:"ceiling"`   // null when there is none
	NoCeiling exchange.Reason `json:"no_ceiling,omitempty"`
	Share     *float64        `json:"share_of_ceiling"`
}

// claimOf is the number of a metric over the requests of one shape; ok is false when there are no samples. Estimated ones
// stand in only when there is nothing exact.
func (r *Run) claimOf(s Shape, metric string) (c Claim, exact []sampled, ok bool) {
	all := r.shapes[s].samples[metric]
	exact = slices.DeleteFunc(slices.Clone(all), func(x sampled) bool { return x.basis == exchange.BasisEstimated })
	if len(exact) == 0 {
		exact = all
	}
	if len(exact) == 0 {
		return c, nil, false
	}
	values := make([]float64, len(exact))
	ids := make([]exchange.ID, len(exact))
	for i, x := range exact {
		values[i], ids[i] = x.value, x.id
	}
	c = Claim{Run: r.ID, Name: r.Name, Role: r.Role, Shape: s.String(), Metric: metric, Unit: unitOf(metric), Value: median(values), N: len(values),
		Basis: exact[0].basis, Exchanges: first(ids)}
	return c, exact, true
}

func unitOf(metric string) string {
	for _, d := range measure.Metrics() {
		if d.Name == metric {
			return d.Unit
		}
	}
	return ""
}

// median is that of at least one value.
func median(values []float64) float64 {
	s := stat.Summarize(values)
	return *s.Median
}
