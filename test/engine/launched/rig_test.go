package launched

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds one command. A big model may load for minutes.
const patience = 20 * time.Minute

// markName is a variable that every process below a command inherits.
const markName = "BENCHPROXY_TEST_MARK"

// rig is the program under test with the engine that it starts.
type rig struct {
	program, store   string
	engine, binary   string
	model, gateModel string
	backend          string
	gateContext      string // tokens; "" for what the engine tells
	tiny             bool
	dir              string // of the engine's notes and of files
}

// newRig reads the environment. When the test has ended it looks for what is left.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{backend: os.Getenv("TEST_BACKEND"), gateContext: os.Getenv("TEST_GATE_CONTEXT"), tiny: os.Getenv("TEST_TINY") == "1", dir: t.TempDir()}
	for name, to := range map[string]*string{
		"TEST_BENCHPROXY": &r.program, "TEST_STORE": &r.store, "TEST_ENGINE": &r.engine, "TEST_BINARY": &r.binary, "TEST_MODEL": &r.model,
	} {
		if *to = os.Getenv(name); *to == "" {
			t.Fatalf("%s is not set: run this through its script", name)
		}
	}
	if r.gateModel = os.Getenv("TEST_GATE_MODEL"); r.gateModel == "" {
		r.gateModel = r.model
	}
	t.Cleanup(func() { r.nothingLeft(t) })
	return r
}

// nothingLeft holds that the engine and all that it started have ended.
func (r *rig) nothingLeft(t *testing.T) {
	t.Helper()
	out, err := r.command(context.Background(), "engines", "launch", "--reap").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nothing is left over") {
		t.Errorf("engines launch --reap: %v: %s", err, out)
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // none where there is no /proc
		raw, err := os.ReadFile(file)
		if err == nil && bytes.Contains(raw, []byte(markName+"="+r.dir+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			t.Errorf("%s still runs: %s", filepath.Dir(file), bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// command is benchproxy with its engines noted below the rig's directory.
func (r *rig) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+r.dir, "BENCHPROXY_STORE="+r.store, markName+"="+r.dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// run runs benchproxy to its end, holds its exit code, and gives what it printed.
func (r *rig) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	return r.runTo(t, []int{code}, args...)
}

// runTo is run with several exit codes that are right.
func (r *rig) runTo(t *testing.T, codes []int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := r.command(ctx, args...)
	cmd.Env = append(cmd.Env, clientName+"="+r.model)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) {
		t.Fatalf("benchproxy %s: exit code %d, want one of %v\n%s\n%s", strings.Join(args, " "), got, codes, out, errOut.String())
	}
	return string(out)
}

// document runs benchproxy and reads the JSON that it prints.
func (r *rig) document(t *testing.T, code int, to any, args ...string) {
	t.Helper()
	out := r.run(t, code, args...)
	if err := json.Unmarshal([]byte(out), to); err != nil {
		t.Fatalf("benchproxy %s: %v in %s", strings.Join(args, " "), err, out)
	}
}

// launch are the flags that start the engine.
func (r *rig) launch(model string) []string {
	args := []string{"--binary", r.binary, "--engine-port", "any", "--model", model, "--slots", "2", "--listen", "127.0.0.1:0", "--admin", "off"}
	if r.backend != "" {
		args = append(args, "--backend", r.backend)
	}
	return args
}

// serving is a command that serves until it is ended.
type serving struct {
	cmd   *exec.Cmd
	url   string
	log   *bytes.Buffer // what it said on the way; to be read after end
	ended chan struct{}
}

var address = regexp.MustCompile(`https?://[0-9.]+:[0-9]+`)

// serve starts a command that prints where it serves in a line of its own, with tells in it.
func (r *rig) serve(t *testing.T, tells string, args ...string) *serving {
	t.Helper()
	s := &serving{cmd: r.command(context.Background(), args...), log: &bytes.Buffer{}, ended: make(chan struct{})}
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil { // the test failed before it ended the command
			_ = s.cmd.Process.Signal(os.Interrupt)
			<-s.ended
			_ = s.cmd.Wait()
		}
	})
	found := make(chan string, 1)
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			fmt.Fprintln(s.log, lines.Text())
			if strings.Contains(lines.Text(), tells) && address.MatchString(lines.Text()) {
				select {
				case found <- address.FindString(lines.Text()):
				default:
				}
			}
		}
	}()
	select {
	case s.url = <-found:
	case <-s.ended:
		t.Fatalf("benchproxy %s ended: %s", strings.Join(args, " "), s.log)
	case <-time.After(patience):
		t.Fatalf("benchproxy %s does not serve", strings.Join(args, " "))
	}
	return s
}

// end ends it as Ctrl-C does, and holds that it ends well.
func (s *serving) end(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("end: %v\n%s", err, s.log)
	}
}
