package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

const importLine = `{"method":"POST","path":"/v1/chat/completions","body":{}}` + "\n"

// importChecked checks a file that holds before, changes it to hold after, and imports it.
func importChecked(t *testing.T, before, after string) (*importReport, *recorder.Store, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f.jsonl")
	if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	file := replay.OpenFile(name, replay.FileOptions{})
	sum, err := file.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := recorder.Open(t.TempDir(), recorder.Options{MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &importReport{lost: lostBefore(sum)}
	return r, store, r.load(context.Background(), store, file, importedRun("", file.Name, sum))
}

// TestImportOfAPartLeavesNothing holds that a file which cannot be read to its end leaves no run behind.
func TestImportOfAPartLeavesNothing(t *testing.T) {
	_, store, err := importChecked(t, importLine+importLine, importLine+"{")
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Fatalf("%v", err)
	}
	if runs, err := store.Runs(); err != nil || len(runs) != 0 {
		t.Errorf("runs %v, %v", runs, err)
	}
}

func TestImportOfAnIncompleteRunIsIncomplete(t *testing.T) {
	head := func(run string) string {
		return `{"schema":"benchproxy.workload/1","run":` + run + `,"items":1}` + "\n" + importLine + `{"end":{"items":1}}`
	}
	for _, tt := range []struct {
		run     string
		state   exchange.RunState
		dropped int64
	}{
		{`{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","name":"n","state":"complete"}`, exchange.RunComplete, 0},
		{`{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","name":"01ARZ3NDEKTSV4RRFFQ69G5FAV","state":"incomplete","counts":{"stored":1,"dropped":7}}`, exchange.RunIncomplete, 7},
		{`{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","name":"../../etc","state":"open"}`, exchange.RunIncomplete, 1},
		{`{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","state":"incomplete","replay":{"incomplete":"stopped"}}`, exchange.RunIncomplete, 0},
	} {
		r, store, err := importChecked(t, head(tt.run), head(tt.run))
		if err != nil {
			t.Fatalf("%s: %v", tt.run, err)
		}
		if r.Run.State != tt.state || r.Run.Counts.Dropped != tt.dropped || r.Run.Counts.Stored != 1 || r.Run.ID == "01ARZ3NDEKTSV4RRFFQ69G5FAV" {
			t.Errorf("%s became %+v", tt.run, r.Run)
		}
		if check, err := store.Check(context.Background()); err != nil || !check.OK() {
			t.Errorf("%s: check %+v, %v", tt.run, check, err)
		}
	}
}

func TestImportStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	name := filepath.Join(t.TempDir(), "f.jsonl")
	if err := os.WriteFile(name, []byte(importLine), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := replay.OpenFile(name, replay.FileOptions{}).Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
