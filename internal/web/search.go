package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/recorder"
)

// The bounds of a search.
const (
	mostHits    = 200                    // rows that it gives
	toldEvery   = 100 * time.Millisecond // how often it tells how far it is
	roundPieces = 8                      // of a run that are read between two looks at what was found, for each core
)

// found is one line of a search: how far it is, or a row that has the text, or the end.
type found struct {
	Looked int    `json:"looked"` // exchanges so far
	Of     int    `json:"of"`
	Hits   int    `json:"hits"`
	At     int    `json:"at,omitempty"`   // place of the row in the order asked for, from 1
	Row    string `json:"row,omitempty"`  // markup of a row of the table
	Full   bool   `json:"full,omitempty"` // there are more hits than rows are given
	Done   bool   `json:"done,omitempty"`
	Error  string `json:"error,omitempty"`
}

// search looks for a text in the requests and answers that the rest of the filter takes, and tells of each hit as JSON
// lines. It ends with its reader.
func (s *Server) search(w http.ResponseWriter, r *http.Request) error {
	f, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	run, err := s.o.Store.Run(r.PathValue("run"))
	if err != nil {
		return err
	}
	x := s.indexes.of(&run)
	if x == nil {
		return errors.New("the run is too large to be searched here")
	}
	select {
	case <-x.done:
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	e := searching{s: s, w: w, enc: json.NewEncoder(w), index: x, needles: needles(f.Text), cores: 1}
	if s.o.Live == nil { // else all cores but one belong to what is measured
		e.cores = runtime.GOMAXPROCS(0)
	}
	e.seek(&f)
	if err := e.Run(r.Context()); err != nil {
		e.tell(found{Error: err.Error(), Done: true})
	}
	return nil
}

// searching is a search under way.
type searching struct {
	s       *Server
	w       http.ResponseWriter
	enc     *json.Encoder
	index   *index
	needles [][]byte
	cores   int

	sought  []soughtRow // by seq and id
	ordered bool        // hits come in the order asked for as they are found, so that the first ones are enough
	reverse bool        // in that of falling seq
	told    time.Time
	looked  int
	hits    []hit
	given   int // of hits
}

// soughtRow is a row that the filter takes.
type soughtRow struct {
	id  [26]byte
	seq uint64
	at  int32 // its place in the order asked for
}

func (a soughtRow) compare(b soughtRow) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), bytes.Compare(a.id[:], b.id[:]))
}

// hit is a row that has the text.
type hit struct {
	at  int32
	row row
}

// seek notes the rows that are searched. A figure is no order of the store: such rows are given when all were looked at.
func (e *searching) seek(f *filter) {
	x := e.index
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sort()
	for at, i := range x.matched(f) {
		e.sought = append(e.sought, soughtRow{x.entries[i].id, x.entries[i].seq, int32(at)})
	}
	name, down := strings.CutPrefix(f.Sort, "-")
	e.ordered = f.Sort == "" || sortColumns[name] < 0
	e.reverse = e.ordered && down
	slices.SortFunc(e.sought, soughtRow.compare)
}

// find is the row of an exchange, when it is sought.
func (e *searching) find(id exchange.ID, seq uint64) (at int32, ok bool) {
	want := soughtRow{seq: seq}
	copy(want.id[:], id)
	i, ok := slices.BinarySearchFunc(e.sought, want, soughtRow.compare)
	if !ok {
		return 0, false
	}
	return e.sought[i].at, true
}

func (e *searching) tell(f found) {
	f.Looked, f.Of, f.Hits = e.looked, len(e.sought), len(e.hits)
	_ = e.enc.Encode(f)                         // the context ends when the reader is gone
	_ = http.NewResponseController(e.w).Flush() // as above
	e.told = clock.Now()
}

// Run looks into the exchanges piece by piece, a few at a time on each core, and tells what it finds after each round.
func (e *searching) Run(ctx context.Context) error {
	if len(e.sought) == 0 {
		e.tell(found{Done: true})
		return nil
	}
	pieces, err := e.s.o.Store.Pieces(e.index.run)
	if err != nil {
		return err
	}
	if e.reverse {
		slices.Reverse(pieces)
	}
	for len(pieces) > 0 && !(e.ordered && len(e.hits) >= mostHits) {
		n := min(len(pieces), roundPieces*e.cores)
		if err := e.round(ctx, pieces[:n]); err != nil {
			return err
		}
		if pieces = pieces[n:]; len(pieces) == 0 {
			e.looked = len(e.sought) // with those that were removed meanwhile
		}
		if err := e.give(!e.ordered && len(pieces) == 0); err != nil {
			return err
		}
	}
	e.tell(found{Done: true, Full: len(e.hits) > e.given || e.given == mostHits && e.looked < len(e.sought)})
	return nil
}

// looks is what one core finds in a round.
type looks struct {
	looked int
	hits   []soughtRow
	lower  []byte // a body in lower case; kept for the next one
}

