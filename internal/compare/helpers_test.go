package compare

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// id makes readable ids: the side's letter and a number.
func id(side string, n int) exchange.ID { return exchange.ID(fmt.Sprintf("%s%d", side, n)) }

// entry is a complete streamed answer of 100 tokens, the n-th of its run, sent ten seconds after the one before.
func entry(side string, n int, ttftMS, decodeTPS float64) Entry {
	stop := "stop"
	e := Entry{
		Row: exchange.Summary{
			ID: id(side, n), Seq: uint64(n + 1), Key: fmt.Sprintf("h1:%016x", n), Dialect: "chat", Stream: true, Upstream: "u",
			Outcome: exchange.OutcomeComplete, Status: 200, FinishReason: &stop, Metrics: exchange.Figures{},
		},
		Request: Fields{fieldStream: "true", fieldLimit: "100", "temperature": "0", "model": `"m"`},
		clock:   exchange.ClockKernel,
	}
	e.figure(measure.TTFTMS, ttftMS)
	e.figure(measure.DecodeTPS, decodeTPS)
	e.figure(measure.TPOTMS, 1e3/decodeTPS)
	e.figure(measure.TotalWallMS, ttftMS+99e3/decodeTPS)
	e.figure(measure.WallTPS, 100/(ttftMS/1e3+99/decodeTPS))
	e.figure(measure.PrefillTPS, 50e3/ttftMS)
	e.figure(measure.PromptTokens, 50)
	e.figure(measure.CompletionTokens, 100)
	e.figure(measure.CachedTokens, 0)
	e.sent = float64(born.Unix()) + 10*float64(n)
	e.first = e.sent + ttftMS/1e3
	e.last = e.first + 99/decodeTPS
	e.end = e.last
	return e
}

func (e *Entry) figure(name string, v float64) {
	e.Row.Metrics[name] = exchange.Figure{Value: v, Unit: unitOf(name), Basis: exchange.BasisMeasured}
}

func (e *Entry) absent(name string, why exchange.Reason) {
	e.Row.Metrics[name] = exchange.Absent(unitOf(name), why)
}

// side is a complete run of n answers whose figures are near those given: the noise is within a percent and the same in
// every test, other for every side.
func side(name string, n int, ttftMS, decodeTPS float64) *Side {
	s := &Side{Run: exchange.Run{ID: exchange.ID(name), State: exchange.RunComplete, Mode: "record", Started: born, Harness: "test"}}
	for i := range n {
		wobble := 1 + 0.01*float64((i*i*(int(name[0])%7+1)+i*3)%11-5)/5
		s.Entries = append(s.Entries, entry(name, i, ttftMS*wobble, decodeTPS/wobble))
	}
	return s
}

// replayOf makes every entry of s a replay of the entry of the same number of the run named recorded.
func replayOf(s *Side, recorded string) *Side {
	s.Run.Mode = "replay"
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Row.Origin = &exchange.Origin{Exchange: id(recorded, i), Key: e.Row.Key}
		e.Row.Key = fmt.Sprintf("h1:f%015x", i) // another model name makes another key
	}
	return s
}

// noTexts is for runs whose answers are all alike: none is ever loaded.
func noTexts(context.Context, exchange.ID) (Answer, error) {
	return Answer{}, errors.New("a text was loaded")
}

func mustCompare(t *testing.T, reference, candidate *Side, o Options) *Report {
	t.Helper()
	r, err := Compare(context.Background(), reference, candidate, o, noTexts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// of is the named metric of a report.
func of(t *testing.T, r *Report, name string) Metric {
	t.Helper()
	m, ok := r.Metric(name)
	if !ok {
		t.Fatalf("the report has no %s", name)
	}
	return m
}
