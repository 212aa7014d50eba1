package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func (p *program) storeCommand() *cli.Command {
	return &cli.Command{
		Name:  "store",
		Usage: "look into the recordings",
		Subcommands: []*cli.Command{
			{
				Name: "ls", Usage: "list runs, or the exchanges of one run", ArgsUsage: "[RUN]",
				Description: "RUN is an id or a name, and then the newest run of that name. With --json there is one line per exchange, of all\n" +
					"runs when none is named; --runs lists runs instead.",
				Flags:  []cli.Flag{storeFlag(), jsonFlag(), &cli.BoolFlag{Name: "runs", Usage: "with --json: one line per run"}},
				Action: p.withReading(0, 1, p.storeLs),
			},
			{
				Name: "show", Usage: "show one exchange, or a run and the engines behind it", ArgsUsage: "ID|RUN/SEQ|RUN",
				Flags: []cli.Flag{storeFlag(), jsonFlag(),
					&cli.StringFlag{Name: "raw", Usage: "write the exact body bytes of `SIDE`: request or response"},
					&cli.StringFlag{Name: "head", Usage: "write the stored head of `SIDE`: request or response; credentials are masked"}},
				Action: p.withReading(1, 1, p.storeShow),
			},
			{
				Name: "check", Usage: "verify every index entry, digest, stamp and size",
				Flags: []cli.Flag{storeFlag(), jsonFlag()}, Action: p.withReading(0, 0, p.storeCheck),
			},
			{
				Name: "stats", Usage: "say what uses the space",
				Flags: []cli.Flag{storeFlag(), jsonFlag()}, Action: p.withReading(0, 0, p.storeStats),
			},
			p.exportCommand(), p.importCommand(), p.pruneCommand(), p.pinCommand(),
		},
	}
}

// withReading opens and closes the store around an action that takes from least to most arguments.
func (p *program) withReading(least, most int, action func(*cli.Context, reading) error) cli.ActionFunc {
	return p.interruptible(func(c *cli.Context) error {
		if n := c.Args().Len(); n < least || n > most {
			return usagef("%s takes %s, got %d arguments", c.Command.FullName(), cmp.Or(c.Command.ArgsUsage, "no arguments"), n)
		}
		r, err := p.openReading(c)
		if err != nil {
			return err
		}
		defer r.Close()
		return action(c, r)
	})
}

