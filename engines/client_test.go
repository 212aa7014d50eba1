package engines

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func listen(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestKeysStayWithTheOrigin(t *testing.T) {
	var elsewhere atomic.Int64
	other := listen(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	})
	d, err := builtin(t).Identify(t.Context(), Client(ClientOptions{}), s.URL, Options{Headers: []exchange.Header{{Name: "Authorization", Value: "Bearer k"}}})
	if err != nil || d.Engine != Unknown {
		t.Errorf("got %q, %v; a redirect identifies nothing", d.Engine, err)
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d probes followed a redirect", n)
	}
}

func TestConnectionRefusedEndsProbing(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	d, err := builtin(t).Identify(t.Context(), Client(ClientOptions{}), s.URL, Options{})
	if !errors.Is(err, exchange.ErrUnreachable) || d.Probes != 1 || d.Engine != Unknown {
		t.Errorf("got %q after %d probes, %v", d.Engine, d.Probes, err)
	}
}

func TestDialReplacesTheAddress(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Server", "llama.cpp") })
	do := Client(ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}})
	d, err := builtin(t).Identify(t.Context(), do, "http://localhost", Options{})
	if err != nil || d.Engine != "llamacpp" {
		t.Errorf("got %q, %v", d.Engine, err)
	}
}

func TestATrickledBodyIsATimeOut(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the rest never comes
			return
		}
		http.NotFound(w, r)
	})
	d, err := builtin(t).Identify(t.Context(), Client(ClientOptions{}), s.URL, Options{ProbeTimeout: 2 * time.Second})
	if err != nil || d.Engine != Unknown || d.Probes != 6 {
		t.Errorf("got %q after %d probes, %v; want unknown after 6", d.Engine, d.Probes, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := &server{answers: map[string]played{"/metrics": {status: 200, body: "vllm:x 1\n" + strings.Repeat("#", 100)}}}
	if d := identify(t, s, Options{MaxAnswer: 50}); d.Engine != Unknown {
		t.Errorf("half an answer proved %q", d.Engine)
	}
	if d := identify(t, s, Options{MaxAnswer: 200}); d.Engine != "vllm" {
		t.Errorf("a whole answer proved %q", d.Engine)
	}
}

func TestIdentifyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := builtin(t).Identify(ctx, &server{}, base, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWithdrawnProbesAreSentAgain plays traffic that comes while a probe runs: the probe makes room and has its turn again.
func TestWithdrawnProbesAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: map[string]played{"/version": jsonBody(`{"version":"1"}`),
			"/v1/models": jsonBody(`{"data":[{"id":"m","owned_by":"vllm"}]}`)}}
		turns := 0
		d, err := builtin(t).Identify(t.Context(), s, base, Options{Turn: func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			turns++
			time.Sleep(time.Hour) // no time of a wait counts
			ctx, cancel := context.WithCancelCause(ctx)
			if turns == 1 {
				cancel(ErrWithdrawn)
			}
			return ctx, func() { cancel(nil) }, nil
		}})
		if err != nil || d.Engine != "vllm" {
			t.Fatalf("got %q, %v", d.Engine, err)
		}
		if s.asked[0] != "/metrics" || s.asked[1] != "/version" || d.Probes != len(s.asked) || turns != d.Probes+1 {
			t.Errorf("asked %q in %d turns, counted %d", s.asked, turns, d.Probes)
		}
	})
}

func TestATurnThatIsRefusedEndsProbing(t *testing.T) {
	gone := errors.New("the run is over")
	_, err := builtin(t).Identify(t.Context(), &server{}, base, Options{Turn: func(context.Context) (context.Context, context.CancelFunc, error) {
		return nil, nil, gone
	}})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
