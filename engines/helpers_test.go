package engines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func builtin(t testing.TB) *Catalog {
	t.Helper()
	c, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// played is one answer of a fake server; Hang never answers.
type played struct {
	status int
	header http.Header
	body   string
	hang   bool
}

func jsonBody(body string) played { return played{status: 200, body: body} }

// server is a Doer that answers from a table, without a network, so that it works in a synctest bubble. Missing paths are
// 404.
type server struct {
	mu      sync.Mutex
	answers map[string]played // path, or "POST path"
	other   *played
	refuse  bool
	asked   []string
	headers []http.Header
	bodies  []string
}

func (s *server) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	key := r.URL.Path
	if r.Method != http.MethodGet {
		key = r.Method + " " + key
	}
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	s.mu.Lock()
	s.asked, s.headers, s.bodies = append(s.asked, key), append(s.headers, r.Header), append(s.bodies, body)
	a, ok := s.answers[key]
	s.mu.Unlock()
	if !ok && s.other != nil {
		a, ok = *s.other, true
	}
	switch {
	case s.refuse:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case !ok:
		a = played{status: 404, body: "not found"}
	case a.hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	rec := httptest.NewRecorder()
	for k, v := range a.header {
		rec.Header()[k] = v
	}
	rec.WriteHeader(a.status)
	rec.Body.WriteString(a.body)
	return rec.Result(), nil
}

const base = "http://127.0.0.1:8080"

func identify(t testing.TB, s Doer, o Options) exchange.Deployment {
	t.Helper()
	d, err := builtin(t).Identify(context.Background(), s, base, o)
	if err != nil && !errors.Is(err, exchange.ErrUnreachable) {
		t.Fatal(err)
	}
	return d
}

// probeBody is a written probe body, as JSON or text under a status 200.
func probeBody(t testing.TB, name string) played {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "wire", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return played{status: 200, body: string(b)}
}

// captured is a response as it came from a real engine, head and all.
func captured(t testing.TB, name string) played {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "captures", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return played{status: resp.StatusCode, header: resp.Header, body: string(body)}
}

// readCases reads a file of acceptance cases; a key that the target does not know is fatal.
func readCases(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func show[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
