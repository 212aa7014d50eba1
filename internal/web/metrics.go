package web

import (
	"errors"
	"net/http"
)

// metrics answers with what Prometheus fetches.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.o.Metrics == nil {
		fail(w, http.StatusNotFound, errors.New("there are no metrics here: they are turned off, or nothing is measured"))
		return
	}
	s.o.Metrics.ServeHTTP(w, r)
}
