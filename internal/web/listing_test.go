package web

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// rowOf is a made row.
func rowOf(seq uint64, model, path string, status int, ttft float64) exchange.Summary {
	row := exchange.Summary{ID: exchange.ID(fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ6%06d", seq)), Run: runID, Seq: seq, Started: day.Add(time.Duration(seq) * time.Second), Method: "POST", Path: path,
		Model: model, Status: status, Outcome: exchange.OutcomeComplete, Metrics: exchange.Figures{measure.TTFTMS: {Value: ttft, Basis: exchange.BasisMeasured}}}
	if status != 200 {
		row.Outcome = exchange.OutcomeUpstreamError
	}
	if ttft == 0 {
		row.Metrics[measure.TTFTMS] = exchange.Figure{Reason: "no_token_event"}
	}
	return row
}

func filled(rows ...exchange.Summary) *index {
	x := newIndex(runID)
	for i := range rows {
		x.add(&rows[i])
	}
	return x
}

func seqs(rows []row) string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprint(r.Seq))
	}
	return strings.Join(out, " ")
}

// TestFilters holds what each part of a filter takes, and in which order.
func TestFilters(t *testing.T) {
	x := filled(rowOf(1, "a", "/v1/chat/completions", 200, 30), rowOf(2, "b", "/v1/chat/completions", 200, 10), rowOf(3, "a", "/api/chat", 404, 0),
		rowOf(4, "b\x1b", "/api/chat", 503, 0), rowOf(5, "a", "/v1/chat/completions", 0, 20))
	for query, want := range map[string]string{
		"": "1 2 3 4 5", "model=a": "1 3 5", "model=none": "", "path=/api/chat": "3 4", "status=200": "1 2", "status=4xx": "3", "status=5XX": "4", "status=none": "5",
		"outcome=complete": "1 2", "outcome=upstream_error": "3 4 5", "model=a&status=200": "1", `model="b\x1b"`: "4", "sort=-seq": "5 4 3 2 1",
		"sort=ttft": "2 5 1 3 4", "sort=-ttft": "1 5 2 3 4", "from=2026-03-01T12:00:03": "3 4 5", "to=2026-03-01T12:00:02": "1 2", "from=2026-03-01T12:00:02&to=2026-03-01T12:00:03": "2 3",
		"from=2026-03-02": "", "page=2": "", "sort=prompt": "1 2 3 4 5",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readFilter(q)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if l := x.list(&f); seqs(l.Rows) != want {
			t.Errorf("%s: %s, want %s", query, seqs(l.Rows), want)
		}
		again, err := url.ParseQuery(f.query())
		if err != nil || again.Get("model") != f.Model || again.Get("sort") != f.Sort || again.Get("from") != f.From {
			t.Errorf("%s became %s", query, f.query())
		}
	}
}

// TestPagesOfAListing holds that the pages join to the whole, and what they say of themselves.
func TestPagesOfAListing(t *testing.T) {
	var rows []exchange.Summary
	for i := range 250 {
		rows = append(rows, rowOf(uint64(250-i), "m", "/p", 200, 1)) // stored in another order than accepted
	}
	x := filled(rows...)
	n := uint64(0)
	for p := 1; p <= 3; p++ {
		b := runBody{Filter: filter{Page: p, to: math.MaxInt64, statusHi: 999}}
		b.List = x.list(&b.Filter)
		for _, r := range b.List.Rows {
			if n++; r.Seq != n {
				t.Fatalf("page %d has %d where %d belongs", p, r.Seq, n)
			}
		}
		if b.Pages() != 3 || b.Last() != int(n) || (b.Prev() == "") != (p == 1) || (b.Next() == "") != (p == 3) || b.First() != (p-1)*100+1 {
			t.Errorf("page %d: %d to %d of %d pages, previous %q, next %q", p, b.First(), b.Last(), b.Pages(), b.Prev(), b.Next())
		}
	}
	if n != 250 {
		t.Errorf("%d rows", n)
	}
}

// TestOrderOfFigures holds that figures sort as their numbers do, absent ones last both ways.
func TestOrderOfFigures(t *testing.T) {
	ascending := []float32{float32(math.Inf(-1)), -5, -0.5, 0, 0.25, 1, 3e10, float32(math.Inf(1))}
	for i := range ascending[1:] {
		a, b := shown{ascending[i], 1}, shown{ascending[i+1], 2}
		if !(a.order(false) < b.order(false)) || !(a.order(true) > b.order(true)) {
			t.Errorf("%v and %v", a, b)
		}
		if absent := (shown{}).order(false); absent <= b.order(false) || (shown{}).order(true) <= a.order(true) {
			t.Errorf("an absent figure is before %v", b)
		}
	}
}

