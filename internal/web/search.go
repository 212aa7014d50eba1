package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// mostHits is where a search ends.
const mostHits = 200

// found is one line of a search: how far it is, or a row that has the text, or the end.
type found struct {
	Looked int    `json:"looked"` // exchanges so far
	Of     int    `json:"of"`
	Hits   int    `json:"hits"`
	Row    string `json:"row,omitempty"` // markup of a row of the table
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
	e := searching{s: s, w: w, enc: json.NewEncoder(w), needles: needles(f.Text)}
	if err := e.run(r.Context(), x, &f); err != nil {
		e.tell(found{Error: err.Error(), Done: true})
	}
	return nil
}

// searching is a search under way.
type searching struct {
	s       *Server
	w       http.ResponseWriter
	enc     *json.Encoder
	needles [][]byte
	looked  int
	of      int
	hits    int
}

func (e *searching) tell(f found) {
	f.Looked, f.Of, f.Hits = e.looked, e.of, e.hits
	_ = e.enc.Encode(f)                         // the context ends when the reader is gone
	_ = http.NewResponseController(e.w).Flush() // as above
}

// told is how often a search tells how far it is, in exchanges.
const told = 100

func (e *searching) run(ctx context.Context, x *index, f *filter) error {
	x.mu.Lock()
	x.sort()
	matched := x.matched(f)
	rows := make([]row, 0, len(matched))
	for _, i := range matched {
		rows = append(rows, x.row(&x.entries[i]))
	}
	x.mu.Unlock()
	e.of = len(rows)
	for i := range rows {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		hit, err := e.has(ctx, exchange.ID(rows[i].ID))
		if err != nil && !errors.Is(err, exchange.ErrMiss) { // pruned meanwhile
			return err
		}
		e.looked++
		switch {
		case hit:
			e.hits++
			var b bytes.Buffer
			if err := e.s.pages["run"].ExecuteTemplate(&b, "row", rows[i]); err != nil {
				return err
			}
			e.tell(found{Row: b.String()})
		case e.looked%told == 0:
			e.tell(found{})
		}
		if e.hits == mostHits {
			break
		}
	}
	e.tell(found{Done: true})
	return nil
}

// has reads an exchange and looks for the text. It waits for a place among those that may be read whole.
func (e *searching) has(ctx context.Context, id exchange.ID) (bool, error) {
	select {
	case e.s.whole <- struct{}{}:
		defer func() { <-e.s.whole }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	x, _, err := e.s.o.Store.Exchange(id)
	if err != nil {
		return false, err
	}
	request, _ := plainBody(x.Request.Headers, x.Request.Body)
	if e.in(request) {
		return true, nil
	}
	answer, _ := plainBody(x.Response.Headers, x.Response.Body)
	if e.in(answer) {
		return true, nil
	}
	return e.inTexts(wire.Parse(x)), nil
}

// inTexts looks into the texts of the answer, which its events hold in pieces.
func (e *searching) inTexts(t *wire.Transcript) bool {
	for _, c := range t.Choices {
		for _, text := range []string{c.Text, c.Reasoning, c.Refusal} {
			if e.in([]byte(text)) {
				return true
			}
		}
		for _, call := range c.ToolCalls {
			if e.in([]byte(call.Name)) || e.in([]byte(call.Arguments)) {
				return true
			}
		}
	}
	return false
}

func (e *searching) in(text []byte) bool {
	text = bytes.ToLower(text)
	for _, n := range e.needles {
		if bytes.Contains(text, n) {
			return true
		}
	}
	return false
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
