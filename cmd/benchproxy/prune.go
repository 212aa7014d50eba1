package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// pruneCommand removes runs. It opens the store itself: only its owner may remove.
func (p *program) pruneCommand() *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "remove runs and give their space back", ArgsUsage: "[RUN...]",
		Description: "Removes the runs named, those older than --older, and the oldest until the rest fits in --keep. Pinned runs and goldens\n" +
			"stay. Without --yes it only tells what it would do. record has both limits too, for the store it is recording into.",
		Flags: []cli.Flag{storeFlag(), jsonFlag(),
			&cli.DurationFlag{Name: "older", Usage: "remove runs that started longer ago, as `DURATION` (720h is 30 days)"},
			&cli.IntFlag{Name: "keep", Usage: "remove the oldest until the records of the rest take at most so many `MIB`"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only tell, as without --yes"},
			&cli.BoolFlag{Name: "yes", Usage: "do it"}},
		Action: p.interruptible(p.prune),
	}
}

func (p *program) prune(c *cli.Context) error {
	if c.Args().Len() == 0 && !c.IsSet("older") && !c.IsSet("keep") {
		return usagef("nothing says what to remove; name runs, or say --older or --keep")
	}
	if c.Bool("yes") && c.Bool("dry-run") {
		return usagef("say one of --yes and --dry-run")
	}
	keep, err := limits(c, "older", "keep")
	if err != nil {
		return err
	}
	keep.DryRun = !c.Bool("yes")
	own, err := p.openOwn(c, "prune store")
	if err != nil {
		return err
	}
	defer own.Close()
	for _, name := range c.Args().Slice() {
		run, err := own.Run(name)
		if err != nil {
			return err
		}
		keep.Runs = append(keep.Runs, run.ID)
	}
	report, err := own.Prune(c.Context, keep)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(report)
	}
	verb := "removed"
	if report.DryRun {
		verb = "would remove"
	}
	printRemoved(p.Stdout, report, verb)
	if report.DryRun && len(report.Removed) > 0 {
		fmt.Fprintln(p.Stdout, "nothing was removed; say --yes to do it")
	}
	return nil
}

// pinCommand keeps runs from prune.
func (p *program) pinCommand() *cli.Command {
	return &cli.Command{
		Name: "pin", Usage: "keep a run from prune", ArgsUsage: "RUN",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "off", Usage: "give it back to prune"}},
		Action: p.interruptible(p.pin),
	}
}

func (p *program) pin(c *cli.Context) error {
	if err := exactArgs(c, "RUN"); err != nil {
		return err
	}
	own, err := p.openOwn(c, "pin run")
	if err != nil {
		return err
	}
	defer own.Close()
	run, err := own.Run(c.Args().First())
	if err != nil {
		return err
	}
	if err := own.Pin(run.ID, !c.Bool("off")); err != nil {
		return err
	}
	state := "pinned"
	if c.Bool("off") {
		state = "no longer pinned"
	}
	fmt.Fprintf(p.Stdout, "run %s is %s\n", runName(run), state)
	return nil
}

// openOwn opens the store for what only its owner may do; op says what that is.
func (p *program) openOwn(c *cli.Context, op string) (local, error) {
	r, err := p.openReading(c)
	if err != nil {
		return local{}, err
	}
	if own, ok := r.(local); ok {
		return own, nil
	}
	r.Close()
	dir, err := p.storeDir(c)
	if err != nil {
		return local{}, err
	}
	owner, _ := recorder.ReadOwner(dir) // it may have ended just now
	return local{}, &exchange.Error{Op: op, Object: dir, Side: exchange.SideStore, Cause: exchange.ErrLocked,
		Hint: fmt.Sprintf("stop the proxy that owns it first (process %d)", owner.PID)}
}
