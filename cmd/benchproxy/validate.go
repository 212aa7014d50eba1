package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

func (p *program) validateCommand() *cli.Command {
	sub := func(kind, usage, description string, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: kind, Usage: usage, Description: description, Flags: slices.Concat(validateFlags(), flags, suiteFlags(), validateLaunchFlags()),
			Action: p.interruptible(func(c *cli.Context) error { return p.validate(c, kind) })}
	}
	return &cli.Command{
		Name:  "validate",
		Usage: "ask an engine questions whose answers are known, and judge what it says",
		Subcommands: []*cli.Command{
			sub(replay.ValidateInference, "short and long prompts, JSON, recall, conversations and tool workflows",
				"Thirteen scenarios, each alone and with others at the same time, each repeated: 195 cases by default. Exit code 3 when a case\n"+
					"fails or the run is slower than --reference, 9 when the run did not come to its end.\n\n"+validateLaunchHelp+
					"   benchproxy validate inference --target http://127.0.0.1:8080 --output report.json\n"+
					"   benchproxy validate inference --target http://127.0.0.1:8080 --scenarios decode --weights-id W --reference report.json\n\n"+
					"scenarios: "+strings.Join(suiteNames(scenario.SuiteValidation), " "),
				&cli.IntFlag{Name: "repeats", Value: 3, Usage: "`N` times each scenario at each concurrency"},
				&cli.BoolFlag{Name: "thinking", Usage: "ask for thinking in every case; such a report is held against no other one"},
				&cli.BoolFlag{Name: "no-stream", Usage: "ask for whole answers"},
				&cli.BoolFlag{Name: "structured-tool-results", Usage: "give results of tools as JSON objects"},
				&cli.BoolFlag{Name: "serial-tool-workflows", Usage: "say parallel_tool_calls false in workflows of tools"},
				&cli.BoolFlag{Name: "accept-fenced-json", Usage: "tell a lenient status beside the strict one, which counts"},
			),
			sub(replay.ValidateTools, "tool_choice, parallel_tool_calls, and requests that must be refused",
				"Ten policies: 30 cases of 35 requests by default. Exit code 3 when a case fails, 9 when the run did not come to its end.\n\n"+validateLaunchHelp+
					"   benchproxy validate tools --target http://127.0.0.1:8080 --output tools.json\n\n"+
					"scenarios: "+strings.Join(suiteNames(scenario.SuitePolicies), " "),
				&cli.StringFlag{Name: "native-sha256", Usage: "`SHA256` of the engine's native library, to keep in the report"},
				&cli.StringFlag{Name: "server-build", Usage: "`BUILD` of the server, to keep in the report (default: what the engine tells)"},
				&cli.BoolFlag{Name: "structured-tool-results", Usage: "give results of tools as JSON objects"},
			),
			sub(replay.ValidateToolUse, "the right tool with exactly the right arguments, or none where none fits",
				"Eight cases: selection, arguments, abstention, several steps and retrieval, not streamed, at Ollama by its own /api/chat.\n"+
					"An engine that says that it has no tools is asked once; nothing of it fails then, and the exit code is 4. Exit code 3\n"+
					"when a case fails, 9 when the run did not come to its end.\n\n"+validateLaunchHelp+
					"   benchproxy validate tool_use --target http://127.0.0.1:8080 --output tool_use.json\n\n"+
					"scenarios: "+strings.Join(suiteNames(scenario.SuiteToolUse), " "),
				&cli.IntFlag{Name: "repeats", Value: 1, Usage: "`N` times each scenario at each concurrency"},
				&cli.BoolFlag{Name: "thinking", Usage: "ask for thinking in every case; such a report is held against no other one"},
				&cli.BoolFlag{Name: "structured-tool-results", Usage: "give results of tools as JSON objects"},
			),
		},
	}
}

func suiteNames(suite string) (out []string) {
	for _, s := range scenario.Suite(suite) {
		out = append(out, s.TagName())
	}
	return out
}

