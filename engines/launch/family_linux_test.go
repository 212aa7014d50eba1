package launch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestGhostThatHoldsThePortIsNamed holds for what gave up everything by which it could be told as the engine's: it is
// named, and not killed.
func TestGhostThatHoldsThePortIsNamed(t *testing.T) {
	s := fakeSpec(t, "-child", "ghost", "-slow", "1h")
	s.Times.PortFree, s.Times.Grace = 300*time.Millisecond, time.Second
	before := running(fakeEngine)
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ghost", func() bool { return len(running(fakeEngine)) == len(before)+2 })
	squatter := exec.Command(fakeEngine, "-port", fmt.Sprint(p.Port()))
	squatter.Env = []string{}
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the port's freedom", func() bool { return !portFree(DefaultHost, p.Port()) })
	unseen := &Process{spec: p.spec, port: p.port, pid: p.pid, start: p.start, family: newFamily(p.pid, p.marker, nil)}
	if err = unseen.awaitPort(); err == nil {
		t.Fatal("a port that is held is free")
	}
	wantWords(t, err.Error(), fmt.Sprintf("port %d is still in use, by pid %d (%s", p.Port(), squatter.Process.Pid, fakeEngine))
	_ = p.Stop(hurried())
	for _, pid := range running(fakeEngine) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = squatter.Wait() // it was killed
	eventually(t, "the end of all", func() bool { return len(running(fakeEngine)) == 0 })
}

// TestRelativesAreNamedAfterAKill holds that what shed the marker is named at the next start, when it was seen once.
func TestRelativesAreNamedAfterAKill(t *testing.T) {
	nothingLeft(t)
	s := fakeSpec(t, "-child", "ghost", "-linger", "1h")
	s.StateDir = t.TempDir()
	var ghosts []relative
	pid := ownedUntil(t, s, func() bool {
		entries, err := readEntries(s.StateDir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%+v, %v", entries, err)
			return true
		}
		ghosts = entries[0].Relatives
		return len(ghosts) > 0
	})
	eventually(t, "the end of the engine", func() bool { p, ok := readProcess(pid); return !ok || p.dead })
	if len(ghosts) != 1 {
		t.Fatalf("%+v are noted", ghosts)
	}
	for _, pid := range running(fakeEngine) { // its parent, by which it could be told
		if pid != ghosts[0].PID {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	eventually(t, "the end of all but the ghost", func() bool { return len(running(fakeEngine)) == 1 })
	left, err := Leftovers(s.StateDir)
	if err != nil || len(left) != 1 || !slices.Equal(left[0].PIDs, []int{ghosts[0].PID}) {
		t.Fatalf("%+v, %v; there is %+v", left, err, ghosts)
	}
	if reaped, err := Reap(t.Context(), s.StateDir); err != nil || len(reaped) != 1 {
		t.Errorf("%+v, %v", reaped, err)
	}
}

// TestFamilyHasNoStrangers holds that nobody is taken for a relative who is none: other children of this program, and this
// program itself.
func TestFamilyHasNoStrangers(t *testing.T) {
	other := exec.Command(fakeEngine, "-slow", "1h")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	p := startFake(t, fakeSpec(t, "-child", "session"))
	waitReady(t, p)
	eventually(t, "its child", func() bool { return len(p.family.living(true)) == 2 })
	for _, m := range p.family.living(true) {
		if m.pid == other.Process.Pid || m.pid == os.Getpid() {
			t.Errorf("pid %d is taken for one of the engine's", m.pid)
		}
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := readProcess(other.Process.Pid); !ok {
		t.Error("the other one has ended")
	}
	_, _ = other.Process.Kill(), other.Wait()
}
