package launch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// buildTree writes files below a directory, the programs among them executable.
func buildTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// buildSpec is a Spec of the server in a tree.
func buildSpec(root string, parts ...string) Spec {
	return Spec{Program: filepath.Join(root, "bin", "server"), Engine: engines.Profile{ID: "e", Launch: &engines.Launch{Parts: parts}}}
}

func identityOf(t *testing.T, s Spec) Identity {
	t.Helper()
	id, err := IdentityOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// aged sets the times of a file back, so that its digest is kept. The time that the system notes stays.
func aged(t *testing.T, path string) time.Time {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestIdentityTellsBuildsApart(t *testing.T) {
	files := map[string]string{"bin/server": "#!/bin/sh\none", "bin/libx.so.1": "lib", "lib/libggml.so": "ggml", "lib/other.so": "other", "bin/notes.txt": "x"}
	parts := []string{"*.so.*", "../lib/libggml*", "none/*", "../lib"}
	root := buildTree(t, files)
	s := buildSpec(root, parts...)
	is := identityOf(t, s)
	if !strings.HasPrefix(is.Digest, IdentityScheme) || len(is.Digest) != len(IdentityScheme)+16 || is.Why != "" {
		t.Fatalf("%+v", is)
	}
	var names []string
	for _, f := range is.Files {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"../lib/libggml.so", "libx.so.1", "program server"}, names); diff != "" {
		t.Errorf("its files (-want +got):\n%s", diff)
	}
	if other := identityOf(t, buildSpec(buildTree(t, files), parts...)); other.Digest != is.Digest {
		t.Error("the same bytes at another place are another build")
	}
	for name, c := range map[string]struct {
		file string
		same bool
	}{"the program": {"bin/server", false}, "a library": {"bin/libx.so.1", false}, "one below lib": {"lib/libggml.so", false}, "what does not belong to it": {"lib/other.so", true}} {
		t.Run(name, func(t *testing.T) {
			root := buildTree(t, files)
			path := filepath.Join(root, c.file)
			old, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			old[len(old)-1]++ // of the same size
			if err := os.WriteFile(path, old, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := identityOf(t, buildSpec(root, parts...)); (got.Digest == is.Digest) != c.same {
				t.Errorf("the same: %v", got.Digest == is.Digest)
			}
		})
	}
}

// TestIdentityOfReplacedBuild holds that neither size nor times of a file nor a kept digest hide another build.
func TestIdentityOfReplacedBuild(t *testing.T) {
	root := buildTree(t, map[string]string{"bin/server": "#!/bin/sh\none"})
	s := buildSpec(root)
	s.StateDir = t.TempDir()
	at := aged(t, s.Program)
	first := identityOf(t, s)
	for name, replace := range map[string]func(path string) error{
		"written over": func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\ntwo"), 0o755) },
		"renamed over": func(path string) error {
			err := os.WriteFile(path+".new", []byte("#!/bin/sh\nsix"), 0o755)
			return errors.Join(err, os.Rename(path+".new", path))
		},
	} {
		if err := errors.Join(replace(s.Program), os.Chtimes(s.Program, at, at)); err != nil {
			t.Fatal(err)
		}
		if got := identityOf(t, s); got.Digest == first.Digest || got.Build == first.Build {
			t.Errorf("%s: it is taken for the build before it", name)
		}
	}
}

func TestIdentityIsKept(t *testing.T) {
	root := buildTree(t, map[string]string{"bin/server": "#!/bin/sh\none"})
	s := buildSpec(root)
	s.StateDir = filepath.Join(t.TempDir(), "state")
	read := func() (entries int) {
		t.Helper()
		return len(openDigests(s.StateDir).known)
	}
	first := identityOf(t, s)
	if n := read(); n != 0 {
		t.Errorf("the digest of a file that changed just now is kept: %d", n)
	}
	d := openDigests(s.StateDir)
	info, err := os.Stat(s.Program)
	if err != nil {
		t.Fatal(err)
	}
	key, _, keyed := fileKey(s.Program, info)
	if !keyed {
		return // every file is read here
	}
	d.used[key], d.added = strings.Repeat("ab", 32), true
	d.keep()
	if got := identityOf(t, s); got.Files[0].SHA256 != "sha256:"+strings.Repeat("ab", 32) || got.Digest == first.Digest {
		t.Errorf("a kept digest is not used: %+v", got)
	}
	for name, text := range map[string]string{"damaged": "{", "newer": `{"schema":9,"digests":{}}`, "empty": ""} {
		if err := os.WriteFile(d.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := identityOf(t, s); got.Digest != first.Digest {
			t.Errorf("%s: %+v", name, got)
		}
	}
	d = openDigests(s.StateDir)
	for range mostDigests {
		d.known[string(rune('a'+len(d.known)))] = "x"
	}
	d.used["k"], d.added = "v", true
	d.keep()
	if n := read(); n != 1 {
		t.Errorf("%d digests are kept of a build of one file", n)
	}
}

func TestIdentityThroughLinks(t *testing.T) {
	root := buildTree(t, map[string]string{"v2/bin/server": "#!/bin/sh\none", "v2/bin/libx.so": "lib"})
	if err := errors.Join(os.Mkdir(filepath.Join(root, "bin"), 0o755), os.Symlink(filepath.Join(root, "v2/bin/server"), filepath.Join(root, "bin/server")),
		os.Symlink("libx.so", filepath.Join(root, "v2/bin/libx.so.1")), os.Symlink("gone", filepath.Join(root, "v2/bin/liby.so"))); err != nil {
		t.Fatal(err)
	}
	linked, plain := buildSpec(root, "*.so*"), buildSpec(filepath.Join(root, "v2"), "*.so*")
	if a, b := identityOf(t, linked), identityOf(t, plain); a.Digest != b.Digest || len(a.Files) != 2 {
		t.Errorf("by a link %+v, directly %+v", a, b)
	}
}

func TestIdentityOfWhatAProgramRuns(t *testing.T) {
	files := map[string]string{"bin/server": "#!/bin/sh\n", "app/main.dll": "one", "app/core.dll": "two"}
	root := buildTree(t, files)
	s := buildSpec(root, fileDir+"*.dll")
	s.Dir, s.File = filepath.Join(root, "app"), "main.dll"
	s.Scripts = []string{filepath.Join(root, "app/core.dll")}
	if got := identityOf(t, s); len(got.Files) != 3 {
		t.Errorf("%+v", got.Files)
	}
	s.File, s.Scripts = "", nil
	if got := identityOf(t, s); len(got.Files) != 1 {
		t.Errorf("without a file: %+v", got.Files)
	}
}

func TestIdentityOfEnvironment(t *testing.T) {
	s := buildSpec(buildTree(t, map[string]string{"bin/server": "#!/bin/sh\n"}))
	s.Environ = []string{"PATH=/bin", "OLLAMA_FLASH_ATTENTION=1", "CUDA_VISIBLE_DEVICES=0,1", "LLAMA_API_KEY=abc", "XCUDA_=1", "OMP_NUM_THREADS", "VLLM_PORT=1"}
	s.Env = []string{"MINE=x", "CUDA_VISIBLE_DEVICES=2", "AT=${host}:${port}", "VLLM_PORT=7", "MY_TOKEN=s3cret"}
	s.ArgEnv = []string{"VLLM_PORT"}
	is := identityOf(t, s)
	want := map[string]string{"OLLAMA_FLASH_ATTENTION": "1", "CUDA_VISIBLE_DEVICES": "2", "LLAMA_API_KEY": redact.Mask, "OMP_NUM_THREADS": "", "MINE": "x",
		"AT": "${host}:${port}", "MY_TOKEN": redact.Mask}
	if diff := cmp.Diff(want, is.Environment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same := func(change func(*Spec)) bool {
		other := s
		change(&other)
		return identityOf(t, other).Digest == is.Digest
	}
	if !same(func(o *Spec) { o.Environ = append(o.Environ, "HOME=/x") }) || !same(func(o *Spec) { o.Port, o.Args = 9, []string{"--port", "9"} }) {
		t.Error("what changes no result changes the identity")
	}
	if same(func(o *Spec) { o.Environ = append(o.Environ, "GGML_CUDA_FORCE_MMQ=1") }) || same(func(o *Spec) { o.Env = append(o.Env, "NEW=1") }) {
		t.Error("a variable that changes results has no part in it")
	}
}

func TestIdentityThatIsUnknown(t *testing.T) {
	root := buildTree(t, map[string]string{"bin/server": "#!/bin/sh\n", "bin/libx.so": "x"})
	s := buildSpec(root, "*.so")
	s.Program = filepath.Join(root, "bin/none")
	if _, err := IdentityOf(t.Context(), s); !errors.Is(err, ErrMissing) {
		t.Errorf("without a program: %v", err)
	}
	s = buildSpec(root, "[")
	if got := identityOf(t, s); got.Digest != "" || !strings.Contains(got.Why, "pattern") {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := IdentityOf(ctx, buildSpec(root)); !errors.Is(err, enough) {
		t.Errorf("after the end: %v", err)
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(filepath.Join(root, "bin/libx.so"), 0); err != nil {
			t.Fatal(err)
		}
		if got := identityOf(t, buildSpec(root, "*.so")); got.Digest != "" || !strings.Contains(got.Why, "libx.so") {
			t.Errorf("a library that cannot be read: %+v", got)
		}
	}
	raw, err := json.Marshal(Identity{Files: []BuildFile{}, Environment: map[string]string{}})
	if err != nil || string(raw) != `{"digest":"","build":"","files":[],"environment":{}}` {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestProcessKnowsItsIdentity holds that a process tells what it was started from, whatever became of that since.
func TestProcessKnowsItsIdentity(t *testing.T) {
	s := fakeSpec(t)
	s.Env = []string{"VISIBLE=0"}
	p := startFake(t, s)
	waitReady(t, p)
	is := identityOf(t, s)
	if got := p.Identity(); got.Digest == "" || got.Digest != is.Digest || got.Environment["VISIBLE"] != "0" {
		t.Errorf("%+v, want %+v", got, is)
	}
}
