package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/recorder"
)

// limits reads what a store may hold from two flags that prune and record have under different names: an age, and a size in
// MiB. A limit that is none must not be read as one: what it removes is gone.
func limits(c *cli.Context, older, keep string) (r recorder.Retention, err error) {
	if d := c.Duration(older); c.IsSet(older) && d <= 0 {
		return r, usagef("--%s %s is not an age", older, d)
	}
	if n := c.Int(keep); c.IsSet(keep) && (n < 1 || n > maxMIB) {
		return r, usagef("--%s %d is not from 1 to %d MiB", keep, n, maxMIB)
	}
	r.MaxAge, r.MaxBytes = c.Duration(older), int64(c.Int(keep))<<20
	return r, nil
}

// keepFlags are the limits that a recording process holds its store to.
func keepFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "prune-older", Usage: "while recording, remove other runs that started longer ago, as `DURATION` (720h is 30 days); pinned ones stay"},
		&cli.IntFlag{Name: "prune-keep", Usage: "while recording, remove the oldest other runs until all records take at most so many `MIB`; pinned ones stay"},
	}
}

// keeper prunes the store of a capture while it runs: nobody else can, for a store has one owner.
type keeper struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// startKeeper begins to hold the store to its limits; without limits it does nothing.
func startKeeper(store *recorder.Store, keep recorder.Retention, note func(format string, args ...any)) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{cancel: cancel}
	if keep.MaxAge > 0 || keep.MaxBytes > 0 {
		k.start(ctx, recorder.NewKeeper(store, recorder.KeeperOptions{
			Keep:    keep,
			Removed: func(r recorder.PruneReport) { printRemoved(noteWriter{note}, r, "removed") },
			Failed:  func(err error) { note("the store could not be held to its limits: %v", err) },
		}))
	}
	return k
}

func (k *keeper) start(ctx context.Context, run *recorder.Keeper) {
	k.ended.Go(func() { run.Run(ctx) })
}

// Close ends it; what it removes at that moment it removes whole. It may be called again.
func (k *keeper) Close() {
	k.cancel()
	k.ended.Wait()
}

// noteWriter makes a note of each line.
type noteWriter struct {
	note func(format string, args ...any)
}

func (w noteWriter) Write(line []byte) (int, error) {
	w.note("%s", bytes.TrimSuffix(line, []byte{'\n'}))
	return len(line), nil
}

// printRemoved tells what was removed, or would be, and the size of the store before and after.
func printRemoved(w io.Writer, r recorder.PruneReport, verb string) {
	for _, run := range r.Removed {
		fmt.Fprintf(w, "%s %s  %d exchanges, %s\n", verb, runName(run.Run), run.Counts.Stored, bytesText(run.Bytes))
	}
	for name, why := range r.Kept {
		fmt.Fprintf(w, "kept %s: %s\n", printable(name), why)
	}
	fmt.Fprintf(w, "store before %s, after %s\n", bytesText(r.BytesBefore), bytesText(r.BytesAfter))
}
