package main

import (
	"slices"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// rowsAgain derives the rows of a run that was recorded before: what an exchange says by itself, and what the run says of
// it. The same exchange of the same run has the same row, whoever derives it and when.
func rowsAgain(run exchange.Run) (func(*exchange.Exchange) exchange.Summary, error) {
	catalog, err := engines.Builtin() // a store needs no config
	if err != nil {
		return nil, err
	}
	models := catalog.ModelsOf(&run)
	return func(x *exchange.Exchange) exchange.Summary {
		a := measure.Analyze(x)
		return flagged(measure.Summarize(x, a), models.Flags(engines.AnsweredBy(x, a.Request.Model, a.Transcript.Model)))
	}, nil
}

// flagged is the row with more flags.
func flagged(row exchange.Summary, flags []string) exchange.Summary {
	if len(flags) > 0 {
		row.Flags = append(slices.Clip(row.Flags), flags...)
		slices.Sort(row.Flags)
	}
	return row
}
