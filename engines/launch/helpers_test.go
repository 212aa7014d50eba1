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
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/engines"
)

// fakeEngine is the path of the fake engine, which is built once.
var fakeEngine string

func TestMain(m *testing.M) {
	if role := os.Getenv("LAUNCH_TEST_ROLE"); role == "owner" {
		ownerMain()
		return
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "launch-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears what stays
	fakeEngine = filepath.Join(dir, "fake-engine")
	build := exec.Command("go", "build", "-o", fakeEngine, "./testdata/fake")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build fake engine: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// fakeProfile is the profile of the fake engine.
func fakeProfile() engines.Profile {
	return engines.Profile{Schema: 1, ID: "fake", Name: "the fake engine", Kind: engines.KindServer,
		Ready: &engines.Ready{Path: "/health", Loading: []int{503}},
		Launch: &engines.Launch{Program: fakeEngine, Port: 5001, Busy: engines.BusyNext,
			Devices: &engines.DeviceEvidence{Seen: []engines.DeviceLine{
				{Match: "^  (CUDA|ROCm)[0-9]:", Device: "$1"}, {Match: "offloaded 0/[0-9]+ layers", Device: "cpu"}, {Match: "using device (CUDA|ROCm)", Device: "$1"}}},
			Hints: []engines.Hint{
				{When: engines.HintExit, Exit: []int{2}, Say: "the backend is not in this build"},
				{When: engines.HintTimeout, Log: []string{"NCCL"}, Say: "set NCCL_P2P_DISABLE=1"},
				{When: engines.HintReady, Log: []string{"no draft head in weights"}, Say: "drafting is off"},
				{When: engines.HintAny, Log: []string{"never printed"}, Say: "wrong"}}}}
}

// fakeSpec starts the fake engine with flags.
func fakeSpec(t *testing.T, flags ...string) Spec {
	t.Helper()
	return Spec{Engine: fakeProfile(), Program: fakeEngine, Args: append([]string{"-port", "${port}"}, flags...), Environ: os.Environ(), Host: DefaultHost, Port: AnyPort,
		Times: Times{Ready: 20 * time.Second, Probe: time.Second, Every: 50 * time.Millisecond, Grace: 10 * time.Second, Kill: 10 * time.Second, PortFree: 10 * time.Second}}
}

// startFake starts the fake engine and checks at the end of the test that nothing is left of it.
func startFake(t *testing.T, s Spec) *Process {
	t.Helper()
	nothingLeft(t)
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if !p.Status().State.Final() {
			t.Errorf("its state is %s after it was closed", p.Status())
		}
	})
	return p
}

// nothingLeft checks, when the test has ended, that no process, goroutine or file is left of it.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := openFiles(t)
	t.Cleanup(func() {
		goleak.VerifyNone(t)
		for _, pid := range running(fakeEngine) {
			t.Errorf("left running: pid %d: %s", pid, commandOf(pid))
		}
		if after := openFiles(t); after > before {
			t.Errorf("%d files are open, there were %d", after, before)
		}
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

func waitReady(t *testing.T, s Server) {
	t.Helper()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitFailed waits for a start that fails, and returns how.
func waitFailed(t *testing.T, p *Process) (Status, string) {
	t.Helper()
	err := p.WaitReady(t.Context())
	if err == nil {
		t.Fatalf("it became ready: %s", p.Status())
	}
	if s := p.Status(); s.State != Failed {
		t.Fatalf("its state is %s, and waiting for it gave %v", s, err)
	}
	return p.Status(), err.Error()
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !poll(20*time.Second, holds) {
		t.Fatalf("it did not come to this: %s", what)
	}
}

// hurried is a context that gives no grace.
func hurried() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("in a hurry"))
	return ctx
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in %.2000q", w, text)
		}
	}
}

// lineBuffer gathers the output of a process.
type lineBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lineBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
