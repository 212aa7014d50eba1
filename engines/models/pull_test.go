package models

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pullCase is what a server does, and what becomes of the download.
type pullCase struct {
	script []step
	asked  []string // "Range If-Range" of each request; "" = everything
	took   time.Duration
	fails  string
	check  Result
}

// ranges are servers that end early, stall, change the file, or lie about what they send.
func ranges() map[string]pullCase {
	other := content(200_000)
	other[100_000] ^= 1
	from := func(at int) func([]byte) []byte { return func(d []byte) []byte { return d[at:] } }
	return map[string]pullCase{
		"well": {asked: []string{""}},
		"cut":  {script: []step{cut(100_000)}, asked: []string{"", `bytes=100000- "one"`}, took: time.Second},
		"cut often, and on it goes": {script: []step{cut(90_000), cut(50_000), cut(50_000), cut(50_000), cut(50_000), cut(5_000)},
			asked: []string{"", `bytes=90000- "one"`, `bytes=140000- "one"`, `bytes=190000- "one"`, `bytes=240000- "one"`, `bytes=290000- "one"`, `bytes=295000- "one"`},
			took:  6 * time.Second},
		"cut at once, to the end": {script: []step{cut(0), cut(0), cut(0), cut(0), cut(0)}, asked: []string{"", "", "", "", ""}, took: 15 * time.Second, fails: "5 attempts"},
		"stalls":                  {script: []step{stall(100_000)}, asked: []string{"", `bytes=100000- "one"`}, took: 61 * time.Second},
		"stalls before the head":  {script: []step{func(_ *server, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }}, asked: []string{"", ""}, took: 61 * time.Second},
		"no ranges":               {script: []step{cut(100_000), deaf}, asked: []string{"", `bytes=100000- "one"`}, took: time.Second, check: Result{Restarts: 1}},
		"changes in the middle": {script: []step{cut(100_000), becomes(other, `"two"`)}, asked: []string{"", `bytes=100000- "one"`}, took: time.Second,
			check: Result{Restarts: 1}},
		"another range": {script: []step{cut(100_000), partial("bytes 0-299999/300000", `"one"`, from(0))},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"a range of another length": {script: []step{cut(100_000), partial("bytes 100000-299999/300000", `"one"`, from(50_000))},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"a range of another file": {script: []step{cut(100_000), partial("bytes 100000-299999/300000", `"two"`, from(100_000))},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"a range of a longer file": {script: []step{cut(100_000), partial("bytes 100000-299999/400000", `"one"`, from(100_000))},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"a range without a range": {script: []step{cut(100_000), partial("", `"one"`, from(100_000))},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"a shorter range": {script: []step{cut(100_000), partial("bytes 100000-199999/300000", `"one"`, func(d []byte) []byte { return d[100_000:200_000] })},
			asked: []string{"", `bytes=100000- "one"`, `bytes=200000- "one"`}, took: 2 * time.Second},
		"416 of a file that is shorter now": {script: []step{cut(100_000), status(416, "Content-Range: bytes */50000")},
			asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
		"416 without a size": {script: []step{cut(100_000), status(416)}, asked: []string{"", `bytes=100000- "one"`, ""}, took: 3 * time.Second, check: Result{Restarts: 1}},
	}
}

// statuses are servers that answer something else than the file.
func statuses() map[string]pullCase {
	return map[string]pullCase{
		"403":          {script: []step{status(403)}, asked: []string{""}, fails: "403 Forbidden [server]; the model may be gated"},
		"401":          {script: []step{status(401)}, asked: []string{""}, fails: "HF_TOKEN"},
		"404":          {script: []step{status(404)}, asked: []string{""}, fails: "404"},
		"400":          {script: []step{status(400)}, asked: []string{""}, fails: "400"},
		"304":          {script: []step{status(304)}, asked: []string{""}, fails: "304"},
		"429":          {script: []step{status(429, "Retry-After: 7")}, asked: []string{"", ""}, took: 7 * time.Second},
		"429 for ever": {script: []step{status(429, "Retry-After: 86400")}, asked: []string{"", ""}, took: 2 * time.Minute},
		"408 and 503":  {script: []step{status(408), status(503, "Retry-After: Tue, 01 Jan 2030 00:00:00 GMT")}, asked: []string{"", "", ""}, took: time.Second + mostAfter},
		"5xx to the end": {script: []step{status(500), status(502), status(503), status(504), status(599)}, asked: []string{"", "", "", "", ""},
			took: 15 * time.Second, fails: "5 attempts: the server answers 599"},
		"a packed file":    {script: []step{status(200, "Content-Encoding: gzip")}, asked: []string{""}, fails: "gzip"},
		"429 until a date": {script: []step{status(429, "Date: Tue, 01 Jan 2030 00:00:00 GMT", "Retry-After: Tue, 01 Jan 2030 00:00:09 GMT")}, asked: []string{"", ""}, took: 9 * time.Second},
		"503 until then":   {script: []step{status(503, "Date: Tue, 01 Jan 2030 00:00:09 GMT", "Retry-After: Tue, 01 Jan 2030 00:00:00 GMT")}, asked: []string{"", ""}, took: time.Second},
		"a page": {script: []step{func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>log in</html>")
			return true
		}}, asked: []string{""}, fails: `no GGUF file but "text/html"`},
		"chunked": {script: []step{func(s *server, w http.ResponseWriter, _ *http.Request) bool {
			w.(http.Flusher).Flush()
			_, _ = w.Write(s.data)
			return true
		}}, asked: []string{""}, check: Result{Checked: CheckedNot}},
		"no length": {script: []step{raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nGGUF and more")}, asked: []string{""}, fails: "cannot be told from a cut"},
		"a loop":    {script: slices.Repeat([]step{status(302, "Location: /m.gguf")}, 11), asked: slices.Repeat([]string{""}, 11), fails: "redirects"},
		"nowhere":   {script: []step{status(302)}, asked: []string{""}, fails: `a redirect leads to ""`},
		"elsewhere": {script: []step{status(302, "Location: file:///etc/passwd")}, asked: []string{""}, fails: "a redirect leads to"},
	}
}

// TestPull goes through what servers do. Every download that succeeds has the server's bytes and leaves nothing beside the
// file; every one that does not leaves no file.
func TestPull(t *testing.T) {
	all := ranges()
	maps.Copy(all, statuses())
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.script...)
				began := clock.Now()
				got, err := r.pull(t, context.Background())
				if took := clock.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if diff := cmp.Diff(c.asked, r.asked); diff != "" {
					t.Errorf("requests (-want +got)\n%s", diff)
				}
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("%v, want %s", err, c.fails)
					}
					r.only(t)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r.whole(t)
				want := Result{Path: r.path(), URL: "http://hub.test/m.gguf", Bytes: int64(len(r.data)), SHA256: "sha256:" + hexSum(r.data), Checked: CheckedSize, Restarts: c.check.Restarts}
				if c.check.Checked != "" {
					want.Checked = c.check.Checked
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("result (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// raw takes the connection over and writes an answer that net/http would not.
func raw(answer string) step {
	return func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write([]byte(answer))
		conn.Close()
		return true
	}
}

// TestHub holds what the hub tells: the digest is checked, and links that have run out are asked for anew.
func TestHub(t *testing.T) {
	data := content(300_000)
	sum, size := hexSum(data), len(data)
	bad := slices.Clone(data)
	bad[7] ^= 1
	const cdn = "http://cdn.test/signed?key=secret"
	hop := linked(sum, size, cdn)
	for name, c := range map[string]struct {
		script []step
		fails  string
		check  string
		rest   string // what is asked for in the end; "" = not looked at
	}{
		"well":              {script: []step{hop}, check: CheckedDigest},
		"a link ran out":    {script: []step{hop, status(403), hop}, check: CheckedDigest},
		"cut":               {script: []step{hop, cut(100_000), hop}, check: CheckedDigest},
		"another tag":       {script: []step{hop, cut(100_000), hop, becomes(data, `"of another place"`)}, check: CheckedDigest, rest: "bytes=100000-"},
		"another digest":    {script: []step{hop, cut(100_000), linked(strings.Repeat("0", 64), size, cdn), nil, hop}, check: CheckedDigest},
		"Git's digest":      {script: []step{linked("0123456789012345678901234567890123456789", size, cdn)}, check: CheckedSize},
		"sizes differ":      {script: slices.Repeat([]step{linked(sum, size+1, cdn), nil}, 5), fails: "300001 bytes by the hub"},
		"sizes differ once": {script: []step{linked(sum, size+1, cdn), nil, hop}, check: CheckedDigest},
		"wrong bytes once":  {script: []step{hop, becomes(bad, `"one"`), hop, becomes(data, `"one"`)}, check: CheckedDigest},
		"wrong bytes":       {script: []step{hop, becomes(bad, `"one"`), hop}, fails: "the hub tells " + sum},
		"wrong range": {script: []step{hop, cut(100_000), hop, partial("bytes 100000-299999/300000", `"one"`, func(d []byte) []byte { return bad[:200_000] }), hop},
			check: CheckedDigest},
		"416, and all is there": {script: []step{hop, cut(300_000), hop, status(416, "Content-Range: bytes */300000")}, check: CheckedDigest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.script...)
				got, err := r.pull(t, context.Background())
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "secret") {
						t.Errorf("%v, want %s", err, c.fails)
					}
					r.only(t)
					return
				}
				if last := r.asked[len(r.asked)-1]; c.rest != "" && (last != c.rest || got.Restarts != 0) {
					t.Errorf("asked %q, %d restarts", r.asked, got.Restarts)
				}
				if err != nil || got.Checked != c.check || got.Commit != "c0ffee" {
					t.Errorf("%+v, %v", got, err)
				}
				r.whole(t)
			})
		})
	}
}

// TestToken holds that the hub alone sees the token, however a request comes to other hosts.
func TestToken(t *testing.T) {
	hop := func(to string) step { return status(302, "Location: "+to) }
	for name, c := range map[string]struct {
		hub    string
		script []step
		with   []string // hosts and paths that saw it
	}{
		"hub":            {hub: "http://localhost", with: []string{"localhost /m.gguf"}},
		"redirect":       {hub: "http://localhost", script: []step{hop("http://cdn.localhost/x")}, with: []string{"localhost /m.gguf"}},
		"there and back": {hub: "http://localhost", script: []step{hop("http://cdn.test/x"), hop("http://localhost/y")}, with: []string{"localhost /m.gguf", "localhost /y"}},
		"another port":   {hub: "http://localhost", script: []step{hop("http://localhost:81/x")}, with: []string{"localhost /m.gguf"}},
		"a named port":   {hub: "http://localhost:80/base", with: []string{"localhost /m.gguf"}},
		"another hub":    {hub: "http://127.0.0.1"},
		"https alone":    {hub: "https://localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.script...)
				r.o.Hub, r.o.Token = c.hub, "hf_x"
				p, err := New(r.o)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Run(context.Background(), []File{{URL: "http://localhost/m.gguf", Path: r.path()}}); err != nil {
					t.Fatal(err)
				}
				var with []string
				for _, line := range r.tokens {
					if seen, ok := strings.CutSuffix(line, " Bearer hf_x"); ok {
						with = append(with, seen)
					}
				}
				if diff := cmp.Diff(c.with, with); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
	plain, err := newOrigin(Options{Hub: "http://hub.test", Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if u := plain.hub; plain.trusted(u) {
		t.Error("a token goes over the net in clear")
	}
}

// TestNoWayFromHTTPS holds that a redirect does not give up that a connection is private.
func TestNoWayFromHTTPS(t *testing.T) {
	r := &http.Response{StatusCode: 302, Header: http.Header{"Location": {"http://hub.test/x"}}, Body: http.NoBody}
	from, _ := http.NewRequest("GET", "https://hub.test/x", nil)
	if _, err := redirected(r, from.URL); err == nil || !strings.Contains(err.Error(), "from https") {
		t.Error(err)
	}
}

// TestResume holds that a download goes on in another process, or from the beginning where it cannot.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig)
		asked  string
		resume int64
	}{
		"goes on":       {change: func(*testing.T, *rig) {}, asked: `bytes=100000- "one"`, resume: 100_000},
		"forced":        {change: func(_ *testing.T, r *rig) { r.o.Mode = ModeForce }},
		"no note":       {change: func(t *testing.T, r *rig) { remove(t, r.path()+".part.json") }},
		"a broken note": {change: func(t *testing.T, r *rig) { write(t, r.path()+".part.json", "{") }},
		"a note of another file": {change: func(t *testing.T, r *rig) {
			write(t, r.path()+".part.json", `{"url":"http://hub.test/other","etag":"\"one\"","size":300000}`)
		}},
		"a note without a proof": {change: func(t *testing.T, r *rig) {
			write(t, r.path()+".part.json", `{"url":"http://hub.test/m.gguf","size":300000}`)
		}},
		"changed since": {change: func(_ *testing.T, r *rig) { r.data, r.etag = content(1000), `"two"` }, asked: `bytes=100000- "one"`, resume: 100_000},
		"a longer part": {change: func(t *testing.T, r *rig) { write(t, r.path()+".part", strings.Repeat("x", 300_001)) }},
		"a whole part":  {change: func(t *testing.T, r *rig) { write(t, r.path()+".part", string(r.data)) }, asked: `bytes=300000- "one"`, resume: 300_000},
		"no part":       {change: func(t *testing.T, r *rig) { remove(t, r.path()+".part") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, stall(100_000))
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				if _, err := r.pull(t, ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				r.only(t, "m.gguf.part", "m.gguf.part.json")
				c.change(t, r)
				got, err := r.pull(t, context.Background())
				if err != nil || got.Resumed != c.resume || r.asked[1] != c.asked {
					t.Errorf("%+v, %v, asked %q", got, err, r.asked[1])
				}
				r.whole(t)
			})
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.o.Mode = ModeNever
		if _, err := r.pull(t, context.Background()); !errors.Is(err, exchange.ErrMiss) {
			t.Errorf("never: %v", err)
		}
		write(t, r.path(), "mine")
		for _, mode := range []Mode{ModeNever, ModeAuto} {
			r.o.Mode = mode
			if got, err := r.pull(t, context.Background()); err != nil || !got.Kept || got.Bytes != 4 || len(r.asked) != 0 {
				t.Errorf("%s: %+v, %v", mode, got, err)
			}
		}
		r.o.Mode = ModeForce
		if got, err := r.pull(t, context.Background()); err != nil || got.Kept {
			t.Errorf("force: %+v, %v", got, err)
		}
		r.whole(t)
		r.script = slices.Repeat([]step{status(404)}, 1)
		if _, err := r.pull(t, context.Background()); err == nil {
			t.Error("force: 404 passed")
		}
		r.whole(t) // what was there is still there
		remove(t, r.path())
		if err := os.Mkdir(r.path(), 0o700); err != nil {
			t.Fatal(err)
		}
		r.o.Mode = ModeAuto
		if _, err := r.pull(t, context.Background()); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("a directory in its place: %v", err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Mode: "maybe"}, {Parallel: -1}, {Tries: -1}, {Stall: -1}, {Hub: "::", Token: "x"}, {Token: "a\nb"}} {
		if _, err := New(o); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestSeveralFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(*server, http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false }
		r := newRig(t, slow, slow, slow, slow, status(404))
		r.o.Parallel = 2
		p, err := New(r.o)
		if err != nil {
			t.Fatal(err)
		}
		var files []File
		for i := range 5 {
			files = append(files, File{URL: fmt.Sprintf("http://hub.test/%d", i), Path: filepath.Join(r.dir, "deep", fmt.Sprint(i))})
		}
		results, err := p.Run(context.Background(), append(files, files[0]))
		if err == nil || !strings.Contains(err.Error(), "404") || len(results) != 5 || r.most != 2 {
			t.Errorf("%d results, %v, %d at once", len(results), err, r.most)
		}
		done := 0
		for _, s := range p.Progress() {
			if s.Phase == PhaseDone && s.Have == 300_000 && s.Size == 300_000 {
				done++
			}
		}
		if done != 4 {
			t.Errorf("%+v", p.Progress())
		}
		if _, err := p.Run(context.Background(), []File{files[0], {URL: "http://hub.test/x", Path: files[0].Path}}); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("two files for one place: %v", err)
		}
	})
}

// TestSpace holds that a disk that is too small is not filled, also by files that fit one at a time.
func TestSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.o.Free = func(string) (int64, error) { return spare + 299_999, nil }
		if _, err := r.pull(t, context.Background()); !errors.Is(err, exchange.ErrNoSpace) {
			t.Errorf("%v", err)
		}
		r.only(t)
		r.o.Free = func(string) (int64, error) { return 0, errors.ErrUnsupported }
		if _, err := r.pull(t, context.Background()); err != nil {
			t.Errorf("where nobody knows: %v", err)
		}
	})
	k := &disk{free: func(string) (int64, error) { return spare + 1000, nil }, due: map[*download]int64{}}
	a, b := &download{file: File{Path: "d/a"}, part: &part{}}, &download{file: File{Path: "d/b"}, part: &part{}}
	a.tell(PhaseLoading)
	b.tell(PhaseLoading)
	if err := k.reserve(a, 700); err != nil {
		t.Error(err)
	}
	if err := k.reserve(b, 400); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("both: %v", err)
	}
	k.release(a)
	if err := k.reserve(b, 400); err != nil {
		t.Error(err)
	}
}

