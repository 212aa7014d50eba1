package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

// importCommand stores a file as a run.
func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "store a file as a run", ArgsUsage: "FILE",
		Description: "Reads jsonl and har with their answers, and the requests of OpenAI batch files and of Mooncake, BurstGPT and Azure\n" +
			"traces; gzip and zstd are unpacked. The whole file is checked before anything is stored: what is wrong is told by line,\n" +
			"field and value. A trace has no texts: prompts of its lengths are made up, and share the prefixes it says.",
		Flags: append([]cli.Flag{storeFlag(), jsonFlag(),
			&cli.StringFlag{Name: "run", Usage: "`NAME` of the run (default: that of the exported run, else the name of the file)"}}, traceFlags()...),
		Action: p.interruptible(p.importFile),
	}
}

// traceFlags say how a file is read.
func traceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "one of " + formatNames(replay.InFormats()) + " (default: by what the file begins with)"},
		&cli.IntFlag{Name: "max-size", Value: replay.DefaultMaxBytes >> 20, Usage: "refuse a file that unpacks to more than so many `MIB`"},
		&cli.StringFlag{Name: "unit", Usage: "of the timestamps of a mooncake file, which are written in both: ms or s"},
		&cli.StringFlag{Name: "model", Usage: "requests made of a trace are for `MODEL`"},
		&cli.StringFlag{Name: "target-path", Usage: "requests made of a trace go to `PATH` (default: /v1/chat/completions)"},
		&cli.IntFlag{Name: "block-size", Value: 512, Usage: "tokens of a prefix block of a mooncake file"},
		&cli.Uint64Flag{Name: "seed", Usage: "of made-up prompts: two seeds share no prefix"},
		&cli.BoolFlag{Name: "force-length", Usage: "requests made of a trace ask for exactly its output length (vLLM, SGLang)"},
	}
}

func fileOptions(c *cli.Context) (o replay.FileOptions, err error) {
	o = replay.FileOptions{Format: replay.Format(c.String("format")), MaxBytes: int64(c.Int("max-size")) << 20, Trace: replay.TraceOptions{
		Unit: c.String("unit"), Model: c.String("model"), Target: c.String("target-path"), BlockSize: c.Int("block-size"),
		Seed: c.Uint64("seed"), ForceLength: c.Bool("force-length"),
	}}
	switch {
	case o.Format != "" && !slices.Contains(replay.InFormats(), o.Format):
		err = usagef("--format %q is none of %s", o.Format, formatNames(replay.InFormats()))
	case o.MaxBytes <= 0:
		err = usagef("--max-size is a number of MiB from 1 on, not %d", c.Int("max-size"))
	}
	return o, err
}

// importReport is what import prints.
type importReport struct {
	Schema  int          `json:"schema"`
	File    string       `json:"file"`
	Run     exchange.Run `json:"run"`
	Items   int          `json:"items"`
	Answers int          `json:"answers"` // of them with what was answered
	NewIDs  int          `json:"new_ids"` // exchanges whose id the file does not say, or this store has already
	Notes   []string     `json:"notes"`

	lost int64 // exchanges that the exported run had lost
}

// lostBefore is the number of exchanges that the exported run had lost; one where all it says is that it is not complete.
func lostBefore(sum *replay.FileSummary) int64 {
	switch run := sum.Run; {
	case run == nil:
		return 0
	case run.Counts.Dropped > 0:
		return run.Counts.Dropped
	case run.State == exchange.RunComplete, run.Replay != nil && run.Replay.Incomplete != "": // it says so in the imported run too
		return 0
	}
	return 1
}

func (p *program) importFile(c *cli.Context) error {
	if err := exactArgs(c, "FILE"); err != nil {
		return err
	}
	o, err := fileOptions(c)
	if err != nil {
		return err
	}
	if exchange.ValidID(c.String("run")) {
		return usagef("--run %q has the form of an id; choose another name", c.String("run"))
	}
	file := replay.OpenFile(c.Args().First(), o)
	sum, err := file.Check(c.Context)
	if err != nil {
		return err
	}
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	store, err := recorder.Open(dir, recorder.Options{Harness: version(), Log: p.log()})
	if err != nil {
		return err
	}
	r := importReport{Schema: 1, File: file.Name, Items: sum.Items, Answers: sum.Answers, Notes: append([]string{}, sum.Notes...)}
	r.lost = lostBefore(sum)
	err = r.load(c.Context, store, file, importedRun(c.String("run"), file.Name, sum))
	if cerr := store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return p.printImport(c, &r)
}

