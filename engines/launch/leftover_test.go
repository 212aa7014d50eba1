package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ownerMain is another process that starts an engine, says so, and waits to be killed.
func ownerMain() {
	var s Spec
	if err := json.Unmarshal([]byte(os.Getenv("LAUNCH_TEST_SPEC")), &s); err != nil {
		panic(err)
	}
	p, err := Start(context.Background(), s)
	if err == nil {
		err = p.WaitReady(context.Background())
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready", p.PID())
	select {}
}

// ownedByAnother has another process start an engine, and kills that process with no warning.
func ownedByAnother(t *testing.T, s Spec) (engine int) {
	t.Helper()
	return ownedUntil(t, s, func() bool { return true })
}

// ownedUntil is ownedByAnother, which first waits until something holds.
func ownedUntil(t *testing.T, s Spec, holds func() bool) (engine int) {
	t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := &lineBuffer{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LAUNCH_TEST_ROLE=owner", "LAUNCH_TEST_SPEC="+string(spec))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an engine that another process started", func() bool { return strings.Contains(out.String(), "\n") })
	if _, err := fmt.Sscanf(out.String(), "ready %d", &engine); err != nil {
		t.Errorf("the owner says %q", out)
	}
	eventually(t, "the moment to kill its owner", holds)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	return engine
}

func TestEngineDiesWithItsOwner(t *testing.T) {
	nothingLeft(t)
	s := fakeSpec(t, "-deaf")
	s.StateDir = t.TempDir()
	pid := ownedByAnother(t, s)
	eventually(t, "the end of the engine", func() bool { p, ok := readProcess(pid); return !ok || p.dead })
	left, err := Leftovers(s.StateDir)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.StateDir, "engine-*")); len(files) != 0 {
		t.Errorf("notes that are left: %q", files)
	}
}

// TestLeftoversAreNamedAndReaped holds for what a grandchild makes of its inheritance: the kernel kills only the child.
func TestLeftoversAreNamedAndReaped(t *testing.T) {
	for _, where := range []string{"group", "session"} {
		t.Run(where, func(t *testing.T) {
			nothingLeft(t)
			s := fakeSpec(t, "-serve", where)
			s.StateDir, s.Group, s.Model = t.TempDir(), "gpu0", "model.gguf"
			pid := ownedByAnother(t, s)
			eventually(t, "the end of the engine", func() bool { p, ok := readProcess(pid); return !ok || p.dead })

			left, err := Leftovers(s.StateDir)
			if err != nil || len(left) != 1 || len(left[0].PIDs) != 1 || left[0].Engine != "fake" || left[0].Model != "model.gguf" {
				t.Fatalf("%+v, %v", left, err)
			}
			wantWords(t, left[0].String(), "fake of a run that was killed", fmt.Sprintf("pid %d (%s", left[0].PIDs[0], fakeEngine))

			_, err = Start(t.Context(), s)
			var e *exchange.Error
			if !errors.Is(err, ErrBusy) || !errors.As(err, &e) || !strings.Contains(e.Hint, "--reap") {
				t.Fatalf("a start on the same devices: %v", err)
			}
			other := s
			other.Group = "gpu1"
			var told []string
			other.Warn = func(text string) { told = append(told, text) }
			other.Args = []string{"-port", "${port}"}
			p, err := Start(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			waitReady(t, p)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			wantWords(t, strings.Join(told, "\n"), "left over: fake of a run that was killed")

			reaped, err := Reap(t.Context(), s.StateDir)
			if err != nil || len(reaped) != 1 {
				t.Errorf("%+v, %v", reaped, err)
			}
			if again, err := Leftovers(s.StateDir); err != nil || len(again) != 0 {
				t.Errorf("after reaping: %+v, %v", again, err)
			}
		})
	}
}

func TestOneEngineInAGroup(t *testing.T) {
	s := fakeSpec(t)
	s.StateDir, s.Group = t.TempDir(), "gpu0"
	p := startFake(t, s)
	waitReady(t, p)
	_, err := Start(t.Context(), s)
	if !errors.Is(err, ErrBusy) {
		t.Fatalf("a second start: %v", err)
	}
	wantWords(t, err.Error(), fmt.Sprintf("fake runs there, started by pid %d: pid %d", os.Getpid(), p.PID()))
	if left, err := Leftovers(s.StateDir); err != nil || len(left) != 0 {
		t.Errorf("an engine with an owner is left over: %v, %v", left, err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := startFake(t, s)
	waitReady(t, q)
}

// TestForeignProcessIsNeverTaken holds that a note whose process number somebody else has got names nobody.
func TestForeignProcessIsNeverTaken(t *testing.T) {
	dir := t.TempDir()
	e := entry{Schema: noteVersion, Engine: "fake", PID: os.Getpid(), Start: "12", Marker: "none", Owner: os.Getpid(), OwnerStart: "12", Since: time.Unix(1, 0)}
	write := func(name string, v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := write("engine-a.json", e)
	if left, err := Reap(t.Context(), dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its note is still there: %v", err)
	}

	e.Schema = noteVersion + 1
	file = write("engine-b.json", e)
	if _, err := Leftovers(dir); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a newer note: %v", err)
	}
	s := fakeSpec(t)
	s.StateDir = dir
	if _, err := Start(t.Context(), s); err == nil {
		t.Error("a start beside a note that cannot be read")
	}
	if left, err := Leftovers(filepath.Join(dir, "none")); err != nil || left != nil {
		t.Errorf("without a directory: %v, %v", left, err)
	}
	file = filepath.Join(dir, "engine-b.json")
	if _, err := Leftovers(file); err == nil {
		t.Error("a file is no directory")
	}
}
