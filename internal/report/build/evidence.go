package build

import (
	"time"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Evidence is all that a report rests on.
type Evidence struct {
	Title   string
	Made    time.Time // when the report was made
	Harness string    // version of benchproxy that made it

	Runs        []*Run
	Comparisons []Compared // of runs
	Grid        *Grid      // nil without cells
	CellsLeft   []string   // JSON files of the directories that are no cells
	Gates       []Gates
	Host        *exchange.Host // of this machine; nil when it is not to be told
	Targets     []Target
	Notes       string           // written by hand
	Against     *report.Document // an older report
	AgainstName string
	Engine      func(id string) string // name of an engine for people
	Commands    []string               // that made the evidence, and this report
	Files       []report.Fact          // name and digest of each file that was read
}

// Compared is a comparison of two runs with their labels.
type Compared struct {
	Reference, Candidate string
	Report               *compare.Report
	Failed               string // why it could not be made; Report is nil then
	File                 string // it was read from, "" when it was made of runs of this report
}

// Target is a number that was to be reached: METRIC>=NUMBER on a median of a run, as for instance decode_tps>=100.
type Target struct {
	Text   string
	Metric string
	AtMost bool // the median is to be at most Value, else at least
	Value  float64
}

// Gates is the outcome of gates: of cases of a run, or of a file.
type Gates struct {
	Source  string // run or file
	Verdict string // of all together, as the source states it; "" when it does not
	Level   string
	Cases   []GateCase
}

// GateCase is one judgment.
type GateCase struct {
	Gate, Case string
	Status     exchange.VerdictStatus
	Lenient    exchange.VerdictStatus
	Reason     string
	Seconds    float64
	Exchanges  []exchange.ID
}

// Sets are the definition sets that a name stands for: one, or all of them. ok is false when there is none of that name.
func Sets(name string) (sets []measure.Set, ok bool) {
	all := measure.Sets()
	if name == "all" {
		return all, true
	}
	for _, s := range all {
		if s.Name == name {
			return []measure.Set{s}, true
		}
	}
	return nil, false
}

// SetNames are the names that Sets takes.
func SetNames() []string {
	var out []string
	for _, s := range measure.Sets() {
		out = append(out, s.Name)
	}
	return append(out, "all")
}
