package build

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Badge is the one number of the evidence that a badge has room for: the decode ratio of the first comparison, that of the
// first model of the matrix, how many judgments of gates passed, or the median decode rate of the first run.
func Badge(e *Evidence) report.Badge {
	none := report.Badge{Label: "benchproxy", Value: "no number"}
	if len(e.Comparisons) > 0 {
		return e.Comparisons[0].badge()
	}
	if e.Grid != nil {
		head := e.Grid.headline().Table
		for _, row := range head.Rows {
			if v, ok := row[2].Value(); ok {
				return report.Badge{Label: "decode, " + unmarked(row[1].Show(head.Columns[1])), Value: fmt.Sprintf("%.2f×", v), Tone: row[2].Tone()}
			}
		}
	}
	if len(e.Gates) > 0 {
		return e.Gates[0].badge()
	}
	for _, r := range e.Runs {
		if s := r.all.sum().Metric(measure.DecodeTPS).Summary; s.Median != nil {
			return report.Badge{Label: "decode", Value: fmt.Sprintf("%.1f tok/s (n %d)", *s.Median, s.N)}
		}
	}
	return none
}

// badge is the ratio of decode rates.
func (c *Compared) badge() report.Badge {
	b := report.Badge{Label: "decode against " + c.Reference, Value: "—", Tone: report.Marked}
	if c.Report == nil {
		return b
	}
	m, _ := c.Report.Metric(measure.DecodeTPS)
	if m.Ratio == nil {
		return b
	}
	b.Value, b.Tone = fmt.Sprintf("%.2f× (n %d)", *m.Ratio, m.N), ""
	switch m.Verdict {
	case compare.Better:
		b.Tone = report.Good
	case compare.Worse:
		b.Tone = report.Bad
	}
	return b
}

func (g *Gates) badge() report.Badge {
	ok := 0
	for _, c := range g.Cases {
		if c.Status == exchange.VerdictOK {
			ok++
		}
	}
	b := report.Badge{Label: "gates", Value: fmt.Sprintf("%d of %d", ok, len(g.Cases)), Tone: report.Good}
	if ok < len(g.Cases) {
		b.Tone = report.Bad
	}
	return b
}

// BriefSections are those of a comment on a pull request and of a job's summary: what changed and what is wrong.
func BriefSections() []string {
	return []string{"performance_ratio", "standings", "ratios", "targets", "gates", "failures", "changes", "limits"}
}

// Suites are the gates as CI systems read them.
func Suites(e *Evidence) *report.Suite {
	s := &report.Suite{Name: e.Title}
	for i := range e.Gates {
		g := &e.Gates[i]
		s.Properties = append(s.Properties, report.Fact{Name: "source", Value: g.Source + " " + g.Level})
		for _, c := range g.Cases {
			s.Counts.Add(report.StateOf(c.Status))
		}
	}
	s.Cases = func(yield func(report.TestCase) bool) {
		for i := range e.Gates {
			for _, c := range e.Gates[i].Cases {
				if !yield(report.TestCase{Class: e.Gates[i].Source + " " + c.Gate, Name: c.Case, State: report.StateOf(c.Status), Status: c.Status, Message: c.Reason}) {
					return
				}
			}
		}
	}
	return s
}
