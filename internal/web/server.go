package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/recorder"
)

// Store is what the read API needs of a store.
type Store interface {
	Runs() ([]exchange.Run, error)
	Run(idOrName string) (exchange.Run, error)
	SummariesAfter(run exchange.ID, seq uint64) iter.Seq2[exchange.Summary, error]
	Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error)
	TakesAfter(key string, after recorder.Take, limit int) (takes []recorder.Take, more bool, err error)
	Pieces(run exchange.ID) ([]recorder.Piece, error)
	ReadPiece(p recorder.Piece, want func(id exchange.ID, seq uint64) bool, visit func(*exchange.Exchange) error) error
}

// Options are the parts a Server shows. Store, Stats and Check are nil when nothing is recorded.
type Options struct {
	Store  Store
	Stats  func() (any, error)                // JSON document of the store's sizes
	Check  func(context.Context) (any, error) // JSON document of a full check
	Health func() any                         // JSON document for /healthz
	// Metrics answers /metrics in the form Prometheus reads; nil for none. It is behind the key as all else.
	Metrics http.Handler
	Key     string // every request must send it as a bearer token, or as the password of a browser; "" asks for none

	Live     *Live  // what runs now; nil where nothing does, as with a store that is only looked at
	TraceURL string // where a trace can be looked at, with {trace} for its id; "" for nowhere
}

// Server answers the admin listener.
type Server struct {
	o       Options
	http    *http.Server
	whole   chan struct{} // a place for each exchange that may be read whole at a time
	heavy   chan struct{} // a place for what goes through a whole run or store
	part    livePart
	pages   map[string]*template.Template
	indexes *indexes
	sparks  *sparks
}

// wholeAtOnce bounds the memory of reading exchanges whole, whatever readers ask for: it is taken from a process that
// measures.
const wholeAtOnce = 4

// maxHeader bounds the head of a request in bytes.
const maxHeader = 64 << 10

// NewServer makes a server; Serve starts it.
func NewServer(o Options) *Server {
	s := &Server{o: o, whole: make(chan struct{}, wholeAtOnce), heavy: make(chan struct{}, 1), pages: parsePages(), indexes: newIndexes(o.Store),
		sparks: newSparks()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /api/v1/runs", s.recorded(s.runs))
	mux.HandleFunc("GET /api/v1/runs/{run}", s.recorded(s.run))
	mux.HandleFunc("GET /api/v1/runs/{run}/exchanges", s.recorded(s.exchanges))
	mux.HandleFunc("GET /api/v1/exchanges/{id}", s.recorded(s.oneByOne(s.exchange)))
	mux.HandleFunc("GET /api/v1/exchanges/{id}/record", s.recorded(s.oneByOne(s.record)))
	mux.HandleFunc("GET /api/v1/exchanges/{id}/{side}/{part}", s.recorded(s.oneByOne(s.bytes)))
	mux.HandleFunc("GET /api/v1/keys/{key}", s.recorded(s.takes))
	mux.HandleFunc("GET /api/v1/stats", s.recorded(s.stats))
	mux.HandleFunc("GET /api/v1/check", s.recorded(s.alone(s.check)))
	s.routePages(mux)
	s.http = &http.Server{Handler: patient(guarded(ownHost(s.keyed(mux)))), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader}
	return s
}

// Serve answers requests on ln until Close. It returns nil after Close.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(&fewConns{Listener: ln}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin listener: %w", err)
	}
	return nil
}

// Close ends the listener, every connection, and what was being read.
func (s *Server) Close() error {
	err := s.http.Close()
	s.indexes.Close()
	return err
}

// Stored tells of an exchange that was stored just now. It is quick and safe for concurrent use.
func (s *Server) Stored(row exchange.Summary) { s.indexes.stored(&row) }

// recorded guards the routes that need a store.
func (s *Server) recorded(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Store == nil {
			fail(w, http.StatusNotFound, errors.New("nothing is recorded here: this proxy only measures"))
			return
		}
		if err := h(w, r); err != nil {
			fail(w, statusOf(err), err)
		}
	}
}

// oneByOne lets only a few requests at a time hold an exchange in memory.
func (s *Server) oneByOne(h handler) handler { return within(s.whole, h) }

// alone lets one request at a time go through a whole run or store: it takes its time from streams that are measured, and
// more than one core of it is not to be had.
func (s *Server) alone(h handler) handler { return within(s.heavy, h) }

type handler = func(http.ResponseWriter, *http.Request) error

// within answers a request once it has one of the places.
func within(places chan struct{}, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			return h(w, r)
		case <-r.Context().Done():
			return context.Cause(r.Context())
		}
	}
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, exchange.ErrMiss):
		return http.StatusNotFound
	case errors.Is(err, exchange.ErrUsage):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// problem is the body of every answer that is not a success.
type problem struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func fail(w http.ResponseWriter, status int, err error) {
	var p problem
	p.Error.Message = err.Error()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone when this fails; there is nobody to tell
}

func reply(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // as in fail
	return nil
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if err := reply(w, s.o.Health()); err != nil {
		fail(w, http.StatusInternalServerError, err)
	}
}

// RunList is the document of GET /api/v1/runs.
type RunList struct {
	Schema int            `json:"schema"`
	Runs   []exchange.Run `json:"runs"`
}

func (s *Server) runs(w http.ResponseWriter, _ *http.Request) error {
	runs, err := s.o.Store.Runs()
	if err != nil {
		return err
	}
	return reply(w, RunList{Schema: 1, Runs: runs})
}

func (s *Server) run(w http.ResponseWriter, r *http.Request) error {
	run, err := s.o.Store.Run(r.PathValue("run"))
	if err != nil {
		return err
	}
	return reply(w, run)
}

// count is a number of the query, 0 when it is not there.
func count(r *http.Request, name string) (uint64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%w: %s=%q is not a number of rows", exchange.ErrUsage, name, v)
	}
	return n, nil
}

// record writes a whole exchange with its row. An error after the first byte ends the answer early; its reader finds out
// by the digest at the end too.
func (s *Server) record(w http.ResponseWriter, r *http.Request) error {
	x, row, err := s.o.Store.Exchange(exchange.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/vnd.benchproxy.exchange")
	if err := recorder.WriteExchange(w, x, &row); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) exchange(w http.ResponseWriter, r *http.Request) error {
	x, row, err := s.o.Store.Exchange(exchange.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return reply(w, measure.Detail(x, row))
}

// bytes writes a stored body as it was coded, or a stored head.
func (s *Server) bytes(w http.ResponseWriter, r *http.Request) error {
	x, _, err := s.o.Store.Exchange(exchange.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	body, head := x.Request.Body, x.Request.Head
	switch r.PathValue("side") {
	case "request":
	case "response":
		body, head = x.Response.Body, x.Response.Head
	default:
		return fmt.Errorf("%w: a side is request or response, not %q", exchange.ErrUsage, r.PathValue("side"))
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	switch r.PathValue("part") {
	case "head":
		_, _ = w.Write(head) // as in fail
	case "body":
		for _, c := range body.Chunks {
			_, _ = w.Write(c)
		}
	default:
		return fmt.Errorf("%w: a part is head or body, not %q", exchange.ErrUsage, r.PathValue("part"))
	}
	return nil
}

func (s *Server) stats(w http.ResponseWriter, _ *http.Request) error {
	v, err := s.o.Stats()
	if err != nil {
		return err
	}
	return reply(w, v)
}

func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	v, err := s.o.Check(r.Context())
	if err != nil {
		return err
	}
	return reply(w, v)
}
