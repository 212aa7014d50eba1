package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// ratiosSection is every comparison of runs: candidate / reference with interval, sample and verdict.
func (e *Evidence) ratiosSection() (report.Section, bool) {
	s := report.Section{ID: "ratios", Title: "Runs against each other"}
	for i := range e.Comparisons {
		s.Parts = append(s.Parts, e.Comparisons[i].part())
	}
	return s, len(s.Parts) > 0
}

// name tells a comparison from others: of one that was read it has the file, since the runs behind it may have the names of
// others.
func (c *Compared) name() string {
	name := c.Candidate + " / " + c.Reference
	if c.File != "" {
		name += " [" + c.File + "]"
	}
	return name
}

func (c *Compared) part() report.Section {
	p := report.Section{ID: "ratio-" + slug(c.name()), Title: c.name()}
	p.Table = report.Table{Formula: "candidate / reference, the median over pairs of requests that belong together", Source: "exchanges of both runs",
		Sample: "n is the number of pairs", Spread: "95 % interval of the ratio by permutation; P is the chance of such a difference between equal sides",
		Columns: append([]report.Column{{Name: "Metric", Key: true}}, comparedColumns()...)}
	if c.Report == nil {
		p.Lead = []string{"There is no ratio: " + c.Failed + "."}
		p.Table = report.Table{}
		return p
	}
	r := c.Report
	p.Lead = []string{fmt.Sprintf("%d pairs by %s; %d of the reference and %d of the candidate have no partner; %d and %d failed.", r.Pairing.Pairs, r.Pairing.By,
		r.Pairing.Unpaired[0], r.Pairing.Unpaired[1], r.Reference.Failed, r.Candidate.Failed)}
	if len(r.Refused) > 0 {
		p.Lead = append(p.Lead, "The comparison is refused: "+reasonsText(r.Refused)+".")
	}
	for _, m := range r.Metrics {
		if m.Ratio != nil || slices.Contains(headMetrics[:], m.Name) {
			p.Table.Add(append([]report.Cell{report.Text(m.Name)}, comparedCells(m)...)...)
		}
	}
	p.Notes = append(auditNotes(r), boundNotes(r)...)
	parts := []report.Section{c.kindsPart(), c.wavesPart(), answersPart(c)}
	if c.File != "" {
		parts = append(parts, c.runsPart())
	}
	for _, part := range parts {
		if len(part.Table.Rows) > 0 {
			p.Parts = append(p.Parts, part)
		}
	}
	return p
}

// comparedColumns are those of a metric on two sides, behind its name.
func comparedColumns() []report.Column {
	return []report.Column{{Name: "reference", Number: true, Digits: 1}, {Name: "candidate", Number: true, Digits: 1}, {Name: "unit"},
		{Name: "ratio", Number: true, Digits: 3, Suffix: "×"}, {Name: "95 % interval"}, {Name: "n", Number: true}, {Name: "P", Number: true, Digits: 4}, {Name: "verdict"}, {Name: "why"}}
}

// comparedCells are a metric on two sides, as comparedColumns heads them.
func comparedCells(m compare.Metric) []report.Cell {
	why := reasonsText(m.Reasons)
	var first exchange.Reason
	if len(m.Reasons) > 0 {
		first = m.Reasons[0]
	}
	ratio, interval := report.Optional(m.Ratio, first).Of(m.Exchanges...), report.Absent("too_few_takes")
	if m.Interval != nil {
		interval = report.Text(fmt.Sprintf("%.3f to %.3f", m.Interval.Lo, m.Interval.Hi))
		ratio = ratio.Spread(report.Spread{Lo: m.Interval.Lo, Hi: m.Interval.Hi, N: m.N, Kind: report.SpreadInterval})
	}
	verdict := report.Text(string(m.Verdict))
	switch m.Verdict {
	case compare.Better:
		verdict, ratio = verdict.Toned(report.Good), ratio.Toned(report.Good)
	case compare.Worse:
		verdict, ratio = verdict.Toned(report.Bad), ratio.Toned(report.Bad)
	}
	return []report.Cell{report.Optional(m.Reference, first).Of(m.Exchanges...), report.Optional(m.Candidate, first).Of(m.Exchanges...), report.Text(m.Unit), ratio, interval,
		report.Count(m.N), report.Optional(m.P, "too_few_takes").Of(m.Exchanges...), verdict, report.Text(why)}
}

