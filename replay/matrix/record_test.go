package matrix

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

func TestNewRecord(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{"mtp": "off,on", "concurrency": "2"}))
	r := NewRecord(p, &p.Groups[0], &p.Groups[0].Cells[0])
	if r.Status != StatusFail || r.Concurrency != 2 || r.Cell != "a__gpu__m__text_short__c2" || r.Plan != p.Hash || r.Definition == "" || r.DecodeTPS != nil {
		t.Errorf("%+v", r)
	}
	r = NewRecord(p, &p.Groups[1], &p.Groups[1].Cells[0])
	if r.Status != StatusSkipped || !r.MTP || r.Detail == "" || r.SkipKind != string(SkipMTP) {
		t.Errorf("%+v", r)
	}
	for _, s := range []*Skip{Unreachable("http://h:1", errors.New("refused")), NoMessages("nothing to show")} {
		r.SkipWith(s)
		if r.Detail == "" || r.SkipKind != string(s.Kind) {
			t.Errorf("%+v", r)
		}
	}
}

// TestRecordsAreWrittenWhole holds that what is written is read again, and that a number which is absent is null.
func TestRecordsAreWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	p := planOf(t, load(t, twoEngines, nil))
	want := NewRecord(p, &p.Groups[0], &p.Groups[0].Cells[0])
	want.Status, want.TTFTms, want.Exchanges = StatusOK, Rounded(12.34), []exchange.ID{"01M8NHPSP30B4XKXAHVVTAKZBQ"}
	want.SetText("größer < 3 & \"so\"")
	for range 2 { // the second replaces the first
		if err := WriteRecord(dir, &want); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "a__gpu__m__text_short.json")
	got, err := ReadRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"decode_tps": null`, `"ttft_ms": 12.3`, `größer < 3 &`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("the file has no %s:\n%s", part, raw)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestRecordsThatCannotBeWrittenOrRead(t *testing.T) {
	dir := t.TempDir()
	if err := WriteRecord(filepath.Join(dir, "gone"), &Record{Cell: "x"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	bad := math.NaN()
	if err := WriteRecord(dir, &Record{Cell: "x", TTFTms: &bad}); err == nil {
		t.Error("a number that is none is written")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "taken.json", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteRecord(dir, &Record{Cell: "taken"}); err == nil {
		t.Error("a directory is replaced")
	}
	if found, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(found) != 0 {
		t.Errorf("%q are left", found)
	}
	if _, err := ReadRecord(filepath.Join(dir, "gone.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestReadResults(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": `{"status":"ok","definition":"c1:x","decode_tps":1}`, "older.json": `{"engine":"tensorsharp","status":"fail","mtp":false}`,
		"half.json": `{"status":"o`, "other.json": `{"a":1}`, "list.json": `[]`, "notes.txt": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "logs.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "irregular.json")); err != nil {
		t.Fatal(err)
	}
	got, broken, err := ReadResults(dir)
	if diff := cmp.Diff(map[string]Earlier{"a": {Status: StatusOK, Definition: "c1:x"}, "older": {Status: StatusFail}}, got); diff != "" || err != nil || len(broken) != 4 {
		t.Errorf("%v %q (-want +got):\n%s", err, broken, diff)
	}
	if got, broken, err := ReadResults(filepath.Join(dir, "gone")); got != nil || broken != nil || err != nil {
		t.Errorf("%v %v %v", got, broken, err)
	}
	if _, _, err := ReadResults(filepath.Join(dir, "a.json")); err == nil {
		t.Error("a file is read as a directory")
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	var r Record
	r.SetText(strings.Repeat("ä", TextLength+5))
	if n := len([]rune(r.OutputText)); n != TextLength || len([]rune(r.OutputPreview)) != PreviewLength || !json.Valid([]byte(`"`+r.OutputText+`"`)) {
		t.Errorf("%d characters", n)
	}
	r.SetText("short")
	if r.OutputText != "short" || r.OutputPreview != "short" {
		t.Errorf("%+v", r)
	}
}

func TestRounded(t *testing.T) {
	for v, want := range map[float64]float64{0.25: 0.2, 0.35: 0.3, 12.35: 12.3, 2.449: 2.4, 170521: 170521, -0.04: 0} {
		if got := Rounded(v); got == nil || *got != want {
			t.Errorf("%g becomes %v, want %g", v, got, want)
		}
	}
	if Rounded(math.NaN()) != nil || Rounded(math.Inf(1)) != nil {
		t.Error("what is no number has a value")
	}
}

func TestSpreadOf(t *testing.T) {
	got, ok := SpreadOf([]float64{3, 1, 2, 10})
	if diff := cmp.Diff(Spread{N: 4, Median: 2.5, Min: 1, Max: 10, Samples: []float64{3, 1, 2, 10}}, got); !ok || diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := SpreadOf(nil); ok {
		t.Error("nothing has a spread")
	}
}

// TestNamesOfFiles holds that ids which no file may be called by are changed, and stay apart.
func TestNamesOfFiles(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a/b", "a:b", `a\b`, "a__b", "..", ".hidden", "_x", "x_", "a b", "größe", "a?b", "", "plain-1.5_x"} {
		got := word(id)
		if strings.ContainsAny(got, `/\:?*"<>| `) || strings.HasPrefix(got, ".") || strings.Contains(got, "__") || got == "" {
			t.Errorf("%q becomes %q", id, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q both become %q", other, id, got)
		}
		seen[got] = id
	}
	if word("plain-1.5_x") != "plain-1.5_x" {
		t.Error("a plain id is changed")
	}
}

func TestMasked(t *testing.T) {
	p := planOf(t, load(t, `{"engines": {"a": {"profile": "sim", "env": {"HF_TOKEN": "hunter2", "PLAIN": "1"}, "extra_args": ["--api-key", "hunter2"]},
		"b": {"url": "http://user:hunter2@h:1", "headers": {"Authorization": "Bearer hunter2"}}}, "backends": {"gpu": {}},
		"models": {"m": {"engines": {"a": "m"}}}, "defaults": {"scenarios": ["text_short"]}}`, nil))
	raw, err := json.Marshal(p.Masked())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), redact.Mask) || !strings.Contains(string(raw), `"PLAIN":"1"`) {
		t.Errorf("%s", raw)
	}
	if p.Groups[0].Launch.Registry.Env["HF_TOKEN"] != "hunter2" {
		t.Error("the plan itself is masked")
	}
}
