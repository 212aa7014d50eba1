package web

import (
	"net/http"
	"net/url"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// takeRow is a recording of a request.
type takeRow struct {
	ID   string
	Run  string
	Seq  uint64
	Self bool // it is the exchange that the page is about
}

// takesBody is a page of the recordings of one request.
type takesBody struct {
	Key   string
	With  string // id of the exchange that the others are set beside, "" for none
	Takes []takeRow
	First bool // it is the first page
	next  string
}

// Next is the address of the page behind, "" where there is none.
func (b *takesBody) Next() string {
	if b.next == "" {
		return ""
	}
	return b.address("after", b.next)
}

// Begin is the address of the first page.
func (b *takesBody) Begin() string { return b.address() }

func (b *takesBody) address(more ...string) string {
	q := url.Values{}
	if b.With != "" {
		q.Set("with", b.With)
	}
	if len(more) == 2 {
		q.Set(more[0], more[1])
	}
	return takesAddress(b.Key) + "?" + q.Encode()
}

func takesAddress(key string) string { return "/takes/" + url.PathEscape(key) }

// takesPage lists the recordings of a request.
func (s *Server) takesPage(w http.ResponseWriter, r *http.Request) error {
	began := clock.Now()
	takes, next, err := s.takePage(r, pageRows)
	if err != nil {
		return err
	}
	b := &takesBody{Key: r.PathValue("key"), First: r.URL.Query().Get("after") == "", next: next}
	if with := r.URL.Query().Get("with"); exchange.ValidID(with) {
		b.With = with
	}
	b.Takes = s.takeRows(takes, exchange.ID(b.With))
	return s.show(w, began, frame{Title: "takes", Nav: "runs", Body: b}, "takes", wholePage)
}

// takesOf finds recordings of the same request, the first ones.
func (s *Server) takesOf(b *exchangeBody) error {
	if b.Row.Key == "" {
		return nil
	}
	takes, more, err := s.o.Store.TakesAfter(b.Row.Key, recorder.Take{}, takesShown)
	if err != nil {
		return err
	}
	b.Takes, b.MoreTakes = s.takeRows(takes, b.Detail.ID), more
	return nil
}

// TakesPage is the address of all of them.
func (b *exchangeBody) TakesPage() string {
	return takesAddress(b.Row.Key) + "?with=" + string(b.Detail.ID)
}

// takeRows are takes with the names of their runs.
func (s *Server) takeRows(takes []recorder.Take, self exchange.ID) (out []takeRow) {
	names := map[exchange.ID]string{}
	for _, t := range takes {
		name, ok := names[t.Run]
		if !ok {
			name = string(t.Run)
			if run, err := s.o.Store.Run(string(t.Run)); err == nil {
				name = runName(&run)
			}
			names[t.Run] = name
		}
		out = append(out, takeRow{ID: string(t.ID), Run: name, Seq: t.Seq, Self: t.ID == self})
	}
	return out
}
