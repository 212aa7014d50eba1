package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

// revalidating is a revalidation with what it writes. It holds nothing by which a request could be sent.
type revalidating struct {
	env       env
	options   replay.RevalidateOptions
	externals []*replay.External
	outputs   []string
	json      bool
	quiet     bool

	files   *outFiles
	writers []*replay.RevalidationWriter // of the JSON documents
	pages   []page
	spool   *os.File // of --json, until it is known that there is something to print
}

// page is an output that is written when all is judged.
type page struct {
	form string
	to   io.Writer
}

// revalidate judges recorded answers again.
func (p *program) revalidate(c *cli.Context) error {
	if err := exactArgs(c, "RUN|FILE"); err != nil {
		return err
	}
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	r := &revalidating{env: p.env, json: c.Bool("json"), quiet: c.Bool("quiet"), files: &outFiles{force: c.Bool("force")}}
	r.options = replay.RevalidateOptions{Harness: version(), Weights: c.String("weights"), WeightsID: c.String("weights-id"), Limit: sampleLimit}
	if r.outputs, err = outputNames(c, dir); err != nil {
		return err
	}
	if r.options.Checks, err = gateFlags(c); err != nil {
		return err
	}
	if r.externals, err = p.externalGates(c); err != nil {
		return err
	}
	name := c.Args().First()
	info, statErr := os.Stat(name)
	if statErr == nil && !info.IsDir() {
		captured, err := replay.IsCapturedReport(name)
		if err != nil {
			return err
		}
		if captured {
			return r.captured(c, name)
		}
	}
	if a := c.String("against"); a != "" {
		if r.options.Against, err = replay.ReadEarlier(a); err != nil {
			return err
		}
	}
	defer r.Close()
	from, err := p.openFor(c, r.options.Checks)
	if err == nil {
		defer from.Close()
		r.options.Goldens = goldensOf(from)
		run, runErr := from.Run(name)
		if runErr == nil {
			return r.run(c.Context, from, &run)
		}
		err = runErr
	}
	if statErr != nil || !errors.Is(err, exchange.ErrMiss) {
		return err
	}
	if info.IsDir() {
		return usagef("%s is a directory; name a run or a file", name)
	}
	return r.file(c.Context, replay.OpenFile(name, replay.FileOptions{Format: replay.Format(c.String("input"))}))
}

// openFor opens the store of what is judged: for this process alone, where its goldens are needed.
func (p *program) openFor(c *cli.Context, checks []exchange.Check) (reading, error) {
	if slices.ContainsFunc(checks, func(k exchange.Check) bool { return replay.AgainstGoldens(k.Gate) }) {
		return p.openOwn(c, "use goldens")
	}
	return p.openReading(c)
}

// Close removes what was not finished.
func (r *revalidating) Close() {
	r.files.discard()
	if r.spool != nil {
		_ = r.spool.Close()
		_ = os.Remove(r.spool.Name())
	}
}

// run judges a run of a store.
func (r *revalidating) run(ctx context.Context, from replay.Source, run *exchange.Run) error {
	err := r.judge(ctx, func(w io.Writer) error {
		_, err := replay.Export(ctx, from, run, replay.ExportTo{Main: w}, replay.ExportOptions{Format: replay.FormatJSONL, Harness: version()})
		return err
	}, run.State)
	if err != nil {
		return err
	}
	result, err := replay.Revalidate(ctx, from, run, r.options)
	if err != nil {
		return err
	}
	return r.finish(result)
}

// keptGoldens are the goldens of a store, as a revalidation asks for them.
type keptGoldens struct{ local }

// Replies are what a reference answered to needs.
func (k keptGoldens) Replies(of exchange.ReferenceEngine, needs exchange.Needs) ([]exchange.Reply, error) {
	return k.Store.Replies(recorder.Reference{Weights: of.Weights, Engine: of.Identity, Launch: of.Launch, Build: of.Build}, needs)
}

// goldensOf are those of a store that this process has opened: a proxy that records into one does not give them out.
func goldensOf(from reading) replay.GoldenSource {
	if own, ok := from.(local); ok {
		return keptGoldens{own}
	}
	return nil
}

// file judges an exported run.
func (r *revalidating) file(ctx context.Context, f *replay.File) error {
	if err := r.judge(ctx, func(w io.Writer) error { return f.WriteExchanges(ctx, w) }, exchange.RunComplete); err != nil {
		return err
	}
	result, err := replay.RevalidateFile(ctx, f, r.options)
	if err != nil {
		return err
	}
	return r.finish(result)
}

