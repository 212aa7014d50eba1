package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Held are the recorded exchanges of a file, in memory: a Source of one run.
type Held struct {
	Run   exchange.Run // the one that the file names, or one made for it
	Notes []string     // what the file leaves out
	list  []*exchange.Exchange
	byID  map[exchange.ID]*exchange.Exchange
}

// Hold reads the recorded exchanges of a file, answers included. A file that is not in order is refused whole, with line,
// field and value, and so is one whose bodies are larger than what may be held in memory.
func (f *File) Hold(ctx context.Context) (*Held, error) {
	h := &Held{byID: map[exchange.ID]*exchange.Exchange{}}
	held, ids := int64(0), map[string]int{}
	info, err := f.each(ctx, func(e *entry) error {
		rec, err := e.record()
		if err != nil {
			return err
		}
		x := rec.Exchange
		if held += x.Request.Body.Kept + x.Response.Body.Kept; held > maxHeld {
			return fmt.Errorf("its bodies are larger than the %d MiB that are held in memory; import it into a store and serve the run", maxHeld>>20)
		}
		if err := unique(ids, e.Item.ID, len(h.list)+1); err != nil {
			return err
		}
		h.put(x)
		return nil
	})
	if err != nil {
		return nil, f.fail(err)
	}
	if len(h.list) == 0 {
		return nil, f.fail(fmt.Errorf("%w: there is no request in it", exchange.ErrMiss))
	}
	h.Notes = info.notes
	if info.run != nil {
		h.Run = *info.run
	}
	if h.Run.ID == "" {
		h.Run.ID, h.Run.Name = exchange.NewID(h.list[0].Timeline.Wall), f.Name
	}
	return h, nil
}

// put keeps an exchange under an id of its own, masked as a store does.
func (h *Held) put(x *exchange.Exchange) {
	redact.Exchange(x)
	x.Seq = uint64(len(h.list) + 1)
	for x.ID == "" || h.byID[x.ID] != nil {
		x.ID = exchange.NewID(time.Unix(0, 0).Add(time.Duration(x.Seq) * time.Millisecond))
	}
	h.list, h.byID[x.ID] = append(h.list, x), x
}

// Summaries are the rows of the exchanges, as far as they tell what is needed to find one: neither figures nor outcome.
func (h *Held) Summaries(exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for _, x := range h.list {
			if !yield(rowOf(x), nil) {
				return
			}
		}
	}
}

// rowOf is the part of a row that the request and the facts of an exchange tell.
func rowOf(x *exchange.Exchange) exchange.Summary {
	row := exchange.Summary{
		Version: exchange.SummaryVersion, ID: x.ID, Run: x.Run, Seq: x.Seq, Key: canon.RequestKey(&x.Request).Key, Started: x.Timeline.Wall,
		Upstream: x.Upstream, Method: x.Request.Method, Path: x.Request.Target, Model: wire.RequestOf(x).Model, Status: x.Response.Status,
		End: x.End, Cause: x.Cause, State: x.State, RequestBytes: x.Request.Body.Size, ResponseBytes: x.Response.Body.Size,
		Origin: x.Origin, Item: x.Item,
	}
	if sent, ok := exchange.SentRequest(x); ok {
		row.SentKey = canon.RequestKey(&sent).Key
	}
	return row
}

// Exchange is one exchange with the same part of its row.
func (h *Held) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	x := h.byID[id]
	if x == nil {
		return nil, exchange.Summary{}, fmt.Errorf("%w: exchange %s is not in the file", exchange.ErrMiss, id)
	}
	return x, rowOf(x), nil
}
