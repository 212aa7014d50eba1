package recorder

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// childSeparator is the first argument of a test binary that is to be the child of a kill test.
const childSeparator = "record-until-killed"

// TestChildRecords is the child: it records and prints the id of every acknowledged record until it is killed. As a
// test of its own it does nothing.
func TestChildRecords(t *testing.T) {
	if flag.Arg(0) != childSeparator {
		return
	}
	s, err := Open(flag.Arg(1), Options{FreeSpace: plenty})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.NewWriter(exchange.Run{Name: "killed"}, WriterOptions{
		Workers: 2, QueueBytes: 8 << 20, OnStored: func(s exchange.Summary) { fmt.Println("ack", s.ID) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(0); ; i++ {
		pieces := answer(20, i)
		if i%60 == 0 { // now and then one of several chunks
			pieces = append(pieces, strings.Repeat(fmt.Sprint("blob", i), 200<<10))
		}
		for !w.Offer(streamed(fmt.Sprintf(`{"i":%d}`, i), pieces...)) {
			// The queue is full: being killed then is what this is for.
		}
	}
}

// recordUntilKilled runs the child on dir, kills it after n acknowledgements and gives all that came.
func recordUntilKilled(t *testing.T, dir string, n int) []exchange.ID {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestChildRecords$", childSeparator, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []exchange.ID
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "ack "); ok && exchange.ValidID(id) {
			ids = append(ids, exchange.ID(id))
		} else {
			t.Logf("child: %s", lines.Text())
		}
		if len(ids) == n {
			if err := cmd.Process.Kill(); err != nil { // what was acknowledged before it dies is still read
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	if len(ids) < n {
		t.Fatalf("%d acknowledgements, want %d", len(ids), n)
	}
	return ids
}

// TestKillLosesNothingAcknowledged holds the promise of the store, and field report RR-17: after a kill the store
// opens without options, every acknowledged record is there, and what was partial is told once.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	var acked []exchange.ID
	for round := range 3 {
		acked = append(acked, recordUntilKilled(t, dir, 40+round*97)...)
		if o, ok := ReadOwner(dir); ok {
			t.Errorf("a dead owner is named: %+v", o)
		}
		s, err := Open(dir, Options{FreeSpace: plenty})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range acked {
			if _, _, err := s.Exchange(id); err != nil {
				t.Errorf("acknowledged record lost: %v", err)
			}
		}
		run, err := s.Run("killed")
		if err != nil || run.State != exchange.RunOpen || run.Ended != nil {
			t.Errorf("run %+v, %v", run, err)
		}
		t.Logf("round %d: %d acknowledged in all, recovery %+v, check %+v", round, len(acked), s.Recovered(), mustCheck(t, s))
		closeChecked(t, s)
	}
}

// TestRecoveryDropsPartialRecords writes what a process leaves that dies between the blobs and the index entries.
func TestRecoveryDropsPartialRecords(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	whole := streamed(`{"a":1}`, "whole")
	w := newWriter(t, s, exchange.Run{Name: "r"}, WriterOptions{})
	w.Offer(whole)
	w.drain(t.Context())
	p, err := newPreparer(w)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := p.prepare(&queued{x: noise(chunkSize+maxInline, 1), seq: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.builder.build([]*record{lost})
	todo, blobs := w.newBlobs([]*record{lost})
	todo = append(pending{{ID: whole.ID, Blobs: []digest{sum256([]byte("whole"))}}}, todo...)
	if err := w.writeBlobs(todo, blobs); err != nil {
		t.Fatal(err)
	}
	put(t, s, pruneKey(exchange.NewID(day)), nil)
	if report := mustCheck(t, s); report.StaleBlobs != 1 {
		t.Errorf("report %+v", report)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	if r := s.Recovered(); r.Partial != 1 || len(r.Runs) != 1 || r.Runs[0] != w.run.ID || len(r.Pruned) != 1 {
		t.Errorf("recovery %+v", r)
	}
	if report := mustCheck(t, s); report.StaleBlobs != 0 || report.Exchanges != 1 || report.Blobs != 2 {
		t.Errorf("report %+v", report)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = openStore(t, dir, Options{}); s.Recovered().Partial != 0 {
		t.Error("told twice")
	}
	put(t, s, pendingKey(w.run.ID), []byte("{"))
	closeChecked(t, s)
	if _, err := Open(dir, Options{FreeSpace: plenty}); err == nil {
		t.Error("a pending batch that cannot be read was passed over")
	}
	db, err := badger.Open(badgerOptions(filepath.Join(dir, exchangesDir), &Options{}))
	if err != nil {
		t.Fatalf("the failed open kept the lock: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