// TestIndexFollowsWhatIsStored holds that a run that grows while its index is made is in it whole, each row once.
func TestIndexFollowsWhatIsStored(t *testing.T) {
	var rows []exchange.Summary
	for i := range 5000 {
		rows = append(rows, rowOf(uint64(i+1), "m", "/p", 200, 1))
	}
	reading, proceed := make(chan struct{}, 1), make(chan struct{})
	once := true
	s := newIndexes(&fake{rows: rows[:3000], pause: func() {
		if once {
			once = false
			reading <- struct{}{}
			<-proceed
		}
	}})
	defer s.Close()
	run := exchange.Run{ID: runID, Counts: exchange.RunCounts{Stored: 3000}}
	x := s.of(&run)
	<-reading
	for i := 2000; i < 4000; i++ { // some of them are read as well
		s.stored(&rows[i])
	}
	close(proceed)
	<-x.done
	for i := 4000; i < 5000; i++ {
		s.stored(&rows[i])
	}
	l := x.list(&filter{Page: 50, to: math.MaxInt64, statusHi: 999})
	if l.Matched != 5000 || l.Rows[99].Seq != 5000 {
		t.Errorf("%d rows", l.Matched)
	}
	if s.of(&run) != x || s.have(runID) != x {
		t.Error("the index was made again")
	}
}

// TestIndexesAreBounded holds that old indexes make room, that a run beyond the bound has none, and that one that cannot be
// read is not kept.
func TestIndexesAreBounded(t *testing.T) {
	s := newIndexes(&fake{})
	defer s.Close()
	half := exchange.RunCounts{Stored: indexRows/2 + 1}
	made := map[exchange.ID]*index{}
	for _, id := range []exchange.ID{"a", "b", "c"} {
		x := s.of(&exchange.Run{ID: id, Counts: half})
		<-x.done
		x.mu.Lock()
		x.entries = make([]entry, half.Stored)
		x.mu.Unlock()
		made[id] = x
	}
	if s.have("a") != nil || s.have("b") != nil || s.have("c") != made["c"] {
		t.Error("the oldest indexes are still held")
	}
	if s.of(&exchange.Run{ID: "huge", Counts: exchange.RunCounts{Stored: indexRows + 1}}) != nil {
		t.Error("a run beyond the bound has an index")
	}
	broken := newIndexes(&fake{broken: errors.New("page is torn")})
	x := broken.of(&exchange.Run{ID: runID})
	<-x.done
	broken.Close()
	if x.err == nil || broken.byRun[runID] != nil {
		t.Error("an index that broke is kept")
	}
	if broken.of(&exchange.Run{ID: "later"}) != nil {
		t.Error("an index is begun after the end")
	}
}

// slow is a store whose rows come only when it is let go.
type slow struct {
	*fake
	free chan struct{}
}

func (s slow) SummariesAfter(run exchange.ID, seq uint64) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		n := 0
		for row, err := range s.fake.SummariesAfter(run, seq) {
			if n++; n > pageRows {
				<-s.free
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestPageComesBeforeItsIndex holds that the first rows of a large run are shown at once, with how far the rest is.
func TestPageComesBeforeItsIndex(t *testing.T) {
	var rows []exchange.Summary
	for i := range 300 {
		rows = append(rows, rowOf(uint64(i+1), "m", "/p", 200, 1))
	}
	free := make(chan struct{})
	addr := serve(t, withStore(&fake{rows: rows}))
	o := withStore(nil)
	o.Store = slow{&fake{rows: rows}, free}
	late := serve(t, o)
	status, body := get(t, late, "/runs/r?page=3", "")
	if status != 200 || !strings.Contains(body, `data-swap="main"`) || !strings.Contains(body, string(rows[0].ID)) {
		t.Errorf("%d %.300s", status, body)
	}
	close(free)
	_, made := page(t, addr, "/runs/r?page=3")
	_, waited := page(t, late, "/runs/r?page=3")
	for _, b := range []string{made, waited} {
		if !strings.Contains(b, string(rows[200].ID)) || strings.Contains(b, string(rows[0].ID)) {
			t.Error("the third page has other rows")
		}
	}
	broken := serve(t, withStore(&fake{rows: rows[:3], broken: errors.New("page is torn")}))
	if status, body := page(t, broken, "/runs/r"); status != 500 || !strings.Contains(body, "page is torn") {
		t.Errorf("a broken run: %d %.200s", status, body)
	}
}
