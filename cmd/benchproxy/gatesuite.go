package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

const gateSuiteHelp = "With --suite an engine is judged: its answers to the cases of a level are held against a reference's, token by token, and\n" +
	"against its own. dev takes minutes, fast compares more prompts and pictures, quick adds draws, long needles and every\n" +
	"request with drafts, full adds prompts that fill the context.\n\n" +
	"   benchproxy gate --suite dev --target http://127.0.0.1:8080 --reference http://127.0.0.1:8081 --weights-id W --output gates.json\n" +
	"   benchproxy gate --suite full --target http://127.0.0.1:8080 --weights-id W --output gates.json --defer-long\n" +
	"   benchproxy gate --suite quick --target llamacpp:model.gguf --binary new/llama-server --reference llamacpp:model.gguf\n\n" +
	"ENGINE:MODEL is an engine to start with a model file or name: one at a time is in memory, each comes up as often as it is\n" +
	"its turn, with the same flags, and both are ended at the end. The flags that say how are those of 'engines launch'; the\n" +
	"reference shares what belongs to the machine and the model, has flags of its own for the rest, and does not draft. A\n" +
	"--variant works for engines that are started here.\n\n" +
	"What the reference answers is kept in the store by its weights and build, so that it is asked once. A gates.json that is\n" +
	"there is read first: what passed at the same level or a stronger one, on the same build, weights and gates, is not asked\n" +
	"again. Exit code 3 when a gate fails, 4 when there is no usable reference, 5 when an engine cannot be reached, 9 when\n" +
	"something could not be judged."

// gateSuiteFlags are the flags of gate --suite.
func gateSuiteFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "suite", Usage: "`LEVEL` to judge the engine at: dev, fast, quick or full"},
		&cli.StringFlag{Name: "reference", Usage: "`[NAME=]URL` of the engine whose answers are right, a target of the config, or ENGINE:MODEL to start (default: the goldens of the store)"},
		&cli.StringFlag{Name: "reference-model", Usage: "`NAME` of the model to ask the reference for (default: the one it serves, else that of the target)"},
		&cli.StringFlag{Name: "reference-label", Usage: "`ENGINE@VERSION` to believe as the reference"},
		&cli.StringFlag{Name: "weights-id", Usage: "`ID` of the weights that both have loaded (default: what the engines tell)"},
		&cli.StringFlag{Name: "reference-weights-id", Usage: "`ID` of the reference's weights, where --weights-id is that of the target alone"},
		&cli.BoolFlag{Name: "accept-unknown-weights", Usage: "compare also when the weights of a side are not known"},
		&cli.DurationFlag{Name: "max-age", Usage: "oldest `DURATION` of a recording of the reference (default: any)"},
		&cli.IntFlag{Name: "context", Usage: "`N` tokens that a prompt and its answer may have together (default: what the engine tells)"},
		&cli.StringSliceFlag{Name: "images", Usage: "`FILE` or directory of pictures to ask about, beside the built-in ones; repeatable"},
		&cli.StringFlag{Name: "draft-off", Usage: "`JSON` of the fields with which a request is answered without drafts (default: as the engine spells it)"},
		&cli.StringFlag{Name: "draft-off-variant", Usage: "launch `FLAGS` with which the engine does not draft"},
		&cli.StringSliceFlag{Name: "variant", Usage: "launch `FLAGS` of the reference under which a failure is asked about again; repeatable"},
		&cli.BoolFlag{Name: "defer-long", Usage: "put off the prompts that fill the context; a later full run on the same build asks those alone"},
		&cli.BoolFlag{Name: "fresh", Usage: "judge all anew, whatever --output holds"},
		&cli.StringSliceFlag{Name: "output", Usage: "`FILE` for the verdicts: .json (gates.json), .md or .xml (JUnit); repeatable"},
		&cli.BoolFlag{Name: "force", Usage: "replace an --output that is there and no gates.json"},
	}, slices.Concat(slices.DeleteFunc(suiteFlags(), func(f cli.Flag) bool { return f.Names()[0] == "warmup" }), gateLaunchFlags())...)
}

// gating is one gate suite with all that stands around it.
type gating struct {
	suiteSitting
	o         replay.GateOptions
	plan      scenario.LevelOptions
	weights   [2]string
	refModel  string
	outputs   []string
	files     outFiles
	gates     *replay.GateSuite
	report    *replay.GateReport
	reference *replayTarget
}

// gateOrSuite is gate without a subcommand: a suite where one is named, else help.
func (p *program) gateOrSuite(c *cli.Context) error {
	if !c.IsSet("suite") {
		for _, f := range gateSuiteFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return usagef("--%s goes with --suite LEVEL: dev, fast, quick or full", name)
			}
		}
		return p.noCommand("gate", c.Command.Subcommands)(c)
	}
	return p.interruptible(p.gateSuite)(c)
}