// kindColumns name a model and scenario.
func kindColumns() []report.Column {
	return []report.Column{{Name: "Model", Key: true}, {Name: "Scenario", Key: true}}
}

func kindCells(model, scenario string) []report.Cell {
	return []report.Cell{textOr(model, "not_named"), textOr(scenario, "no_suite")}
}

// kindsPart is the head metrics of each model and scenario, and the geometric means over the scenarios of each model.
func (c *Compared) kindsPart() report.Section {
	p := report.Section{ID: "kinds-" + slug(c.name()), Title: "By model and scenario: " + c.name()}
	p.Table = report.Table{Formula: "candidate / reference, the median over the pairs of one model and scenario; a geometric mean is over the scenarios of the model that have a ratio", Source: "exchanges of both runs",
		Sample: "n is the number of pairs, of a mean that of the scenarios", Spread: "95 % interval of the ratio by permutation, from 11 scenarios on of a mean by bootstrap; each row is a test of its own: of rows of equal sides one in twenty comes out different by chance",
		Columns: slices.Concat(kindColumns(), []report.Column{{Name: "Metric", Key: true}}, comparedColumns())}
	var models []string
	for _, k := range c.Report.Parts {
		if !slices.Contains(models, k.Model) {
			models = append(models, k.Model)
		}
	}
	for _, model := range models {
		for _, name := range headMetrics {
			var ratios []float64
			for _, k := range c.Report.Parts {
				i := slices.IndexFunc(k.Metrics, func(m compare.Metric) bool { return m.Name == name })
				if k.Model != model || i < 0 {
					continue
				}
				m := k.Metrics[i]
				p.Table.Add(slices.Concat(kindCells(k.Model, k.Scenario), []report.Cell{report.Text(m.Name)}, comparedCells(m))...)
				if m.Ratio != nil {
					ratios = append(ratios, *m.Ratio)
				}
			}
			if len(ratios) > 1 {
				p.Table.Add(slices.Concat([]report.Cell{textOr(model, "not_named"), report.Text("all, geometric mean"), report.Text(name)}, meanCells(ratios, p.ID))...)
			}
		}
	}
	return p
}

// reasonFewScenarios is why a mean over scenarios of runs has no interval.
const reasonFewScenarios exchange.Reason = "fewer_than_11_scenarios"

// meanCells are a geometric mean of ratios, as comparedColumns heads them.
func meanCells(ratios []float64, ref string) []report.Cell {
	value, n, iv := stat.GeoMean(ratios)
	mean, interval := report.Number(value).In(ref), report.AbsentAs("— (fewer than 11 scenarios)", reasonFewScenarios)
	if iv != nil {
		mean = mean.Spread(report.Spread{Lo: iv.Lo, Hi: iv.Hi, N: n, Kind: report.SpreadInterval})
		interval = report.Text(fmt.Sprintf("%.3f to %.3f", iv.Lo, iv.Hi))
	}
	none := report.Absent("a_mean")
	return []report.Cell{none, none, none, mean, interval, report.Count(n), none, none, none}
}

// wavesPart is the rates of requests that ran together, on both sides.
func (c *Compared) wavesPart() report.Section {
	p := report.Section{ID: "waves-" + slug(c.name()), Title: "Requests that ran together: " + c.name()}
	p.Table = report.Table{Formula: "candidate / reference, medians over the waves of one model, scenario and size; " + waveFormula, Source: "waves of both runs; one failed member voids the rates of its wave",
		Sample: "n is the number of waves of the side that has fewer", Spread: "95 % interval of the ratio by permutation of the waves",
		Columns: slices.Concat(kindColumns(), []report.Column{{Name: "at a time", Number: true, Key: true}, {Name: "Metric", Key: true}}, comparedColumns())}
	for _, w := range c.Report.Waves {
		for _, m := range w.Metrics {
			m.N = min(m.Takes[0], m.Takes[1]) // the waves of a side are the takes of one thing
			p.Table.Add(slices.Concat(kindCells(w.Model, w.Scenario), []report.Cell{report.Count(w.Streams), report.Text(m.Name)}, comparedCells(m))...)
		}
	}
	return p
}

func reasonsText(rs []exchange.Reason) string {
	var words []string
	for _, r := range rs {
		words = append(words, strings.ReplaceAll(string(r), "_", " "))
	}
	return strings.Join(words, ", ")
}

