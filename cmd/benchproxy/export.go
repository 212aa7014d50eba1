package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
)

// exportCommand writes a run into a file for other tools, or for another machine.
func (p *program) exportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a run, or a part of it, into a file", ArgsUsage: "RUN",
		Description: "Formats: jsonl has everything and can be imported again, as has har, which browsers and proxies read too; batch has\n" +
			"the requests alone; mooncake, burstgpt and azure have lengths and arrivals without any text, mooncake shared prefixes too;\n" +
			"parquet is two tables for DuckDB and the like, exchanges.parquet\n" +
			"and events.parquet in the directory --out. A file whose name ends in .gz is packed.\n" +
			"Credentials are masked already. --redact masks what looks like a key in bodies too, --redact-file and --redact-pattern\n" +
			"what they name, also where a stream brings it in pieces; sizes and times stay as they are.",
		Flags: []cli.Flag{storeFlag(), jsonFlag(),
			&cli.StringFlag{Name: "format", Value: string(replay.FormatJSONL), Usage: "one of " + formatNames(replay.OutFormats())},
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write, or the directory of the tables (default: standard output)"},
			&cli.BoolFlag{Name: "force", Usage: "replace files that are there"},
			&cli.StringSliceFlag{Name: "model", Usage: "only requests for `MODEL` (repeat for several)"},
			&cli.StringSliceFlag{Name: "path", Usage: "only requests to `PATH`; * stands for any text without a slash (repeat for several)"},
			&cli.StringSliceFlag{Name: "id", Usage: "only the exchange `ID` (repeat for several)"},
			&cli.StringFlag{Name: "since", Usage: "only what was recorded from `TIME` on: as in 2026-01-31T12:00:00Z"},
			&cli.StringFlag{Name: "until", Usage: "only what was recorded before `TIME`"},
			&cli.BoolFlag{Name: "redact", Usage: "mask well-known keys in bodies"},
			&cli.StringFlag{Name: "redact-file", Usage: "mask the secrets in `FILE`, one a line"},
			&cli.StringSliceFlag{Name: "redact-pattern", Usage: "mask what matches the regular expression `RE` (repeat for several)"}},
		Action: p.interruptible(p.export),
	}
}

func formatNames(formats []replay.Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

func (p *program) export(c *cli.Context) error {
	if err := exactArgs(c, "RUN"); err != nil {
		return err
	}
	o, err := exportOptions(c)
	if err != nil {
		return err
	}
	out := c.String("out")
	if o.Format == replay.FormatParquet && (out == "" || out == "-") {
		return usagef("tables need a directory; name one with --out DIR")
	}
	r, err := p.openReading(c)
	if err != nil {
		return err
	}
	defer r.Close()
	run, err := r.Run(c.Args().First())
	if err != nil {
		return err
	}
	files := &outFiles{force: c.Bool("force")}
	defer files.discard()
	to, err := files.open(p.Stdout, out, o.Format)
	if err != nil {
		return err
	}
	report, err := replay.Export(c.Context, r, &run, to, *o)
	if err == nil {
		err = files.keep()
	}
	if err != nil {
		return err
	}
	return p.printExport(c, report, out)
}

func exportOptions(c *cli.Context) (*replay.ExportOptions, error) {
	o := &replay.ExportOptions{Format: replay.Format(c.String("format")), Harness: version()}
	if !slices.Contains(replay.OutFormats(), o.Format) {
		return nil, usagef("--format %q is none of %s", o.Format, formatNames(replay.OutFormats()))
	}
	o.Filter = replay.Filter{Models: c.StringSlice("model"), Paths: c.StringSlice("path")}
	for _, id := range c.StringSlice("id") {
		o.Filter.IDs = append(o.Filter.IDs, exchange.ID(id))
	}
	for name, into := range map[string]*time.Time{"since": &o.Filter.Since, "until": &o.Filter.Until} {
		if v := c.String(name); v != "" {
			t, err := time.Parse(time.RFC3339, v)
			if err != nil {
				return nil, usagef("--%s %q is not a time like 2026-01-31T12:00:00Z", name, v)
			}
			*into = t
		}
	}
	if err := o.Filter.Validate(); err != nil {
		return nil, err
	}
	var err error
	if c.Bool("redact") || c.IsSet("redact-file") || c.IsSet("redact-pattern") {
		o.Redact, err = redactor(c)
	}
	return o, err
}

func redactor(c *cli.Context) (*replay.Redactor, error) {
	o := replay.RedactOptions{Patterns: c.StringSlice("redact-pattern")}
	if name := c.String("redact-file"); name != "" {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, usagef("--redact-file: %v", err)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				o.Texts = append(o.Texts, line)
			}
		}
	}
	return replay.NewRedactor(o)
}