func (p *program) gateSuite(c *cli.Context) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	s, err := p.suiteSettings(c)
	if err != nil {
		return err
	}
	g := &gating{suiteSitting: suiteSitting{replaying: replaying{env: p.env, s: s}}}
	defer g.Close()
	defer g.files.discard()
	for _, step := range []func(*cli.Context) error{g.level, g.drafts, g.images, g.read} {
		if err := step(c); err != nil {
			return err
		}
	}
	if err := p.referenceTarget(c, g); err != nil {
		return err
	}
	g.s.targets[0].model = c.String("model")
	if len(g.s.targets) > 1 {
		g.s.targets[1].model = g.refModel
	}
	if err := p.launches(c, g); err != nil {
		return err
	}
	if err := g.open(c.Context); err != nil {
		return err
	}
	if err := g.prepare(c); err != nil {
		return err
	}
	return g.judge(c.Context)
}

// level reads what is asked of both engines.
func (g *gating) level(c *cli.Context) (err error) {
	if g.o.Level, err = gates.ParseLevel(c.String("suite")); err != nil {
		return err
	}
	if c.Bool("defer-long") && g.o.Level != gates.LevelFull {
		return usagef("--defer-long goes with --suite full: level %s asks nothing that fills the context", g.o.Level)
	}
	if n := c.Int("context"); c.IsSet("context") && n < 1 {
		return usagef("--context %d is not a number of tokens", n)
	}
	if d := c.Duration("max-age"); c.IsSet("max-age") && d <= 0 {
		return usagef("--max-age %s is not an age", d)
	}
	g.plan = scenario.LevelOptions{Level: g.o.Level.String(), Window: c.Int("context")}
	g.o.Variants, g.o.MaxAge, g.o.Unknown = c.StringSlice("variant"), c.Duration("max-age"), c.Bool("accept-unknown-weights")
	g.o.Defer, g.o.Harness = c.Bool("defer-long"), version()
	g.weights = [2]string{c.String("weights-id"), cmp.Or(c.String("reference-weights-id"), c.String("weights-id"))}
	g.refModel = c.String("reference-model")
	return nil
}

// drafts reads how the target answers without drafts.
func (g *gating) drafts(c *cli.Context) error {
	g.plan.Drafts.OffVariant = c.String("draft-off-variant")
	text := c.String("draft-off")
	if text == "" {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || len(fields) == 0 {
		return usagef("--draft-off %s is not a JSON object with fields", text)
	}
	g.plan.Drafts.OffFields = json.RawMessage(text)
	return nil
}

// maxImage bounds the file of a picture, in bytes.
const maxImage = 20 << 20

// unnamed are the characters of a file's name that cannot stand in the name of a case.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9]+`)

// images reads the pictures of the user: files, and those of directories by name.
func (g *gating) images(c *cli.Context) error {
	var files []string
	for _, name := range c.StringSlice("images") {
		info, err := os.Stat(name)
		if err != nil {
			return usagef("read --images: %v", err)
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		before := len(files)
		for _, ext := range []string{"*.png", "*.jpg", "*.jpeg", "*.gif", "*.webp"} {
			found, err := filepath.Glob(filepath.Join(name, ext))
			if err != nil {
				return usagef("read --images: %v", err)
			}
			files = append(files, found...)
		}
		if slices.Sort(files[before:]); len(files) == before {
			return usagef("--images %s holds no picture", name)
		}
	}
	seen := map[string]bool{}
	for _, m := range scenario.Images() {
		seen[m.Name] = true
	}
	for _, file := range files {
		m, err := imageOf(file, seen)
		if err != nil {
			return err
		}
		g.plan.Images = append(g.plan.Images, m)
	}
	return nil
}

// imageOf reads a picture and gives it a name that no other one has.
func imageOf(file string, seen map[string]bool) (scenario.Image, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxImage {
		err = fmt.Errorf("%s has %d bytes, more than %d", file, info.Size(), maxImage)
	}
	if err != nil {
		return scenario.Image{}, usagef("read --images: %v", err)
	}
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return scenario.Image{}, usagef("read --images: %v", err)
	}
	base := strings.Trim(unnamed.ReplaceAllString(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), "_"), "_")
	m := scenario.Image{Name: cmp.Or(base, "picture"), Bytes: raw}
	for n := 2; seen[m.Name]; n++ {
		m.Name = fmt.Sprintf("%s_%d", cmp.Or(base, "picture"), n)
	}
	seen[m.Name] = true
	if err := m.Check(); err != nil {
		return m, usagef("--images %s: %v", file, err)
	}
	return m, nil
}

// read reads what an earlier suite has left in the outputs, and makes sure of them, before anything is sent.
func (g *gating) read(c *cli.Context) error {
	states := 0
	for _, name := range c.StringSlice("output") {
		form, err := outputForm(name)
		if err != nil {
			return err
		}
		if inside(name, g.s.store) {
			return usagef("--output %s is inside the store", name)
		}
		_, statErr := os.Lstat(name)
		if g.outputs = append(g.outputs, name); form != "json" {
			if statErr == nil && !c.Bool("force") {
				return usagef("%s is there; --force replaces it", name)
			}
			continue
		}
		if states++; states > 1 || strings.HasSuffix(name, ".gz") {
			return usagef("--output %s: there is one gates.json, and it is not packed", name)
		}
		if statErr != nil {
			continue
		}
		earlier, err := replay.ReadGateReport(name)
		switch {
		case err != nil && !c.Bool("force"):
			return fmt.Errorf("%w: --output is there and no gates.json, and --force replaces it: %w", exchange.ErrUsage, err)
		case err == nil && !c.Bool("fresh"):
			g.o.Earlier = earlier
		}
	}
	g.files.force = true // what may not be replaced is refused above
	return nil
}

