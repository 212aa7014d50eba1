package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

func (p *program) configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "read the config of a benchmark, as bench does",
		Subcommands: []*cli.Command{
			{
				Name:      "check",
				Usage:     "say what is wrong with a config, or would not run",
				ArgsUsage: "[FILE]",
				Description: "The config is resolved with the environment and the flags, as bench would. It ends with 2 when a key or id is not\n" +
					"known, or when a selected model has a file that is neither there nor to be had from anywhere.\n\n" +
					"   benchproxy config check bench.json --models qwen3-4b --plan",
				Flags:  append(benchConfigFlags(), &cli.BoolFlag{Name: "plan", Usage: "print every cell, and why the ones are skipped that cannot run here"}, jsonFlag()),
				Action: p.configCheck,
			},
			{
				Name:      "show",
				Usage:     "print every value of a config as it is resolved",
				ArgsUsage: "[FILE]",
				Flags:     append(benchConfigFlags(), &cli.BoolFlag{Name: "sources", Usage: "say where each value came from: the line, the variable or the flag"}, jsonFlag()),
				Action:    p.configShow,
			},
			{
				Name:  "schema",
				Usage: "print the JSON Schema of the config, for editors",
				Description: "   benchproxy config schema > benchproxy.schema.json\n\n" +
					"A config that begins with {\"$schema\": \"benchproxy.schema.json\" is then completed and checked while it is written.",
				Action: p.configSchema,
			},
		},
	}
}

// benchConfigFlags are the flags that say what a benchmark measures: the config, and everything that can be changed of it
// for one run.
func benchConfigFlags() []cli.Flag {
	out := []cli.Flag{&cli.StringFlag{Name: "config", Usage: "`FILE` of the benchmark (or BENCH_CONFIG)"}}
	for _, f := range matrix.Flags() {
		out = append(out, &cli.StringFlag{Name: f.Name, Usage: f.Usage})
	}
	return out
}

// benchConfig resolves the config of a command: --config, its one argument, or BENCH_CONFIG. Without any it is the built-in
// one.
func (p *program) benchConfig(c *cli.Context) (*matrix.Config, error) {
	if c.Args().Len() > 1 {
		return nil, usagef("%s takes one FILE, got %d arguments", c.Command.FullName(), c.Args().Len())
	}
	if c.String("config") != "" && c.Args().Len() == 1 {
		return nil, usagef("the config is named twice, by --config and as an argument")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	in, err := matrix.ReadInput(cmp.Or(c.String("config"), c.Args().First(), p.Getenv("BENCH_CONFIG")), dir)
	if err != nil {
		return nil, err
	}
	in.Getenv, in.Library, in.Flags = p.Getenv, openLibrary, map[string]string{}
	if in.Catalog, err = engines.Builtin(); err != nil {
		return nil, err
	}
	for _, f := range matrix.Flags() {
		if c.IsSet(f.Name) {
			in.Flags[f.Name] = c.String(f.Name)
		}
	}
	return matrix.Load(in)
}

// programName is how profiles call this program.
const programName = "benchproxy"

// onThisMachine are plan options that look for files and programs here.
func onThisMachine() matrix.PlanOptions {
	return matrix.PlanOptions{
		Exists: isThere,
		Program: func(name string) bool {
			if name == programName {
				return true // the scripted engine is this program
			}
			_, err := exec.LookPath(name)
			return err == nil || errors.Is(err, exec.ErrDot)
		},
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkedConfig is what config check prints as JSON.
type checkedConfig struct {
	Schema   int           `json:"schema"`
	File     string        `json:"file"`
	Problems []string      `json:"problems"`
	Warnings []string      `json:"warnings"`
	Counts   matrix.Counts `json:"counts"`
	Plan     *matrix.Plan  `json:"plan,omitempty"`
}

func (p *program) configCheck(c *cli.Context) error {
	config, err := p.benchConfig(c)
	if err != nil {
		return err
	}
	out := checkedConfig{Schema: 1, File: config.File, Problems: config.Check(isThere), Warnings: config.Warnings}
	plan, err := matrix.NewPlan(config, onThisMachine())
	if err != nil {
		return err
	}
	out.Counts = plan.Counts()
	if c.Bool("plan") {
		out.Plan = plan.Masked()
	}
	if c.Bool("json") {
		err = json.NewEncoder(p.Stdout).Encode(out)
	} else {
		p.printChecked(out, plan)
	}
	if len(out.Problems) > 0 {
		err = errors.Join(err, usagef("the config has %s", countOf(len(out.Problems), "problem")))
	}
	return err
}

func (p *program) printChecked(out checkedConfig, plan *matrix.Plan) {
	for _, w := range out.Warnings {
		note(p.Stderr, "warning: %s", w)
	}
	for _, problem := range out.Problems {
		note(p.Stderr, "%s", problem)
	}
	if out.Plan != nil {
		printPlan(p, plan)
		return
	}
	fmt.Fprintln(p.Stdout, plan.Summary())
}

// printPlan prints the cells of a plan and what they come to.
func printPlan(p *program, plan *matrix.Plan) {
	printLines(p, plan.Lines())
	fmt.Fprintf(p.Stdout, "\n%s\n", plan.Summary())
}

// printLines prints rows of text below a title row, when there are any.
func printLines(p *program, lines [][]string) {
	if len(lines) < 2 {
		return
	}
	var t table
	for _, head := range lines[0] {
		t.cols = append(t.cols, column{head: head, right: slices.Contains([]string{"CONC", "TOKENS", "REPEATS", "TP", "SKIP"}, head)})
	}
	for _, row := range lines[1:] {
		for i := range row {
			row[i] = printable(row[i])
		}
		t.add(row...)
	}
	t.print(p.Stdout)
}

func (p *program) configShow(c *cli.Context) error {
	config, err := p.benchConfig(c)
	if err != nil {
		return err
	}
	settings := config.Settings
	for i := range settings {
		settings[i].Value = maskedSetting(settings[i])
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "file": config.File, "settings": settings})
	}
	t := table{cols: []column{{head: "KEY"}, {head: "VALUE"}}}
	if c.Bool("sources") {
		t.cols = append(t.cols, column{head: "SOURCE"}, column{head: "AT"})
	}
	for _, s := range settings {
		cells := []string{s.Key, printable(s.Value)}
		if c.Bool("sources") {
			cells = append(cells, string(s.Source), printable(s.At))
		}
		t.add(cells...)
	}
	t.print(p.Stdout)
	return nil
}

// maskedSetting is a value without what is secret in it: a variable, header or argument that holds a key, and keys in
// addresses.
func maskedSetting(s matrix.Setting) string {
	name := s.Key[strings.LastIndexByte(s.Key, '.')+1:]
	if strings.Contains(s.Key, ".headers.") || strings.Contains(s.Key, ".env.") {
		return matrix.MaskedNames(map[string]string{name: s.Value})[name]
	}
	if strings.HasSuffix(name, "args") {
		return strings.Join(redact.Args(strings.Split(s.Value, ",")), ",")
	}
	return redact.Text(s.Value)
}

func (p *program) configSchema(c *cli.Context) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	catalog, err := engines.Builtin()
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range catalog.Profiles() {
		ids = append(ids, e.ID)
	}
	raw, err := matrix.JSONSchema(ids)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s\n", raw)
	return nil
}
