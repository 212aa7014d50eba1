package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
)

func (p *program) goldenCommand() *cli.Command {
	return &cli.Command{
		Name:  "golden",
		Usage: "keep answers of a reference engine that others are held against",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "make goldens of recorded answers", ArgsUsage: "RUN|ID|RUN/SEQ...",
				Description: "A golden is an answer with its weights, engine build, sampling, prompt and, where the engine told them, token ids and\n" +
					"log-probabilities. Only complete answers of an engine that did not draft are taken. Of a run everything that can be a\n" +
					"golden is taken, and the rest is named; an answer that is named itself must be one. A golden is never overwritten.",
				Flags: []cli.Flag{storeFlag(), jsonFlag(),
					&cli.StringFlag{Name: "weights-id", Usage: "`ID` of the weights, as sha256:HEX of the file or a word of yours; default: what the run knows of its engine"},
					&cli.BoolFlag{Name: "accept-unknown-weights", Usage: "make goldens also when the weights are not known"},
					&cli.BoolFlag{Name: "alternate", Usage: "add a further recording where there is one already"},
					&cli.StringFlag{Name: "variant", Usage: "launch `FLAGS` of the reference beside its usual ones"}},
				Action: p.withGoldens(p.goldenAdd),
			},
			{
				Name: "ls", Usage: "list goldens", ArgsUsage: "[KEY]",
				Description: "KEY is a request key, as store show prints it. With --json there is one line per golden, without its tokens.",
				Flags:       []cli.Flag{storeFlag(), jsonFlag()}, Action: p.withGoldens(p.goldenLs),
			},
			{
				Name: "show", Usage: "show one golden", ArgsUsage: "ID",
				Flags: []cli.Flag{storeFlag(), jsonFlag()}, Action: p.withGoldens(p.goldenShow),
			},
			{
				Name: "rm", Usage: "remove goldens", ArgsUsage: "ID...",
				Flags: []cli.Flag{storeFlag(), jsonFlag()}, Action: p.withGoldens(p.goldenRm),
			},
		},
	}
}

// withGoldens opens the store for an action on its goldens: a proxy that records into it does not give them out.
func (p *program) withGoldens(action func(*cli.Context, local) error) cli.ActionFunc {
	return p.interruptible(func(c *cli.Context) error {
		own, err := p.openOwn(c, "use goldens")
		if err != nil {
			return err
		}
		defer own.Close()
		return action(c, own)
	})
}

// goldenRow is a golden as lists print it.
type goldenRow struct {
	Schema int `json:"schema"`
	exchange.Golden
	Tokens    []exchange.GoldenToken `json:"tokens,omitempty"` // hides the golden's
	PromptIDs []int64                `json:"prompt_ids,omitempty"`
	Count     int                    `json:"n_tokens"`
}

// rowOf is the row of a golden without its tokens.
func rowOf(g *exchange.Golden) goldenRow {
	return goldenRow{Schema: g.Version, Golden: *g, Count: len(g.Tokens)}
}

// adding is one golden add.
type adding struct {
	own       local
	recording gates.Recording
	alternate bool
	made      []exchange.Golden
	refused   []string
}

func (p *program) goldenAdd(c *cli.Context, own local) error {
	if c.Args().Len() == 0 {
		return usagef("golden add takes RUN|ID|RUN/SEQ..., got no arguments")
	}
	a := &adding{own: own, alternate: c.Bool("alternate"), recording: gates.Recording{
		Weights: c.String("weights-id"), Unnamed: c.Bool("accept-unknown-weights"), Variant: c.String("variant")}}
	err := a.all(c.Context, c.Args().Slice())
	for _, why := range a.refused {
		note(p.Stderr, "%s", why)
	}
	if err := p.printMade(c, a.made); err != nil {
		return err
	}
	if err == nil && len(a.made) == 0 {
		err = &exchange.Error{Op: "add goldens", Side: exchange.SideStore, Cause: fmt.Errorf("%w: no answer can be a golden", exchange.ErrMiss)}
	}
	return err
}

