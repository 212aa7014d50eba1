package recorder

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestDescribeIsStoredWithTheRun(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{Mode: "record"}, WriterOptions{Derive: deriveStub})
	first := exchange.Deployment{Upstream: "engine", Why: exchange.ReadAtStart, Identity: exchange.Identity{Engine: "vllm", Basis: "probe"}}
	again := first
	again.Why, again.Version = exchange.ReadAtRestart, "0.9.1"
	if !w.Describe(first) {
		t.Fatal("an open run was not described")
	}
	before := w.Run()
	if !w.Describe(again) {
		t.Fatal("an open run was not described again")
	}
	if len(before.Deployments) != 1 {
		t.Errorf("a copy of the run changed with it: %d deployments", len(before.Deployments))
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w.Describe(first) {
		t.Error("a closed run was described")
	}
	run, err := s.Run(string(w.Run().ID))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]exchange.Deployment{first, again}, run.Deployments); diff != "" {
		t.Errorf("stored deployments (-want +got):\n%s", diff)
	}
	if run.Identity != first.Identity {
		t.Errorf("the run's identity is %+v, want %+v", run.Identity, first.Identity)
	}
}

// describedSeparator is the first argument of a test binary that is to be the child of the test below.
const describedSeparator = "describe-until-killed"

// TestChildDescribes is the child: it begins a run, describes it, says so and waits to be killed. As a test of its own it
// does nothing.
func TestChildDescribes(t *testing.T) {
	if flag.Arg(0) != describedSeparator {
		return
	}
	s, err := Open(flag.Arg(1), Options{FreeSpace: plenty})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.NewWriter(exchange.Run{Name: "described"}, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Describe(exchange.Deployment{Upstream: "engine", Identity: exchange.Identity{Engine: "vllm", Basis: "probe"}})
	fmt.Println("described")
	select {}
}

// TestKillLosesNoDescription kills a process that has described its run and recorded nothing yet.
func TestKillLosesNoDescription(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(exe, "-test.run=^TestChildDescribes$", describedSeparator, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "described" {
		t.Logf("child: %s", lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	s := openStore(t, dir, Options{})
	run, err := s.Run("described")
	if err != nil || run.State != exchange.RunOpen || run.Identity.Engine != "vllm" || len(run.Deployments) != 1 {
		t.Errorf("run %+v, %v", run, err)
	}
}

// TestDescribeAndCommitsKeepEachOther describes a run while its records are committed: what is stored at the end has all
// counts and all descriptions, without the help of a closing write.
func TestDescribeAndCommitsKeepEachOther(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	const n = 60
	var acked sync.WaitGroup
	acked.Add(n)
	w := newWriter(t, s, exchange.Run{}, WriterOptions{OnStored: func(exchange.Summary) { acked.Done() }})
	var describing sync.WaitGroup
	describing.Go(func() {
		for i := range n {
			w.Describe(exchange.Deployment{Upstream: strconv.Itoa(i)})
		}
	})
	for i := range n {
		w.Offer(streamed(fmt.Sprintf(`{"i":%d}`, i), "x"))
	}
	acked.Wait()
	describing.Wait()
	runs, err := s.storedRuns()
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	if r := runs[0]; r.Counts.Stored != n || len(r.Deployments) != n || r.Bytes == 0 {
		t.Errorf("stored %d records and %d descriptions in %d bytes, want %d of each", r.Counts.Stored, len(r.Deployments), r.Bytes, n)
	}
}

// TestDescribeOnAFullDisk holds that a description which cannot be written waits for the next write of the run.
func TestDescribeOnAFullDisk(t *testing.T) {
	var full sync.Map
	s := openStore(t, t.TempDir(), Options{FreeSpace: func(string) (int64, error) {
		if _, ok := full.Load("full"); ok {
			return 0, nil
		}
		return plenty("")
	}})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{})
	full.Store("full", true)
	if !w.Describe(exchange.Deployment{Upstream: "a"}) {
		t.Error("an open run was not described")
	}
	if runs, err := s.storedRuns(); err != nil || len(runs[0].Deployments) != 0 {
		t.Errorf("a full disk was written to: %+v, %v", runs, err)
	}
	if _, err := w.Close(t.Context()); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("close on a full disk: %v", err)
	}
	full.Delete("full")
	run, err := w.Close(t.Context())
	if err != nil || len(run.Deployments) != 1 {
		t.Errorf("run %+v, %v", run, err)
	}
}
