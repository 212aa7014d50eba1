package proxy

import "github.com/benchproxy/benchproxy/internal/exchange"

// SetIdentity says who answers behind an upstream, for the exchanges that end from now on. It replaces
// SessionOptions.Identity for that upstream; a sealed exchange is not changed.
func (s *Session) SetIdentity(upstream string, id exchange.Identity) {
	s.identities.Store(upstream, id)
}

// identity is what is known of who answers behind an upstream.
func (s *Session) identity(upstream string) exchange.Identity {
	if id, ok := s.identities.Load(upstream); ok {
		return id.(exchange.Identity)
	}
	return s.opts.Identity
}
