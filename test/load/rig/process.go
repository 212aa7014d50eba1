package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that was started. Close ends it.
type Process struct {
	Out *Log // standard output so far
	Err *Log // standard error so far

	cmd   *exec.Cmd
	tree  bool          // it has processes of its own
	ended chan struct{} // closed when the program ended and all it wrote is in the logs
	err   error         // how it ended; read after ended
}

// Start starts the program at path.
func Start(path string, args ...string) (*Process, error) { return start(nil, path, args, false) }

// StartWith starts the program at path with variables of its environment set.
func StartWith(vars []string, path string, args ...string) (*Process, error) {
	return start(vars, path, args, false)
}

// StartTree starts a program that starts processes of its own and ends them when it is asked to end. A kill would leave
// them behind, so Close asks first.
func StartTree(path string, args ...string) (*Process, error) { return start(nil, path, args, true) }

func start(vars []string, path string, args []string, tree bool) (*Process, error) {
	p := &Process{Out: newLog(), Err: newLog(), cmd: exec.Command(path, args...), tree: tree, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.Out, p.Err
	p.cmd.Env = append(untraced(os.Environ()), vars...)
	p.cmd.SysProcAttr = dieWithParent(tree)
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// untraced are variables without those of a tracing that the caller has for itself: what is traced is said by vars alone.
func untraced(vars []string) []string {
	return slices.DeleteFunc(vars, func(v string) bool { return strings.HasPrefix(v, "OTEL_") })
}

func (p *Process) start() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		p.Out.end()
		p.Err.end()
		close(p.ended)
	}()
	return nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is true when the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Stop asks the program to end, as Ctrl-C does, and waits for it. The error is not nil when it did not exit with 0.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupt process: %w", err)
	}
	select {
	case <-p.ended:
		return p.exit()
	case <-ctx.Done():
		return fmt.Errorf("wait for process: %w: %s", ctx.Err(), p.Err.Tail())
	}
}

func (p *Process) exit() error {
	if p.err != nil {
		return fmt.Errorf("end process: %w: %s", p.err, p.Err.Tail())
	}
	return nil
}

// Kill ends the program at once, as kill -9 does, and waits until all it wrote before is in the logs.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// Close ends the program when it still runs, and the processes that it started if it was started as a tree.
func (p *Process) Close() {
	if !p.tree {
		p.Kill()
		return
	}
	all, _ := Tree(p.PID()) // a program that has ended has none
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(goodbye):
		for _, pid := range all {
			if one, err := os.FindProcess(pid); err == nil {
				_ = one.Kill() // it may have ended just now
			}
		}
		<-p.ended
	}
}

// goodbye is how long a tree of processes has to end itself.
const goodbye = 5 * time.Second

// Log is what a program wrote so far, safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	buf     []byte
	over    bool
	changed chan struct{} // closed and replaced at each change
}

func newLog() *Log { return &Log{changed: make(chan struct{})} }

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.change(func() { l.buf = append(l.buf, p...) })
	return len(p), nil
}

func (l *Log) end() { l.change(func() { l.over = true }) }

func (l *Log) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Bytes is a copy of all of it.
func (l *Log) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf)
}

// Tail is its end, for messages.
func (l *Log) Tail() string {
	b := bytes.TrimSpace(l.Bytes())
	return string(b[max(0, len(b)-2000):])
}

// Lines are the whole lines, without their ends. What a killed program had begun to write is no line.
func (l *Log) Lines() [][]byte {
	lines := bytes.Split(l.Bytes(), []byte("\n"))
	return lines[:len(lines)-1]
}

// Match waits for text that re matches and returns the match with its groups.
func (l *Log) Match(ctx context.Context, re *regexp.Regexp) ([]string, error) {
	var found [][]byte
	err := l.Await(ctx, func(text []byte) bool {
		found = re.FindSubmatch(text)
		return found != nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %q: %w: %s", re, err, l.Tail())
	}
	out := make([]string, len(found))
	for i, b := range found {
		out[i] = string(b)
	}
	return out, nil
}

// Await waits until what was written meets a condition. It is an error when the program ends before.
func (l *Log) Await(ctx context.Context, met func(text []byte) bool) error {
	for {
		l.mu.Lock()
		ok, over, changed := met(l.buf), l.over, l.changed
		l.mu.Unlock()
		switch {
		case ok:
			return nil
		case over:
			return errors.New("the program ended")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Poll asks met every 20 ms until it says so. It is for conditions of which nobody sends word.
func Poll(ctx context.Context, met func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := met()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
