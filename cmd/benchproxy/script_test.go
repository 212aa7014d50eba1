package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run the real program, and a small client, as processes of their own.
func TestMain(m *testing.M) {
	tests := strings.HasSuffix(os.Args[0], ".test")
	if tests && signal.Ignored(syscall.SIGHUP) { // under nohup: the programs that are started must not inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// The scripts wait for servers and scripted engines most of the time: some share a core.
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())) // before Run parses: the command line still wins
	testscript.Main(m, map[string]func(){"benchproxy": main, "client": client, "hub": hub})
}

// client is what `record -- CMD` runs in the scripts: it posts its last argument to a path below OPENAI_BASE_URL and ends
// with the code that its first argument names.
func client() {
	resp, err := http.Post(os.Getenv("OPENAI_BASE_URL")+"/chat/completions", "application/json", strings.NewReader(os.Args[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(90)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "GOOGLE_GEMINI_BASE_URL"} {
		fmt.Println(name + "=" + os.Getenv(name))
	}
	code, _ := strconv.Atoi(os.Args[1])
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("BENCHPROXY_STORE", e.WorkDir+"/store")
			e.Setenv("HOME", e.WorkDir)
			if err := os.CopyFS(e.WorkDir, os.DirFS("testdata/files")); err != nil {
				return err
			}
			e.Values[serversKey{}] = &servers{running: map[string]*server{}}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "start": start, "end": end, "kill9": kill9, "post": post, "get": get, "wait_rows": waitRows, "wait_text": waitText,
			"wait_err": waitErr, "engine_dies": engineDies, "no_helpers": noHelpers, "take": take, "selftest_report": selftestReport,
		},
	})
}

// exits CODE CMD ARGS runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD ARGS")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// take NAME REGEXP FILE keeps the first group that the expression finds in a file as a variable.
func take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: take NAME REGEXP FILE")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile(args[2]))
	if len(m) < 2 {
		ts.Fatalf("%s has no %s", args[2], args[1])
	}
	ts.Setenv(args[0], m[1])
}

type serversKey struct{}

// servers are the background processes of one script.
type servers struct{ running map[string]*server }

// server is one of them. Its output is gathered; the addresses in it are found as they come.
type server struct {
	cmd      *exec.Cmd
	out, err watchedBuffer
	done     chan error
}

// watchedBuffer collects output and tells a waiter of each change.
type watchedBuffer struct {
	mu      sync.Mutex
	b       strings.Builder
	changed chan struct{}
}

func (w *watchedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
	return len(p), nil
}

func (w *watchedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await waits until found says so of the output.
func (w *watchedBuffer) await(limit time.Duration, found func(string) bool) bool {
	deadline := time.After(limit)
	for {
		w.mu.Lock()
		text := w.b.String()
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		if found(text) {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

// patience bounds every wait of a script; a loaded machine needs a small part of it.
const patience = 2 * time.Minute

var addresses = regexp.MustCompile(`https?://127\.0\.0\.1:\d+`)

// start NAME N CMD ARGS runs a command in the background and waits until its stderr names N addresses, which become
// $NAME_1, $NAME_2 ...
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: start NAME N CMD ARGS")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	s := &server{done: make(chan error, 1)}
	s.cmd = exec.Command(args[2], args[3:]...)
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "BENCHPROXY_STORE=" + ts.Getenv("BENCHPROXY_STORE")}
	for _, name := range []string{"BENCHPROXY_API_KEY", "BENCHPROXY_UPSTREAM_KEY", "BENCHPROXY_ADMIN_KEY", "GORACE", "TMPDIR", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"} {
		if v := ts.Getenv(name); v != "" {
			s.cmd.Env = append(s.cmd.Env, name+"="+v)
		}
	}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.err
	ts.Check(s.cmd.Start())
	go func() { s.done <- s.cmd.Wait() }()
	ts.Defer(func() {
		_ = s.cmd.Process.Kill() // it has ended in a script that passed
	})
	ok := s.err.await(patience, func(text string) bool { return len(addresses.FindAllString(text, -1)) >= want })
	if !ok {
		ts.Fatalf("%s named no %d addresses:\n%s", args[0], want, s.err.String())
	}
	for i, a := range addresses.FindAllString(s.err.String(), -1) {
		ts.Setenv(fmt.Sprintf("%s_%d", args[0], i+1), a)
	}
	running(ts).running[args[0]] = s
}

func running(ts *testscript.TestScript) *servers { return ts.Value(serversKey{}).(*servers) }

// end NAME CODE sends an interrupt, waits, compares the exit code, and leaves the output in NAME.out and NAME.err.
func end(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: end NAME CODE [hup]")
	}
	sig := os.Interrupt
	if len(args) == 3 && args[2] == "hup" {
		sig = syscall.SIGHUP
	}
	s := running(ts).running[args[0]]
	ts.Check(s.cmd.Process.Signal(sig))
	s.finish(ts, args[0])
	if got := s.cmd.ProcessState.ExitCode(); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s ended with code %d, want %s\n%s", args[0], got, args[1], s.err.String())
	}
}

// kill9 NAME kills it without a chance to clean up.
func kill9(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill9 NAME")
	}
	s := running(ts).running[args[0]]
	ts.Check(s.cmd.Process.Signal(syscall.SIGKILL))
	s.finish(ts, args[0])
}

func (s *server) finish(ts *testscript.TestScript, name string) {
	select {
	case err := <-s.done:
		ts.Logf("%s ended: %v", name, err)
	case <-time.After(patience):
		ts.Fatalf("%s does not end:\n%s", name, s.err.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(name+".out"), []byte(s.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(name+".err"), []byte(s.err.String()), 0o600))
}

// post URL BODYFILE STATUS OUTFILE [HEADER...] sends a body and writes the answer's body. Headers are Name:Value.
func post(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: post URL BODYFILE STATUS OUTFILE [HEADER...]")
	}
	roundTrip(ts, http.MethodPost, args[0], ts.ReadFile(args[1]), args[2:])
}

// get URL STATUS OUTFILE [HEADER...]
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: get URL STATUS OUTFILE [HEADER...]")
	}
	roundTrip(ts, http.MethodGet, args[0], "", args[1:])
}

func roundTrip(ts *testscript.TestScript, method, url, body string, rest []string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range rest[2:] {
		name, value, _ := strings.Cut(h, ":")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		ts.Logf("body ended early: %v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(rest[1]), b, 0o600))
	if strconv.Itoa(resp.StatusCode) != rest[0] {
		ts.Fatalf("%s answered %d, want %s: %s", url, resp.StatusCode, rest[0], b)
	}
}

// wait_rows NAME N waits until a recording proxy has printed N exchanges on stdout, the head line not counted.
func waitRows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wait_rows NAME N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	s := running(ts).running[args[0]]
	if !s.out.await(patience, func(text string) bool {
		lines := strings.Count(text, "\n")
		if !strings.HasPrefix(text, "{") {
			lines--
		}
		return lines >= n
	}) {
		ts.Fatalf("%s printed fewer than %d rows:\n%s", args[0], n, s.out.String())
	}
}

// wait_text NAME PATTERN waits until a background process has printed a match on stderr.
func waitText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wait_text NAME PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	s := running(ts).running[args[0]]
	if !s.err.await(patience, pattern.MatchString) {
		ts.Fatalf("%s printed no %q on stderr:\n%s", args[0], args[1], s.err.String())
	}
}
