package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines/models"
)

// hub is what `hub DIR` runs in the scripts: a model hub of the files of a directory. It leads to another place, where
// the first answer for each file is cut in its middle, wants the token "hf_secret" for files whose names begin with
// "gated", and speaks as Ollama does at /api/pull.
func hub() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "http://"+ln.Addr().String())
	h := &hubServer{dir: os.Args[1], cut: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{owner}/{repo}/resolve/{revision}/{file}", h.resolve)
	mux.HandleFunc("GET /cdn/{file}", h.deliver)
	mux.HandleFunc("POST /api/pull", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "unknown") {
			fmt.Fprintln(w, `{"error":"pull model manifest: file does not exist"}`)
			return
		}
		fmt.Fprintln(w, `{"status":"pulling manifest"}`+"\n"+`{"status":"success"}`)
	})
	fmt.Fprintln(os.Stderr, http.Serve(ln, mux))
}

type hubServer struct {
	dir string
	mu  sync.Mutex
	cut map[string]bool
}

func (h *hubServer) resolve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	switch {
	case strings.HasPrefix(name, "gated") && r.Header.Get("Authorization") != "Bearer hf_secret":
		w.WriteHeader(http.StatusForbidden)
	case err != nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("X-Linked-Etag", fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(b))))
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(b)))
		http.Redirect(w, r, "/cdn/"+name, http.StatusFound)
	}
}

func (h *hubServer) deliver(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	h.mu.Lock()
	first := !h.cut[name]
	h.cut[name] = true
	h.mu.Unlock()
	w.Header().Set("ETag", `"v1"`)
	path := filepath.Join(h.dir, name)
	if !first {
		http.ServeFile(w, r, path)
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	_, _ = w.Write(b[:len(b)/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestPullBar(t *testing.T) {
	b := &pullBar{}
	all := []models.Progress{
		{Path: "d/a.gguf", Phase: models.PhaseLoading, Have: 50 << 20, Size: 100 << 20}, {Path: "d/b.gguf", Phase: models.PhaseWaiting, Have: 1 << 20, Size: -1},
		{Path: "d/c.gguf", Phase: models.PhaseDone, Have: 7 << 20, Size: 7 << 20}, {Path: "d/d.gguf", Phase: models.PhaseQueued, Size: -1},
	}
	got := b.text(all, time.Second)
	want := []string{"[############------------]  50.0 MiB of 100.0 MiB  a.gguf", "[------------------------]  1.0 MiB of ?  b.gguf  (waiting)", "1/4 models, 58.0 MiB"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	all[0].Have += 10 << 20
	if got = b.text(all, 3*time.Second); got[2] != "1/4 models, 68.0 MiB, 5.0 MiB/s" {
		t.Errorf("%q", got[2])
	}
	all[0].Have = 0 // it begins anew
	if got = b.text(all, 4*time.Second); got[2] != "1/4 models, 8.0 MiB" {
		t.Errorf("%q", got[2])
	}
}

// TestPullBarDraws holds that lines are drawn on a terminal alone, and taken away.
func TestPullBarDraws(t *testing.T) {
	var out strings.Builder
	b := &pullBar{out: &out, width: 20}
	b.draw([]string{"one", "two " + strings.Repeat("x", 40)})
	b.draw([]string{"three"})
	b.erase()
	b.erase()
	if got, want := out.String(), "one\ntwo xxxxxxxxxxxxxx…\n\x1b[2A\r\x1b[Jthree\n\x1b[1A\r\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	newPullBar(env{Stderr: &out, Getenv: func(string) string { return "" }, TTY: func(io.Writer) (int, bool) { return 0, false }}, nil).Run(ctx)
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}
