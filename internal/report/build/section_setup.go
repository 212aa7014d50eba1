package build

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// setupSection is software and hardware as they were read from the running engines, and the machine that measured.
func (e *Evidence) setupSection() report.Section {
	s := report.Section{ID: "setup", Title: "Software and hardware"}
	if len(e.Runs) > 0 {
		s.Parts = append(s.Parts, e.enginesPart())
	}
	if p := e.machinePart(); len(p.Table.Rows) > 0 {
		s.Parts = append(s.Parts, p)
	}
	if e.Grid != nil {
		s.Parts = append(s.Parts, e.Grid.configurationsPart())
	}
	return s
}

// enginesPart has a row for each deployment of each run.
func (e *Evidence) enginesPart() report.Section {
	p := report.Section{ID: "engines", Title: "Engines, as they say of themselves"}
	p.Table = report.Table{Source: "asked of the running engine before and between requests, and its answers", Columns: []report.Column{
		{Name: "Run", Key: true}, {Name: "Engine"}, {Name: "Build"}, {Name: "known by"}, {Name: "Model"}, {Name: "Quantization"}, {Name: "Asked for"}, {Name: "Ran on"},
		{Name: "Slots", Number: true}, {Name: "Context", Number: true}, {Name: "Drafts"}, {Name: "Weights"}}}
	m := &marks{}
	for _, r := range e.Runs {
		ds := r.deployments()
		if len(ds) == 0 {
			ds = []exchange.Deployment{{Identity: r.Run.Identity}}
		}
		for i := range ds {
			p.Table.Add(e.deploymentRow(r, &ds[i], m)...)
		}
	}
	p.Notes = m.lines()
	return p
}

// deployments are those behind the upstreams of the run's exchanges.
func (r *Run) deployments() []exchange.Deployment {
	if r.Upstream == "" {
		return r.Run.Deployments
	}
	var out []exchange.Deployment
	for _, d := range r.Run.Deployments {
		if d.Upstream == r.Upstream {
			out = append(out, d)
		}
	}
	return out
}

func (e *Evidence) deploymentRow(r *Run, d *exchange.Deployment, m *marks) []report.Cell {
	label := r.Label
	ran := optionalText(d.ObservedDevice)
	if d.ObservedDevice == nil {
		if named := r.deviceNamed(); named != "" {
			ran = report.Text(named)
		}
	}
	_, known := ran.Words()
	switch {
	case d.CPUFallback:
		ran = report.Text(deref(d.ObservedDevice) + " (CPU fallback " + m.sign(noteFallback) + ")").Toned(report.Bad)
	case !known:
		ran = report.AbsentAs("unknown "+m.sign(noteDevice), "not_reported").Toned(report.Marked)
	}
	drafts := report.Absent("not_reported")
	if d.Drafting != nil {
		drafts = report.Text("off")
		if *d.Drafting {
			drafts = report.Text(strings.TrimSpace("on " + deref(d.DraftMethod)))
		}
	}
	weights := report.Absent("not_known")
	switch {
	case d.WeightsDigest != nil:
		weights = report.Text(shortDigest(*d.WeightsDigest)).Titled(*d.WeightsDigest)
	case d.Weights != nil && d.Weights.Digest != "":
		weights = report.Text(shortDigest(d.Weights.Digest)).Titled(d.Weights.Digest)
	}
	engine := report.Absent("not_asked")
	if d.Engine != "" {
		engine = report.Text(e.Engine(d.Engine))
	}
	return []report.Cell{report.Text(label).In(evidenceID(r)), engine, textOr(d.Version, "not_reported"), textOr(d.Basis, "not_asked"), optionalText(d.Model), optionalText(d.Quantization),
		optionalText(d.RequestedDevice), ran, optionalCount(d.Slots), optionalCount(d.Window), drafts, weights}
}

// deviceNamed is the device that the answers of a run name, "" when none does or they part.
func (r *Run) deviceNamed() string {
	if len(r.devices) != 1 {
		return ""
	}
	for name := range r.devices {
		return name
	}
	return ""
}

