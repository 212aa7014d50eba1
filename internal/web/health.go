package web

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// Health is the document of GET /healthz. Options.Health may give another one, which the pages then do not show.
type Health struct {
	Schema   int              `json:"schema"`
	Status   string           `json:"status"` // ok, or degraded: streams pass but are not all recorded
	Reason   string           `json:"reason,omitempty"`
	Version  string           `json:"version"`
	Run      *exchange.Run    `json:"run"`
	Proxy    proxy.Stats      `json:"proxy"`
	Recorder *recorder.Health `json:"recorder"`
}

// Refused is the number of requests that never became an exchange.
func (h *Health) Refused() int64 {
	p := &h.Proxy
	return p.RefusedBusy + p.RefusedKey + p.RefusedMalformed + p.RefusedSlow + p.RefusedTooLarge
}

// healthOf is what the pages show of it; nil for a document that they do not know.
func (s *Server) healthOf() *Health {
	if h, ok := s.o.Health().(Health); ok {
		return &h
	}
	return nil
}
