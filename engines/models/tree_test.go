package models

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestTreeOf(t *testing.T) {
	for address, want := range map[string]*tree{
		"https://hub.test/o/r/resolve/main/m.gguf":                      {"https://hub.test", "o/r", "main", "m.gguf"},
		"https://hub.test/base/o/r/resolve/refs%2Fpr%2F1/a%20b/m+.gguf": {"https://hub.test/base", "o/r", "refs%2Fpr%2F1", "a b/m+.gguf"},
		"https://hub.test/m.gguf":                                       nil,
		"https://hub.test/o/r/blob/main/m.gguf":                         nil,
		"https://hub.test/o/r/resolve/main/%zz":                         nil,
		"::":                                                            nil,
	} {
		if diff := cmp.Diff(want, treeOf(address), cmp.AllowUnexported(tree{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// lists answers the listing of a repository, and lets the server answer what else it is asked.
func lists(page string, headers ...string) step {
	return func(s *server, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/models/") {
			return false
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		fmt.Fprint(w, page)
		return true
	}
}

// TestListing holds that what the hub's listing tells is as good as what the way to the file does.
func TestListing(t *testing.T) {
	data := content(300_000)
	sum := hexSum(data)
	entry := func(name, sum string, size int) string {
		return fmt.Sprintf(`{"type":"file","oid":"0123","size":%d,"lfs":{"oid":%q,"size":%d,"pointerSize":134},"path":%q}`, size, sum, size, name)
	}
	const at, file = "/api/models/o/r/tree/main/d", "/o/r/resolve/main/d/m.gguf"
	good := lists("[" + entry("d/other.gguf", strings.Repeat("0", 64), 5) + "," + entry("d/m.gguf", strings.ToUpper(sum), 300_000) + "]")
	hang := func(_ *server, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	for name, c := range map[string]struct {
		script []step
		asked  []string // paths
		check  string
		fails  string
	}{
		"well": {script: []step{nil, good}, asked: []string{file, at}, check: CheckedDigest},
		"a commit": {script: []step{func(_ *server, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Repo-Commit", "c0ffee")
			return false
		}, good},
			asked: []string{file, "/api/models/o/r/tree/c0ffee/d"}, check: CheckedDigest},
		"wrong bytes":   {script: []step{nil, lists("[" + entry("d/m.gguf", strings.Repeat("0", 64), 300_000) + "]"), nil}, asked: []string{file, at, file}, fails: "the hub tells 0000"},
		"another size":  {script: []step{nil, lists("[" + entry("d/m.gguf", sum, 300_001) + "]"), nil, nil, nil, nil}, asked: []string{file, at, file, file, file, file}, fails: "300001 bytes by the hub"},
		"cut":           {script: []step{cut(100_000), good, nil}, asked: []string{file, at, file}, check: CheckedDigest},
		"not large":     {script: []step{nil, lists(`[{"type":"file","oid":"0123","size":300000,"path":"d/m.gguf"}]`)}, asked: []string{file, at}, check: CheckedSize},
		"a Git digest":  {script: []step{nil, lists("[" + entry("d/m.gguf", "0123", 7) + "]")}, asked: []string{file, at}, check: CheckedSize},
		"not in it":     {script: []step{nil, lists("[]")}, asked: []string{file, at}, check: CheckedSize},
		"no list":       {script: []step{nil, lists("<html>")}, asked: []string{file, at}, check: CheckedSize},
		"refused":       {script: []step{nil, status(403)}, asked: []string{file, at}, check: CheckedSize},
		"it hangs":      {script: []step{nil, hang, nil}, asked: []string{file, at, file}, check: CheckedSize},
		"two pages":     {script: []step{nil, lists("[]", `Link: <`+at+`?cursor=x>; rel="next"`), good}, asked: []string{file, at, at + "?cursor=x"}, check: CheckedDigest},
		"foreign pages": {script: []step{nil, lists("[]", `Link: <http://evil.test/x>; rel="next"`)}, asked: []string{file, at}, check: CheckedSize},
		"renamed":       {script: []step{nil, status(307, "Location: /api/models/o/new"), good}, asked: []string{file, at, "/api/models/o/new"}, check: CheckedDigest},
		"led away":      {script: []step{nil, status(307, "Location: http://evil.test/x")}, asked: []string{file, at}, check: CheckedSize},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				var script []step
				for _, next := range append(c.script, make([]step, 10)...) {
					script = append(script, func(s *server, w http.ResponseWriter, r *http.Request) bool {
						asked = append(asked, r.URL.RequestURI())
						return next != nil && next(s, w, r)
					})
				}
				r := newRig(t, script...)
				p, err := New(r.o)
				if err != nil {
					t.Fatal(err)
				}
				results, err := p.Run(context.Background(), []File{{URL: "http://hub.test" + file, Path: r.path()}})
				if diff := cmp.Diff(c.asked, asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil || results[0].Checked != c.check {
					t.Errorf("%+v, %v", results[0], err)
				}
				r.whole(t)
			})
		})
	}
}

// TestPartOfAnotherFile holds that a part is gone on with only while the server proves that the file is the same.
func TestPartOfAnotherFile(t *testing.T) {
	other := content(300_000)
	other[299_999] ^= 1
	later := func(date string, body []byte) step {
		return func(_ *server, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Last-Modified", date)
			if r.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", "300000")
				_, _ = w.Write(body[:100_000])
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Range", "bytes 100000-299999/300000")
			w.Header().Set("Content-Length", "200000")
			w.WriteHeader(206)
			_, _ = w.Write(body[100_000:])
			return true
		}
	}
	const monday, tuesday = "Mon, 01 Jan 2029 00:00:00 GMT", "Tue, 02 Jan 2029 00:00:00 GMT"
	for name, script := range map[string][]step{
		"a range without a tag": {cut(100_000), func(s *server, w http.ResponseWriter, r *http.Request) bool {
			return partial("bytes 100000-299999/300000", "", func([]byte) []byte { return s.data[100_000:] })(s, w, r)
		}},
		"a range of another day": {later(monday, other), later(tuesday, content(300_000))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, script...)
				got, err := r.pull(t, context.Background())
				if err != nil || got.Restarts != 1 {
					t.Errorf("%+v, %v", got, err)
				}
				r.whole(t)
			})
		})
	}
}

