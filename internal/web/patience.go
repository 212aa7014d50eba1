package web

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// The bounds on readers. One that does not read holds memory, a place and a view of the store.
const (
	readerPatience = 30 * time.Second // for each piece of an answer
	pieceBytes     = 64 << 10
	mostConns      = 256
)

// patient ends answers that are not read.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&patientWriter{w, http.NewResponseController(w)}, r)
	})
}

// patientWriter gives each piece of an answer its time to be read.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write writes p piece by piece.
func (w *patientWriter) Write(p []byte) (n int, err error) {
	for first := true; first || n < len(p); first = false {
		_ = w.control.SetWriteDeadline(clock.Now().Add(readerPatience)) // of a connection; a writer without one needs none
		k, err := w.ResponseWriter.Write(p[n:min(len(p), n+pieceBytes)])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fewConns is a listener that hangs up on connections beyond a bound, so that the admin listener cannot use up the
// descriptors that streams need.
type fewConns struct {
	net.Listener
	open atomic.Int64
}

// Accept gives the next connection that there is room for.
func (l *fewConns) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= mostConns {
			return &countedConn{Conn: c, of: l}, nil
		}
		l.open.Add(-1)
		_ = c.Close() // nothing was said on it
	}
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	of   *fewConns
	once sync.Once
}

// Close ends the connection and makes room for another.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}
