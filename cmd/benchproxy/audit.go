package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/audit"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay"
)

func (p *program) auditCommand() *cli.Command {
	return &cli.Command{
		Name:      "audit",
		Usage:     "ask of runs and result files whether the evidence bears what they claim",
		ArgsUsage: "DIR|FILE|RUN...",
		Description: "Of a directory every JSON file that benchproxy wrote is read (comparisons, gates.json, validations, revalidations, reports, cells),\n" +
			"and audit.json is written into it. Every number and verdict of them is held against the exchanges that it comes from, measured\n" +
			"and judged again, and the places where a file says otherwise are named; what no record tells (load times, say) is listed.\n" +
			"Of runs it is asked whether they are whole, whether the number is possible, whether that very build passed its gates, whether\n" +
			"the baseline is the fastest build, and what is known of the measuring machine. The exit code is 3 for a failure and for a\n" +
			"warning: warnings are to be published with the numbers.\n\n" +
			"   benchproxy audit results/\n" +
			"   benchproxy audit before after --baseline before --build older --bandwidth 1008 --bytes-per-token 4.4e9\n\n" +
			"A file ceilings.json in a directory states the same as the flags: memory_bandwidth_gb_s, bytes_per_token, draft_depth, source\n" +
			"and ceilings, by METRIC or METRIC@PROMPT or METRIC@PROMPTxSTREAMS, as in decode_tps@2048x4.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "baseline", Usage: "`RUN` that margins are over (default: the reference of the comparisons)"},
			&cli.StringSliceFlag{Name: "build", Usage: "`RUN` of another build of the baseline's engine, measured to choose the baseline; repeatable"},
			&cli.Float64Flag{Name: "bandwidth", Usage: "`GB/S` of the memory that holds the weights"},
			&cli.Float64Flag{Name: "bytes-per-token", Usage: "`BYTES` of weights that are read for one token (default: all of the model file, where the run names one)"},
			&cli.Float64Flag{Name: "draft-depth", Usage: "`N` tokens drafted in one step, where answers do not tell"},
			&cli.StringSliceFlag{Name: "ceiling", Usage: "`METRIC=VALUE` that the hardware bounds a metric by, without drafts; repeatable"},
			&cli.StringSliceFlag{Name: "output", Usage: "write the result into `FILE`: .json, .md or .xml (JUnit), packed with .gz behind it; repeatable"},
			&cli.BoolFlag{Name: "force", Usage: "replace output files that are there"},
			storeFlag(), jsonFlag(),
		},
		Action: p.interruptible(p.audit),
	}
}

// auditing is one audit.
type auditing struct {
	from    reading // nil where there is no store
	in      audit.Input
	roles   map[exchange.ID]audit.Role
	order   []exchange.ID // of the runs, each once
	deriver map[exchange.ID]*replay.Rows
	derived map[exchange.ID]*derived          // of what files name, for them and for its run; nil until it is asked for
	records map[exchange.ID]*replay.RunRecord // of suites, judged again
	dirs    []string                          // audit.json goes into each
	stated  bool                              // the baseline was named
}

func newAuditing() *auditing {
	return &auditing{roles: map[exchange.ID]audit.Role{}, deriver: map[exchange.ID]*replay.Rows{}, derived: map[exchange.ID]*derived{},
		records: map[exchange.ID]*replay.RunRecord{}}
}

func (p *program) audit(c *cli.Context) error {
	if c.Args().Len() == 0 {
		return usagef("audit takes DIR|FILE|RUN..., got no arguments")
	}
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	outputs, err := outputNames(c, dir)
	if err != nil {
		return err
	}
	a := newAuditing()
	if a.in.Limits, err = auditLimits(c); err != nil {
		return err
	}
	if a.from, err = p.openReading(c); err == nil {
		defer a.from.Close()
	} else if _, missing := os.Stat(dir); !errors.Is(missing, os.ErrNotExist) {
		return err
	}
	if err := a.gather(c); err != nil {
		return err
	}
	result := audit.Audit(&a.in, version())
	if err := a.write(outputs, c.Bool("force"), result); err != nil {
		return err
	}
	if c.Bool("json") {
		err = json.NewEncoder(p.Stdout).Encode(result)
	} else {
		printDocument(p.Stdout, auditDocument(result))
	}
	return errors.Join(err, result.Verdict())
}

