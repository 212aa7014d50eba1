package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ComparisonDocument is what the audit reads of the JSON form of a comparison.
type ComparisonDocument struct {
	Reference ComparedRun       `json:"reference"`
	Candidate ComparedRun       `json:"candidate"`
	Margin    float64           `json:"margin"`
	Accepted  []exchange.Reason `json:"accepted"`
	Refused   []exchange.Reason `json:"refused"`
	Metrics   []ComparedMetric  `json:"metrics"`
}

// ComparedRun is one side of it.
type ComparedRun struct {
	ID       exchange.ID `json:"id"`
	Name     string      `json:"name"`
	Upstream string      `json:"upstream"`
}

// ComparedMetric is one ratio of it.
type ComparedMetric struct {
	Name      string   `json:"name"`
	Reference *float64 `json:"reference"`
	Candidate *float64 `json:"candidate"`
	Ratio     *float64 `json:"ratio"`
	Verdict   string   `json:"verdict"`
}

// Comparison is a comparison that a file states, and the same one made again of the record.
type Comparison struct {
	Source   string
	Document ComparisonDocument
	Again    *ComparisonDocument // nil when it cannot be made again
	Why      string              // why it cannot
}

// sameNumber is by how much a number of a file may differ from the one of the record: in the last digits only.
const sameNumber = 1e-6

// comparison asks whether the record gives what the file states.
func (a *auditor) comparison(c *Comparison) {
	ratios := 0
	for _, m := range c.Document.Metrics {
		if m.Ratio != nil {
			ratios++
		}
	}
	if c.Again == nil {
		a.add(AskTraceable, c.Source, Failure, "its %s cannot be followed: %s", count(ratios, "ratio"), c.Why)
		return
	}
	if other := c.parted(); len(other) > 0 {
		a.add(AskComparison, c.Source, Failure, "the record gives another %s", strings.Join(other, "; another "))
	} else {
		a.add(AskComparison, c.Source, OK, "%s of run %s over run %s, the same when made again of the record", count(ratios, "ratio"), c.Document.Candidate.ID, c.Document.Reference.ID)
	}
	if len(c.Document.Accepted) > 0 {
		a.add(AskComparison, c.Source, Warning, "it compares across differences that were accepted by hand: %s", reasons(c.Document.Accepted))
	}
	if len(c.Document.Refused) > 0 {
		a.add(AskComparison, c.Source, Warning, "it is refused and claims nothing: %s", reasons(c.Document.Refused))
	}
	if c.Document.Reference.ID == c.Document.Candidate.ID && c.Document.Reference.Upstream == c.Document.Candidate.Upstream {
		a.add(AskComparison, c.Source, Warning, "both sides are one run")
	}
	for _, r := range a.in.Runs {
		if r.ID == c.Document.Reference.ID && r.Role == Alternative {
			a.add(AskBaseline, c.Source, Failure, "its reference is run %s, which is not the baseline", nameOf(&r.Run))
		}
	}
}

// parted are the metrics of which the record gives something else than the file.
func (c *Comparison) parted() (out []string) {
	for _, m := range c.Document.Metrics {
		i := slices.IndexFunc(c.Again.Metrics, func(o ComparedMetric) bool { return o.Name == m.Name })
		if i < 0 {
			out = append(out, m.Name+": none")
			continue
		}
		o := c.Again.Metrics[i]
		for _, pair := range [...]struct {
			what       string
			told, made *float64
		}{{"ratio", m.Ratio, o.Ratio}, {"reference", m.Reference, o.Reference}, {"candidate", m.Candidate, o.Candidate}} {
			if !equal(pair.told, pair.made) {
				out = append(out, fmt.Sprintf("%s %s: %s, and %s stated", pair.what, m.Name, shown(pair.made), shown(pair.told)))
				break
			}
		}
	}
	return out
}

func equal(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Abs(*a-*b) <= sameNumber*math.Max(math.Abs(*a), math.Abs(*b))
}

func shown(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%.6g", *v)
}

func reasons(rs []exchange.Reason) string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
