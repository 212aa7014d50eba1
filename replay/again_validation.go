package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// Validation is the report of a validation as the record of its run gives it. What a run does not keep is as told: who
// the engine is said to be, the digests of programs and inputs, the comparison.
func (r *RunRecord) Validation(told *ValidationReport) (*ValidationReport, error) {
	v := &Validation{tools: told.Instrument.Suite == ValidateTools, fenced: r.switched("accept-fenced-json", told.Fenced)}
	v.Report = *told
	r.validationFacts(v, told)
	var waves [][]*SuiteCase
	for i := range r.planned() {
		kept := &r.planned()[i]
		c, err := r.suiteCase(kept, told)
		if err != nil {
			return nil, err
		}
		if n := len(waves); n == 0 || waves[n-1][0].Wave() != c.Wave() {
			waves = append(waves, nil)
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], c)
	}
	for _, cases := range waves {
		if err := v.again(cases); err != nil {
			return nil, err
		}
	}
	v.Report.Complete = r.Run.State == exchange.RunComplete && r.Run.Replay.Incomplete == "" && len(v.Report.Cases) == v.Report.Plan.Expected
	return &v.Report, nil
}

// again adds a wave that is on record: as a whole when it ended, else those of its cases that did.
func (v *Validation) again(cases []*SuiteCase) error {
	ended := slices.DeleteFunc(slices.Clone(cases), func(c *SuiteCase) bool { return c.Status == "" })
	if len(ended) == len(cases) {
		w := &SuiteWave{Name: cases[0].Wave(), Cases: cases}
		w.Wall, _ = wallOf(cases...)
		return v.Add(w)
	}
	for _, c := range ended {
		if err := v.AddCase(c); err != nil {
			return err
		}
	}
	return nil
}

// validationFacts fills in what the run says of the suite as a whole.
func (r *RunRecord) validationFacts(v *Validation, told *ValidationReport) {
	d := &v.Report
	d.Format, d.Fenced, d.Sampling, d.NotCovered = 1, v.fenced, scenario.Sampling(), told.NotCovered
	d.Cases, d.Waves, d.Summary = []ValidationCase{}, []ValidationWave{}, map[string]*ValidationSummary{}
	d.Thinking, d.Structured, d.Serial = r.switched("thinking", told.Thinking), r.switched("structured-tool-results", told.Structured), r.switched("serial-tool-workflows", told.Serial)
	d.Stream = !r.switched("no-stream", !told.Stream)
	if value, named, known := r.flag("max-tokens"); known {
		d.MaxTokens = nil
		if n, err := strconv.Atoi(value); named && err == nil && n > 0 {
			d.MaxTokens = &n
		}
	}
	d.Warmup.MaxTokens, d.Warmup.Requests = scenario.WarmupTokens, int(r.Number("warmup", 1, float64(told.Warmup.Requests)))
	d.Instrument.Run, d.Instrument.PlanHash = r.Run.ID, r.Run.Replay.Plan
	d.Plan = ValidationPlan{Expected: len(r.planned())}
	degrees := map[int]bool{}
	for i := range r.planned() {
		c := &r.planned()[i]
		if name := tagName(c.ID); !slices.Contains(d.Plan.Scenarios, name) {
			d.Plan.Scenarios = append(d.Plan.Scenarios, name)
		}
		degrees[c.Concurrency] = true
		d.Plan.Repeats = max(d.Plan.Repeats, c.Repeat+1)
		if v.tools {
			d.Plan.Requests += max(c.Turns, 1)
		}
	}
	d.Plan.Concurrency = r.degrees(degrees, told.Plan.Concurrency)
	if v.tools {
		d.Fixtures, d.FixturesSum = scenario.PolicyFixtures(), hexDigest(scenario.PolicyFixtures())
	}
}

// degrees are those of concurrency that were asked for: of the command line, else those that have a case. One at which no
// scenario ran has none.
func (r *RunRecord) degrees(seen map[int]bool, told []int) []int {
	value, named, _ := r.flag("concurrency")
	if !named {
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(seen)), func(n int) bool { return !slices.Contains(told, n) }) && !slices.ContainsFunc(told, func(n int) bool { return !seen[n] && n != defaultDegree }) {
			return told
		}
		return slices.Sorted(maps.Keys(seen))
	}
	var out []int
	for word := range strings.SplitSeq(value, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// defaultDegree is the degree of concurrency besides 1 that a validation has when none is asked for.
const defaultDegree = 4

// tagName is the scenario in a tag.
func tagName(tag string) string {
	for range 3 { // -cN-rN-iN
		if i := strings.LastIndexByte(tag, '-'); i > 0 {
			tag = tag[:i]
		}
	}
	return tag
}

// suiteCase is a case of the run as it was when it had ended.
func (r *RunRecord) suiteCase(kept *exchange.PlannedCase, told *ValidationReport) (*SuiteCase, error) {
	xs, err := r.turns(kept.ID)
	if err != nil {
		return nil, fmt.Errorf("read case %s: %w", kept.ID, err)
	}
	name := tagName(kept.ID)
	c := &SuiteCase{Member: scenario.Member{Scenario: scenario.Scenario{Name: name, Turns: max(kept.Turns, 1)}, Concurrency: kept.Concurrency, Repeat: kept.Repeat}, Case: kept.Case,
		Judgment: Judgment{Status: kept.Status, Lenient: kept.Lenient, Detail: kept.Reason}}
	c.Index, _ = strconv.Atoi(kept.ID[strings.LastIndexByte(kept.ID, 'i')+1:])
	c.Exchanges = xs
	var file *ValidationCase
	if i := slices.IndexFunc(told.Cases, func(t ValidationCase) bool { return t.Tag == kept.ID }); i >= 0 {
		file = &told.Cases[i]
		c.Digest = file.InputSum
	}
	for turn := range xs {
		asked := scenario.Request{Turn: turn, Thinking: strings.Contains(name, "thinking"), Body: json.RawMessage("null")}
		if file != nil && turn < len(file.Turns) {
			asked.Body = file.Turns[turn].Request // where the engine was asked in other words
		}
		c.Asked = append(c.Asked, asked)
	}
	return c, nil
}
