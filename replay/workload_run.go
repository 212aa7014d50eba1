package replay

import (
	"iter"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Source is where recorded exchanges are read from.
type Source interface {
	// Summaries are the rows of a run in the order of acceptance. The first error ends the sequence.
	Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error]
	// Exchange is one whole exchange, credentials masked, with its row.
	Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error)
}
