package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/sim"
)

// step is how a server answers one request. It returns false to let the server answer as it should.
type step func(s *server, w http.ResponseWriter, r *http.Request) bool

// server serves one file at every path, but for the steps of its script, which come first.
type server struct {
	mu        sync.Mutex
	data      []byte
	etag      string
	script    []step
	asked     []string // "Range If-Range", for each request
	tokens    []string // "host path Authorization"
	now, most int      // requests at once
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.Header.Get("Range")+" "+r.Header.Get("If-Range")))
	s.tokens = append(s.tokens, strings.TrimSpace(r.Host+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization")))
	var next step
	if len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
	}
	if s.now++; s.now > s.most {
		s.most = s.now
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	if next != nil && next(s, w, r) {
		return
	}
	s.well(w, r)
}

// well answers as it should.
func (s *server) well(w http.ResponseWriter, r *http.Request) {
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.data))
}

// rig is a puller of which every host of every URL is the one server, in memory.
type rig struct {
	*server
	dir string
	o   Options
}

// newRig must be called inside the bubble.
func newRig(t *testing.T, script ...step) *rig {
	t.Helper()
	ln := sim.NewPipeListener()
	r := &rig{server: &server{data: content(300_000), etag: `"one"`, script: script}, dir: t.TempDir()}
	srv := &http.Server{Handler: r.server}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.Dial(ctx) }, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := errors.Join(srv.Close(), ln.Close()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	r.o = Options{Transport: transport, Free: func(string) (int64, error) { return 1 << 40, nil }}
	return r
}

// content is a file that begins like a GGUF.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	copy(b, "GGUF")
	return b
}

func hexSum(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }

func (r *rig) path() string { return filepath.Join(r.dir, "m.gguf") }

// pull fetches the one file.
func (r *rig) pull(t *testing.T, ctx context.Context) (Result, error) {
	t.Helper()
	p, err := New(r.o)
	if err != nil {
		t.Fatal(err)
	}
	results, err := p.Run(ctx, []File{{URL: "http://hub.test/m.gguf", Path: r.path()}})
	return results[0], err
}

// whole holds that the file is there, is what the server has, and nothing is left beside it.
func (r *rig) whole(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(r.path())
	if err != nil || !bytes.Equal(b, r.data) {
		t.Errorf("the file has %d bytes, %v", len(b), err)
	}
	r.only(t, "m.gguf")
}

// only holds which files the directory has.
func (r *rig) only(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

// The steps.

// cut ends the connection when so many bytes of the answer were sent.
func cut(n int) step {
	return func(s *server, w http.ResponseWriter, r *http.Request) bool {
		s.well(&limited{ResponseWriter: w, left: n}, r)
		panic(http.ErrAbortHandler)
	}
}

// stall stops sending after so many bytes.
func stall(n int) step {
	return func(s *server, w http.ResponseWriter, r *http.Request) bool {
		s.well(&limited{ResponseWriter: w, left: n}, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// limited passes on so many bytes and swallows the rest.
type limited struct {
	http.ResponseWriter
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(l.left, len(b))
	l.left -= n
	if n > 0 {
		if _, err := l.ResponseWriter.Write(b[:n]); err != nil {
			return 0, err
		}
		l.ResponseWriter.(http.Flusher).Flush()
	}
	return len(b), nil
}

// status answers with a status and headers, "Name: value" each.
func status(code int, headers ...string) step {
	return func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		return true
	}
}

// partial answers 206 with a Content-Range and a body of ours, whatever was asked for.
func partial(contentRange, etag string, body func(data []byte) []byte) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request) bool {
		b := body(s.data)
		w.Header().Set("Content-Range", contentRange)
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(b)
		return true
	}
}

// becomes changes the file before it answers.
func becomes(data []byte, etag string) step {
	return func(s *server, _ http.ResponseWriter, _ *http.Request) bool {
		s.mu.Lock()
		s.data, s.etag = data, etag
		s.mu.Unlock()
		return false
	}
}

// deaf ignores that a range is asked for.
func deaf(s *server, w http.ResponseWriter, r *http.Request) bool {
	r.Header.Del("Range")
	return false
}

// linked says what the hub says of a file, and leads on.
func linked(sum string, size int, to string) step {
	return func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Linked-Etag", `"`+sum+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(size))
		w.Header().Set("X-Repo-Commit", "c0ffee")
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return true
	}
}
