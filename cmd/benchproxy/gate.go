package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

func (p *program) gateCommand() *cli.Command {
	return &cli.Command{
		Name:        "gate",
		Usage:       "judge an engine by its answers, and show the rules for it",
		Description: gateSuiteHelp,
		Flags:       gateSuiteFlags(),
		Action:      p.gateOrSuite,
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the gates", Flags: []cli.Flag{jsonFlag()}, Action: p.gateLs},
			{Name: "explain", Usage: "print the rule of a gate in full", ArgsUsage: "ID", Flags: []cli.Flag{jsonFlag()}, Action: p.gateExplain},
		},
	}
}

// gateRowVersion is the version of the documents of gate ls and gate explain.
const gateRowVersion = 2

// gateRow is a gate as documents show it.
type gateRow struct {
	ID      string          `json:"id"`
	Version int             `json:"version"`
	Family  string          `json:"family"`
	Levels  []string        `json:"levels"`  // of gate --suite that run it, weakest first
	Unasked bool            `json:"unasked"` // replay --revalidate judges exchanges by it that belong to no suite
	Goldens bool            `json:"goldens"` // replay --revalidate --gates judges by it, against the goldens of the store
	Summary string          `json:"summary"`
	Params  json.RawMessage `json:"params"` // names of its parameters, with the values that mean "not said"; null when it has none
	Explain string          `json:"explain,omitempty"`
}

func gateRowOf(g gates.Gate) gateRow {
	row := gateRow{ID: g.ID, Version: g.Version, Family: g.Family, Levels: scenario.GateLevels(g.ID), Unasked: g.Unasked(), Goldens: replay.AgainstGoldens(g.ID), Summary: g.Summary, Params: g.Defaults()}
	if row.Levels == nil {
		row.Levels = []string{}
	}
	return row
}

// levels are the levels in one word each.
func (r *gateRow) levels() string { return cmp.Or(strings.Join(r.Levels, " "), "-") }

func (p *program) gateLs(c *cli.Context) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	all := gates.All()
	if c.Bool("json") {
		doc := struct {
			Schema int       `json:"schema"`
			Gates  []gateRow `json:"gates"`
		}{Schema: gateRowVersion}
		for _, g := range all {
			doc.Gates = append(doc.Gates, gateRowOf(g))
		}
		return json.NewEncoder(p.Stdout).Encode(doc)
	}
	t := table{cols: []column{{head: "GATE"}, {head: "VERSION", right: true}, {head: "FAMILY"}, {head: "LEVELS"}, {head: "UNASKED"}, {head: "WHAT IT HOLDS"}}}
	for _, g := range all {
		row := gateRowOf(g)
		unasked := "-"
		switch {
		case row.Unasked:
			unasked = "yes"
		case row.Goldens:
			unasked = "goldens"
		}
		t.add(row.ID, fmt.Sprint(row.Version), row.Family, row.levels(), unasked, row.Summary)
	}
	t.print(p.Stdout)
	fmt.Fprintln(p.Stdout, "LEVELS: of gate --suite that run it, on an engine that has what it is about; - is for gates of other scenarios, and of your own choice.\n"+
		"UNASKED: judges exchanges of no suite, by what their own requests asked for; goldens is for those that replay --revalidate RUN\n"+
		"--gates GATE holds against the goldens of their own requests.")
	return nil
}

func (p *program) gateExplain(c *cli.Context) error {
	if err := exactArgs(c, "ID"); err != nil {
		return err
	}
	g, found := gates.Lookup(c.Args().First())
	if !found {
		var ids []string
		for _, g := range gates.All() {
			ids = append(ids, g.ID)
		}
		return &exchange.Error{Op: "find gate", Object: printable(c.Args().First()), Side: exchange.SideClient, Cause: exchange.ErrMiss, Hint: "there is " + strings.Join(ids, ", ")}
	}
	row := gateRowOf(*g)
	row.Explain = g.Explain
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(struct {
			Schema int `json:"schema"`
			gateRow
		}{gateRowVersion, row})
	}
	fmt.Fprintf(p.Stdout, "%s, version %d: %s\nfamily %s, levels %s\n\n%s\n", row.ID, row.Version, row.Summary, row.Family, row.levels(), row.Explain)
	if row.Goldens {
		fmt.Fprintf(p.Stdout, "\nreplay --revalidate RUN --gates %s holds recorded answers against the goldens of the store.\n", row.ID)
	}
	if g.Params != nil {
		fmt.Fprintf(p.Stdout, "\nparameters: %s\n", row.Params)
	}
	return nil
}