// validateFlags are those of both suites.
func validateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "scenarios", Usage: "`NAMES` of those to ask, with commas (default: all)"},
		&cli.StringFlag{Name: "concurrency", Value: "1,4", Usage: "`N,M` cases at the same time"},
		&cli.IntFlag{Name: "max-tokens", Usage: "`N` tokens an answer may have (default: the scenario's own)"},
		&cli.IntFlag{Name: "thinking-max-tokens", Value: 2048, Usage: "`N` tokens it may have where thinking is asked for"},
		&cli.StringFlag{Name: "weights-id", Usage: "`ID` of the weights; reports of unspecified or other weights are not compared"},
		&cli.StringFlag{Name: "profile", Usage: "`NAME` of how the engine is set up; reports of other ones are not compared"},
		&cli.StringFlag{Name: "reference", Usage: "`REPORT` of an earlier validation to be held against"},
		&cli.Float64Flag{Name: "tolerance", Value: replay.DefaultTolerance, Usage: "`SHARE` by which it may be slower than the reference"},
		&cli.StringFlag{Name: "output", Usage: "`FILE` of the report, saved after every wave of inference and every case of tools"},
		&cli.BoolFlag{Name: "force", Usage: "replace --output if it is there"},
	}
}

// validating is one validation.
type validating struct {
	suiteSitting
	kind      string
	o         replay.SuiteOptions
	facts     replay.ValidationFacts
	output    string
	tolerance float64
	reference *replay.ValidationReport // nil when there is none
	refName   string
	refSum    string
	report    *replay.Validation
}

func (p *program) validate(c *cli.Context, kind string) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	s, err := p.suiteSettings(c)
	if err != nil {
		return err
	}
	v := &validating{kind: kind, suiteSitting: suiteSitting{replaying: replaying{env: p.env, s: s}, native: kind == replay.ValidateToolUse}}
	defer v.Close()
	if err := errors.Join(v.plan(c), v.files(c)); err != nil {
		return err
	}
	v.s.targets[0].model = c.String("model")
	if err := p.validationEngine(c, v); err != nil {
		return err
	}
	if err := v.open(c.Context); err != nil {
		return err
	}
	return v.validate(c)
}

// plan reads which cases are sent.
func (v *validating) plan(c *cli.Context) error {
	degrees, err := degreesOf("concurrency", c.String("concurrency"))
	if err != nil {
		return err
	}
	repeats, suite, streamed := 1, scenario.SuitePolicies, !c.Bool("no-stream")
	switch v.kind {
	case replay.ValidateInference:
		repeats, suite = c.Int("repeats"), scenario.SuiteValidation
	case replay.ValidateToolUse:
		repeats, suite, streamed = c.Int("repeats"), scenario.SuiteToolUse, false
		if !c.IsSet("concurrency") {
			degrees = []int{1}
		}
	}
	for _, f := range []string{"repeats", "max-tokens", "thinking-max-tokens"} {
		if n := c.Int(f); c.IsSet(f) && (n < 1 || n > maxMIB) {
			return usagef("--%s %d is not a number from 1", f, n)
		}
	}
	if t := c.Float64("tolerance"); !(t >= 0 && t < 1) {
		return usagef("--tolerance %g is not from 0 to 1", t)
	}
	asked := scenario.Suite(suite)
	if names := c.String("scenarios"); names != "" {
		asked = nil
		for name := range strings.SplitSeq(names, ",") {
			i := slices.Index(suiteNames(suite), strings.TrimSpace(name))
			if i < 0 {
				return usagef("there is no scenario %q; there is %s", strings.TrimSpace(name), strings.Join(suiteNames(suite), ", "))
			}
			asked = append(asked, scenario.Suite(suite)[i])
		}
	}
	members := scenario.Plan(asked, degrees, repeats)
	tags := map[string]bool{}
	for _, m := range members {
		if tags[m.Tag()] {
			return usagef("--scenarios names %s twice", m.TagName())
		}
		tags[m.Tag()] = true
	}
	if len(members) == 0 {
		return usagef("no case is left: these scenarios run at concurrency 1 alone")
	}
	v.tolerance = c.Float64("tolerance")
	v.o = replay.SuiteOptions{Members: members, Warmup: c.Int("warmup"), Options: scenario.Options{
		MaxTokens: c.Int("max-tokens"), ThinkingMaxTokens: c.Int("thinking-max-tokens"), Stream: streamed, Thinking: c.Bool("thinking"),
		SerialTools: c.Bool("serial-tool-workflows"), StructuredResults: c.Bool("structured-tool-results"),
	}}
	v.facts = replay.ValidationFacts{WeightsID: c.String("weights-id"), Profile: c.String("profile"), NativeSum: c.String("native-sha256"),
		ServerBuild: c.String("server-build"), Fenced: c.Bool("accept-fenced-json"), Degrees: degrees, Repeats: repeats}
	return nil
}

