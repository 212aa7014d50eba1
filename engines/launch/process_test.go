package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStartReadyStop(t *testing.T) {
	s := fakeSpec(t)
	s.Env = []string{"VISIBLE=0,1", "AT=${host}:${port}"}
	p := startFake(t, s)
	waitReady(t, p)
	if st := p.Status(); st.State != Ready || st.Exit != nil {
		t.Errorf("status %+v", st)
	}
	if got := get(t, p.URL()+"/env?name=VISIBLE"); got != "0,1" {
		t.Errorf("it sees %q", got)
	}
	if got, want := get(t, p.URL()+"/env?name=AT"), fmt.Sprintf("127.0.0.1:%d", p.Port()); got != want {
		t.Errorf("it sees %q, want %q", got, want)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := p.Status(); st.State != Exited || st.Reason != "stopped" {
		t.Errorf("status %+v", st)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("wait: %v", err)
	}
	if !portFree(DefaultHost, p.Port()) {
		t.Error("its port is in use")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestSlowStartAnd503(t *testing.T) {
	s := fakeSpec(t, "-slow", "300ms", "-loading", "500ms")
	p := startFake(t, s)
	eventually(t, "loading", func() bool { return p.Status().State != Starting })
	if st := p.Status(); st.State == Loading && !strings.Contains(st.Reason, "GET /health answers 503") {
		t.Errorf("status %+v", st)
	}
	waitReady(t, p)
}

func TestDiesAtStart(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		reason string
		hint   string
	}{
		"exit 1":            {[]string{"-die", "1"}, "ended with exit code 1 after", ""},
		"exit 2, a hint":    {[]string{"-die", "2"}, "ended with exit code 2 after", "the backend is not in this build"},
		"exit 137":          {[]string{"-die", "137"}, "exit code 137", "want of memory"},
		"exit 127":          {[]string{"-die", "127"}, "exit code 127", "not found"},
		"killed":            {[]string{"-crash", "KILL"}, "ended by signal SIGKILL", "want of memory"},
		"aborted":           {[]string{"-crash", "ABRT"}, "ended by signal SIGABRT", "assertion"},
		"grandchild leaves": {[]string{"-child", "group", "-die", "1"}, "exit code 1", ""},
		"escaped child":     {[]string{"-child", "session", "-die", "1"}, "exit code 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeSpec(t, append([]string{"-say", "one|two"}, c.flags...)...)
			s.LogFile = filepath.Join(t.TempDir(), "a", "fake.log")
			p := startFake(t, s)
			st, text := waitFailed(t, p)
			wantWords(t, st.Reason, c.reason, "before it was ready")
			wantWords(t, st.Hint, c.hint)
			wantWords(t, text, "its last lines:\n  ", "one\n  two", s.LogFile)
			if !errors.Is(p.WaitReady(t.Context()), exchange.ErrUnreachable) || p.Wait(t.Context()) == nil {
				t.Error("a failed start is no error of the right kind")
			}
			if (st.Signal == "") != (st.Exit != nil) {
				t.Errorf("exit %v, signal %q", st.Exit, st.Signal)
			}
			log := readFile(t, s.LogFile)
			if !strings.HasPrefix(log, "CMD: "+fakeEngine+" -port ") || !strings.Contains(log, "\none\ntwo\n") {
				t.Errorf("log %q", log)
			}
		})
	}
}

// TestLastLinesAreHarmless holds that an error tells the output of an engine without what a terminal would obey.
func TestLastLinesAreHarmless(t *testing.T) {
	_, text := waitFailed(t, startFake(t, fakeSpec(t, "-say", "\x1b[31mred\x1b[0m and \x1b]0;title\x07\tbell", "-die", "1")))
	wantWords(t, text, "\n  red and ·]0;title·\tbell\n")
	if strings.ContainsAny(text, "\x1b\x07") {
		t.Errorf("%q", text)
	}
}

func TestDiesLater(t *testing.T) {
	p := startFake(t, fakeSpec(t, "-die-after", "2s"))
	waitReady(t, p)
	err := p.Wait(t.Context())
	if err == nil || p.Status().State != Failed {
		t.Fatalf("%v, %v", p.Status(), err)
	}
	wantWords(t, err.Error(), "ended with exit code 3 after")
	if strings.Contains(err.Error(), "before it was ready") {
		t.Error(err)
	}
	if err := p.WaitReady(t.Context()); err == nil {
		t.Error("an engine that ended counts as ready")
	}
}

func TestNeverReady(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		words []string
	}{
		"not listening": {[]string{"-slow", "1h", "-say", "init NCCL"}, []string{"not ready within 700ms", "port does not answer yet", "set NCCL_P2P_DISABLE=1"}},
		"mute":          {[]string{"-mute"}, []string{"accepts connections and does not answer"}},
		"503":           {[]string{"-loading", "1h"}, []string{"GET /health answers 503"}},
		"deaf, too":     {[]string{"-loading", "1h", "-deaf"}, []string{"GET /health answers 503"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeSpec(t, c.flags...)
			s.Times.Ready, s.Times.Probe, s.Times.Grace = 700*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
			_, text := waitFailed(t, startFake(t, s))
			wantWords(t, text, c.words...)
		})
	}
}

