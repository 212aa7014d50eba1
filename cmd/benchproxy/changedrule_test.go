package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangedRule records a validation, judges it again by a build of which one gate has another rule, and wants that told
// verdict by verdict, with exit code 3 and without a changed byte in the record.
func TestChangedRule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer")
	if out, err := exec.Command("go", "build", "-tags", "changedrule", "-o", newer, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	play, err := os.ReadFile("testdata/script/validate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	addr := background(t, storeEnv(dir, "sim", "--listen", "127.0.0.1:0", "--play", answerOf(t, dir, string(play), "sum.response.txt")))
	do := func(want int, args ...string) string {
		t.Helper()
		e := storeEnv(dir, args...)
		var out, errOut bytes.Buffer
		e.Stdout, e.Stderr = &out, &errOut
		if code := run(context.Background(), e); code != want {
			t.Fatalf("%q ended with %d: %s%s", args, code, out.String(), errOut.String())
		}
		return out.String()
	}
	do(0, "validate", "inference", "--target", "http://"+addr, "--no-identify", "--model", "m", "--scenarios", "short", "--repeats", "1", "--concurrency", "1,2", "--run", "short")
	do(0, "replay", "--revalidate", "short", "--output", filepath.Join(dir, "then.json"))
	record := do(0, "store", "export", "short")

	cmd := exec.Command(newer, "replay", "--revalidate", "short", "--against", filepath.Join(dir, "then.json"))
	cmd.Env = append(os.Environ(), "BENCHPROXY_STORE="+filepath.Join(dir, "store"))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitGate {
		t.Fatalf("the newer build ended with %v\n%s", err, out)
	}
	if n := strings.Count(string(out), "ok (version 1)"); n < 3 || strings.Count(string(out), "fail (version 2)") != n || !strings.Contains(string(out), "Verdicts that changed") {
		t.Errorf("the changed verdicts are not told:\n%s", out)
	}
	if again := do(0, "store", "export", "short"); again != record {
		t.Error("the record is another one")
	}
	do(0, "replay", "--revalidate", "short")
}

// storeEnv is an environment of a program that runs in this process, over a store in dir.
func storeEnv(dir string, args ...string) env {
	return env{Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(name string) string {
			return map[string]string{"BENCHPROXY_STORE": filepath.Join(dir, "store")}[name]
		},
		Environ: func() []string { return nil }, TTY: func(io.Writer) (int, bool) { return 0, false }}
}

// answerOf writes a file of a script into dir.
func answerOf(t *testing.T, dir, script, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(script, "-- "+name+" --\n")
	if !found {
		t.Fatalf("the script has no %s", name)
	}
	body, _, _ := strings.Cut(rest, "\n-- ")
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(body+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