// TestOneDownloadOfAFile holds that two puller do not write to one part.
func TestOneDownloadOfAFile(t *testing.T) {
	dir := t.TempDir()
	first, err := openPart(t.Context(), filepath.Join(dir, "m"), "u", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPart(t.Context(), filepath.Join(dir, "m"), "u", false); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
	first.close()
	second, err := openPart(t.Context(), filepath.Join(dir, "m"), "u", false)
	if err != nil {
		t.Fatal(err)
	}
	second.close()
}

// FuzzPull holds that whatever a server does, a file that is given out is the one that the hub told the digest of.
func FuzzPull(f *testing.F) {
	for _, script := range []string{"", "0", "12", "3456", "789:", "1;<2", "=1>2", "00000000", "5151515151"} {
		f.Add([]byte(script))
	}
	data := content(40_000)
	bad := slices.Clone(data)
	bad[39_000] ^= 1
	back := func(d []byte) []byte { return d[20_000:] }
	steps := []step{nil, cut(20_000), stall(10_000), deaf, status(503), status(416), status(416, "Content-Range: bytes */40000"), becomes(bad, `"one"`), becomes(data, `"one"`),
		partial("bytes 20000-39999/40000", `"one"`, back), partial("bytes 20000-39999/40000", `"two"`, back), partial("bytes 10000-39999/40000", "", back),
		cut(0), becomes(bad, `"two"`), cut(40_000)}
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) {
			var all []step
			for _, b := range script[:min(len(script), 20)] {
				all = append(all, linked(hexSum(data), len(data), "http://cdn.test/x"), steps[int(b)%len(steps)])
			}
			for range 30 {
				all = append(all, linked(hexSum(data), len(data), "http://cdn.test/x"), nil)
			}
			r := newRig(t, all...)
			r.data = data
			_, err := r.pull(t, context.Background())
			if b, read := os.ReadFile(r.path()); (err == nil) != (read == nil) || read == nil && hexSum(b) != hexSum(data) {
				t.Errorf("%v: the file has %d bytes, %v", err, len(b), read)
			}
		})
	})
}