// rowsOf are the rows of a run until ctx ends, which is an error.
func rowsOf(ctx context.Context, r reading, run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for row, err := range r.Summaries(run) {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// runRow is a run as `store ls --runs --json` prints it.
type runRow struct {
	Schema int `json:"schema"`
	exchange.Run
	DraftSpeedup *exchange.Figure `json:"draft_speedup,omitempty"` // of a run with a stated rate without drafts
}

func (p *program) storeLs(c *cli.Context, r reading) error {
	switch {
	case c.Args().Len() == 1:
		return p.listRun(c, r, c.Args().First())
	case c.Bool("json") && !c.Bool("runs"):
		return p.listAll(c.Context, r)
	}
	runs, err := r.Runs()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		enc := json.NewEncoder(p.Stdout)
		for _, run := range runs {
			if err := enc.Encode(runRow{Schema: 1, Run: run}); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{cols: []column{{head: "RUN"}, {head: "ID"}, {head: "STARTED"}, {head: "MODE"}, {head: "STATE"},
		{head: "STORED", right: true}, {head: "DROPPED", right: true}, {head: "OUTCOMES"}}}
	for _, run := range runs {
		name := printable(run.Name)
		if name == "" {
			name = "-"
		}
		t.add(name, string(run.ID), run.Started.Local().Format("2006-01-02 15:04:05"), run.Mode, string(run.State),
			strconv.FormatInt(run.Counts.Stored, 10), strconv.FormatInt(run.Counts.Dropped, 10), outcomesText(run.Counts.Outcomes))
	}
	t.print(p.Stdout)
	return nil
}

func (p *program) listAll(ctx context.Context, r reading) error {
	runs, err := r.Runs()
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := p.jsonRows(ctx, r, run.ID); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) jsonRows(ctx context.Context, r reading, run exchange.ID) error {
	enc := json.NewEncoder(p.Stdout)
	for row, err := range rowsOf(ctx, r, run) {
		if err != nil {
			return err
		}
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) listRun(c *cli.Context, r reading, name string) error {
	run, err := r.Run(name)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.jsonRows(c.Context, r, run.ID)
	}
	total := measure.Totals{Limit: sampleLimit}
	cols := exchangeColumns()
	cols = slices.Insert(cols, len(cols)-1, column{head: "ID", width: 26, drop: 5}) // RUN/SEQ names an exchange as well
	screen, _ := p.TTY(p.Stdout)
	table := newRows(cols, screen)
	fmt.Fprintln(p.Stdout, table.head())
	for row, err := range rowsOf(c.Context, r, run.ID) {
		if err != nil {
			return err
		}
		total.Add(&row)
		cells := exchangeCells(row)
		fmt.Fprintln(p.Stdout, table.line(slices.Insert(cells, len(cells)-1, string(row.ID))))
	}
	printSummary(p.Stdout, &run, total.Run())
	return nil
}

// resolve is the id that an argument names: an id, or RUN/SEQ.
func resolve(r reading, arg string) (exchange.ID, error) {
	name, seqText, ok := cutLast(arg, "/")
	if !ok {
		if _, err := r.Run(arg); err == nil {
			return "", usagef("%q is a run; say %s/SEQ for one of its exchanges", arg, arg)
		}
		return exchange.ID(arg), nil
	}
	seq, err := strconv.ParseUint(seqText, 10, 64)
	if err != nil {
		return "", usagef("%q is neither an id nor RUN/SEQ", arg)
	}
	run, err := r.Run(name)
	if err != nil {
		return "", err
	}
	for row, err := range r.Summaries(run.ID) {
		if err != nil {
			return "", err
		}
		if row.Seq == seq {
			return row.ID, nil
		}
	}
	return "", &exchange.Error{Op: "find exchange", Object: arg, Side: exchange.SideStore, Cause: exchange.ErrMiss,
		Hint: fmt.Sprintf("run %s has %d; store ls %s shows them", run.ID, run.Counts.Stored, printable(name))}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// sides are the two halves of an exchange.
var sides = []string{"request", "response"}

// wantedPart is the part and the side that --raw or --head ask for; part is "" when neither is said.
func wantedPart(c *cli.Context) (part, side string, err error) {
	flag, part := "raw", "body"
	if c.IsSet("head") {
		flag, part = "head", "head"
	}
	switch {
	case !c.IsSet(flag):
		return "", "", nil
	case c.IsSet("raw") && c.IsSet("head"), c.Bool("json"):
		return "", "", usagef("say one of --raw, --head and --json")
	case !slices.Contains(sides, c.String(flag)):
		return "", "", usagef("--%s is request or response, not %q", flag, c.String(flag))
	}
	return part, c.String(flag), nil
}

func (p *program) storeShow(c *cli.Context, r reading) error {
	part, side, err := wantedPart(c)
	if err != nil {
		return err
	}
	if part == "" {
		if run, err := r.Run(c.Args().First()); err == nil {
			return p.storeShowRun(c, r, run)
		}
	}
	id, err := resolve(r, c.Args().First())
	if err != nil {
		return err
	}
	if part != "" {
		b, err := r.Bytes(c.Context, id, side, part)
		if err != nil {
			return err
		}
		defer b.Close()
		_, err = io.Copy(p.Stdout, b)
		return err
	}
	d, err := r.Detail(c.Context, id)
	if err != nil {
		return err
	}
	run, err := r.Run(string(d.Run))
	if err != nil {
		return err
	}
	d.Instrument = run.Instrument
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(d)
	}
	printDetail(p.Stdout, d)
	return nil
}