// round looks into pieces.
func (e *searching) round(ctx context.Context, pieces []recorder.Piece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan recorder.Piece, len(pieces))
	for _, p := range pieces {
		next <- p
	}
	close(next)
	all := make([]looks, e.cores)
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			for p := range next {
				if err := e.look(ctx, p, &all[i]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	work.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return e.gather(all)
}

// gather puts together what the cores found. A row that left the index meanwhile is left out.
func (e *searching) gather(all []looks) error {
	x := e.index
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sort()
	for _, l := range all {
		e.looked += l.looked
		for _, h := range l.hits {
			if i, ok := slices.BinarySearchFunc(x.entries, h, func(a entry, h soughtRow) int { return soughtRow{id: a.id, seq: a.seq}.compare(h) }); ok {
				e.hits = append(e.hits, hit{h.at, x.row(&x.entries[i])})
			}
		}
	}
	return nil
}

// give tells of the hits that were not told of, in order, once they are in it; else how far the search is, now and then.
func (e *searching) give(last bool) error {
	if e.ordered || last {
		fresh := e.hits[e.given:]
		slices.SortFunc(fresh, func(a, b hit) int { return cmp.Compare(a.at, b.at) })
		for _, h := range fresh[:min(len(fresh), mostHits-e.given)] {
			var b bytes.Buffer
			if err := e.s.pages["run"].ExecuteTemplate(&b, "row", h.row); err != nil {
				return err
			}
			e.given++
			e.tell(found{Row: b.String(), At: int(h.at) + 1})
		}
	}
	if clock.Since(e.told) >= toldEvery {
		e.tell(found{})
	}
	return nil
}

// look goes through one piece. It waits for a place among those who may read exchanges whole.
func (e *searching) look(ctx context.Context, p recorder.Piece, l *looks) error {
	select {
	case e.s.whole <- struct{}{}:
		defer func() { <-e.s.whole }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := e.s.o.Store.ReadPiece(p, func(id exchange.ID, seq uint64) bool {
		_, ok := e.find(id, seq)
		return ok
	}, func(x *exchange.Exchange) error {
		l.looked++
		if e.has(x, l) {
			at, _ := e.find(x.ID, x.Seq)
			h := soughtRow{seq: x.Seq, at: at}
			copy(h.id[:], x.ID)
			l.hits = append(l.hits, h)
		}
		return context.Cause(ctx)
	})
	if errors.Is(err, exchange.ErrMiss) { // pruned meanwhile
		return nil
	}
	return err
}

// has reports whether the text is in an exchange.
func (e *searching) has(x *exchange.Exchange, l *looks) bool {
	request, _ := plainBody(x.Request.Headers, x.Request.Body)
	if e.in(request, l) {
		return true
	}
	answer, _ := plainBody(x.Response.Headers, x.Response.Body)
	if e.in(answer, l) {
		return true
	}
	return e.mayJoin(l.lower) && e.inTexts(wire.Parse(x), l)
}

// mayJoin reports whether the texts of a body, which is in lower case, could have what the body itself has not: its events
// hold them in pieces, but every letter of a text stands in the body, or an escape.
func (e *searching) mayJoin(body []byte) bool {
	if bytes.Contains(body, []byte(`\u`)) {
		return true
	}
	for _, c := range e.needles[0] {
		if c > ' ' && c != '"' && c != '\\' && c != '/' && bytes.IndexByte(body, c) < 0 {
			return false
		}
	}
	return true
}

// inTexts looks into the texts of the answer, which its events hold in pieces.
func (e *searching) inTexts(t *wire.Transcript, l *looks) bool {
	for _, c := range t.Choices {
		for _, text := range []string{c.Text, c.Reasoning, c.Refusal} {
			if e.in([]byte(text), l) {
				return true
			}
		}
		for _, call := range c.ToolCalls {
			if e.in([]byte(call.Name), l) || e.in([]byte(call.Arguments), l) {
				return true
			}
		}
	}
	return false
}

// in leaves the text in lower case in l.
func (e *searching) in(text []byte, l *looks) bool {
	l.lower = appendLower(l.lower[:0], text)
	for _, n := range e.needles {
		if bytes.Contains(l.lower, n) {
			return true
		}
	}
	return false
}

// appendLower adds text in lower case to dst.
func appendLower(dst, text []byte) []byte {
	for i, c := range text {
		switch {
		case c >= 0x80:
			return append(dst, bytes.ToLower(text[i:])...)
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// needles are the forms in which a text can stand in a body: as it is, and as in a JSON text, with or without escapes of
// what is not ASCII. Case does not matter.
func needles(text string) [][]byte {
	out := [][]byte{bytes.ToLower([]byte(text))}
	for _, quoted := range []string{jsonQuoted(text), strconv.QuoteToASCII(text)} {
		if inner := strings.ToLower(quoted[1 : len(quoted)-1]); inner != string(out[0]) {
			out = append(out, []byte(inner))
		}
	}
	return out
}

func jsonQuoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil { // a text always has a JSON form
		return `""`
	}
	return strings.TrimSpace(b.String())
}
