package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/report/build"
	"github.com/benchproxy/benchproxy/replay"
)

func (p *program) reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "turn runs, cells of a matrix and gates into a report: HTML with charts, Markdown, CSV, JSON",
		ArgsUsage: "[RUN...]",
		Description: "RUN is an id or a name, and RUN@UPSTREAM the exchanges of one upstream of it. Each run is held against the first one, or\n" +
			"against --baseline. --results reads the result files of a matrix, also those of other harnesses; the first directory is that\n" +
			"of the headline. Without a file to write, the tables are printed.\n\n" +
			"   benchproxy report before after --html report.html\n" +
			"   benchproxy report --results results/ --results old-results/ --html report.html --csv results.csv\n" +
			"   benchproxy report nightly --against last.json --definitions all --bundle out/",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "html", Usage: "write a page to `FILE`: it holds all it needs and reads from disk"},
			&cli.StringFlag{Name: "md", Usage: "write Markdown to `FILE`"},
			&cli.StringFlag{Name: "csv", Usage: "write the results as a table to `FILE`: the columns of TensorSharp's results.csv, then ours"},
			&cli.StringFlag{Name: "junit", Usage: "write the judgments of gates as JUnit XML to `FILE`"},
			&cli.StringFlag{Name: "badge", Usage: "write a small SVG with one number to `FILE`"},
			&cli.StringFlag{Name: "comment", Usage: "write a short Markdown for a comment on a pull request to `FILE`"},
			&cli.BoolFlag{Name: "github", Usage: "add a summary to the GitHub job that runs this (GITHUB_STEP_SUMMARY); elsewhere it is printed"},
			&cli.StringFlag{Name: "bundle", Usage: "write all of these and the evidence behind them into `DIR`"},
			&cli.BoolFlag{Name: "force", Usage: "replace files that are there"},
			&cli.StringFlag{Name: "title", Value: "benchproxy report", Usage: "`TITLE` of the report"},
			&cli.StringSliceFlag{Name: "results", Usage: "`DIR` of result files (repeat for several)"},
			&cli.StringSliceFlag{Name: "comparison", Usage: "`FILE` of a comparison, as compare --json prints it (repeat for several)"},
			&cli.StringSliceFlag{Name: "gates", Usage: "`FILE` of verdicts, gates.json (repeat for several)"},
			&cli.StringFlag{Name: "baseline", Usage: "`NAME` of the run, or of the engine of result files, that the others are held against"},
			&cli.StringFlag{Name: "subject", Usage: "`ENGINE` of result files that is held against the others (default: tensorsharp, else the first)"},
			&cli.StringSliceFlag{Name: "accept", Usage: "compare runs across `WHY` (repeatable), as compare does"},
			&cli.StringFlag{Name: "against", Usage: "older report in JSON, `FILE`: tell what moved beyond noise since"},
			&cli.StringSliceFlag{Name: "definitions", Usage: "show the timelines by the definitions of `SET` as well (repeatable): " + strings.Join(build.SetNames(), ", ")},
			&cli.StringSliceFlag{Name: "target", Usage: "number that was to be reached (repeatable), `METRIC>=NUMBER` or METRIC<=NUMBER of a run's median"},
			&cli.StringFlag{Name: "notes", Usage: "`FILE` of a text by hand to stand in the report"},
			storeFlag(), jsonFlag(),
		},
		Action: p.interruptible(p.report),
	}
}

// reporting is the work on one report.
type reporting struct {
	program  *program
	c        *cli.Context
	store    reading // nil without runs
	sets     []measure.Set
	evidence *build.Evidence
}

func (p *program) report(c *cli.Context) error {
	if c.Args().Len() == 0 && len(c.StringSlice("results")) == 0 && len(c.StringSlice("gates")) == 0 && len(c.StringSlice("comparison")) == 0 {
		return usagef("report takes runs, --results DIR, --comparison FILE or --gates FILE")
	}
	r := &reporting{program: p, c: c}
	if err := r.gather(); err != nil {
		return err
	}
	if r.store != nil {
		defer r.store.Close()
	}
	return r.write(build.Document(r.evidence))
}

