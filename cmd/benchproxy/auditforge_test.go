package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/audit"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// forgeries are the files of one store, and its audits in this process.
type forgeries struct {
	t     *testing.T
	dir   string
	store local
	base  *auditing
}

// do runs a command that ends with one of the exit codes.
func (f *forgeries) do(codes []int, args ...string) string {
	f.t.Helper()
	e := storeEnv(f.dir, args...)
	var out, errOut bytes.Buffer
	e.Stdout, e.Stderr = &out, &errOut
	if code := run(context.Background(), e); !slices.Contains(codes, code) {
		f.t.Fatalf("%q ended with %d: %s%s", args, code, out.String(), errOut.String())
	}
	return out.String()
}

func (f *forgeries) path(name string) string { return filepath.Join(f.dir, name) }

// make makes a file of each kind.
func (f *forgeries) make() (files []string) {
	toy := background(f.t, storeEnv(f.dir, "sim", "--listen", "127.0.0.1:0", "--toy", `{"delay_ms":5,"nudges":[{"at":11,"gaps":{"any":-0.1}}]}`))
	reference := background(f.t, storeEnv(f.dir, "sim", "--listen", "127.0.0.1:0", "--toy", `{"nudges":[{"at":11,"gaps":{"any":0.4}}]}`))
	plain := background(f.t, storeEnv(f.dir, "sim", "--listen", "127.0.0.1:0", "--set", "ttft=4ms; decode=2000; answer=40"))
	label := []string{"--no-identify", "--engine-label", "llamacpp@b1", "--model", "sim", "--quiet"}
	judge := func(args ...string) { f.do([]int{0, 3, 4}, append(args, label...)...) }
	judge("gate", "--suite", "dev", "--target", "http://"+toy, "--reference", "http://"+reference, "--reference-label", "llamacpp@r1", "--context", "6000", "--weights-id", "W",
		"--output", f.path("gates.json"))
	judge("validate", "inference", "--target", "http://"+plain, "--scenarios", "decode,json", "--concurrency", "1,2", "--repeats", "1", "--accept-fenced-json", "--output", f.path("first.json"))
	judge("validate", "inference", "--target", "http://"+plain, "--scenarios", "decode,json", "--concurrency", "1,2", "--repeats", "1", "--accept-fenced-json",
		"--reference", f.path("first.json"), "--output", f.path("validation.json"), "--run", "validation")
	judge("validate", "tools", "--target", "http://"+plain, "--scenarios", "required,invalid_named", "--concurrency", "1", "--output", f.path("tools.json"))
	judge("validate", "inference", "--target", "http://"+plain, "--scenarios", "decode", "--concurrency", "1,2", "--output", f.path("decode.json"))
	f.do([]int{0, 3}, "replay", "validation", "--target", "http://"+plain, "--run", "again", "--no-identify", "--engine-label", "llamacpp@b1", "--quiet")
	f.write("comparison.json", f.do([]int{0, 3, 4}, "compare", "validation", "again", "--json"))
	f.do([]int{0, 3, 9}, "replay", "--revalidate", "validation", "--output", f.path("revalidation.json"), "--quiet")
	f.do([]int{0, 3, 9}, "replay", "--revalidate", "again", "--gates", "json,usage_present", "--output", f.path("named.json"), "--quiet")
	f.do([]int{0, 3, 9}, "replay", "--revalidate", f.path("decode.json"), "--output", f.path("captured.json"), "--quiet")
	f.write("bench.json", fmt.Sprintf(forgedBench, "http://"+plain))
	f.do([]int{0}, "bench", f.path("bench.json"), "--results", f.path("cells"), "--force", "--quiet")
	cells, err := filepath.Glob(f.path("cells/*.json"))
	if err != nil || len(cells) != 4 {
		f.t.Fatalf("%d cells: %v", len(cells), err)
	}
	for _, name := range []string{"gates", "validation", "tools", "comparison", "revalidation", "named", "captured"} {
		files = append(files, f.path(name+".json"))
	}
	return append(files, cells[0], cells[3])
}

const forgedBench = `{
  "engines": {"c": {"profile": "generic", "transport": "connect", "url": "%s"}},
  "models": {"sim": {"size_class": "small", "engines": {"c": "sim"}}},
  "defaults": {"engines": ["c"], "backends": ["gpu"], "models": ["sim"], "scenarios": ["text_short", "agentic"], "concurrency": [1, 2]}
}`

