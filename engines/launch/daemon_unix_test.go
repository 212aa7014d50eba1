//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// homeWith is a home directory with the file of a daemon.
func homeWith(t *testing.T, text string) string {
	t.Helper()
	return buildTree(t, map[string]string{".foundry/daemon.json": text})
}

// endedPID is the id of a process that has ended.
func endedPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(fakeEngine, "-list-devices")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestFindDaemon(t *testing.T) {
	port, ln := squat(t)
	defer ln.Close()
	for name, c := range map[string]struct{ text, url string }{
		"as it is written":    {fmt.Sprintf(`{"pid":%d,"daemon_version":"0.10.3","ort_version":"1.26.0","web_urls":["http://127.0.0.1:%d/"]}`, os.Getpid(), port), fmt.Sprintf("http://127.0.0.1:%d", port)},
		"without a pid":       {`{"web_urls":["http://localhost:5273"]}`, "http://localhost:5273"},
		"one address":         {`{"web_urls":"http://[::1]:5273"}`, "http://[::1]:5273"},
		"all addresses":       {`{"web_urls":["http://0.0.0.0:5273"]}`, "http://127.0.0.1:5273"},
		"all of the new kind": {`{"web_urls":["http://[::]:5273"]}`, "http://127.0.0.1:5273"},
		"plain before TLS":    {`{"web_urls":["https://127.0.0.1:1","http://127.0.0.1:2"]}`, "http://127.0.0.1:2"},
		"a port alone":        {`{"port":5273}`, "http://127.0.0.1:5273"},
		"a pid that is none":  {`{"pid":"x","port":5273}`, "http://127.0.0.1:5273"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := FindDaemon(homeWith(t, c.text), profile(t, "foundry"))
			if err != nil || d.URL != c.url {
				t.Errorf("%+v, %v; want %s", d, err, c.url)
			}
		})
	}
}

func TestFindDaemonRefuses(t *testing.T) {
	port, ln := squat(t)
	defer ln.Close()
	sleeper := exec.Command(fakeEngine, "-slow", "1h")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	stale := fmt.Sprintf("its daemon, pid %d, has ended", endedPID(t))
	for name, c := range map[string]struct {
		text, why string
		linux     bool
	}{
		"a stale pid":          {fmt.Sprintf(`{"pid":%s,"web_urls":["http://127.0.0.1:5273"]}`, strings.Fields(strings.ReplaceAll(stale, ",", ""))[3]), stale, false},
		"another one's port":   {fmt.Sprintf(`{"pid":%d,"web_urls":["http://127.0.0.1:%d"]}`, sleeper.Process.Pid, port), fmt.Sprintf("port %d belongs to pid %d", port, os.Getpid()), true},
		"no JSON":              {"{", "read it as JSON", false},
		"another JSON":         {`["http://127.0.0.1:1"]`, "read it as JSON", false},
		"empty":                {"", "read it as JSON", false},
		"no address":           {`{"pid":1,"web_urls":[]}`, "no address at \"web_urls\"", false},
		"an address of none":   {`{"web_urls":["ftp://x"]}`, "is no address of a daemon", false},
		"an address in pieces": {`{"web_urls":[7]}`, "no address", false},
		"credentials":          {`{"web_urls":["http://user:secret@127.0.0.1:1"]}`, "is no address of a daemon", false},
		"a port of none":       {`{"port":70000}`, "no address", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.linux && runtime.GOOS != "linux" {
				return // whose port it is can be told on Linux alone
			}
			_, err := FindDaemon(homeWith(t, c.text), profile(t, "foundry"))
			if !errors.Is(err, exchange.ErrUnreachable) {
				t.Fatalf("%v", err)
			}
			wantWords(t, err.Error(), c.why, "daemon.json", "foundry server start")
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("a password is told: %v", err)
			}
		})
	}
	home := t.TempDir()
	if _, err := FindDaemon(home, profile(t, "foundry")); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Errorf("without a file: %v", err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".foundry"), 0o755), syscall.Mkfifo(filepath.Join(home, ".foundry/daemon.json"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := FindDaemon(home, profile(t, "foundry")); err == nil || !strings.Contains(err.Error(), "it is no file of a daemon") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := FindDaemon(home, profile(t, "prism")); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("an engine without a daemon: %v", err)
	}
}

// foundryCLI is a connection to a daemon with a script in the place of its command line program.
func foundryCLI(t *testing.T, script string, by map[string][]string) (*Connection, *answers) {
	t.Helper()
	environ := os.Environ()
	if script != "" {
		environ = append(environ, "PATH="+buildTree(t, map[string]string{"foundry": "#!/bin/sh\n" + script})+":/usr/bin:/bin")
	} else {
		environ = append(environ, "PATH="+t.TempDir())
	}
	a := &answers{by: by}
	d := &Daemon{URL: "http://engine:1", Environ: environ}
	return Connect(ConnectOptions{Engine: profile(t, "foundry"), Daemon: d, Client: a, Times: Times{Load: 20 * time.Second}}), a
}