// auditLimits are the ceilings that flags state.
func auditLimits(c *cli.Context) (l audit.Limits, err error) {
	for _, f := range []string{"bandwidth", "bytes-per-token", "draft-depth"} {
		if v := c.Float64(f); c.IsSet(f) && (!(v > 0) || math.IsInf(v, 0)) {
			return l, usagef("--%s %v is not a number above 0", f, v)
		}
	}
	l = audit.Limits{Bandwidth: c.Float64("bandwidth") * 1e9, BytesPerToken: c.Float64("bytes-per-token"), DraftDepth: c.Float64("draft-depth"),
		Stated: map[string]float64{}, Source: "the command line"}
	for _, text := range c.StringSlice("ceiling") {
		name, value, _ := strings.Cut(text, "=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return l, usagef("--ceiling %q is not METRIC=VALUE with a value above 0", text)
		}
		if metric, _, _ := strings.Cut(name, "@"); !audit.Bounded(metric) {
			return l, usagef("--ceiling %s: only rates are bounded: %s", name, strings.Join(audit.BoundedMetrics(), ", "))
		}
		l.Stated[name] = v
	}
	return l, nil
}

// gather reads what is named and what that names.
func (a *auditing) gather(c *cli.Context) error {
	for _, f := range []struct {
		names []string
		role  audit.Role
	}{{[]string{c.String("baseline")}, audit.Baseline}, {c.StringSlice("build"), audit.Alternative}} {
		for _, name := range f.names {
			if name == "" {
				continue
			}
			a.stated = a.stated || f.role == audit.Baseline
			if err := a.named(name, f.role); err != nil {
				return err
			}
		}
	}
	for _, arg := range c.Args().Slice() {
		if err := a.argument(c.Context, arg); err != nil {
			return err
		}
	}
	return a.read(c.Context)
}

// read reads of the record what the arguments and their files name.
func (a *auditing) read(ctx context.Context) error {
	a.fromDocuments()
	for _, d := range a.in.Documents {
		for _, id := range d.Exchanges {
			if _, named := a.derived[id]; !named {
				a.derived[id] = nil
			}
		}
	}
	for _, id := range a.order {
		if err := a.run(ctx, id); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{a.documentRows, a.comparisons, a.judgments, a.remake} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// argument takes a directory, a file or a run.
func (a *auditing) argument(ctx context.Context, arg string) error {
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return a.named(arg, audit.Candidate)
	case !info.IsDir():
		return a.file(arg)
	}
	a.dirs = append(a.dirs, arg)
	return a.directory(ctx, arg)
}

// named takes a run by its id or name.
func (a *auditing) named(name string, role audit.Role) error {
	if a.from == nil {
		return &exchange.Error{Op: "audit run", Object: name, Side: exchange.SideStore, Cause: exchange.ErrMiss, Hint: "there is no store; name one with --store DIR"}
	}
	run, err := a.from.Run(name)
	if err != nil {
		return err
	}
	a.take(run.ID, role)
	return nil
}

// take notes a run. What it was first named as it stays, but a supporting run can become more.
func (a *auditing) take(id exchange.ID, role audit.Role) {
	was, there := a.roles[id]
	if !there {
		a.order = append(a.order, id)
	}
	if !there || was == audit.Supporting {
		a.roles[id] = role
	}
}

// Bounds of what is read of a directory.
const (
	auditFiles     = 10_000
	auditFileBytes = 256 << 20
)

// directory reads the JSON files of a directory and of those below it.
func (a *auditing) directory(ctx context.Context, dir string) error {
	files := 0
	return filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir() || !e.Type().IsRegular() || filepath.Ext(name) != ".json" || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		if files++; files > auditFiles {
			return usagef("%s has more than %d JSON files; name a directory of results", dir, auditFiles)
		}
		return a.file(name)
	})
}

