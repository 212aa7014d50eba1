package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The bounds of the sparklines of stored exchanges.
const (
	keptSparks = 2000    // about a kilobyte each
	sparkBody  = 1 << 20 // bytes of an answer whose events are read; of a longer one the reads are shown
)

// sparks keeps the sparklines of stored exchanges that were drawn last: pages of a run are turned back and forth, and no
// record changes.
type sparks struct {
	mu    sync.Mutex
	byID  map[exchange.ID]chart.SVG
	order []exchange.ID // the oldest first
}

func newSparks() *sparks { return &sparks{byID: map[exchange.ID]chart.SVG{}} }

func (k *sparks) get(id exchange.ID) (chart.SVG, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	svg, ok := k.byID[id]
	return svg, ok
}

func (k *sparks) put(id exchange.ID, svg chart.SVG) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.byID[id]; ok {
		return
	}
	if len(k.order) == keptSparks {
		delete(k.byID, k.order[0])
		k.order = k.order[1:]
	}
	k.byID[id], k.order = svg, append(k.order, id)
}

// drawn is a line of the answer to a page that asks for sparklines.
type drawn struct {
	ID  string    `json:"id"`
	SVG chart.SVG `json:"svg"` // markup
}

// sparkPart draws the sparklines of the exchanges that a page shows, and tells each as it is made. The pages themselves come
// without: they need each exchange whole.
func (s *Server) sparkPart(w http.ResponseWriter, r *http.Request) error {
	ids := r.URL.Query()["id"]
	if len(ids) > pageRows {
		return fmt.Errorf("%w: sparklines are drawn for at most %d exchanges at a time", exchange.ErrUsage, pageRows)
	}
	for _, id := range ids {
		if !exchange.ValidID(id) {
			return fmt.Errorf("%w: id=%q is not the id of an exchange", exchange.ErrUsage, oneLine(id, 40))
		}
	}
	w.Header().Set("Content-Type", jsonLines)
	enc, control := json.NewEncoder(w), http.NewResponseController(w)
	for _, id := range ids {
		svg, err := s.spark(r, exchange.ID(id))
		if err != nil { // it is damaged, or was pruned: its row stands without, and its page tells
			continue
		}
		if enc.Encode(drawn{id, svg}) != nil {
			return nil // the reader is gone
		}
		_ = control.Flush() // as in fail
	}
	return nil
}

// spark is the sparkline of an exchange. It waits for a place among those who may read exchanges whole.
func (s *Server) spark(r *http.Request, id exchange.ID) (svg chart.SVG, err error) {
	if svg, ok := s.sparks.get(id); ok {
		return svg, nil
	}
	err = within(s.whole, func(http.ResponseWriter, *http.Request) error {
		x, row, err := s.o.Store.Exchange(id)
		if err == nil {
			svg = storedSpark(x, &row)
		}
		return err
	})(nil, r)
	if err == nil {
		s.sparks.put(id, svg)
	}
	return svg, err
}

// storedSpark draws when the tokens of a stored exchange came, or its reads where the answer is long.
func storedSpark(x *exchange.Exchange, row *exchange.Summary) chart.SVG {
	k := chart.Spark{Span: row.Metrics[measure.TotalWallMS].Value}
	if x.Response.Body.Kept <= sparkBody {
		k.Times = tokenTimes(x, wire.Parse(x), 0, nil)
		return k.SVG()
	}
	k.Of = "reads"
	if sent, ok := x.Timeline.SendStart.NS(); ok {
		for _, read := range x.Timeline.Reads {
			if read.Size > 0 {
				k.Times = append(k.Times, float64(read.At-sent)/1e6)
			}
		}
	}
	return k.SVG()
}
