package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/report/build"
	"github.com/benchproxy/benchproxy/replay"
)

// Limits of GitHub: bytes of a job's summary, and of a comment.
const (
	mostSummary = 1 << 20
	mostComment = 65_000
)

// write writes the report in all forms that were asked for, and prints it where none was. Files appear when all are whole.
func (r *reporting) write(d *report.Document) error {
	files := &outFiles{force: r.c.Bool("force")}
	defer files.discard()
	wrote := 0
	for _, f := range r.forms(d) {
		name := r.c.String(f.flag)
		if name == "" {
			continue
		}
		w := io.Writer(nil)
		var err error
		if name == "-" {
			w = r.program.Stdout
		} else if w, err = files.create(name); err != nil {
			return err
		}
		if err := f.write(w); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		wrote++
	}
	if dir := r.c.String("bundle"); dir != "" {
		if err := r.bundle(d, files, dir); err != nil {
			return err
		}
		wrote++
	}
	names := files.names()
	if err := files.keep(); err != nil {
		return err
	}
	for _, n := range names {
		note(r.program.Stderr, "wrote %s", n)
	}
	if r.c.Bool("github") {
		wrote++
		if err := r.github(d); err != nil {
			return err
		}
	}
	switch {
	case r.c.Bool("json"):
		return d.JSON(r.program.Stdout)
	case wrote == 0:
		printDocument(r.program.Stdout, d)
	}
	return nil
}

// form is one way to write a report.
type form struct {
	flag, file string // of the bundle
	write      func(io.Writer) error
}

func (r *reporting) forms(d *report.Document) []form {
	forms := []form{
		{"html", "report.html", d.HTML},
		{"md", "report.md", d.Markdown},
		{"csv", "results.csv", build.Results(r.evidence).CSV},
		{"badge", "badge.svg", build.Badge(r.evidence).SVG},
		{"comment", "comment.md", func(w io.Writer) error { return writeBrief(w, d, mostComment) }},
	}
	return append(forms, form{"junit", "gates.xml", build.Suites(r.evidence).JUnit})
}

// writeBrief writes what a comment has room for.
func writeBrief(w io.Writer, d *report.Document, limit int) error {
	text, err := d.Brief(build.BriefSections()...).MarkdownWithin(limit)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// github adds the brief report to the summary of the job, or prints it.
func (r *reporting) github(d *report.Document) error {
	name := r.summaryFile()
	if name == "" {
		return writeBrief(r.program.Stdout, d, mostSummary)
	}
	f, err := os.OpenFile(filepath.Clean(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return &exchange.Error{Op: "open job summary", Object: name, Cause: err}
	}
	if err := writeBrief(f, d, mostSummary); err != nil {
		_ = f.Close()
		return fmt.Errorf("write job summary: %w", err)
	}
	return f.Close()
}

// manifest is the list of the files of a bundle with their digests.
const manifest = "MANIFEST.sha256"

// bundle writes every form of the report and the raw evidence behind it into a directory: runs as they are exported,
// result files and verdicts as they are.
func (r *reporting) bundle(d *report.Document, files *outFiles, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "evidence"), 0o700); err != nil {
		return err
	}
	b := &bundling{files: files, dir: dir}
	forms := append(r.forms(d), form{"", "report.json", d.JSON})
	for _, f := range forms {
		if err := b.add(f.file, f.write); err != nil {
			return err
		}
	}
	for _, run := range r.evidence.Runs {
		name := "evidence/" + string(run.Run.ID) + ".jsonl"
		if b.has(name) {
			continue
		}
		err := b.add(name, func(w io.Writer) error {
			_, err := replay.Export(r.c.Context, r.store, &run.Run, replay.ExportTo{Main: w}, replay.ExportOptions{Format: replay.FormatJSONL, Harness: version()})
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := r.bundleFiles(b); err != nil {
		return err
	}
	return b.add(manifest, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(b.sums, ""))
		return err
	})
}

// bundleFiles adds the files that were read.
func (r *reporting) bundleFiles(b *bundling) error {
	for _, name := range slices.Concat(r.c.StringSlice("gates"), r.c.StringSlice("comparison"), []string{r.c.String("against"), r.c.String("notes")}) {
		if name == "" {
			continue
		}
		if err := b.addFile("evidence/"+filepath.Base(name), name); err != nil {
			return err
		}
	}
	dirs := r.c.StringSlice("results")
	for i, name := range sourceNames(dirs) {
		dir, under := dirs[i], "evidence/"+strings.Map(pathSafe, name)
		if err := os.MkdirAll(filepath.Join(b.dir, under), 0o700); err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return err
		}
		for _, name := range found {
			if err := b.addFile(under+"/"+filepath.Base(name), name); err != nil {
				return err
			}
		}
	}
	return nil
}

// pathSafe puts an underscore in the place of what parts paths.
func pathSafe(r rune) rune {
	if strings.ContainsRune(`/\:`, r) {
		return '_'
	}
	return r
}

// bundling gathers the files of a bundle.
type bundling struct {
	files *outFiles
	dir   string
	sums  []string // lines of the manifest, as sha256sum -c takes them
	known []string
}

func (b *bundling) has(name string) bool { return slices.Contains(b.known, name) }

// add writes a file of the bundle.
func (b *bundling) add(name string, write func(io.Writer) error) error {
	if b.has(name) {
		return usagef("two files of the bundle have the name %s", name)
	}
	w, err := b.files.create(filepath.Join(b.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	sum := sha256.New()
	buffered := bufio.NewWriter(io.MultiWriter(w, sum))
	if err := write(buffered); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	b.known = append(b.known, name)
	b.sums = append(b.sums, hex.EncodeToString(sum.Sum(nil))+"  "+name+"\n")
	return nil
}

func (b *bundling) addFile(name, from string) error {
	raw, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return err
	}
	return b.add(name, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(raw))
		return err
	})
}
