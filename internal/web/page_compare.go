package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
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
	Takes      []takeRow // of the one that is named, where the other is not
	MoreTakes  string    // address of all of them, "" where these are
}

// Whole reports whether there are two takes to show.
func (b *compareBody) Whole() bool { return b.IDs[0] != "" && b.IDs[1] != "" }

// takeSide is one of them.
type takeSide struct {
	Detail    exchange.Detail
	Run       string
	Engine    string
	Waterfall chart.SVG
	Narrow    chart.SVG // the same for a phone
	Texts     []parted

	fall chart.Waterfall
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

// Empty reports whether this one has nothing there.
func (p parted) Empty() bool { return p.Shared == nil && p.Own == nil }

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
		if err := s.others(b); err != nil {
			return err
		}
		return s.show(w, began, frame{Title: "side by side", Nav: "compare", Body: b}, "compare", wholePage)
	}
	for i := range b.IDs {
		if err := s.fillSide(b, i); err != nil {
			return err
		}
	}
	b.draw()
	b.SameKey = b.Sides[0].Detail.Key == b.Sides[1].Detail.Key && b.Sides[0].Detail.Key != ""
	b.Divergence, b.Diverges = compare.Diverge(compare.AnswerOf(&b.Sides[0].Detail), compare.AnswerOf(&b.Sides[1].Detail))
	b.part()
	b.metrics()
	return s.show(w, began, frame{Title: "side by side", Nav: "compare", Body: b}, "compare", wholePage)
}

// idOf is the id of an exchange that side i is asked for with.
func (b *compareBody) idOf(i int) (exchange.ID, error) {
	id := strings.ToUpper(b.IDs[i])
	if !exchange.ValidID(id) {
		return "", fmt.Errorf("%w: %s=%q is not the id of an exchange", exchange.ErrUsage, []string{"a", "b"}[i], oneLine(id, 40))
	}
	return exchange.ID(id), nil
}

// fillSide reads one of the two.
func (s *Server) fillSide(b *compareBody, i int) error {
	id, err := b.idOf(i)
	if err != nil {
		return err
	}
	x, row, err := s.o.Store.Exchange(id)
	if err != nil {
		return err
	}
	a := measure.Analyze(x)
	side := takeSide{Detail: measure.DetailOf(x, a, row), Run: string(x.Run), fall: waterfallOf(x, a.Transcript)}
	if run, err := s.o.Store.Run(string(x.Run)); err == nil {
		side.Run = runName(&run)
	}
	side.Engine = cmp.Or(x.Identity.Engine, "engine not read") + " " + x.Identity.Version
	b.Sides[i] = side
	return nil
}

// draw draws both on one scale of time.
func (b *compareBody) draw() {
	end := max(b.Sides[0].fall.End, b.Sides[1].fall.End)
	for i := range b.Sides {
		side := &b.Sides[i]
		side.fall.End = end
		side.Waterfall, side.Narrow = drawnAt(side.fall, halfWidth), drawnAt(side.fall, narrowWidth)
	}
}

// others are the takes that one exchange alone can be set beside; none where its id is not whole yet.
func (s *Server) others(b *compareBody) error {
	given := 0
	if b.IDs[0] == "" {
		given = 1
	}
	if b.IDs[given] == "" {
		return nil
	}
	id, err := b.idOf(given)
	if err != nil {
		return nil
	}
	_, row, err := s.o.Store.Exchange(id)
	if errors.Is(err, exchange.ErrMiss) || err == nil && row.Key == "" {
		return nil
	}
	if err != nil {
		return err
	}
	takes, more, err := s.o.Store.TakesAfter(row.Key, recorder.Take{}, takesShown)
	if err != nil {
		return err
	}
	takes = slices.DeleteFunc(takes, func(t recorder.Take) bool { return t.ID == id })
	if b.Takes = s.takeRows(takes, id); more {
		b.MoreTakes = takesAddress(row.Key) + "?with=" + string(id)
	}
	return nil
}

// With is the address of the one that is named beside another.
func (b *compareBody) With(id string) string {
	ids := b.IDs
	if ids[0] == "" {
		ids[0] = id
	} else {
		ids[1] = id
	}
	return "/compare?a=" + url.QueryEscape(ids[0]) + "&b=" + url.QueryEscape(ids[1])
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