// gather reads everything that the report rests on.
func (r *reporting) gather() error {
	r.evidence = newEvidence(r.c.String("title"), []string{"benchproxy " + build.ShellWords(r.program.Args)})
	if err := errors.Join(r.options(), r.texts()); err != nil {
		return err
	}
	if err := r.results(); err != nil {
		return err
	}
	if err := r.gates(); err != nil {
		return err
	}
	if err := r.comparisons(); err != nil {
		return err
	}
	if r.c.Args().Len() == 0 {
		return nil
	}
	store, err := r.program.openReading(r.c)
	if err != nil {
		return err
	}
	if err := r.readRuns(store); err != nil {
		store.Close()
		return err
	}
	r.store = store
	return nil
}

// newEvidence is evidence without any yet, of this program on this machine.
func newEvidence(title string, commands []string) *build.Evidence {
	host := thisHost()
	return &build.Evidence{Title: title, Made: clock.Now(), Harness: version(), Host: &host, Engine: engineNames(), Commands: commands}
}

// engineNames gives engines their names for people. Ids that no profile has stay as they are.
func engineNames() func(string) string {
	catalog, err := engines.Builtin()
	return func(id string) string {
		if err != nil {
			return id
		}
		if p, ok := catalog.Lookup(id); ok {
			return p.Name
		}
		return id
	}
}

// options are those that need no file.
func (r *reporting) options() error {
	for _, name := range r.c.StringSlice("definitions") {
		sets, ok := build.Sets(name)
		if !ok {
			return usagef("--definitions %q is none of %s", name, strings.Join(build.SetNames(), ", "))
		}
		r.sets = append(r.sets, sets...)
	}
	for _, text := range r.c.StringSlice("target") {
		t, err := build.ParseTarget(text)
		if err != nil {
			return err
		}
		r.evidence.Targets = append(r.evidence.Targets, t)
	}
	return nil
}

// texts are the notes and the older report.
func (r *reporting) texts() error {
	if name := r.c.String("notes"); name != "" {
		b, err := r.file(name)
		if err != nil {
			return err
		}
		r.evidence.Notes = string(b)
	}
	name := r.c.String("against")
	if name == "" {
		return nil
	}
	b, err := r.file(name)
	if err != nil {
		return err
	}
	older, err := report.Read(strings.NewReader(string(b)))
	if err != nil {
		return &exchange.Error{Op: "read report", Object: name, Cause: err, Hint: "--against takes what report --json printed"}
	}
	r.evidence.Against, r.evidence.AgainstName = older, name
	return nil
}

// file reads a file and tells the report its digest.
func (r *reporting) file(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		return nil, &exchange.Error{Op: "read file", Object: name, Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err)}
	}
	sum := sha256.Sum256(b)
	r.evidence.Files = append(r.evidence.Files, report.Fact{Name: filepath.Base(name), Value: exchange.DigestPrefix + hex.EncodeToString(sum[:])})
	return b, nil
}

// results reads the cells of all directories.
func (r *reporting) results() error {
	var cells []build.Cell
	dirs := r.c.StringSlice("results")
	names := sourceNames(dirs)
	for i, name := range names {
		dir := dirs[i]
		if slices.Contains(names[:i], name) {
			return usagef("--results %s is there twice", dir)
		}
		found, left, err := build.ReadCells(os.DirFS(dir), name)
		if err != nil {
			return &exchange.Error{Op: "read results", Object: dir, Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err)}
		}
		if len(found) == 0 {
			return &exchange.Error{Op: "read results", Object: dir, Cause: exchange.ErrMiss, Hint: "there is no result of a cell in it"}
		}
		cells = append(cells, found...)
		r.evidence.CellsLeft = append(r.evidence.CellsLeft, left...)
	}
	if len(cells) == 0 {
		return nil
	}
	var references []string
	if b := r.c.String("baseline"); b != "" && r.c.Args().Len() == 0 {
		references = []string{b}
	}
	r.evidence.Grid = build.NewGrid(cells, r.c.String("subject"), references, r.evidence.Engine)
	return nil
}

// sourceNames are what directories of results are called: their last part, or all of it where two share that. Cells of one
// name would be taken for those of one sitting.
func sourceNames(dirs []string) []string {
	count := map[string]int{}
	for _, d := range dirs {
		count[filepath.Base(filepath.Clean(d))]++
	}
	out := make([]string, len(dirs))
	for i, d := range dirs {
		if out[i] = filepath.Base(filepath.Clean(d)); count[out[i]] > 1 {
			out[i] = filepath.Clean(d)
		}
	}
	return out
}