func (p *program) printMade(c *cli.Context, made []exchange.Golden) error {
	enc := json.NewEncoder(p.Stdout)
	for i := range made {
		g := &made[i]
		if c.Bool("json") {
			if err := enc.Encode(rowOf(g)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(p.Stdout, "golden %s  %s, %d tokens (%s), alternate %d\n", g.ID, g.Key, len(g.Tokens), g.Basis, g.Alternate)
	}
	return nil
}

// all makes goldens of what is named: of a run all that can be one, of an exchange it or an error.
func (a *adding) all(ctx context.Context, names []string) error {
	for _, name := range names {
		if run, err := a.own.Run(name); err == nil {
			if err := a.run(ctx, run); err != nil {
				return err
			}
			continue
		}
		id, err := resolve(a.own, name)
		if err != nil {
			return err
		}
		x, row, err := a.own.Exchange(id)
		if err != nil {
			return err
		}
		run, err := a.own.Run(string(x.Run))
		if err != nil {
			return err
		}
		spans, err := replay.SpansOf(rowsOf(ctx, a.own, run.ID))
		if err != nil {
			return err
		}
		if err := a.one(x, &run, spans.Together(&row)); err != nil {
			return err
		}
	}
	return nil
}

func (a *adding) run(ctx context.Context, run exchange.Run) error {
	spans, err := replay.SpansOf(rowsOf(ctx, a.own, run.ID))
	if err != nil {
		return err
	}
	for row, err := range rowsOf(ctx, a.own, run.ID) {
		if err != nil {
			return err
		}
		if row.Method != "POST" || row.Dialect == "" {
			continue
		}
		x, _, err := a.own.Exchange(row.ID)
		if err != nil {
			return err
		}
		if err := a.one(x, &run, spans.Together(&row)); err != nil {
			if gates.Refused(err) == "" && !errors.Is(err, exchange.ErrUsage) {
				return err
			}
			a.refused = append(a.refused, err.Error())
		}
	}
	return nil
}

// one makes a golden of an exchange, one of so many that were under way together.
func (a *adding) one(x *exchange.Exchange, run *exchange.Run, together int) error {
	r := a.recording
	d := run.DeploymentAt(x.Upstream, x.Timeline.Wall)
	if d != nil {
		r.Drafting, r.Engine = d.Drafting, d.Identity
		if r.Weights == "" && d.WeightsDigest != nil {
			r.Weights = *d.WeightsDigest
		}
	}
	if x.Item != nil {
		r.Turn = x.Item.Turn
	}
	r.Concurrency = together
	g, err := gates.GoldenOf(x, r)
	if err != nil {
		return err
	}
	kept, err := a.own.AddGolden(*g, a.alternate)
	if err != nil {
		return err
	}
	a.made = append(a.made, kept)
	return nil
}

func (p *program) goldenLs(c *cli.Context, own local) error {
	if c.Args().Len() > 1 {
		return usagef("golden ls takes [KEY], got %d arguments", c.Args().Len())
	}
	list, err := own.GoldensOf(c.Args().First())
	if err != nil {
		return err
	}
	if c.Args().Len() == 1 && len(list) == 0 {
		return &exchange.Error{Op: "list goldens", Object: c.Args().First(), Side: exchange.SideStore,
			Cause: fmt.Errorf("%w: there is none of this key", exchange.ErrMiss), Hint: "golden ls shows all"}
	}
	if c.Bool("json") {
		enc := json.NewEncoder(p.Stdout)
		for _, g := range list {
			if err := enc.Encode(rowOf(g)); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{cols: []column{{head: "ID"}, {head: "KEY"}, {head: "ALT", right: true}, {head: "ENGINE"}, {head: "WEIGHTS"}, {head: "MADE"}, {head: "TOKENS", right: true}, {head: "BASIS"}, {head: "CACHE"}}}
	for _, g := range list {
		t.add(string(g.ID), g.Key, strconv.Itoa(g.Alternate), printable(g.Engine.Engine+" "+g.Engine.Version), shortWeights(g.Weights),
			g.Made.Local().Format("2006-01-02 15:04"), strconv.Itoa(len(g.Tokens)), g.Basis, string(g.Cache))
	}
	t.print(p.Stdout)
	return nil
}

// shortWeights is the beginning of a digest, or the word that stands in its place.
func shortWeights(w string) string {
	const most = 19
	if w == "" {
		return "unknown"
	}
	if len(w) > most {
		w = w[:most]
	}
	return printable(w)
}

func (p *program) goldenShow(c *cli.Context, own local) error {
	if err := exactArgs(c, "ID"); err != nil {
		return err
	}
	g, err := own.Golden(exchange.ID(c.Args().First()))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(g)
	}
	p.printGolden(g)
	return nil
}

func (p *program) printGolden(g *exchange.Golden) {
	fmt.Fprintf(p.Stdout, "golden %s, alternate %d of %s\n", g.ID, g.Alternate, g.Key)
	for _, f := range [][2]string{
		{"weights", orUnknown(g.Weights)}, {"engine", g.Engine.Engine + " " + g.Engine.Version}, {"variant", g.Variant}, {"source", string(g.Source)},
		{"made", g.Made.Local().Format("2006-01-02 15:04:05")}, {"path", g.Path}, {"sampling", string(g.Sampling)},
		{"prompt", countOr(g.PromptTokens) + " tokens, " + countOr(g.CachedTokens) + " of them cached (" + string(g.Cache) + ")"},
		{"together", countOrUnknown(g.Concurrency) + " requests"}, {"drafting", yesNo(g.Drafting)},
		{"tokens", fmt.Sprintf("%d (%s)", len(g.Tokens), g.Basis)}, {"finish", g.Finish},
	} {
		if f[1] != "" {
			fmt.Fprintf(p.Stdout, "  %-9s %s\n", f[0], printable(f[1]))
		}
	}
	fmt.Fprintf(p.Stdout, "\n%s\n", printable(g.Reasoning+g.Text))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func countOr(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}

func countOrUnknown(n int) string {
	if n == 0 {
		return "unknown"
	}
	return strconv.Itoa(n)
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return "unknown"
	case *b:
		return "on"
	}
	return "off"
}

func (p *program) goldenRm(c *cli.Context, own local) error {
	if c.Args().Len() == 0 {
		return usagef("golden rm takes ID..., got no arguments")
	}
	for _, id := range c.Args().Slice() {
		if err := own.RemoveGolden(exchange.ID(id)); err != nil {
			return err
		}
		if c.Bool("json") {
			if err := json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "removed": id}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(p.Stdout, "removed golden %s\n", printable(id))
	}
	return nil
}
