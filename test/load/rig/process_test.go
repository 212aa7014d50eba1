package rig

import (
	"bytes"
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestProcessSaysAndEnds(t *testing.T) {
	p := shell(t, `trap 'echo bye; exit 0' INT; printf half >&2; echo ready at 7; while :; do sleep 0.01; done`)
	m, err := p.Out.Match(bounded(t), regexp.MustCompile(`at (\d+)`))
	if err != nil || m[1] != "7" {
		t.Fatalf("match %v, %v", m, err)
	}
	if err := p.Stop(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(p.Out.Lines(), []byte("|")); string(got) != "ready at 7|bye" {
		t.Errorf("lines %q", got)
	}
	if got := p.Err.Lines(); len(got) != 0 || p.Err.Tail() != "half" {
		t.Errorf("lines %q of %q", got, p.Err.Tail())
	}
	if err := p.Stop(bounded(t)); err != nil {
		t.Errorf("stop again: %v", err)
	}
}

func TestProcessThatFails(t *testing.T) {
	p := shell(t, `echo broken >&2; exit 3`)
	if _, err := p.Out.Match(bounded(t), regexp.MustCompile("never")); err == nil {
		t.Error("a program that ended said what it never said")
	}
	if err := p.Stop(bounded(t)); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
	if _, err := Start("/nowhere/to/be/found"); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestProcessThatDoesNotListen(t *testing.T) {
	p := shell(t, `trap '' INT; echo up; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithCancel(bounded(t))
	if _, err := p.Out.Match(ctx, regexp.MustCompile("up")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Out.Match(ctx, regexp.MustCompile("never")); err == nil {
		t.Error("the wait went on after its context")
	}
	if err := p.Stop(ctx); err == nil {
		t.Error("a program that goes on has stopped")
	}
	p.Kill()
	if err := p.Stop(bounded(t)); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
}

func TestCosts(t *testing.T) {
	pid := os.Getpid()
	before, err := CPU(pid)
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after <= before; {
		if after, err = CPU(pid); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := MemoryOf(pid); err != nil || m.Now < 1<<20 || m.Peak < m.Now {
		t.Errorf("memory %+v, %v", m, err)
	}
	files, err := Files(pid)
	if err != nil || files["file"] == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	more, err := Files(pid)
	if err != nil || more["socket"] != files["socket"]+1 {
		t.Errorf("sockets %d, before %d: %v", more["socket"], files["socket"], err)
	}
}

// TestTreeEndsWhole holds that Close leaves no process of a tree, whether the tree ends its own or not.
func TestTreeEndsWhole(t *testing.T) {
	for name, script := range map[string]string{
		"ends its own": `sleep 1000 & trap "kill $!; wait; exit 0" TERM; echo up; wait`,
		"is deaf":      `trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo up; while :; do sleep 0.05; done`,
	} {
		p, err := StartTree("/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Out.Match(bounded(t), regexp.MustCompile("up")); err != nil {
			t.Fatal(err)
		}
		all, err := Tree(p.PID())
		if err != nil || len(all) < 2 || all[0] != p.PID() || p.Ended() {
			t.Errorf("%s: processes %v, %v", name, all, err)
		}
		p.Close()
		if !p.Ended() {
			t.Errorf("%s: it runs on", name)
		}
		for _, pid := range all[:2] {
			if err := Poll(bounded(t), func() (bool, error) { _, err := MemoryOf(pid); return err != nil, nil }); err != nil {
				t.Errorf("%s: process %d is left", name, pid)
			}
		}
		p.Close() // a second time it does nothing
	}
}

func TestCostsOfNobody(t *testing.T) {
	const nobody = 1<<22 + 1 // above any process id
	if _, err := CPU(nobody); err == nil {
		t.Error("a process that is not there has used the processor")
	}
	if _, err := MemoryOf(nobody); err == nil {
		t.Error("a process that is not there has memory")
	}
	if _, err := Tree(nobody); err == nil {
		t.Error("a process that is not there has started others")
	}
	if _, err := Files(nobody); err == nil {
		t.Error("a process that is not there has files")
	}
	if _, err := kilobytes([]byte("VmRSS:\t12 kB\n"), "VmHWM:"); err == nil {
		t.Error("a line that is not there has a value")
	}
}
