package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

type runsBody struct{ Runs []exchange.Run }

// runsPage lists the runs, the newest first.
func (s *Server) runsPage(w http.ResponseWriter, _ *http.Request) error {
	began := clock.Now()
	runs, err := s.o.Store.Runs()
	if err != nil {
		return err
	}
	slices.Reverse(runs)
	return s.show(w, began, frame{Title: "runs", Nav: "runs", Body: runsBody{runs}}, "runs", wholePage)
}

// runBody is one run with a page of its exchanges.
type runBody struct {
	Run     exchange.Run
	Filter  filter
	List    listing
	Indexed int  // rows read so far, while Partial
	Partial bool // the index is in the making: the rows are the first ones, and no filter works
	TooMany bool // the run is too large for one
	Err     string
}

// indexPatience is how long a page waits for the index of its run before it comes without.
const indexPatience = 25 * time.Millisecond

// runPage is a page of a run.
func (s *Server) runPage(w http.ResponseWriter, r *http.Request) error {
	began := clock.Now()
	f, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	run, err := s.o.Store.Run(r.PathValue("run"))
	if err != nil {
		return err
	}
	b := runBody{Run: run, Filter: f}
	if err := s.fillRun(r.Context(), &b); err != nil {
		return err
	}
	return s.show(w, began, frame{Title: runName(&run), Nav: "runs", Body: &b}, "run", wholePage)
}

func (s *Server) fillRun(ctx context.Context, b *runBody) error {
	x := s.indexes.of(&b.Run)
	if x == nil {
		b.TooMany = true
		return s.firstRows(b)
	}
	patience, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	select {
	case <-x.done:
	case <-patience.Done():
	}
	if !x.whole() {
		x.mu.Lock()
		b.Partial, b.Indexed = true, len(x.entries)
		x.mu.Unlock()
		return s.firstRows(b)
	}
	x.mu.Lock()
	err := x.err
	x.mu.Unlock()
	if err != nil {
		return err
	}
	b.List = x.list(&b.Filter)
	return nil
}

// firstRows are the first rows of the run, for a page without an index.
func (s *Server) firstRows(b *runBody) error {
	x := newIndex(b.Run.ID)
	for row, err := range s.o.Store.SummariesAfter(b.Run.ID, 0) {
		if err != nil {
			return err
		}
		x.add(&row)
		if len(x.entries) == pageRows {
			break
		}
	}
	b.List = x.list(&filter{Page: 1, to: 1<<63 - 1, statusHi: 1 << 30})
	b.List.Matched = int(b.Run.Counts.Stored)
	return nil
}

// Name is the name of the run, or its id.
func (b *runBody) Name() string { return runName(&b.Run) }

// First and Last are the numbers of the rows shown among those that match.
func (b *runBody) First() int { return min((b.Filter.Page-1)*pageRows+1, b.List.Matched) }

// Last is the number of the last row shown.
func (b *runBody) Last() int { return (b.Filter.Page-1)*pageRows + len(b.List.Rows) }

// Pages is the number of pages.
func (b *runBody) Pages() int { return max(1, (b.List.Matched+pageRows-1)/pageRows) }

// Page is the address of page n with the same filter, "" where there is none.
func (b *runBody) Page(n int) string {
	if n < 1 || n > b.Pages() || n == b.Filter.Page {
		return ""
	}
	return b.address("page", fmt.Sprint(n))
}

// Prev, Next, Begin and End are the addresses of other pages, "" where there are none.
func (b *runBody) Prev() string { return b.Page(b.Filter.Page - 1) }

// Next is the address of the page behind this one.
func (b *runBody) Next() string { return b.Page(b.Filter.Page + 1) }

// Begin is the address of the first page.
func (b *runBody) Begin() string { return b.Page(1) }

// End is the address of the last page.
func (b *runBody) End() string { return b.Page(b.Pages()) }

func (b *runBody) address(changes ...string) string {
	return "/runs/" + string(b.Run.ID) + "?" + b.Filter.query(changes...)
}

// Sorted is the address of the list sorted by a column, in the other direction where it is sorted by it already.
func (b *runBody) Sorted(column string) string {
	first, second := "-"+column, column
	if column == "seq" {
		first, second = second, first
	}
	if b.Filter.Sort == first {
		first = second
	}
	return b.address("sort", first)
}

// Direction is the mark of a column that the list is sorted by.
func (b *runBody) Direction(column string) string {
	switch cmp.Or(b.Filter.Sort, "seq") {
	case column:
		return "ascending"
	case "-" + column:
		return "descending"
	}
	return ""
}

// Without is the address of the list without any filter.
func (b *runBody) Without() string { return "/runs/" + string(b.Run.ID) }

// Filtered reports whether the filter leaves anything out.
func (b *runBody) Filtered() bool { return b.Filter.any() }

// Search is the address of the search for a text, "" without one: its rows come one by one.
func (b *runBody) Search() string {
	if b.Filter.Text == "" {
		return ""
	}
	return "/runs/" + string(b.Run.ID) + "/search?" + b.Filter.query()
}

// Percent is how far the index is.
func (b *runBody) Percent() int {
	if b.Run.Counts.Stored == 0 {
		return 0
	}
	return min(99, b.Indexed*100/int(b.Run.Counts.Stored))
}

// Query is the query of this page.
func (b *runBody) Query() string { return b.Filter.query("page", fmt.Sprint(b.Filter.Page)) }
