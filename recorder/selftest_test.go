package recorder

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func instrumentOf(name string, at time.Time) exchange.Instrument {
	us := 42.5
	return exchange.Instrument{
		ID: exchange.NewID(at), Time: at, Harness: "test", Host: exchange.Host{Name: &name, OS: "linux", Arch: "amd64", Cores: 2, MaxProcs: 2},
		Noise: []exchange.NoiseFloor{
			{Load: exchange.LoadIdle, Streams: 1, US: &us},
			{Load: exchange.LoadBusy, Streams: 1, Reason: "below_sample_floor"},
		},
	}
}

// TestSelftestIsKeptByHost holds that each machine has its own newest selftest, whole, and that it outlives the owner.
func TestSelftestIsKeptByHost(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	s := openStore(t, dir, Options{})
	a, b := instrumentOf("a", at), instrumentOf("b", at)
	newer := instrumentOf("a", at.Add(time.Hour))
	for _, i := range []exchange.Instrument{a, b, newer} {
		if err := s.PutSelftest(i, json.RawMessage(`{"schema":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	for _, want := range []exchange.Instrument{newer, b} {
		got, err := s.Selftest(want.Host.Fingerprint())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(Selftest{Version: selftestVersion, Instrument: want, Report: json.RawMessage(`{"schema":1}`)}, got); d != "" {
			t.Errorf("selftest (-want +got):\n%s", d)
		}
	}
	if _, err := s.Selftest("host1:another"); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("of a machine without one: %v", err)
	}
}

// TestRunCarriesTheSelftestOfItsHost holds that a run has a copy, with its age, and that later selftests do not change it.
func TestRunCarriesTheSelftestOfItsHost(t *testing.T) {
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	i := instrumentOf("a", at)
	s := openStore(t, t.TempDir(), Options{Host: i.Host.Fingerprint()})
	before := closeWriter(t, newWriter(t, s, exchange.Run{Started: at.Add(-time.Minute)}, WriterOptions{}))
	if err := s.PutSelftest(i, nil); err != nil {
		t.Fatal(err)
	}
	run := closeWriter(t, newWriter(t, s, exchange.Run{Started: at.Add(2 * time.Hour)}, WriterOptions{}))
	if err := s.PutSelftest(instrumentOf("a", at.Add(3*time.Hour)), nil); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Run(string(run.ID))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(i.At(at.Add(2*time.Hour)), stored.Instrument); d != "" {
		t.Errorf("instrument (-want +got):\n%s", d)
	}
	if age := stored.Instrument.AgeS; age == nil || *age != 7200 {
		t.Errorf("age %v s, want 7200", age)
	}
	if old, err := s.Run(string(before.ID)); err != nil || old.Instrument != nil {
		t.Errorf("a run from before the selftest has %+v, %v", old.Instrument, err)
	}
}

// TestUnreadableSelftestStopsNoRun holds that a selftest of a newer build, or a damaged one, is left where it is and told.
func TestUnreadableSelftestStopsNoRun(t *testing.T) {
	for name, value := range map[string]string{"newer": `{"version":99}`, "damaged": `{"version":`} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			s := openStore(t, t.TempDir(), Options{Host: "host1:x", Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := s.update(func(txn *badger.Txn) error { return txn.Set(selftestKey("host1:x"), []byte(value)) }); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Selftest("host1:x"); !errors.Is(err, exchange.ErrDamaged) {
				t.Errorf("error %v", err)
			}
			if run := closeWriter(t, newWriter(t, s, exchange.Run{}, WriterOptions{})); run.Instrument != nil || run.State != exchange.RunComplete {
				t.Errorf("run %+v", run)
			}
			if !strings.Contains(log.String(), "without the selftest") {
				t.Errorf("nothing was told: %q", log.String())
			}
		})
	}
}

func TestSelftestOfAClosedStore(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSelftest(exchange.Instrument{}, nil); !errors.Is(err, errClosed) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Selftest("x"); !errors.Is(err, errClosed) || errors.Is(err, exchange.ErrMiss) {
		t.Errorf("read: %v", err)
	}
}