// judge lets the external gates judge, and prepares the outputs. An open run is refused a little later.
func (r *revalidating) judge(ctx context.Context, feed func(io.Writer) error, state exchange.RunState) error {
	for _, e := range r.externals {
		if state == exchange.RunOpen {
			break
		}
		told, err := e.Judge(ctx, feed)
		if err != nil {
			return err
		}
		if told.Told.Why != "" {
			note(r.env.Stderr, "%s: %s", told.Told.Gate, printable(told.Told.Why))
		}
		r.options.Outside = append(r.options.Outside, told)
	}
	if err := r.open(); err != nil {
		return err
	}
	r.options.Each = func(j *replay.Judged) error {
		for _, w := range r.writers {
			if err := w.Add(j); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// open creates the outputs under names of their own until they are whole.
func (r *revalidating) open() error {
	for _, name := range r.outputs {
		form, err := outputForm(name)
		if err != nil {
			return err
		}
		to, err := r.files.create(name)
		if err != nil {
			return err
		}
		if form == "json" {
			r.writers = append(r.writers, replay.NewRevalidationWriter(to))
		} else {
			r.pages = append(r.pages, page{form, to})
		}
	}
	if !r.json {
		return nil
	}
	spool, err := os.CreateTemp("", "benchproxy-revalidate-*")
	if err != nil {
		return err
	}
	r.spool = spool
	r.writers = append(r.writers, replay.NewRevalidationWriter(spool))
	return nil
}

// finish writes what the exchanges come to, and says so.
func (r *revalidating) finish(result *replay.Revalidated) error {
	for _, w := range r.writers {
		if err := w.End(result); err != nil {
			return err
		}
	}
	doc := revalidationDocument(result)
	for _, p := range r.pages {
		var err error
		if p.form == "md" {
			err = doc.Markdown(p.to)
		} else {
			err = revalidationSuite(result).JUnit(p.to)
		}
		if err != nil {
			return err
		}
	}
	if err := r.files.keep(); err != nil {
		return err
	}
	if r.spool != nil {
		if _, err := r.spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(r.env.Stdout, r.spool); err != nil {
			return err
		}
	} else {
		printDocument(r.env.Stdout, doc)
	}
	r.tell()
	return result.Verdict()
}

// tell names the files that were written.
func (r *revalidating) tell() {
	for _, name := range r.outputs {
		if !r.quiet {
			note(r.env.Stderr, "wrote %s", name)
		}
	}
}

// captured judges a report that another tool has captured.
func (r *revalidating) captured(c *cli.Context, name string) error {
	for _, flag := range []string{"gates", "external", "against", "weights", "weights-id", "input"} {
		if c.IsSet(flag) {
			return usagef("--%s does not go with a captured report: it is judged by the rule of its scenarios", flag)
		}
	}
	sum := ""
	if self, err := os.Executable(); err == nil {
		sum, _ = replay.FileSum(self) // "" where the program cannot read itself
	}
	result, err := replay.RevalidateCaptured(c.Context, name, replay.CaptureOptions{Harness: version(), ToolSum: sum, Now: clock.Now()})
	if err != nil {
		return err
	}
	defer r.Close()
	doc := capturedDocument(result)
	for _, out := range r.outputs {
		if err := r.writeCaptured(out, result, doc); err != nil {
			return err
		}
	}
	if err := r.files.keep(); err != nil {
		return err
	}
	if r.json {
		if err := json.NewEncoder(r.env.Stdout).Encode(result); err != nil {
			return err
		}
	} else {
		printDocument(r.env.Stdout, doc)
	}
	r.tell()
	return result.Verdict()
}

func (r *revalidating) writeCaptured(name string, result *replay.Captured, doc *report.Document) error {
	form, err := outputForm(name)
	if err != nil {
		return err
	}
	to, err := r.files.create(name)
	if err != nil {
		return err
	}
	switch form {
	case "md":
		return doc.Markdown(to)
	case "xml":
		return capturedSuite(result).JUnit(to)
	}
	b := bufio.NewWriter(to)
	enc := json.NewEncoder(b)
	enc.SetIndent("", " ")
	if err := enc.Encode(result); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return b.Flush()
}
