package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// log is where packages report what a person should know: stderr, one line each.
func (p *program) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (p *program) storeCheck(c *cli.Context, r reading) error {
	raw, err := r.Check(c.Context)
	if err != nil {
		return err
	}
	var report recorder.CheckReport
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("read check report: %w", err)
	}
	if c.Bool("json") {
		fmt.Fprintf(p.Stdout, "%s\n", raw)
	} else {
		printCheck(p.Stdout, report)
	}
	if !report.OK() {
		return fmt.Errorf("%w: check found %d problems", exchange.ErrDamaged, len(report.Problems))
	}
	return nil
}

func (p *program) storeStats(c *cli.Context, r reading) error {
	raw, err := r.Stats(c.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		fmt.Fprintf(p.Stdout, "%s\n", raw)
		return nil
	}
	var s recorder.Stats
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read store sizes: %w", err)
	}
	fmt.Fprintf(p.Stdout, "%d exchanges in %d runs take %s on disk; %s free, recording pauses below %s\n\n",
		s.Exchanges, len(s.Runs), bytesText(s.DiskBytes), bytesText(s.FreeBytes), bytesText(s.MinFree))
	t := table{cols: []column{{head: "RUN"}, {head: "ID"}, {head: "STORED", right: true}, {head: "BYTES", right: true}, {head: "PINNED"}}}
	for _, r := range s.Runs {
		name, pinned := printable(r.Name), ""
		if name == "" {
			name = "-"
		}
		if r.Pinned {
			pinned = "yes"
		}
		t.add(name, string(r.ID), strconv.FormatInt(r.Counts.Stored, 10), bytesText(r.Bytes), pinned)
	}
	t.print(p.Stdout)
	return nil
}

// pruneCommand removes runs. It opens the store itself: only its owner may remove.
func (p *program) pruneCommand() *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "remove runs and give their space back", ArgsUsage: "[RUN...]",
		Description: "Removes the runs named, those older than --older, and the oldest until the rest fits in --keep. Pinned runs and goldens\n" +
			"stay. Without --yes it only tells what it would do.",
		Flags: []cli.Flag{storeFlag(), jsonFlag(),
			&cli.DurationFlag{Name: "older", Usage: "remove runs that started longer ago, as `DURATION` (720h is 30 days)"},
			&cli.IntFlag{Name: "keep", Usage: "remove the oldest until the records of the rest take at most so many `MIB`"},
			&cli.BoolFlag{Name: "yes", Usage: "do it"}},
		Action: p.interruptible(p.prune),
	}
}

func (p *program) prune(c *cli.Context) error {
	if c.Args().Len() == 0 && !c.IsSet("older") && !c.IsSet("keep") {
		return usagef("nothing says what to remove; name runs, or say --older or --keep")
	}
	r, err := p.openReading(c)
	if err != nil {
		return err
	}
	defer r.Close()
	own, ok := r.(local)
	if !ok {
		return p.ownedByProxy(c)
	}
	keep := recorder.Retention{MaxAge: c.Duration("older"), MaxBytes: int64(c.Int("keep")) << 20, DryRun: !c.Bool("yes")}
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
	for _, run := range report.Removed {
		fmt.Fprintf(p.Stdout, "%s %s  %d exchanges, %s\n", verb, runName(run.Run), run.Counts.Stored, bytesText(run.Bytes))
	}
	for name, why := range report.Kept {
		fmt.Fprintf(p.Stdout, "kept %s: %s\n", printable(name), why)
	}
	fmt.Fprintf(p.Stdout, "store before %s, after %s\n", bytesText(report.BytesBefore), bytesText(report.BytesAfter))
	if report.DryRun && len(report.Removed) > 0 {
		fmt.Fprintln(p.Stdout, "nothing was removed; say --yes to do it")
	}
	return nil
}

// ownedByProxy refuses what only the owner of the store may do, and names the owner.
func (p *program) ownedByProxy(c *cli.Context) error {
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	owner, _ := recorder.ReadOwner(dir) // it may have ended just now
	return &exchange.Error{Op: "prune store", Object: dir, Side: exchange.SideStore, Cause: exchange.ErrLocked,
		Hint: fmt.Sprintf("stop the proxy that owns it first (process %d)", owner.PID)}
}

// printCheck tells what a check looked at and everything it found wrong.
func printCheck(w io.Writer, r recorder.CheckReport) {
	fmt.Fprintf(w, "%d runs (%d open), %d exchanges, %d blobs of %s\n", r.Runs, r.OpenRuns, r.Exchanges, r.Blobs, bytesText(r.BlobBytes))
	if r.StaleBlobs > 0 {
		fmt.Fprintf(w, "%d blobs belong to no record: a write was cut off; they are harmless\n", r.StaleBlobs)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "problem  %s: %s\n", printable(p.Object), printable(p.Text))
	}
	if r.OK() {
		fmt.Fprintln(w, "every index entry, digest, stamp and size is as it must be")
	}
}