// TestPartsInTheWay holds what is done about what others made of a part between two looks.
func TestPartsInTheWay(t *testing.T) {
	t.Run("a link", func(t *testing.T) {
		dir := t.TempDir()
		precious := filepath.Join(dir, "precious")
		write(t, precious, "precious")
		if err := os.Symlink(precious, filepath.Join(dir, "m.part")); err != nil {
			t.Fatal(err)
		}
		if _, err := openPart(t.Context(), filepath.Join(dir, "m"), "u", true); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%v", err)
		}
		if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
			t.Errorf("what the link leads to holds %q, %v", b, err)
		}
	})
	t.Run("another process was faster", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			d := &download{file: File{URL: "http://hub.test/m.gguf", Path: r.path()}, o: &Options{Mode: ModeAuto, Tries: 1, Stall: time.Minute}, disk: &disk{due: map[*download]int64{}}}
			write(t, r.path(), "whole")
			got, err := d.Run(context.Background())
			if err != nil || !got.Kept || got.Bytes != 5 || len(r.asked) != 0 {
				t.Errorf("%+v, %v, asked %q", got, err, r.asked)
			}
			r.only(t, "m.gguf")
		})
	})
	t.Run("the end of the wait", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "m.part"), "half")
		write(t, filepath.Join(dir, "m.part.json"), `{"url":"u","etag":"\"x\"","size":8}`)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if _, err := openPart(ctx, filepath.Join(dir, "m"), "u", false); !errors.Is(err, enough) {
			t.Errorf("%v", err)
		}
	})
}