// referenceTarget reads who is held to be right. The key of the target is not sent to it.
func (p *program) referenceTarget(c *cli.Context, g *gating) error {
	arg := c.String("reference")
	if arg == "" {
		for _, name := range []string{"reference-model", "reference-label", "reference-weights-id", "variant"} {
			if c.IsSet(name) {
				return usagef("--%s goes with --reference", name)
			}
		}
		return nil
	}
	cfg, err := p.readConfig(c)
	if err != nil {
		return err
	}
	u, err := p.named(cfg, arg)
	if err != nil {
		return err
	}
	u.name = cmp.Or(u.name, "reference")
	u.inherit(nil, c.String("reference-label"))
	g.s.targets = append(g.s.targets, u)
	return nil
}

// prepare finds out what is known of the engines, plans, and begins the run. Nothing is sent to be judged.
func (g *gating) prepare(c *cli.Context) (err error) {
	if len(g.found) > 0 {
		d := g.found[0].is
		if g.plan.Window == 0 && d.Window != nil {
			g.plan.Window = int(*d.Window)
		}
		g.plan.Drafts.On = d.Drafting
	}
	if off := g.profile(0).Requests.Drafts; g.plan.Drafts.OffFields == nil && off != nil && string(off.Off) != "null" {
		g.plan.Drafts.OffFields = off.Off
	}
	g.plan.Thinking = g.thinks()
	if g.o.Cases, g.o.Gaps, err = scenario.LevelPlan(g.plan); err != nil {
		return err
	}
	labels := maps.Clone(g.s.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["level"] = cmp.Or(labels["level"], g.plan.Level)
	for i, name := range []string{"launch", "reference_launch"}[:len(g.engines)] {
		if command := g.engines[i].command(); command != "" {
			labels[name] = command
		}
	}
	g.s.labels = labels
	return g.start(c)
}

// thinks reports whether it is known how all engines are told to think.
func (g *gating) thinks() bool {
	for i := range g.s.targets {
		if t := g.profile(i).Requests.Thinking; t == nil || len(t.On) == 0 {
			return false
		}
	}
	return true
}

// announce says what is about to happen.
func (g *gating) announce() {
	if g.s.quiet || g.s.json {
		return
	}
	asked, reused := g.gates.Planned()
	text := fmt.Sprintf("level %s: %s to %s %s, model %s", g.plan.Level, countOf(asked, "case"), g.target.up.name, g.target.upstream.URL(), printable(g.model))
	if g.reference != nil {
		at := g.reference.upstream.URL()
		if e := g.engines[1]; e != nil { // its port is chosen when it is its turn
			at = e.spec.Engine.ID + " with " + printable(e.spec.Model)
		}
		text += fmt.Sprintf(", held against %s %s", g.reference.up.name, at)
	}
	if reused > 0 {
		text += fmt.Sprintf("; %s of before stand", countOf(reused, "case"))
	}
	note(g.env.Stderr, "%s; run %s", text, runName(g.target.writer.Run()))
}

// told prints a verdict that is no pass when it stands.
func (g *gating) told(e *replay.GateEntry) {
	if g.s.quiet || g.s.json || e.Status == exchange.VerdictOK {
		return
	}
	note(g.env.Stderr, "%s %s: %s: %s", printable(e.Scenario), e.Gate, e.Status, printable(e.Reason))
}

// judge runs the suite, closes its run, and tells what came of it.
func (g *gating) judge(ctx context.Context) error {
	g.announce()
	report, sent := g.gates.Run(ctx)
	g.target.writer.Drain(context.Background())
	g.target.writer.Replay(g.gates.Report(sent))
	run, stored := g.target.writer.Close(context.Background())
	g.endTrace(g.target, &run)
	report.Run = run.ID
	if stored == nil && sent == nil && run.State != exchange.RunComplete {
		report.Complete, report.Why = false, "its run is not whole: "+whyIncomplete(run)
	}
	g.report = report
	if err := errors.Join(stored, g.write(), g.print()); err != nil {
		return err
	}
	verdict := report.Verdict()
	if errors.Is(sent, exchange.ErrUnreachable) && !errors.Is(verdict, exchange.ErrGate) {
		hint := "check that it runs and that --target and --reference name the right addresses"
		if g.launched() {
			hint = "its log tells more"
		}
		return &exchange.Error{Op: "judge engine", Object: g.target.upstream.URL(), Side: exchange.SideEngine, Cause: sent, Hint: hint}
	}
	if verdict != nil {
		return verdict
	}
	return sent
}
