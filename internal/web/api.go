package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// jsonLines is the form of lists that are streamed, one JSON document a line.
const jsonLines = "application/x-ndjson"

// The sizes of the pages of lists, in entries: what is given to who asks for no size, and to who asks for more.
const (
	listPage     = 1000
	mostListPage = 10_000
)

// ExchangeList is the document of GET /api/v1/runs/{run}/exchanges: a page of the rows of a run in the order of acceptance,
// at most as many as the query's "limit" (1000 unless said, 10,000 at most) but for rows of one seq, which no page parts. Next
// is the "after" of the page behind, "" on the last one. Who accepts application/x-ndjson gets the rows alone, one a line, to
// the end of the run where no limit is said.
type ExchangeList struct {
	Schema    int                `json:"schema"`
	Exchanges []exchange.Summary `json:"exchanges"`
	Next      string             `json:"next,omitempty"`
}

// TakeList is the document of GET /api/v1/keys/{key}: a page of the recordings of one request, oldest run first. Its sizes and
// Next are as in ExchangeList.
type TakeList struct {
	Schema int             `json:"schema"`
	Takes  []recorder.Take `json:"takes"`
	Next   string          `json:"next,omitempty"`
}

func (s *Server) exchanges(w http.ResponseWriter, r *http.Request) error {
	after, err := count(r, "after")
	if err != nil {
		return err
	}
	limit, err := count(r, "limit")
	if err != nil {
		return err
	}
	run, err := s.o.Store.Run(r.PathValue("run"))
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), jsonLines) {
		return s.streamRows(w, run.ID, after, limit)
	}
	list := ExchangeList{Schema: 1, Exchanges: []exchange.Summary{}}
	list.Next, err = s.eachRow(run.ID, after, min(cmp.Or(limit, listPage), mostListPage), func(row exchange.Summary) error {
		list.Exchanges = append(list.Exchanges, row)
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, list)
}

// streamRows writes rows as JSON lines. An error after the first line ends the answer early, so that it cannot be taken for
// a whole list.
func (s *Server) streamRows(w http.ResponseWriter, run exchange.ID, after, limit uint64) error {
	w.Header().Set("Content-Type", jsonLines)
	enc, n := json.NewEncoder(w), 0
	_, err := s.eachRow(run, after, limit, func(row exchange.Summary) error {
		n++
		return enc.Encode(row)
	})
	if err != nil && n > 0 {
		panic(http.ErrAbortHandler)
	}
	return err
}

// eachRow visits the rows of a run whose seq is above after: no more than limit of them unless that is 0, but for rows of one
// seq. next is the after of what is left, "" for nothing.
func (s *Server) eachRow(run exchange.ID, after, limit uint64, visit func(exchange.Summary) error) (next string, err error) {
	n, last := uint64(0), uint64(0)
	for row, err := range s.o.Store.SummariesAfter(run, after) {
		if err != nil {
			return "", err
		}
		if limit > 0 && n >= limit && row.Seq != last && last > 0 {
			return strconv.FormatUint(last, 10), nil
		}
		n, last = n+1, row.Seq
		if err := visit(row); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (s *Server) takes(w http.ResponseWriter, r *http.Request) error {
	limit, err := count(r, "limit")
	if err != nil {
		return err
	}
	takes, next, err := s.takePage(r, int(min(cmp.Or(limit, listPage), mostListPage)))
	if err != nil {
		return err
	}
	return reply(w, TakeList{Schema: 1, Takes: takes, Next: next})
}

// takePage is the page of takes that a request asks for, and the "after" of the page behind it.
func (s *Server) takePage(r *http.Request, limit int) (takes []recorder.Take, next string, err error) {
	after, err := takeAt(r.URL.Query().Get("after"))
	if err != nil {
		return nil, "", err
	}
	takes, more, err := s.o.Store.TakesAfter(r.PathValue("key"), after, limit)
	if more {
		last := takes[len(takes)-1]
		next = fmt.Sprintf("%s.%d.%s", last.Run, last.Seq, last.ID)
	}
	return takes, next, err
}

// takeAt reads a place among takes, as takePage writes it.
func takeAt(text string) (t recorder.Take, err error) {
	if text == "" {
		return t, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) == 3 && exchange.ValidID(parts[0]) && exchange.ValidID(parts[2]) {
		if t.Seq, err = strconv.ParseUint(parts[1], 10, 64); err == nil {
			t.Run, t.ID = exchange.ID(parts[0]), exchange.ID(parts[2])
			return t, nil
		}
	}
	return t, fmt.Errorf("%w: after=%q is not a place among takes; take it from the page before", exchange.ErrUsage, oneLine(text, 100))
}
