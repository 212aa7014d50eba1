package main

import (
	"context"
	"path/filepath"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report/build"
)

// comparisons reads those that were made and saved before. The runs behind them need not be in the store.
func (r *reporting) comparisons() error {
	for _, name := range r.c.StringSlice("comparison") {
		b, err := r.file(name)
		if err != nil {
			return err
		}
		saved, err := compare.Read(b)
		if err != nil {
			return &exchange.Error{Op: "read comparison", Object: name, Cause: err, Hint: "--comparison takes what compare --json printed"}
		}
		r.addComparison(build.Compared{Reference: runLabel(saved.Reference), Candidate: runLabel(saved.Candidate), Report: saved, File: filepath.Base(name)})
	}
	return nil
}

// compare holds one run against another. What the evidence does not bear is in the report as such, and no error.
func (r *reporting) compare(store reading, reference, candidate *compare.Side, labels [2]string) error {
	o := compare.Options{Margin: compare.DefaultMargin}
	for _, why := range r.c.StringSlice("accept") {
		o.Accept = append(o.Accept, exchange.Reason(why))
	}
	result, err := compare.Compare(r.c.Context, reference, candidate, o, func(ctx context.Context, id exchange.ID) (compare.Answer, error) {
		d, err := store.Detail(ctx, id)
		return compare.AnswerOf(&d), err
	})
	if err != nil {
		return err
	}
	r.addComparison(build.Compared{Reference: labels[0], Candidate: labels[1], Report: result})
	return nil
}

// addComparison adds one to the evidence.
func (r *reporting) addComparison(c build.Compared) {
	if c.Report.Pairing.Pairs == 0 {
		c.Report, c.Failed = nil, "no requests of the two belong together"
	}
	r.evidence.Comparisons = append(r.evidence.Comparisons, c)
}