func shortDigest(d string) string { return firstRunes(d, len(exchange.DigestPrefix)+12) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func textOr(s string, why exchange.Reason) report.Cell {
	if s == "" {
		return report.Absent(why)
	}
	return report.Text(s)
}

func optionalText(s *string) report.Cell { return textOr(deref(s), "not_reported") }

func optionalCount(n *int64) report.Cell {
	if n == nil {
		return report.Absent("not_reported")
	}
	return report.Count(*n)
}

// machinePart is the machines that measured: of each selftest, and this one.
func (e *Evidence) machinePart() report.Section {
	p := report.Section{ID: "machine", Title: "The measuring machine"}
	p.Table = report.Table{Source: "the operating system of the machine on which benchproxy ran", Columns: []report.Column{
		{Name: "Runs", Key: true}, {Name: "CPU"}, {Name: "Cores", Number: true}, {Name: "System"}, {Name: "Kernel"}, {Name: "Governor"}, {Name: "Clock"}, {Name: "Virtual"}}}
	type machine struct {
		host exchange.Host
		runs []string
	}
	var all []machine
	for _, r := range e.Runs {
		if r.Run.Instrument == nil {
			continue
		}
		h := r.Run.Instrument.Host
		i := slices.IndexFunc(all, func(m machine) bool { return m.host.Fingerprint() == h.Fingerprint() })
		if i < 0 {
			i = len(all)
			all = append(all, machine{host: h})
		}
		all[i].runs = append(all[i].runs, r.Label)
	}
	if len(all) == 0 && e.Host != nil {
		all = []machine{{*e.Host, []string{"this report"}}}
	}
	for _, m := range all {
		h := m.host
		virtual := report.Absent("not_reported")
		if h.Virtual != nil {
			virtual = report.Text(map[bool]string{true: "yes", false: "no"}[*h.Virtual])
		}
		p.Table.Add(report.Text(strings.Join(m.runs, ", ")), optionalText(h.CPU), report.Count(h.Cores), report.Text(h.OS+" "+h.Arch), optionalText(h.Kernel),
			optionalText(h.Governor), optionalText(h.Clocksource), virtual)
	}
	return p
}

// methodSection is how was measured, and what each name means.
func (e *Evidence) methodSection() report.Section {
	s := report.Section{ID: "method", Title: "Methodology and definitions"}
	if e.Grid != nil {
		s.Lead = append(s.Lead, "Cells are read from result files and stand here as the harness that wrote them measured them; a file of benchproxy names the exchanges behind each cell. Ratios are made here.")
	}
	if len(e.Runs) == 0 {
		return s
	}
	s.Lead = append(s.Lead,
		"Every request of a run crossed the proxy, which passes all bytes through untouched and stamps every read. All numbers are derived from the recorded bytes and stamps; none is typed by hand. Each number leads to exchanges that it rests on.",
		"A median stands with its number of samples, its 95 % interval (order statistics, no distribution assumed, from 6 samples on) and the least and largest sample. A percentile is left out below its sample floor: p90 from 64, p99 from 662 samples on.",
		"A ratio of runs is the median over pairs of equal requests; it is told from chance by a permutation test (P <= 0.05). Short answers (below half of their limit), failed ones and counted tokens beside real counts are no samples of a decode rate.")
	s.Table = report.Table{Source: "rules of measuring, version " + strconv.Itoa(measure.Version), Columns: []report.Column{{Name: "Metric", Key: true}, {Name: "Unit"}, {Name: "Definition"}}}
	for _, d := range measure.Metrics() {
		if slices.Contains(definedHere[:], d.Name) {
			s.Table.Add(report.Text(d.Name), report.Text(d.Unit), report.Text(d.Text))
		}
	}
	s.Notes = append(s.Notes, "Clocks of the stamps: "+e.clocks()+".")
	return s
}

// definedHere are the metrics that the report shows.
var definedHere = [...]string{measure.TTFTMS, measure.AnswerTTFTMS, measure.TotalWallMS, measure.PromptTokens, measure.CompletionTokens, measure.CachedTokens, measure.PrefillTPS,
	measure.PrefillUncachedTPS, measure.DecodeTPS, measure.TPOTMS, measure.WallTPS, measure.EnginePrefillTPS, measure.EngineDecodeTPS, measure.DraftAcceptance, measure.TokensPerStep,
	measure.AddedP50US, measure.AddedP99US, measure.WriteStallMS}

// clocks are those that stamped the reads of the runs.
func (e *Evidence) clocks() string {
	names := map[exchange.StampClock]string{exchange.ClockKernel: "receive stamps of the kernel", exchange.ClockMixed: "receive stamps of the kernel, some reads by the moment they returned", exchange.ClockRead: "the moment each read returned"}
	var words []string
	for _, r := range e.Runs {
		for _, c := range []exchange.StampClock{exchange.ClockKernel, exchange.ClockMixed, exchange.ClockRead} {
			if n := r.clocks[c]; n > 0 {
				words = append(words, fmt.Sprintf("%s: %s (%d exchanges)", r.Label, names[c], n))
			}
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, "; ")
}