func (r *reporting) gates() error {
	for _, name := range r.c.StringSlice("gates") {
		b, err := r.file(name)
		if err != nil {
			return err
		}
		g, err := build.ParseGates(b, filepath.Base(name))
		if err != nil {
			return &exchange.Error{Op: "read gates", Object: name, Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err)}
		}
		r.evidence.Gates = append(r.evidence.Gates, g)
	}
	return nil
}

// readRuns gathers the runs of the store, and holds each against the baseline.
func (r *reporting) readRuns(store reading) error {
	base, several := 0, r.c.Args().Len() > 1
	var sides []*compare.Side
	for i, arg := range r.c.Args().Slice() {
		run, side, err := r.readRun(store, arg, several)
		if err != nil {
			return err
		}
		for n, label := 2, run.Label; slices.ContainsFunc(r.evidence.Runs, func(o *build.Run) bool { return o.Label == run.Label }); n++ {
			run.Label = fmt.Sprintf("%s (%d)", label, n) // another run of that name, or the same one again
		}
		if g, ok := build.GatesOf(run); ok {
			r.evidence.Gates = append(r.evidence.Gates, g)
		}
		r.evidence.Runs, sides = append(r.evidence.Runs, run), append(sides, side)
		if arg == r.c.String("baseline") {
			base = i
		}
	}
	if b := r.c.String("baseline"); several && b != "" && r.c.Args().Get(base) != b {
		return usagef("--baseline %q is none of the runs", b)
	}
	for i := range sides {
		if i != base {
			if err := r.compare(store, sides[base], sides[i], [2]string{r.evidence.Runs[base].Label, r.evidence.Runs[i].Label}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRun reads the exchanges of RUN or RUN@UPSTREAM, all derived anew by the rules of today; with the side of a comparison
// where there is one.
func (r *reporting) readRun(store reading, arg string, compared bool) (*build.Run, *compare.Side, error) {
	run, upstream, err := runOf(store, arg)
	if err != nil {
		return nil, nil, err
	}
	rows, err := replay.RowsOf(&run)
	if err != nil {
		return nil, nil, err
	}
	out, side := build.NewRun(run, upstream, r.sets), &compare.Side{Run: run, Upstream: upstream}
	for stored, err := range rowsOf(r.c.Context, store, run.ID) {
		if err != nil {
			return nil, nil, err
		}
		if upstream != "" && stored.Upstream != upstream {
			continue
		}
		x, _, err := store.Exchange(stored.ID)
		if err != nil {
			return nil, nil, err
		}
		a := measure.Analyze(x)
		row := rows.Of(x, a)
		row.Key, row.SentKey, row.Digest = stored.Key, stored.SentKey, stored.Digest
		out.Add(x, a, &row)
		if compared && row.Dialect != "" {
			d := measure.DetailOf(x, a, row)
			side.Entries = append(side.Entries, compare.NewEntry(&d, sentBody(x)))
		}
	}
	return out, side, nil
}

// sentBody is the body of a request as the engine got it.
func sentBody(x *exchange.Exchange) []byte {
	if sent, ok := exchange.SentRequest(x); ok {
		return sent.Body.Bytes()
	}
	return x.Request.Body.Bytes()
}

// runOf is the run that an argument names, and the upstream of RUN@UPSTREAM.
func runOf(store reading, arg string) (run exchange.Run, upstream string, err error) {
	if run, err = store.Run(arg); err == nil {
		return run, "", nil
	}
	name, upstream, ok := cutLast(arg, "@")
	if !ok {
		return run, "", err
	}
	other, otherErr := store.Run(name)
	if otherErr != nil {
		return run, "", err
	}
	if _, known := other.Upstreams[upstream]; !known {
		return run, "", usagef("run %s has no upstream %q", name, upstream)
	}
	return other, upstream, nil
}

// summaryFile is where a GitHub job takes its summary from, "" elsewhere.
func (r *reporting) summaryFile() string { return r.program.Getenv("GITHUB_STEP_SUMMARY") }
