package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// asking is one cell at a server that is up.
type asking struct {
	sitting *sitting
	cell    *matrix.Cell
	what    scenario.Scenario
	streams bool
}

// ask makes the requests of a cell. A *NotHere error says that there is nothing to ask.
func (s *sitting) ask(c *matrix.Cell, build string) (*asking, error) {
	what, err := scenario.Named(build, s.Facts().Materials)
	switch {
	case errors.Is(err, scenario.ErrNoWindow):
		return nil, &NotHere{matrix.NoMessages(err.Error() + " with --context-size, or as context of its engine")}
	case errors.Is(err, exchange.ErrUsage):
		return nil, &NotHere{matrix.NoMessages(err.Error())}
	case errors.Is(err, scenario.ErrMaterial):
		return nil, &NotHere{&matrix.Skip{Kind: matrix.SkipAsset, Reason: err.Error()}}
	case err != nil:
		return nil, err
	}
	return &asking{sitting: s, cell: c, what: what, streams: c.Stream && !what.Blocking}, nil
}

// once measures the cell once. An answer that had to use its budget and did not is asked for again, under another nonce;
// when that one is short too the cell has no decode rate.
func (a *asking) once(ctx context.Context, repeat int) (*sample, error) {
	out, err := a.wave(ctx, repeat, 0)
	if err != nil || !a.what.HalfBudget || a.fate(out, 0) != matrix.SampleAgain {
		return out, err
	}
	again, err := a.wave(ctx, repeat, 1)
	if err != nil {
		return out, err
	}
	again.warmups = append(out.warmups, again.warmups...)
	again.exchanges = append(out.exchanges, again.exchanges...)
	if a.fate(again, 1) == matrix.SampleNone {
		again.withoutRates()
	}
	return again, nil
}

func (a *asking) options() scenario.Options {
	c := a.cell
	return scenario.Options{Model: a.sitting.Facts().Model, MaxTokens: c.MaxTokens, ThinkingMaxTokens: c.MaxTokens, Stream: c.Stream, Thinking: c.Thinking}
}

// fate is what becomes of a sample: the shortest of its answers decides.
func (a *asking) fate(s *sample, attempt int) matrix.Sample {
	fate, limit := matrix.SampleCounts, a.what.MaxTokens(a.options())
	for _, n := range s.completions {
		if f := matrix.HalfBudget(&n, limit, attempt); f != matrix.SampleCounts {
			fate = f
		}
	}
	return fate
}

// wave sends the requests of the cell together and reads what came of them.
func (a *asking) wave(ctx context.Context, repeat, attempt int) (*sample, error) {
	f := a.sitting.Facts()
	how := Manner{f.Spelling, f.Changes}
	if f.ToolUse != nil && a.what.Suite == scenario.SuiteToolUse {
		how = *f.ToolUse
	}
	var out *sample
	o := replay.SuiteOptions{
		Spelling: how.Spelling, Changes: how.Changes, Session: f.Session, Salt: f.Salt, Cell: a.cell.Name, Prefix: a.cell.Name, WarmLike: true,
		Options: a.options(), Tally: a.sitting.Tally(),
		Wave: func(w *replay.SuiteWave) error {
			out = sampleOf(w, a.streams)
			return nil
		},
	}
	if attempt > 0 { // under another nonce, and so are the ids of its cases
		o.Prefix += "/again"
	}
	if attempt > 0 || f.Nonce != "" {
		o.Options.Nonce = a.cell.Nonce(f.Nonce, matrix.Asked{Repeat: repeat, Attempt: attempt})
	}
	if !a.sitting.warm {
		o.Warmup, a.sitting.warm = a.cell.Warmup, true
	}
	for i := range a.cell.Concurrency {
		o.Members = append(o.Members, scenario.Member{Scenario: a.what, Concurrency: a.cell.Concurrency, Repeat: repeat, Index: i})
	}
	suite, err := replay.NewSuite(o)
	if err != nil {
		return nil, fmt.Errorf("make requests of cell %s: %w", a.cell.Name, err)
	}
	a.sitting.suites = append(a.sitting.suites, suite)
	err = suite.Run(ctx, a.sitting.Target())
	if out != nil {
		out.warmups = suite.Warmups()
	}
	return out, err
}