// auditNotes are what a reader must know before believing the ratios: what differs, and what is not known to be the same.
func auditNotes(r *compare.Report) (notes []string) {
	var unknown []string
	for _, k := range r.Checks {
		switch k.Answer {
		case compare.Differs:
			text := "Differs: " + k.Name
			if k.Detail != "" {
				text += ": " + k.Detail
			}
			if k.Accepted {
				text += " (accepted)"
			}
			notes = append(notes, text)
		case compare.Unknown:
			unknown = append(unknown, k.Name)
		}
	}
	for _, f := range r.Deployments.Differs {
		notes = append(notes, fmt.Sprintf("Differs: deployment %s: %s against %s", f.Field, f.Reference, f.Candidate))
	}
	if unknown = append(unknown, r.Deployments.Unknown...); len(unknown) > 0 {
		notes = append(notes, "Not known to be the same: "+strings.Join(unknown, ", "))
	}
	return notes
}

// firstExchanges are some of both sides that were compared.
func (c *Compared) firstExchanges() []exchange.ID {
	for _, m := range c.Report.Metrics {
		if len(m.Exchanges) > 0 {
			return m.Exchanges
		}
	}
	return nil
}

// boundNotes are the bounds that the comparison was held to.
func boundNotes(r *compare.Report) (notes []string) {
	for _, b := range r.Bounds {
		state := "does not hold"
		switch {
		case b.Value == nil:
			state = "no number, " + reasonsText(b.Reasons)
		case b.Violated:
			state = fmt.Sprintf("holds at %.4g: a regression", *b.Value)
		}
		notes = append(notes, "Bound "+b.Bound+": "+state)
	}
	return notes
}

// runsPart is the two runs of a comparison whose exchanges this report does not have.
func (c *Compared) runsPart() report.Section {
	p := report.Section{ID: "runs-" + slug(c.name()), Title: "The runs behind " + c.name()}
	p.Table = report.Table{Source: "the file of the comparison; the exchanges stand in the store that it was made from", Formula: "tokens a second: of complete answers, over the whole run and over its steady window", Sample: "requests without warm-ups", Columns: []report.Column{{Name: "Side", Key: true}, {Name: "Run"}, {Name: "id"},
		{Name: "Engine"}, {Name: "Build"}, {Name: "made by"}, {Name: "State"}, {Name: "requests", Number: true}, {Name: "complete", Number: true}, {Name: "failed", Number: true, Better: report.Lower},
		{Name: "in flight", Number: true}, {Name: "seconds", Number: true, Digits: 1}, rateColumn("whole run"), rateColumn("steady")}}
	for _, side := range []struct {
		name, label string
		v           *compare.RunView
	}{{"reference", c.Reference, &c.Report.Reference}, {"candidate", c.Candidate, &c.Report.Candidate}} {
		v := side.v
		p.Table.Add(report.Text(side.name), report.Text(side.label), report.Text(string(v.ID)).Of(c.firstExchanges()...), textOr(v.Engine.Engine, "not_known"), textOr(v.Engine.Version, "not_reported"), report.Text(v.Mode), report.Text(string(v.State)),
			report.Count(v.Load.Requests), report.Count(v.Load.Complete), report.Count(v.Failed), report.Count(v.Load.InFlight), report.Number(v.Load.WholeS), report.Optional(v.Load.WholeTPS, "no_token_count"), report.Optional(v.Load.SteadyTPS, "no_token_count"))
	}
	return p
}

