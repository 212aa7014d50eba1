package recorder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestOpenCreatesAndReopens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := openStore(t, dir, Options{Admin: "127.0.0.1:8091", Harness: "v1"})
	o, ok := ReadOwner(dir)
	if !ok || o.PID != os.Getpid() || o.Admin != "127.0.0.1:8091" || o.Harness != "v1" || o.Started.IsZero() {
		t.Errorf("owner %+v, %v", o, ok)
	}
	if err := s.SetAdmin("127.0.0.1:9"); err != nil {
		t.Fatal(err)
	}
	if o, _ := ReadOwner(dir); o.Admin != "127.0.0.1:9" {
		t.Errorf("admin is %q", o.Admin)
	}
	x := streamed(`{"a":1}`, "b")
	run := recordAll(t, s, "first", x)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := ReadOwner(dir); ok {
		t.Error("a closed store has an owner")
	}
	s = openStore(t, dir, Options{Sync: true})
	got, _, err := s.Exchange(x.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := same(stored(x, run.ID, 1), got); d != "" {
		t.Error(d)
	}
	if r := s.Recovered(); r.Partial != 0 || r.Runs != nil || r.Pruned != nil {
		t.Errorf("a clean store was recovered: %+v", r)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err1 := s.NewWriter(exchange.Run{}, WriterOptions{})
	_, err2 := s.Runs()
	_, _, err3 := s.Exchange(exchange.NewID(day))
	_, err4 := s.Takes("h1:00")
	_, err5 := s.Stats()
	for i, err := range []error{err1, err2, err3, err4, err5, s.Pin("x", true), s.sync()} {
		if !errors.Is(err, errClosed) {
			t.Errorf("call %d gives %v", i+1, err)
		}
	}
	for _, err := range s.Summaries(exchange.NewID(day)) {
		if !errors.Is(err, errClosed) {
			t.Errorf("summaries give %v", err)
		}
	}
}

func TestOpenLockedNamesOwner(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{Admin: "127.0.0.1:8091"})
	_, err := Open(dir, Options{FreeSpace: plenty})
	var e *exchange.Error
	if !errors.Is(err, exchange.ErrLocked) || !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	pid := "process " + itoa(os.Getpid())
	if !strings.Contains(e.Cause.Error(), pid) || !strings.Contains(e.Hint, "127.0.0.1:8091") {
		t.Errorf("error %q names neither %q nor the admin address", err, pid)
	}
	if err := os.Remove(filepath.Join(dir, ownerFile)); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(dir, Options{FreeSpace: plenty}); !errors.Is(err, exchange.ErrLocked) || !strings.Contains(err.Error(), pid) {
		t.Errorf("without owner file: %v", err)
	}
	recordAll(t, s, "still works", streamed("{}", "a"))
}

// snapshot is every file below dir with its bytes.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestOpenRefusesAndTouchesNothing(t *testing.T) {
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		spoil func(*testing.T, string)
		text  string
	}{
		"newer":         {write(formatFile, "benchproxy-store 3\n"), "format 3"},
		"older":         {write(formatFile, "benchproxy-store 1\n"), "format 1"},
		"foreign":       {write(formatFile, "other 1\n"), "says"},
		"no version":    {write(formatFile, "benchproxy-store\n"), "says"},
		"zero":          {write(formatFile, "benchproxy-store 0\n"), "says"},
		"lost its mark": {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, formatFile)) }, "without a FORMAT file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, Options{})
			recordAll(t, s, "r", streamed("{}", "a"))
			closeChecked(t, s)
			tc.spoil(t, dir)
			before := snapshot(t, dir)
			if _, err := Open(dir, Options{FreeSpace: plenty}); !errors.Is(err, exchange.ErrDamaged) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %q", err, tc.text)
			}
			after := snapshot(t, dir)
			if d := cmp.Diff(keysOf(before), keysOf(after)); d != "" {
				t.Error(d)
			}
			for path, b := range before {
				if after[path] != b {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
}

func TestOpenDamaged(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	recordAll(t, s, "r", streamed("{}", "a"))
	closeChecked(t, s)
	if err := os.WriteFile(filepath.Join(dir, exchangesDir, "MANIFEST"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{FreeSpace: plenty})
	if !errors.Is(err, exchange.ErrDamaged) || errors.Is(err, exchange.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

func TestOpenBelowFloor(t *testing.T) {
	dir := t.TempDir()
	low := func(string) (int64, error) { return DefaultMinFree - 1, nil }
	if _, err := Open(dir, Options{FreeSpace: low}); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
	if len(snapshot(t, dir)) != 0 {
		t.Error("something was written")
	}
	s := openStore(t, dir, Options{FreeSpace: func(string) (int64, error) { return 0, errors.New("cannot tell") }})
	recordAll(t, s, "a system that cannot tell records", streamed("{}", "a"))
	if _, err := Open(filepath.Join(dir, formatFile, "x"), Options{FreeSpace: plenty}); err == nil {
		t.Error("a path through a file was opened")
	}
}

func TestFreeSpaceOfThisSystem(t *testing.T) {
	free, err := freeSpace(t.TempDir())
	if err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
	if _, err := freeSpace("/no/such/dir"); err == nil {
		t.Error("free space of no directory")
	}
}

func TestReadOwnerOfTheDead(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"pid":0}`, `{"pid":-5}`, `{"pid":2147483646}`} {
		if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if o, ok := ReadOwner(dir); ok {
			t.Errorf("%q names the owner %+v", text, o)
		}
	}
}

func TestExchangeProblems(t *testing.T) {
	good := func() *exchange.Exchange { return stored(streamed("{}", "a", "b"), exchange.NewID(day), 1) }
	if p := exchange.Problems(good()); len(p) != 0 {
		t.Fatal(p)
	}
	for name, spoil := range map[string]func(x *exchange.Exchange){
		"reads and body": func(x *exchange.Exchange) { x.Timeline.Reads[0].Size = 5 },
		"read order":     func(x *exchange.Exchange) { x.Timeline.Reads[1].At = 1 },
		"digest":         func(x *exchange.Exchange) { x.Response.Body.Digest = "sha256:0" },
		"held":           func(x *exchange.Exchange) { x.Response.Body.Chunks = nil },
		"cut and silent": func(x *exchange.Exchange) { x.Request.Body.Size = 100 },
		"marks":          func(x *exchange.Exchange) { x.Timeline.SendDone = exchange.MarkAt(1) },
		"first and last": func(x *exchange.Exchange) {
			x.Timeline.FirstRead, x.Timeline.LastRead = exchange.MarkAt(9), exchange.MarkAt(8)
		},
		"before accepted": func(x *exchange.Exchange) { x.Timeline.ClientDone = exchange.MarkAt(-1) },
	} {
		x := good()
		spoil(x)
		if len(exchange.Problems(x)) == 0 {
			t.Errorf("%s: nothing found", name)
		}
	}
}