func TestDaemonLoadsByItsProgram(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	c, a := foundryCLI(t, fmt.Sprintf("echo \"$# $*\" >> '%s'\n", told), nil)
	if c.URL() != "http://engine:1" {
		t.Errorf("it is at %s", c.URL())
	}
	if err := errors.Join(c.Load(t.Context(), "phi-4-mini"), c.Load(t.Context(), "phi-4-mini"), c.Load(t.Context(), "a b; $(c)"), c.Unload(t.Context(), "a b; $(c)")); err != nil {
		t.Fatal(err)
	}
	want := "3 model load phi-4-mini\n3 model unload phi-4-mini\n3 model load a b; $(c)\n3 model unload a b; $(c)\n"
	if diff := cmp.Diff(want, readFile(t, told)); diff != "" || len(a.asked) != 0 {
		t.Errorf("asked %q, commands (-want +got):\n%s", a.asked, diff)
	}
}

func TestDaemonWithoutItsProgram(t *testing.T) {
	c, a := foundryCLI(t, "", map[string][]string{"GET /models/load/phi": {"200 "}, "GET /models/unload/phi": {"200 "}})
	if err := errors.Join(c.Load(t.Context(), "phi"), c.Unload(t.Context(), "phi")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /models/load/phi", "GET /models/unload/phi"}, a.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestDaemonProgramFails(t *testing.T) {
	for name, c := range map[string]struct {
		script, model, words string
	}{
		"it says why": {"echo 'Foundry Local'; echo 'Error: no model of that name' >&2; echo bye; exit 3", "x", "run foundry model load $model: ended with exit code 3: Error: no model of that name"},
		"it crashes":  {"kill -SEGV $$", "x", "ended by signal SIGSEGV"},
		"a flag":      {"exit 0", "--all", "it is no name of a model"},
		"a key":       {"echo 'error: key sk-abcdefghijklmnopqrstuvwxyz0123 refused'; exit 1", "x", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := foundryCLI(t, c.script, nil)
			err := s.Load(t.Context(), c.model)
			if err == nil {
				t.Fatal("it loaded")
			}
			wantWords(t, err.Error(), "load model of foundry", c.words)
			if strings.Contains(err.Error(), "sk-abcdef") {
				t.Errorf("a key is told: %v", err)
			}
		})
	}
}

// TestDaemonProgramHangs holds that a program that hangs is ended with what it started, in time and at the end of ctx.
func TestDaemonProgramHangs(t *testing.T) {
	nothingLeft(t)
	script := fmt.Sprintf("%s -slow 1h -deaf & %s -slow 1h -deaf", fakeEngine, fakeEngine)
	s, _ := foundryCLI(t, script, nil)
	s.times.Load = 300 * time.Millisecond
	err := s.Load(t.Context(), "phi")
	if !errors.Is(err, errToolTime) {
		t.Fatalf("%v", err)
	}
	wantWords(t, err.Error(), "foundry phi", "did not end in time, 300ms")
	eventually(t, "the end of all it started", func() bool { return len(running(fakeEngine)) == 0 })

	s.times.Load = time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		poll(20*time.Second, func() bool { return len(running(fakeEngine)) == 2 })
		cancel(enough)
	}()
	if err := s.Load(ctx, "phi"); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	eventually(t, "the end of all it started", func() bool { return len(running(fakeEngine)) == 0 })
}

// TestDaemonProgramLeavesItsOutput holds that a daemon which its program starts, and which keeps its output, is not
// waited for.
func TestDaemonProgramLeavesItsOutput(t *testing.T) {
	nothingLeft(t)
	s, _ := foundryCLI(t, fmt.Sprintf("%s -slow 1h & exit 0", fakeEngine), nil)
	if err := s.Load(t.Context(), "phi"); err != nil {
		t.Error(err)
	}
	for _, pid := range running(fakeEngine) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "its end", func() bool { return len(running(fakeEngine)) == 0 })
}

func TestToolKeepsSoMuch(t *testing.T) {
	out, err := tool{path: fakeEngine, args: []string{"-flood", "3", "-die", "0"}, time: time.Minute}.run(t.Context())
	if err != nil || len(out) != mostPrinted {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// TestOtherDaemonsHaveNoProgram holds that Foundry's program is used for Foundry's own daemon alone, where its file says
// that it is.
func TestOtherDaemonsHaveNoProgram(t *testing.T) {
	for _, id := range []string{"prism", "ollama", "foundry"} {
		c, a := connect(t, id, map[string][]string{"GET /v1/models": {`200 {"data":[{"id":"m"}]}`}, "POST /api/generate": {"200 "}, "GET /models/load/m": {"200 "}})
		t.Setenv("PATH", buildTree(t, map[string]string{"foundry": "#!/bin/sh\nexit 7\n"}))
		if err := c.Load(t.Context(), "m"); err != nil || len(a.asked) != 1 {
			t.Errorf("%s: %v, asked %q", id, err, a.asked)
		}
	}
}
