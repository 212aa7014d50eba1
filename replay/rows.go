package replay

import (
	"fmt"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Rows derives the rows of a run that was recorded before: what an exchange says by itself, and what the run says of it.
// The same exchange of the same run has the same row, whoever derives it and when. It is safe for concurrent use.
type Rows struct {
	models *engines.ModelWatch
}

// RowsOf are the rows of a run.
func RowsOf(run *exchange.Run) (*Rows, error) {
	catalog, err := engines.Builtin() // what is recorded needs no config
	if err != nil {
		return nil, fmt.Errorf("read engines: %w", err)
	}
	return &Rows{catalog.ModelsOf(run)}, nil
}

// Of is the row of an exchange of the run, of which a is the analysis.
func (r *Rows) Of(x *exchange.Exchange, a *measure.Analysis) exchange.Summary {
	return measure.Summarize(x, a).WithFlags(r.models.Flags(engines.AnsweredBy(x, a.Request.Model, a.Transcript.Model)))
}