// file reads one file. One that cannot be read, though it is of a known kind, is a failure of the audit and no error.
func (a *auditing) file(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Size() > auditFileBytes {
		a.in.Documents = append(a.in.Documents, audit.Unread(name, fmt.Sprintf("it has more than %d MiB", auditFileBytes>>20)))
		return nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	d, err := audit.Read(name, raw)
	if err != nil {
		d = audit.Unread(name, err.Error())
	}
	if d.Limits != nil {
		return a.limits(d)
	}
	a.in.Documents = append(a.in.Documents, d)
	return nil
}

// limits takes ceilings from a file. What the command line states stays.
func (a *auditing) limits(d *audit.Document) error {
	l, f := &a.in.Limits, d.Limits
	if l.Bandwidth == 0 && f.Bandwidth > 0 {
		l.Bandwidth, l.Source = f.Bandwidth, f.Source
	}
	if l.BytesPerToken == 0 {
		l.BytesPerToken = f.BytesPerToken
	}
	if l.DraftDepth == 0 {
		l.DraftDepth = f.DraftDepth
	}
	for name, v := range f.Stated {
		if _, there := l.Stated[name]; !there {
			l.Stated[name], l.Source = v, f.Source
		}
	}
	return nil
}

// fromDocuments takes the runs that files name.
func (a *auditing) fromDocuments() {
	for _, d := range a.in.Documents {
		for i, id := range d.Runs {
			role := audit.Supporting
			switch {
			case d.Kind != audit.KindComparison:
			case i == 0 && !a.stated:
				role = audit.Baseline
			case i == 1:
				role = audit.Candidate
			}
			if a.known(id) {
				a.take(id, role)
			}
		}
	}
}

func (a *auditing) known(id exchange.ID) bool {
	if a.from == nil || !exchange.ValidID(string(id)) {
		return false
	}
	_, err := a.from.Run(string(id))
	return err == nil
}

// run reads every exchange of a run and measures it again.
func (a *auditing) run(ctx context.Context, id exchange.ID) error {
	run, err := a.from.Run(string(id))
	if err != nil {
		return err
	}
	r := audit.NewRun(run, a.roles[id])
	for row, err := range rowsOf(ctx, a.from, id) {
		if err != nil {
			return err
		}
		today, err := a.derive(row.ID)
		if err != nil {
			return err
		}
		r.Add(cmp.Or(today.row, &row), today.problem)
	}
	a.in.Runs = append(a.in.Runs, r)
	return nil
}

// derived is what an exchange comes to today; row is nil, with the problem, where its record is no evidence.
type derived struct {
	row     *exchange.Summary
	problem string
}

// derive measures an exchange by the rules of today, once where a file names it.
func (a *auditing) derive(id exchange.ID) (*derived, error) {
	d, named := a.derived[id]
	if d != nil {
		return d, nil
	}
	row, problem, err := a.measure(id)
	if err != nil {
		return nil, err
	}
	d = &derived{row, problem}
	if named {
		a.derived[id] = d
	}
	return d, nil
}

// measure measures an exchange by the rules of today, or says why its record is no evidence.
func (a *auditing) measure(id exchange.ID) (row *exchange.Summary, problem string, err error) {
	x, _, err := a.from.Exchange(id)
	switch {
	case errors.Is(err, exchange.ErrDamaged):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	if problems := exchange.Problems(x); len(problems) > 0 {
		return nil, "the record contradicts itself: " + strings.Join(problems, "; "), nil
	}
	if x.State == exchange.StateTruncated {
		return nil, "the record was cut at a bound of memory", nil
	}
	rows := a.deriver[x.Run]
	if rows == nil {
		run, err := a.from.Run(string(x.Run))
		if err != nil {
			return nil, "", err
		}
		if rows, err = replay.RowsOf(&run); err != nil {
			return nil, "", err
		}
		a.deriver[x.Run] = rows
	}
	today := rows.Of(x, measure.Analyze(x))
	return &today, "", nil
}

// documentRows reads the exchanges that files name.
func (a *auditing) documentRows(ctx context.Context) error {
	a.in.Rows = map[exchange.ID]*exchange.Summary{}
	for _, d := range a.in.Documents {
		for _, id := range d.Exchanges {
			if _, done := a.in.Rows[id]; done || a.from == nil {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			today, err := a.derive(id)
			switch {
			case err == nil:
				a.in.Rows[id] = today.row
			case errors.Is(err, exchange.ErrMiss):
				a.in.Rows[id] = nil
			default:
				return err
			}
		}
	}
	return nil
}

// judgments are those of files and of all runs of suites in the store: the gates of a build need not have been named.
func (a *auditing) judgments(ctx context.Context) error {
	a.in.GateRules = map[string]int{}
	for _, g := range gates.All() {
		a.in.GateRules[g.ID] = g.Version
	}
	for _, d := range a.in.Documents {
		if d.Gates != nil {
			a.in.Gates = append(a.in.Gates, *d.Gates)
		}
	}
	if a.from == nil {
		return nil
	}
	runs, err := a.from.Runs()
	if err != nil {
		return err
	}
	for i := range runs {
		g, ok := audit.GatesOfRun(&runs[i])
		if !ok || runs[i].Mode != "gate" {
			continue
		}
		if a.in.Concerns(&g) {
			if err := a.judgedAgain(ctx, &g); err != nil {
				return err
			}
		}
		a.in.Gates = append(a.in.Gates, g)
	}
	return nil
}

// write writes the result into the directories and files.
func (a *auditing) write(outputs []string, force bool, r *audit.Report) error {
	named, own := &outFiles{force: force}, &outFiles{force: true}
	defer named.discard()
	defer own.discard()
	for _, dir := range a.dirs {
		name := filepath.Join(dir, "audit.json")
		if slices.Contains(outputs, name) {
			continue
		}
		w, err := own.create(name)
		if err == nil {
			err = writeAudit(w, "json", r)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range outputs {
		form, err := outputForm(name)
		if err != nil {
			return err
		}
		w, err := named.create(name)
		if err == nil {
			err = writeAudit(w, form, r)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(own.keep(), named.keep())
}

func writeAudit(w io.Writer, form string, r *audit.Report) error {
	switch form {
	case "md":
		return auditDocument(r).Markdown(w)
	case "xml":
		return auditSuite(r).JUnit(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}