func (f *forgeries) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// audit is the audit of one file with these bytes.
func (f *forgeries) audit(name string, raw []byte) *audit.Report {
	f.t.Helper()
	a := newAuditing()
	a.from, a.records, a.deriver, a.derived = f.store, f.base.records, f.base.deriver, f.base.derived // the record stays as it is
	d, err := audit.Read(name, raw)
	if err != nil {
		d = audit.Unread(name, err.Error())
	}
	a.in.Documents = []*audit.Document{d}
	if err := a.read(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	return audit.Audit(&a.in, "test")
}

// forgery is one place of a file that says something else.
type forgery struct {
	path string
	raw  []byte
}

var placeInList = regexp.MustCompile(`\[\d+\]`)

// forgeriesOf change one number, word of a verdict or switch each, or take one thing out of a list: of places that differ
// only by where they stand in lists the first one.
func forgeriesOf(t *testing.T, raw []byte) (out []forgery) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	shapes := map[string]int{}
	take := func(path string) {
		shape := placeInList.ReplaceAllString(path, "[]")
		if shapes[shape]++; shapes[shape] > 1 {
			return
		}
		b, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, forgery{path, b})
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		other := forged(v)
		if other != nil {
			set(other)
			take(path)
			set(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(path+"."+k, "."), v[k], func(x any) { v[k] = x })
			}
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
			}
			if n := len(v); n > 1 && path != "" {
				set(v[:n-1])
				take(fmt.Sprintf("%s[%d]", path, n-1))
				set(v)
			}
		}
	}
	walk("", root, func(any) {})
	return out
}

// forged is something else than a number, a word of a verdict or a switch; nil for everything else.
func forged(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return json.Number(fmt.Sprint(3*n + 1))
		}
		n, err := v.Float64()
		if err != nil {
			return nil
		}
		return json.Number(fmt.Sprint(1.5*n + 1))
	case bool:
		return !v
	case string:
		switch exchange.VerdictStatus(v) {
		case exchange.VerdictOK:
			return "fail"
		case exchange.VerdictFail, exchange.VerdictIncomparable, exchange.VerdictNotRun, exchange.VerdictPartial, exchange.VerdictUnsupported, exchange.VerdictSkipped:
			return "ok"
		}
	}
	return nil
}

// unheld are the places of files of which no record tells anything, and which none can be held against: they are named in
// the audit.
var unheld = regexp.MustCompile(`^(status|margin|thinking|flags\[.*|changed_verdicts_total|seconds|asked\.kept|goldens\[.*|load_ms|memory\.?.*|slots|context|max_tokens|warmup|cpu_fallback|created_at_unix|notes.*|not_covered.*|environment.*|deferred.*|split|cases\[\d+\]\.input_sha256)$`)

// elsewhere are the places at which something is missing that no record tells of: the file contradicts itself then, and that
// is told.
var elsewhere = regexp.MustCompile(`^(verdicts|checks)\[\d+\]$`)

// TestForgedFilesAreFound makes a file of each kind, changes one thing of it at a time, and wants the audit of it to fail
// and to name the place, and nowhere to say less than the audit of the true file.
func TestForgedFilesAreFound(t *testing.T) {
	t.Parallel()
	f := &forgeries{t: t, dir: t.TempDir(), base: newAuditing()}
	files := f.make()
	store, err := recorder.Open(f.path("store"), recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.store = local{store}
	defer f.store.Close()
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if honest := f.honest(name, raw); honest != nil {
			f.forge(name, raw, honest)
		}
	}
}

// honest is the audit of the true file; nil when it is not held against the record, or not found true.
func (f *forgeries) honest(name string, raw []byte) *audit.Report {
	f.t.Helper()
	honest := f.audit(name, raw)
	held := false
	for _, c := range honest.Checks {
		held = held || c.Name == audit.AskComparison && c.Object == name && c.Status == audit.OK
		if c.Status == audit.Failure && (c.Name == audit.AskComparison || c.Name == audit.AskTraceable) {
			f.t.Errorf("%s: the true file: %s: %s", filepath.Base(name), c.Name, c.Detail)
		}
	}
	if !held {
		f.t.Errorf("%s: the true file is not held against the record: %+v", filepath.Base(name), honest.Checks)
		return nil
	}
	return honest
}

// forge holds the audit of each forgery of a file against that of the true one.
func (f *forgeries) forge(name string, raw []byte, honest *audit.Report) {
	f.t.Helper()
	all := forgeriesOf(f.t, raw)
	missed := 0
	for _, one := range all {
		r := f.audit(name, one.raw)
		told := slices.ContainsFunc(r.Checks, func(c audit.Check) bool { return c.Status == audit.Failure && strings.Contains(c.Detail, one.path) })
		if r.Failures < honest.Failures || r.Failures == honest.Failures && r.Warnings < honest.Warnings {
			f.t.Errorf("%s with another %s: %d failures and %d warnings, the true one has %d and %d", filepath.Base(name), one.path, r.Failures, r.Warnings, honest.Failures, honest.Warnings)
		} else if !told && !unheld.MatchString(one.path) && !(elsewhere.MatchString(one.path) && r.Failures > honest.Failures) {
			missed++
			f.t.Errorf("%s with another %s: not told", filepath.Base(name), one.path)
		}
	}
	f.t.Logf("%s: %d forgeries, %d missed", filepath.Base(name), len(all), missed)
	if len(all) < 10 {
		f.t.Errorf("%s: only %d forgeries", filepath.Base(name), len(all))
	}
}