func TestStopLadder(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		signal string
	}{
		"deaf":                  {[]string{"-deaf"}, "SIGKILL"},
		"hears":                 {nil, "SIGTERM"},
		"grandchild, same":      {[]string{"-child", "group"}, "SIGTERM"},
		"grandchild, escaped":   {[]string{"-child", "session"}, "SIGTERM"},
		"port of a grandchild":  {[]string{"-serve", "group"}, "SIGTERM"},
		"port of one, escaped":  {[]string{"-serve", "session"}, "SIGTERM"},
		"deaf with grandchild":  {[]string{"-deaf", "-serve", "session"}, "SIGKILL"},
		"a daemon":              {[]string{"-child", "daemon"}, "SIGTERM"},
		"port of a daemon":      {[]string{"-serve", "daemon"}, "SIGTERM"},
		"a ghost of a child":    {[]string{"-child", "ghost", "-linger", "1h"}, "SIGTERM"},
		"while output is heavy": {[]string{"-flood", "20"}, "SIGTERM"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeSpec(t, c.flags...)
			s.Times.Grace = 300 * time.Millisecond
			p := startFake(t, s)
			waitReady(t, p)
			if err := p.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := p.Status(); st.State != Exited || st.Signal != c.signal {
				t.Errorf("status %+v, want signal %s", st, c.signal)
			}
		})
	}
}

func TestStopInAHurryAndBeforeReady(t *testing.T) {
	p := startFake(t, fakeSpec(t, "-deaf", "-say", "up", "-slow", "1h"))
	eventually(t, "its first line", func() bool { return len(p.Tail(1)) > 0 })
	waited := make(chan error, 1)
	go func() { waited <- p.WaitReady(context.Background()) }()
	if err := p.Stop(hurried()); err != nil {
		t.Fatal(err)
	}
	if st := p.Status(); st.State != Exited || st.Signal != "SIGKILL" || st.Reason != "stopped before it was ready" {
		t.Errorf("status %+v", st)
	}
	if err := <-waited; err == nil {
		t.Error("waiting for a stopped engine gave no error")
	}
}

// TestSecondStopHurries holds that a request without grace shortens one that runs.
func TestSecondStopHurries(t *testing.T) {
	s := fakeSpec(t, "-deaf")
	s.Times.Grace = time.Hour
	p := startFake(t, s)
	waitReady(t, p)
	first := make(chan error, 1)
	go func() { first <- p.Stop(context.Background()) }()
	eventually(t, "stopping", func() bool { return p.Status().State == Stopping })
	if err := errors.Join(p.Stop(hurried()), <-first); err != nil {
		t.Fatal(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p := startFake(t, fakeSpec(t, "-slow", "1h"))
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.WaitReady(ctx); !errors.Is(err, cause) {
		t.Errorf("wait for ready: %v", err)
	}
	if err := p.Wait(ctx); !errors.Is(err, cause) {
		t.Errorf("wait for the end: %v", err)
	}
	if st := p.Status(); st.State.Final() {
		t.Errorf("the end of a wait ended the engine: %v", st)
	}
	if err := p.Stop(hurried()); err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	nothingLeft(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Spec)
		kind   error
		words  []string
	}{
		"no program":         {func(s *Spec) { s.Program = "no-such-engine" }, ErrMissing, []string{"no-such-engine", "install the engine"}},
		"no file":            {func(s *Spec) { s.Files = []string{"/no/model.gguf"} }, ErrMissing, []string{"/no/model.gguf"}},
		"no directory":       {func(s *Spec) { s.Dir = "/no/dir" }, ErrMissing, []string{"/no/dir"}},
		"not executable":     {func(s *Spec) { s.Program = text }, nil, []string{"a program for this machine"}},
		"log in a file":      {func(s *Spec) { s.LogFile = filepath.Join(text, "x.log") }, nil, []string{"write log"}},
		"a port of nobody":   {func(s *Spec) { s.Port = 70000 }, exchange.ErrUsage, []string{"70000"}},
		"an address of none": {func(s *Spec) { s.Host = "192.0.2.1" }, ErrPortBusy, []string{"192.0.2.1"}},
	} {
		s := fakeSpec(t)
		c.change(&s)
		p, err := Start(t.Context(), s)
		if err == nil {
			t.Errorf("%s: it was started", name)
			_ = p.Close()
			continue
		}
		wantWords(t, err.Error(), c.words...)
		if c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v is not %v", name, err, c.kind)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// squat listens on a free port and returns it.
func squat(t *testing.T) (port int, ln net.Listener) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr().(*net.TCPAddr).Port, ln
}
