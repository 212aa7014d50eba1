package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The bounds of a comparison.
const (
	sharedRunes = 600  // shown before the divergence
	partedRunes = 6000 // and behind it
)

// compareBody is two takes side by side, or the form that asks for them.
type compareBody struct {
	IDs        [2]string // as asked for
	Sides      [2]takeSide
	SameKey    bool
	Diverges   bool
	Divergence compare.Divergence
	Rows       []comparedMetric
}

// Whole reports whether there are two takes to show.
func (b *compareBody) Whole() bool { return b.IDs[0] != "" && b.IDs[1] != "" }

// takeSide is one of them.
type takeSide struct {
	Detail    exchange.Detail
	Run       string
	Engine    string
	Waterfall chart.SVG
	Texts     []parted
}

// Name is the model.
func (t takeSide) Name() string { return cmp.Or(t.Detail.Model, t.Detail.Method+" "+t.Detail.Path) }

// parted is a channel of an answer: what both share, and how this one goes on.
type parted struct {
	Name    string
	Skipped int // characters of the shared part that are not shown
	Shared  []segment
	Own     []segment
	More    int // characters behind that are not shown
}

// comparedMetric is a metric of both.
type comparedMetric struct {
	measure.Definition
	A, B  exchange.Figure
	Ratio string // B / A, "" when it cannot be had
}

// TextA and TextB are its values.
func (m comparedMetric) TextA() string { return figureText(m.A, m.Unit) }

// TextB is the value of the second take.
func (m comparedMetric) TextB() string { return figureText(m.B, m.Unit) }

// comparePage shows two exchanges side by side.
func (s *Server) comparePage(w http.ResponseWriter, r *http.Request) error {
	began := clock.Now()
	q := r.URL.Query()
	b := &compareBody{IDs: [2]string{strings.TrimSpace(q.Get("a")), strings.TrimSpace(q.Get("b"))}}
	if b.IDs[0] == "" || b.IDs[1] == "" {
		return s.show(w, began, frame{Title: "side by side", Nav: "compare", Body: b}, "compare", wholePage)
	}
	for i, name := range []string{"a", "b"} {
		id := strings.ToUpper(b.IDs[i])
		if !exchange.ValidID(id) {
			return fmt.Errorf("%w: %s=%q is not the id of an exchange", exchange.ErrUsage, name, oneLine(id, 40))
		}
		x, row, err := s.o.Store.Exchange(exchange.ID(id))
		if err != nil {
			return err
		}
		side := takeSide{Detail: measure.Detail(x, row), Run: string(x.Run), Waterfall: waterfallOf(x, wire.Parse(x), halfWidth)}
		if run, err := s.o.Store.Run(string(x.Run)); err == nil {
			side.Run = runName(&run)
		}
		side.Engine = cmp.Or(x.Identity.Engine, "engine not read") + " " + x.Identity.Version
		b.Sides[i] = side
	}
	b.SameKey = b.Sides[0].Detail.Key == b.Sides[1].Detail.Key && b.Sides[0].Detail.Key != ""
	b.Divergence, b.Diverges = compare.Diverge(compare.AnswerOf(&b.Sides[0].Detail), compare.AnswerOf(&b.Sides[1].Detail))
	b.part()
	b.metrics()
	return s.show(w, began, frame{Title: "side by side", Nav: "compare", Body: b}, "compare", wholePage)
}

// part cuts each channel where the two answers part.
func (b *compareBody) part() {
	texts := func(d *exchange.Detail) [][2]string {
		out := [][2]string{{"reasoning", d.ReasoningText}, {"refusal", d.RefusalText}, {"answer", d.OutputText}}
		for i, c := range d.Calls {
			if i < callsShown {
				out = append(out, [2]string{fmt.Sprintf("call %d", i+1), c.Name + "(" + c.Arguments + ")"})
			}
		}
		return out
	}
	a, c := texts(&b.Sides[0].Detail), texts(&b.Sides[1].Detail)
	for i := range max(len(a), len(c)) {
		var name string
		var both [2]string
		if i < len(a) {
			name, both[0] = a[i][0], a[i][1]
		}
		if i < len(c) {
			name, both[1] = c[i][0], c[i][1]
		}
		if both[0] == "" && both[1] == "" {
			continue
		}
		one, two := partBoth(name, both)
		b.Sides[0].Texts = append(b.Sides[0].Texts, one)
		b.Sides[1].Texts = append(b.Sides[1].Texts, two)
	}
}

func partBoth(name string, both [2]string) (parted, parted) {
	a, b := []rune(both[0]), []rune(both[1])
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-sharedRunes)
	if n == len(a) && n == len(b) { // the same: its beginning is worth more than its end
		from, n = 0, min(n, partedRunes)
	}
	one := func(text []rune) parted {
		p := parted{Name: name, Skipped: from, More: max(0, len(text)-n-partedRunes)}
		p.Shared, _ = visible(string(text[from:n]), excerptBytes)
		if len(a) != len(b) || n < len(a) && string(a[n:]) != string(b[n:]) {
			p.Own, _ = visible(string(text[n:min(len(text), n+partedRunes)]), excerptBytes)
		}
		return p
	}
	return one(a), one(b)
}

// metrics sets the figures that either take has beside each other.
func (b *compareBody) metrics() {
	for _, m := range measure.Metrics() {
		row := comparedMetric{Definition: m, A: b.Sides[0].Detail.Metrics[m.Name], B: b.Sides[1].Detail.Metrics[m.Name]}
		if !row.A.Present() && !row.B.Present() {
			continue
		}
		if row.A.Present() && row.B.Present() && row.A.Value > 0 && row.A.Basis == row.B.Basis {
			row.Ratio = fmt.Sprintf("%.3f", row.B.Value/row.A.Value)
		}
		b.Rows = append(b.Rows, row)
	}
}