// answersPart is how far two runs answered alike, the least agreement first.
func answersPart(c *Compared) report.Section {
	a := c.Report.Answers
	p := report.Section{ID: "answers-" + slug(c.name()), Title: "Output quality: the answers of " + c.name()}
	p.Table = report.Table{Formula: "prefix: common start / longer answer, in characters; difflib: ratio of the texts with white space joined, candidate first",
		Source: "pairs that both sides answered in full", Sample: "n is the number of pairs", Spread: "least and largest of the pairs",
		Columns: []report.Column{{Name: "Measure", Key: true}, {Name: "n", Number: true}, {Name: "mean", Number: true, Digits: 3, Better: report.Higher}, {Name: "min", Number: true, Digits: 3}, {Name: "max", Number: true, Digits: 3}}}
	identical := report.Absent("no_pairs")
	if a.Identical.Share != nil {
		identical = report.Number(*a.Identical.Share)
		if iv := a.Identical.Interval; iv != nil {
			identical = identical.Spread(report.Spread{Lo: iv.Lo, Hi: iv.Hi, N: a.Identical.Whole, Kind: report.SpreadInterval})
		}
	}
	ids := c.firstExchanges()
	p.Table.Add(report.Text("identical answers").Of(ids...), report.Count(a.Identical.Whole), identical, report.Absent("a_share"), report.Absent("a_share"))
	for _, m := range []struct {
		name string
		m    compare.Measure
	}{{"prefix agreement", a.Prefix}, {"difflib ratio", a.Difflib}} {
		p.Table.Add(report.Text(m.name).Of(ids...), report.Count(m.m.N), report.Optional(m.m.Mean, "no_pairs"), report.Optional(m.m.Min, "no_pairs"), report.Optional(m.m.Max, "no_pairs"))
	}
	var grades []string
	for _, g := range []string{"high agreement", "moderate", "low", "diverged"} {
		if n := a.Grades[g]; n > 0 {
			grades = append(grades, fmt.Sprintf("%s %d", g, n))
		}
	}
	if len(grades) > 0 {
		p.Notes = append(p.Notes, "Verdicts by difflib ratio: "+strings.Join(grades, ", ")+".")
	}
	for i, side := range []string{c.Reference, c.Candidate} {
		if a.Unstable[i] > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%d requests got different answers within %s itself.", a.Unstable[i], side))
		}
	}
	for _, d := range a.Divergences[:min(len(a.Divergences), mostExcerpts)] {
		ratio := ""
		if d.Difflib != nil {
			ratio = fmt.Sprintf(", similarity %.2f", *d.Difflib)
		}
		p.Excerpts = append(p.Excerpts, report.Excerpt{
			Title:  fmt.Sprintf("Numbers %d and %d part in the %s after %d characters%s", d.Seq[0], d.Seq[1], strings.ReplaceAll(d.Channel, "_", " "), d.Offset, ratio),
			Shared: d.Shared, Sides: []string{c.Reference, c.Candidate}, Texts: d.Texts[:], Refs: []string{string(d.Reference), string(d.Candidate)},
		})
	}
	return p
}

// standing is one number by which the subject is faster or slower.
type standing struct {
	what, where string
	ratio       float64 // above 1 the subject is better
	interval    string
	n           string
	why         exchange.Reason // it is not told from 1; "" where it is
	ref         string          // section that has it
}

// standings are all of them: of comparisons of runs whose verdict is told from noise, and of ratios of cells. Those of cells
// whose repeats do not tell the ratio from 1 are open. m takes the marks of configurations; nil for no marks.
func (e *Evidence) standings(m *marks) (faster, slower, open []standing) {
	add := func(s standing, better bool) {
		switch {
		case s.why != "":
			open = append(open, s)
		case better:
			faster = append(faster, s)
		default:
			slower = append(slower, s)
		}
	}
	for i := range e.Comparisons {
		e.Comparisons[i].standings(add)
	}
	if g := e.Grid; g != nil {
		g.standings(m, add)
	}
	order := func(a, b standing) int { return cmp.Compare(b.ratio, a.ratio) }
	slices.SortStableFunc(faster, order)
	slices.SortStableFunc(slower, func(a, b standing) int { return order(b, a) })
	slices.SortStableFunc(open, func(a, b standing) int { return order(b, a) })
	return faster, slower, open
}

func (c *Compared) standings(add func(standing, bool)) {
	if c.Report == nil {
		return
	}
	c.stand(c.Report.Metrics, c.name(), "ratio-"+slug(c.name()), add)
	for _, k := range c.Report.Parts {
		head := slices.DeleteFunc(slices.Clone(k.Metrics), func(m compare.Metric) bool { return !slices.Contains(headMetrics[:], m.Name) })
		c.stand(head, joined(c.name(), k.Model, k.Scenario), "kinds-"+slug(c.name()), add)
	}
	for _, w := range c.Report.Waves {
		c.stand(w.Metrics, joined(c.name(), w.Model, w.Scenario, fmt.Sprintf("%d at a time", w.Streams)), "waves-"+slug(c.name()), add)
	}
}

// joined are the words that are not empty.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// stand adds the metrics whose verdict is told from noise.
func (c *Compared) stand(metrics []compare.Metric, where, ref string, add func(standing, bool)) {
	for _, m := range metrics {
		if m.Verdict != compare.Better && m.Verdict != compare.Worse {
			continue
		}
		s := standing{what: m.Name, where: where, ratio: *m.Ratio, n: fmt.Sprint(m.N), interval: fmt.Sprintf("%.3f to %.3f", m.Interval.Lo, m.Interval.Hi), ref: ref}
		if m.Better == report.Lower {
			s.ratio, s.interval = 1/s.ratio, fmt.Sprintf("%.3f to %.3f", 1/m.Interval.Hi, 1/m.Interval.Lo)
		}
		add(s, m.Verdict == compare.Better)
	}
}