// files reads the reference, before anything is sent, and makes sure of the output.
func (v *validating) files(c *cli.Context) (err error) {
	v.output, v.refName = c.String("output"), c.String("reference")
	switch _, statErr := os.Lstat(v.output); {
	case v.output == "":
	case inside(v.output, v.s.store):
		return usagef("--output %s is inside the store", v.output)
	case v.refName != "" && sameFile(v.output, v.refName):
		return usagef("--output %s is the reference", v.output)
	case statErr == nil && !c.Bool("force"):
		return usagef("%s is there; --force replaces it", v.output)
	}
	if v.refName != "" {
		v.reference, v.refSum, err = replay.ReadValidation(v.refName)
	}
	return err
}

// validate sends the suite, judges it and tells what came of it.
func (v *validating) validate(c *cli.Context) error {
	v.o.Options.Model = v.model
	v.o.Wave = v.wave
	if err := v.thinks(); err != nil {
		return err
	}
	if v.kind == replay.ValidateTools {
		v.o.Case = v.ended
	}
	if err := v.begin(v.o); err != nil {
		return err
	}
	v.describe()
	v.describeLaunch()
	v.report = replay.NewValidation(v.kind, &v.o, v.facts)
	if err := v.save(); err != nil { // what cannot be written is found before anything is sent
		return err
	}
	if !v.s.quiet && !v.s.json {
		note(v.env.Stderr, "sending %s of %s to %s %s, model %s, run %s", countOf(len(v.o.Members), "case"),
			countOf(len(v.report.Report.Plan.Scenarios), "scenario"), v.target.up.name, v.target.upstream.URL(), printable(v.model), runName(v.target.writer.Run()))
	}
	sent, stored := v.run(c.Context)
	v.report.Finish(sent, clock.Now())
	if v.reference != nil && sent == nil {
		comparison := replay.CompareValidations(&v.report.Report, v.reference, v.tolerance)
		comparison.Reference, comparison.ReferenceSum = v.refName, v.refSum
		v.report.Report.Comparison = comparison
	}
	if err := errors.Join(stored, v.save(), v.print(v.env.Stdout)); err != nil {
		return err
	}
	if errors.Is(sent, exchange.ErrUnreachable) && v.launched() {
		return sent // it says how the engine has ended
	}
	if errors.Is(sent, exchange.ErrUnreachable) {
		return &exchange.Error{Op: "validate engine", Object: v.target.upstream.URL(), Side: exchange.SideEngine, Cause: sent,
			Hint: "check that it runs and that --target names its address"}
	}
	if verdict := v.report.Verdict(); verdict != nil {
		return verdict
	}
	return sent
}

// thinks leaves out what asks for thinking where it is not known how the engine is told to: an answer without thinking
// says nothing of it.
func (v *validating) thinks() error {
	sp := v.spelling()
	if len(sp.ThinkingOff) == 0 && len(sp.ThinkingOn) == 0 {
		v.facts.Left = append(v.facts.Left, "thinking, and whether the engine thinks by itself: it is not known how this one is told to")
	}
	if len(sp.ThinkingOn) > 0 {
		return nil
	}
	if v.o.Options.Thinking {
		return usagef("--thinking: it is not known how this engine is told to think; --engine-label says which engine it is")
	}
	v.o.Members = slices.DeleteFunc(v.o.Members, func(m scenario.Member) bool { return m.Thinking })
	if len(v.o.Members) == 0 {
		return usagef("--scenarios: it is not known how this engine is told to think; --engine-label says which engine it is")
	}
	return nil
}

// describe fills in what is known of the engine.
func (v *validating) describe() {
	v.facts.URL, v.facts.Model, v.facts.Started = v.target.upstream.URL(), v.model, clock.Now()
	v.facts.ToolSum = ownSum()
	id := identity(v.target.up.label)
	if len(v.found) > 0 && v.found[0].err == nil {
		id = v.found[0].is.Identity
		if d := v.found[0].is.WeightsDigest; d != nil && v.facts.WeightsID == "" {
			v.facts.WeightsID = *d
		}
	}
	v.facts.Engine = id.Engine
	v.facts.ServerBuild = cmp.Or(v.facts.ServerBuild, id.Version)
	v.facts.Tool = replay.ValidationTool{Harness: version(), Run: v.target.writer.Run().ID, Suite: v.kind, PlanHash: v.suite.Planned().Plan, Dialect: string(v.dialect())}
}

