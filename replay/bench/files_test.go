package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// TestUnusableResults holds that a directory that cannot be used is told before a server is opened, and that looking leaves
// nothing behind.
func TestUnusableResults(t *testing.T) {
	plan := planOf([]string{"a"}, []string{"text_short"}, 1, 1)
	cell := plan.Groups[0].Cells[0].File()
	for name, c := range map[string]struct {
		make func(dir string) error
		want string // of the error of Claim, or of Check
	}{
		"usable":                       {func(string) error { return nil }, ""},
		"a result that is a directory": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, cell), 0o755) }, "is a directory"},
		"a file":                       {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "make directory of results"},
		"logs are a file": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, LogDir), nil, 0o600))
		}, "make directory of results"},
		"the lock is a link": {func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, LogDir), 0o755), os.Symlink(filepath.Join(dir, "..", "elsewhere"), filepath.Join(dir, LogDir, ".lock")))
		}, "no regular file"},
		"a link that leads nowhere": {func(dir string) error { return os.Symlink(filepath.Join(dir, "..", "nowhere", "x"), dir) }, "make directory of results"},
	} {
		dir := filepath.Join(t.TempDir(), "results")
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		claim, err := Claim(dir)
		if err == nil {
			err = Check(dir, plan)
			if closed := claim.Close(); closed != nil {
				t.Error(closed)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
				t.Errorf("%s: %v is left", name, left)
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if made, _ := filepath.Glob(filepath.Join(dir, "..", "*")); len(made) > 1 {
			t.Errorf("%s: made %v", name, made)
		}
	}
}

func TestAFullDiskIsToldAsOne(t *testing.T) {
	if err := roomFor(fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("%v", err)
	}
}

// TestLinksAreReplaced holds that what a link in the place of a result leads to stays as it is.
func TestLinksAreReplaced(t *testing.T) {
	dir := t.TempDir()
	plan := planOf([]string{"a"}, []string{"text_short"}, 1, 1)
	c := &plan.Groups[0].Cells[0]
	outside := filepath.Join(dir, "outside")
	results := filepath.Join(dir, "results")
	for _, link := range []string{filepath.Join(results, c.File()), filepath.Join(results, filepath.FromSlash(PlanFile))} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.WriteFile(outside, []byte("mine"), 0o600), os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(results, plan); err != nil {
		t.Error(err)
	}
	rec := matrix.NewRecord(plan, &plan.Groups[0], c)
	if err := errors.Join(savePlan(results, plan), matrix.WriteRecord(results, &rec)); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
		t.Errorf("what the links led to is %q, %v", b, err)
	}
	if got, err := matrix.ReadRecord(filepath.Join(results, c.File())); err != nil || got.Cell != c.Name {
		t.Errorf("%+v, %v", got.Cell, err)
	}
}
