package proxy

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestIdentityOfAnUpstreamReplacesTheSessions(t *testing.T) {
	said := exchange.Identity{Engine: "vllm", Basis: "label"}
	s := NewSession(SessionOptions{Identity: said})
	learned := exchange.Identity{Engine: "llamacpp", Version: "b10573", Basis: "probe"}
	s.SetIdentity("a", learned)
	if got := s.identity("a"); got != learned {
		t.Errorf("upstream a is %+v, want %+v", got, learned)
	}
	if got := s.identity("b"); got != said {
		t.Errorf("upstream b is %+v, want what the session was told: %+v", got, said)
	}
}