// ownSum is the hex SHA-256 of this program, "" where it cannot read itself.
func ownSum() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	sum, _ := replay.FileSum(self)
	return sum
}

// ended takes a case into the report, and saves it: what was learned of it stands whatever becomes of the others.
func (v *validating) ended(c *replay.SuiteCase) error {
	if err := v.report.AddCase(c); err != nil {
		return err
	}
	return v.save()
}

// wave takes a wave into the report.
func (v *validating) wave(w *replay.SuiteWave) error {
	if err := v.report.Add(w); err != nil {
		return err
	}
	passed := 0
	for _, c := range w.Cases {
		if c.Status == exchange.VerdictOK {
			passed++
		}
	}
	if !v.s.quiet && !v.s.json {
		note(v.env.Stderr, "%s: %d of %d passed in %s", w.Name, passed, len(w.Cases), w.Wall.Round(time.Millisecond))
	}
	return v.save()
}

func (v *validating) save() error {
	if v.output == "" {
		return nil
	}
	return v.report.Save(v.output)
}

// shownFailures bounds the failed cases that are printed one by one.
const shownFailures = 20

// print tells what the validation came to.
func (v *validating) print(w io.Writer) error {
	r := &v.report.Report
	if v.s.json {
		return json.NewEncoder(w).Encode(r)
	}
	t := table{cols: []column{{head: "SCENARIO"}, {head: "PASSED", right: true}, {head: "LENIENT", right: true}, {head: "TTFT ms", right: true},
		{head: "PREFILL tok/s", right: true}, {head: "DECODE tok/s", right: true}, {head: "WALL ms", right: true}}}
	for _, name := range r.Plan.Scenarios {
		for _, n := range r.Plan.Concurrency {
			key := fmt.Sprintf("%s@c%d", name, n)
			s := r.Summary[key]
			if s == nil {
				continue
			}
			lenient := "-"
			if r.Fenced {
				lenient = fmt.Sprintf("%d/%d", s.LenientPassed, s.Total)
			}
			t.add(key, fmt.Sprintf("%d/%d", s.Passed, s.Total), lenient, decimal(s.TTFT), decimal(s.PrefillTPS), decimal(s.DecodeTPS), decimal(s.WallMS))
		}
	}
	t.print(w)
	told := 0
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Status == string(exchange.VerdictOK) {
			continue
		}
		if told++; told <= shownFailures {
			fmt.Fprintf(w, "%s: %s\n", c.Tag, printable(c.Detail))
		}
	}
	if told > shownFailures {
		fmt.Fprintf(w, "and %d more that failed\n", told-shownFailures)
	}
	v.printComparison(w)
	v.printRates(w)
	passed, total := v.report.Counts()
	word := "NOT PASSED"
	switch {
	case !r.Complete:
		word = "INCOMPLETE"
	case passed == total:
		word = "PASS"
	}
	lacking := ""
	if n := v.report.Unsupported(); n > 0 {
		lacking = fmt.Sprintf(", %d are of what the engine lacks", n)
	}
	fmt.Fprintf(w, "%s: %d of %d cases passed%s, %d planned; run %s\n", word, passed, total, lacking, r.Plan.Expected, r.Instrument.Run)
	return nil
}

// printRates tells which share of the planned turns was right.
func (v *validating) printRates(w io.Writer) {
	t := table{cols: []column{{head: "CATEGORY"}, {head: "TURNS", right: true}, {head: "RIGHT", right: true}, {head: "RATE", right: true}}}
	for _, r := range v.report.Report.ToolUse {
		if r.Planned == 0 && r.Category != "" {
			continue
		}
		rate := "-"
		if r.Rate != nil {
			rate = fmt.Sprintf("%.3f", *r.Rate)
		}
		t.add(cmp.Or(r.Category, "all"), fmt.Sprint(r.Planned), fmt.Sprint(r.OK), rate)
	}
	if len(v.report.Report.ToolUse) > 0 {
		t.print(w)
	}
}

func decimal(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *v)
}

func (v *validating) printComparison(w io.Writer) {
	c := v.report.Report.Comparison
	if c == nil {
		return
	}
	for _, e := range c.Errors {
		fmt.Fprintf(w, "not comparable: %s\n", printable(e))
	}
	for _, r := range c.Ratios {
		word := "ok"
		if !r.Passed {
			word = "SLOWER"
		}
		fmt.Fprintf(w, "%s %s: %.3f of the reference's speed, %s\n", r.Summary, r.Metric, r.Ratio, word)
	}
}
