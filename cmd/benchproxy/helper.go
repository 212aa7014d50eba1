package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// helper is this program again, as a process of its own that works for us. It dies with us: its standard input ends, and
// on Linux the kernel kills it.
type helper struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	out    helperLog // what it prints on stdout and stderr
	ended  chan struct{}
	result error // how it ended; read after ended
}

// helperLog gathers output and tells a waiter of each change.
type helperLog struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

// helperKept bounds what is kept of a helper's output.
const helperKept = 64 << 10

// Write keeps the beginning of the output.
func (l *helperLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p[:min(len(p), helperKept-min(l.buf.Len(), helperKept))])
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return len(p), nil
}

// look is what was written so far, and a channel that is closed at the next change.
func (l *helperLog) look() (text string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.buf.String(), l.changed
}

// startHelper starts this program with other arguments, and without the settings that the environment has for ours.
func startHelper(e env, name string, args ...string) (*helper, error) {
	fail := func(err error) error {
		return &exchange.Error{Op: "start helper process", Object: name, Side: exchange.SideProxy, Cause: err}
	}
	path, err := os.Executable()
	if err != nil {
		return nil, fail(err)
	}
	h := &helper{name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	h.cmd.Args[0] = "benchproxy"
	h.cmd.Env = slices.DeleteFunc(e.Environ(), func(v string) bool { return strings.HasPrefix(v, "BENCHPROXY_") })
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.out
	h.cmd.SysProcAttr = diesWithUs()
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return nil, fail(err)
	}
	if err := h.cmd.Start(); err != nil {
		return nil, fail(err)
	}
	h.await()
	return h, nil
}

func (h *helper) await() {
	go func() {
		h.result = h.cmd.Wait()
		close(h.ended)
	}()
}

// says waits until the helper printed what re matches, and returns the groups of it.
func (h *helper) says(ctx context.Context, re *regexp.Regexp) ([]string, error) {
	for {
		text, changed := h.out.look()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[1:], nil
		}
		select {
		case <-changed:
		case <-h.ended:
			if text, _ := h.out.look(); re.MatchString(text) {
				continue
			}
			return nil, h.failure(fmt.Errorf("it ended: %v", h.result))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// failure is an error with what the helper said itself.
func (h *helper) failure(cause error) error {
	text, _ := h.out.look()
	if text = strings.TrimSpace(text); text != "" {
		cause = fmt.Errorf("%w: %s", cause, text)
	}
	return &exchange.Error{Op: "run helper process", Object: h.name, Side: exchange.SideProxy, Cause: cause}
}

// helperGrace is how long a helper may take to end by itself.
const helperGrace = 20 * time.Second

// End asks the helper to end, as Ctrl-C does, and waits for it. One that does not end in time is killed, which is an error,
// as is another exit code than 0.
func (h *helper) End() error {
	gentle, err := interruptProcess(h.cmd.Process)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		h.Close()
		return h.failure(err)
	}
	limit := time.NewTimer(helperGrace)
	defer limit.Stop()
	select {
	case <-h.ended:
	case <-limit.C:
		h.Close()
		return h.failure(fmt.Errorf("it did not end in %s", helperGrace))
	}
	if h.result != nil && gentle {
		return h.failure(h.result)
	}
	return nil
}

// Close kills the helper when it still runs, and waits for it.
func (h *helper) Close() {
	_ = h.stdin.Close()      // a helper that waits for it ends
	_ = h.cmd.Process.Kill() // it may have ended already
	<-h.ended
}