// importedRun is the run that a file becomes: what the exported run says of itself, and where it came from.
func importedRun(name, file string, sum *replay.FileSummary) exchange.Run {
	run := exchange.Run{Mode: "import"}
	labels := map[string]string{"imported_from": file}
	if old := sum.Run; old != nil {
		run = *old
		labels["imported_run"], labels["imported_started"] = string(old.ID), old.Started.Format(time.RFC3339Nano)
		if sum.Pick != "" {
			labels["imported_pick"] = sum.Pick
		}
	}
	run.Labels = maps.Clone(run.Labels)
	if run.Labels == nil {
		run.Labels = map[string]string{}
	}
	maps.Copy(run.Labels, labels)
	run.ID, run.Started, run.Pinned = "", time.Time{}, false // it is a new run of this store
	run.Name = cmp.Or(name, run.Name, strings.TrimSuffix(file, ".gz"))
	if exchange.ValidID(run.Name) {
		run.Name = "import"
	}
	return run
}

// load stores the file as a run. One that lacks something of the run it was exported from is incomplete, as that was.
func (r *importReport) load(ctx context.Context, store *recorder.Store, file *replay.File, run exchange.Run) error {
	rows, err := replay.RowsOf(&run)
	if err != nil {
		return err
	}
	room := newRoom(importRoom)
	w, err := store.NewWriter(run, recorder.WriterOptions{
		Derive:    func(x *exchange.Exchange) exchange.Summary { return rows.Of(x, measure.Analyze(x)) },
		OnStored:  func(row exchange.Summary) { room.give(row.ID) },
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { room.give(id) },
	})
	if err != nil {
		return err
	}
	err = r.offerAll(ctx, store, file, func(x *exchange.Exchange) {
		room.take(x.ID, x.Request.Body.Kept+x.Response.Body.Kept)
		w.Offer(x)
	})
	w.Lost(r.lost, recorder.DropNotExported)
	closed, cerr := w.Close(context.WithoutCancel(ctx))
	r.Run = closed
	switch {
	case err != nil: // a part of a file is no run
		return r.undo(store, closed.ID, err)
	case cerr != nil:
		return cerr
	case closed.Counts.Dropped > r.lost:
		return fmt.Errorf("%w: %d of %d exchanges were not stored: %v", exchange.ErrIncomplete, closed.Counts.Dropped-r.lost, r.Items, closed.Counts.DropWhy)
	}
	return nil
}

// undo removes a run that was imported in part.
func (r *importReport) undo(store *recorder.Store, run exchange.ID, why error) error {
	if _, err := store.Prune(context.Background(), recorder.Retention{Runs: []exchange.ID{run}}); err != nil {
		return fmt.Errorf("%w; what was stored of run %s could not be removed: %w", why, run, err)
	}
	return why
}

// offerAll gives the exchanges of the file to offer, each under an id that the store does not have.
func (r *importReport) offerAll(ctx context.Context, store *recorder.Store, file *replay.File, offer func(*exchange.Exchange)) error {
	seq := uint64(0)
	for rec, err := range file.Records(ctx) {
		if err != nil {
			return err
		}
		x := rec.Exchange
		x.Run = ""
		if x.ID == "" || store.Has(x.ID) {
			x.ID = exchange.NewID(x.Timeline.Wall)
			r.NewIDs++
		}
		if x.Seq <= seq { // numbers go up, whatever a file says
			x.Seq = seq + 1
		}
		seq = x.Seq
		offer(x)
	}
	return nil
}

func (p *program) printImport(c *cli.Context, r *importReport) error {
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(r)
	}
	fmt.Fprintf(p.Stdout, "imported %d requests, %d of them with answers, from %s as run %s\n", r.Items, r.Answers, printable(r.File), runName(r.Run))
	if r.Run.State != exchange.RunComplete {
		fmt.Fprintln(p.Stdout, "the run is "+string(r.Run.State)+", as the one that was exported")
	}
	for _, n := range r.Notes {
		fmt.Fprintln(p.Stdout, printable(n))
	}
	return nil
}

// importRoom is how many bytes of bodies may wait to be stored. It is less than the writer's queue holds, so that no
// exchange is dropped for want of room.
const importRoom = recorder.DefaultQueueBytes / 4

// room makes the reader of a file wait for the writer of the store.
type room struct {
	mu    sync.Mutex
	freed *sync.Cond
	left  int64
	held  map[exchange.ID]int64
}

func newRoom(n int64) *room {
	r := &room{left: n, held: map[exchange.ID]int64{}}
	r.freed = sync.NewCond(&r.mu)
	return r
}

// take waits until there is room for n bytes, or until nothing else is held.
func (r *room) take(id exchange.ID, n int64) {
	n += 8 << 10 // heads, reads and what else a record holds
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.left < n && len(r.held) > 0 {
		r.freed.Wait()
	}
	r.held[id] = n
	r.left -= n
}

func (r *room) give(id exchange.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += r.held[id]
	delete(r.held, id)
	r.freed.Broadcast()
}
