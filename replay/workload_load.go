package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// maxHeld bounds the bodies that a workload read from a file holds in memory, in bytes. A larger one belongs in a store.
const maxHeld = 2 << 30

// Check reads the whole file, holds that all of it is in order, and says what is in it. Nothing is to be sent or stored
// of a file that was not checked. The error names line, field and value.
func (f *File) Check(ctx context.Context) (*FileSummary, error) {
	s := &FileSummary{}
	ids := map[string]int{}
	info, err := f.each(ctx, func(e *entry) error {
		s.Items++
		if e.Exchange != nil {
			s.Answers++
		}
		return unique(ids, e.Item.ID, s.Items)
	})
	if err != nil {
		return nil, f.fail(err)
	}
	if s.Items == 0 {
		return nil, f.fail(fmt.Errorf("%w: there is no request in it", exchange.ErrMiss))
	}
	s.Run, s.Pick, s.Whole, s.Notes = info.run, info.pick, info.whole, info.notes
	return s, nil
}

// maxItems bounds the requests of one file: their names alone would fill the memory.
const maxItems = 16 << 20

// unique holds that no id stands twice in a file, and that they are not too many.
func unique(ids map[string]int, id string, n int) error {
	if first, ok := ids[id]; ok {
		return &LineError{Unit: "item", N: n, Field: "id", Value: id, Why: fmt.Sprintf("item %d has it already", first)}
	}
	if n > maxItems {
		return fmt.Errorf("%w: there are more than %d requests in it; take a part of it", errTooLarge, maxItems)
	}
	ids[id] = n
	return nil
}

// FileSummary is what a file holds.
type FileSummary struct {
	Items   int           // requests
	Answers int           // of them with what was answered
	Run     *exchange.Run // it was exported from; nil when it does not say
	Pick    string        // what of that run it holds; "" for all
	Whole   bool          // all that was recorded of that run is in it
	Notes   []string
}

// Load is the workload of the file. A line that is not in order refuses the whole file, with line, field and value.
func (f *File) Load(ctx context.Context) (*Workload, error) {
	w := &Workload{Name: strings.TrimSpace(f.Name)}
	ids, held, cut := map[string]int{}, int64(0), 0
	info, err := f.each(ctx, func(e *entry) error {
		if x := e.Exchange; x != nil && !x.Request.Body.Whole() {
			cut++
			return nil
		}
		if held += int64(len(e.Item.Body)); held > maxHeld {
			return fmt.Errorf("its bodies are larger than the %d MiB that are held in memory; import it into a store and replay the run", maxHeld>>20)
		}
		e.Item.Response = responseOf(e.Item.Target, e.Exchange)
		w.Items = append(w.Items, e.Item)
		return unique(ids, e.Item.ID, len(w.Items)+cut)
	})
	if err != nil {
		return nil, f.fail(err)
	}
	if len(w.Items) == 0 {
		return nil, f.fail(fmt.Errorf("%w: there is no request in it that can be sent", exchange.ErrMiss))
	}
	w.Source, w.Notes = "file "+w.Name, info.notes
	if info.run != nil {
		w.Source = "run " + string(info.run.ID) + " from file " + w.Name
		if info.run.Name != "" {
			w.Name = info.run.Name
		}
	}
	if cut > 0 {
		w.Notes = append(w.Notes, count(cut, "request was", "requests were")+" recorded in part and left out")
	}
	w.arrange()
	return w, nil
}
