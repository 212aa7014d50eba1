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
