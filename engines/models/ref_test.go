package models

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		ref  string
		p    Place
		want []File
	}{
		{"hf://o/r/m.gguf", Place{Dir: "d"}, []File{{"https://huggingface.co/o/r/resolve/main/m.gguf", "d/o/r/m.gguf"}}},
		{"hf://o/r@refs%2Fpr%2F1/a b/m+.gguf", Place{Dir: "d", Hub: "https://hub.test/base/"}, []File{{"https://hub.test/base/o/r/resolve/refs%2Fpr%2F1/a%20b/m+.gguf", "d/o/r/a b/m+.gguf"}}},
		{"hf://o/r/m.gguf", Place{Dir: "d", Hub: "https://hub.test", Mirror: "http://mirror.test:81"}, []File{{"http://mirror.test:81/o/r/resolve/main/m.gguf", "d/o/r/m.gguf"}}},
		{"hf://o/r/x/m-00002-of-00003.gguf", Place{Dir: "d"}, []File{
			{"https://huggingface.co/o/r/resolve/main/x/m-00001-of-00003.gguf", "d/o/r/x/m-00001-of-00003.gguf"},
			{"https://huggingface.co/o/r/resolve/main/x/m-00002-of-00003.gguf", "d/o/r/x/m-00002-of-00003.gguf"},
			{"https://huggingface.co/o/r/resolve/main/x/m-00003-of-00003.gguf", "d/o/r/x/m-00003-of-00003.gguf"}}},
		{"https://e.test/a%20b/m-00001-of-00002.gguf?v=1#f", Place{Out: "y/k-00001-of-00002.gguf"}, []File{
			{"https://e.test/a%20b/m-00001-of-00002.gguf?v=1", "y/k-00001-of-00002.gguf"}, {"https://e.test/a%20b/m-00002-of-00002.gguf?v=1", "y/k-00002-of-00002.gguf"}}},
		{"http://127.0.0.1:9/m.gguf", Place{Dir: "d", Out: "z.bin"}, []File{{"http://127.0.0.1:9/m.gguf", "z.bin"}}},
	} {
		got, err := Resolve(c.ref, c.p)
		for i := range c.want {
			c.want[i].Path = filepath.FromSlash(c.want[i].Path)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", c.ref, err, diff)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, ref := range []string{
		"", "m.gguf", "/m.gguf", "ftp://e.test/m.gguf", "file:///m.gguf", "https://", "https://e.test", "https://e.test/", "https://e.test/..", "https://e.test/a/%2e%2e",
		"https://u:p@e.test/m.gguf", "https://e.test/a%5cb", "https://e.test/-flag", "https://e.test/a%00b", "https://e.test/a%0ab", "hf://o/r", "hf://o", "hf://", "hf://o//m",
		"hf://o/r/../../x", "hf://../r/m", "hf://o/../m", "hf://o/r/./m", "hf://o/r/a\\b", "hf://o/r/c:", "hf://o/r@%zz/m", "hf://o/@main/m", "hf://o/r/m/",
		"hf://o/r/m-00004-of-00003.gguf", "hf://o/r/m-00000-of-00003.gguf", "hf://o/r/m-00001-of-99999.gguf",
	} {
		if files, err := Resolve(ref, Place{Dir: "d"}); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q: %v, %v", ref, files, err)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []Place{{Hub: "hub"}, {Hub: "::"}, {Out: "one.gguf"}} {
		if _, err := Resolve("hf://o/r/m-00001-of-00002.gguf", p); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestDaemonOf(t *testing.T) {
	for ref, want := range map[string]Daemon{"ollama:qwen3:0.6b": {"ollama", "qwen3:0.6b"}, "prism:phi-4-mini": {"prism", "phi-4-mini"}, "ollama:hf.co/o/r:Q4_0": {"ollama", "hf.co/o/r:Q4_0"}} {
		if got, ok, err := DaemonOf(ref); got != want || !ok || err != nil {
			t.Errorf("%s: %+v, %v, %v", ref, got, ok, err)
		}
	}
	for _, ref := range []string{"hf://o/r/m", "https://e.test/m", "vllm:x", "m.gguf", ""} {
		if _, ok, err := DaemonOf(ref); ok || err != nil {
			t.Errorf("%s: %v, %v", ref, ok, err)
		}
	}
	for _, ref := range []string{"ollama:", "prism:-v", "prism:a b", "ollama:" + strings.Repeat("x", 300), "prism:$(x)"} {
		if _, ok, err := DaemonOf(ref); !ok || !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v, %v", ref, ok, err)
		}
	}
}

// FuzzResolve holds that no reference leads out of the directory, and that its files have its URL's host.
func FuzzResolve(f *testing.F) {
	for _, ref := range []string{"hf://o/r/m.gguf", "hf://o/r@x%2F..%2F/a/m-00001-of-00002.gguf", "https://e.test/a/%2e%2e/b", "https://e.test/x;y?z#w"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		files, err := Resolve(ref, Place{Dir: "d"})
		if err != nil {
			return
		}
		for _, file := range files {
			rel, err := filepath.Rel("d", file.Path)
			if err != nil || !filepath.IsLocal(rel) || !strings.HasPrefix(file.URL, "http") {
				t.Errorf("%q: %+v", ref, file)
			}
		}
	})
}