func (g *Grid) standings(m *marks, add func(standing, bool)) {
	for _, model := range g.models() {
		for _, a := range g.comparisons(model) {
			for _, scenario := range g.scenarios(model) {
				for _, f := range figures {
					if q := g.quotient(a, f, model, scenario); q.why == "" {
						g.stand(q, strings.Join([]string{g.pairLabel(a, model, m), model, scenario}, ", "), ratioSection(model), add)
					}
				}
			}
		}
	}
	for _, w := range g.waveQuotients() {
		if w.why == "" {
			g.stand(w.quotient, fmt.Sprintf("%s, %s, %s, %d at a time", g.waveLabel(&w, m), w.model, w.scenario, w.concurrency), "scaling_ratios", add)
		}
	}
}

// stand adds a quotient that shows another number than 1.
func (g *Grid) stand(q quotient, where, ref string, add func(standing, bool)) {
	tone := toneOf(q.value)
	if tone == "" {
		return
	}
	p := g.proofs.of(q)
	s := standing{what: q.figure.name, where: where, ratio: q.value, interval: "—", n: fmt.Sprintf("%d, %d", p.n[0], p.n[1]), why: p.why, ref: ref}
	if p.interval != nil {
		s.interval = fmt.Sprintf("%.3f to %.3f", p.interval.Lo, p.interval.Hi)
	}
	add(s, tone == report.Good)
}

// standingsSection lists where the subject is faster and where it is slower, in one form and at one place, and what is not
// told either way.
func (e *Evidence) standingsSection() (report.Section, bool) {
	m := &marks{}
	faster, slower, open := e.standings(m)
	s := report.Section{ID: "standings", Title: "Where it is faster and where it is slower"}
	for _, side := range []struct {
		id, title string
		list      []standing
	}{{"slower", "Slower", slower}, {"faster", "Faster", faster}, {"not_told", "Not told from 1.00×", open}} {
		p := report.Section{ID: side.id, Title: fmt.Sprintf("%s: %d", side.title, len(side.list))}
		switch {
		case len(side.list) > 0:
			p.Table, p.Notes = standingsTable(side.list), notesIn(side.list, m)
		case side.id == "not_told":
			continue
		default:
			p.Lead = []string{"None of the compared numbers."}
		}
		s.Parts = append(s.Parts, p)
	}
	return s, len(e.Comparisons) > 0 || len(faster)+len(slower)+len(open) > 0
}

// notesIn are the footnotes whose marks stand in a list.
func notesIn(list []standing, m *marks) []string {
	return slices.DeleteFunc(m.lines(), func(line string) bool {
		sign, _, _ := strings.Cut(line, " ")
		return !slices.ContainsFunc(list, func(s standing) bool { return strings.Contains(s.where, " "+sign) })
	})
}

func standingsTable(list []standing) report.Table {
	t := report.Table{Formula: "factor: above 1.00× the candidate or subject is better, also in a time", Source: "verdicts of comparisons; ratios of cells that show another number than 1.00×",
		Sample: "n is the number of pairs of requests or, of cells, the repeats of the subject and of the reference", Spread: "95 % interval by permutation",
		Columns: []report.Column{{Name: "Metric", Key: true}, {Name: "Where", Key: true}, ratioColumn("factor"), {Name: "95 % interval"}, {Name: "n"}, {Name: "why not told"}}}
	for _, s := range list[:min(len(list), mostStandings)] {
		factor, why := report.Number(s.ratio).In(s.ref), report.Absent("told")
		if s.why != "" {
			why = report.Text(reasonsText([]exchange.Reason{s.why}))
		} else {
			factor = factor.Toned(toneOf(s.ratio))
		}
		t.Add(report.Text(s.what), report.Text(s.where), factor, report.Text(s.interval), report.Text(s.n), why)
	}
	if list[0].why == "" { // all of a list are told, or none
		last := len(t.Columns) - 1
		t.Columns = t.Columns[:last]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:last]
		}
	}
	t.Omitted = max(0, len(list)-mostStandings)
	return t
}

const mostStandings = 200