func (p *program) printExport(c *cli.Context, r *replay.ExportReport, out string) error {
	w := p.Stdout
	switch {
	case out == "" || out == "-":
		w = p.Stderr // standard output has the file
	case c.Bool("json"):
		return json.NewEncoder(p.Stdout).Encode(r)
	}
	fmt.Fprintf(w, "exported %d exchanges of run %s as %s", r.Items, r.Run, r.Format)
	if r.Workload != "" {
		fmt.Fprintf(w, ", workload %s", r.Workload)
	}
	fmt.Fprintln(w)
	for _, f := range []struct {
		n    int64
		text string
	}{
		{r.Events, "events in their own table"},
		{int64(r.Masked), "secrets masked"},
		{int64(r.Withheld), "bodies withheld: their content coding, or how a stream joins its pieces, hides what is in them"},
		{int64(r.Suspect), "exchanges hold what looks like a key in a body; --redact masks it"},
	} {
		if f.n > 0 {
			fmt.Fprintf(w, "%d %s\n", f.n, f.text)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	return nil
}

// outFiles are the files of one export. They appear under their names when all of them are whole.
type outFiles struct {
	force  bool
	files  []outFile
	stdout *bufio.Writer
}

type outFile struct {
	name string
	f    *os.File
	buf  *bufio.Writer
	pack *gzip.Writer // nil for a file that is not packed
}

func (o *outFiles) open(stdout io.Writer, out string, format replay.Format) (to replay.ExportTo, err error) {
	switch {
	case format == replay.FormatParquet:
		if err := os.MkdirAll(out, 0o700); err != nil {
			return to, err
		}
		if to.Main, err = o.create(filepath.Join(out, "exchanges.parquet")); err == nil {
			to.Events, err = o.create(filepath.Join(out, "events.parquet"))
		}
		return to, err
	case out == "" || out == "-":
		o.stdout = bufio.NewWriter(stdout)
		to.Main = o.stdout
		return to, nil
	}
	to.Main, err = o.create(out)
	return to, err
}

func (o *outFiles) create(name string) (io.Writer, error) {
	if _, err := os.Lstat(name); err == nil && !o.force {
		return nil, usagef("%s is there; --force replaces it", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".benchproxy-export-*")
	if err != nil {
		return nil, err
	}
	out := outFile{name: name, f: f, buf: bufio.NewWriterSize(f, 256<<10)}
	var w io.Writer = out.buf
	if strings.HasSuffix(name, ".gz") {
		out.pack = gzip.NewWriter(out.buf)
		w = out.pack
	}
	o.files = append(o.files, out)
	return w, nil
}

// keep finishes the files and gives them their names.
func (o *outFiles) keep() error {
	if o.stdout != nil {
		return o.stdout.Flush()
	}
	for _, f := range o.files {
		var err error
		if f.pack != nil {
			err = f.pack.Close()
		}
		if err = errors.Join(err, f.buf.Flush(), f.f.Sync(), f.f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	for _, f := range o.files {
		if err := os.Rename(f.f.Name(), f.name); err != nil {
			return err
		}
	}
	o.files = nil
	return nil
}

// names are those that the files will have.
func (o *outFiles) names() []string {
	var out []string
	for _, f := range o.files {
		out = append(out, f.name)
	}
	return out
}

// discard removes what was not kept.
func (o *outFiles) discard() {
	for _, f := range o.files {
		_ = f.f.Close()
		_ = os.Remove(f.f.Name())
	}
}
