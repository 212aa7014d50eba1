package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestBuilds(t *testing.T) {
	root := t.TempDir()
	program := func(dir, script string, mode os.FileMode) string {
		path := filepath.Join(root, dir, "engine-server")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const lists = `case $1 in --version) echo "version: 1 (abc)";; *) echo "Available devices:"; echo "  CUDA0: A40";; esac`
	cuda := program("llama-b10269-cuda/build/bin", lists, 0o755)
	bare := program("plain", `case $1 in --version) echo hello;; *) exit 1;; esac`, 0o755)
	broken := program("broken", "echo 'error while loading shared libraries: libx.so'; exit 127", 0o755)
	program("notes", "not a program", 0o644)
	if err := os.Symlink(cuda, filepath.Join(root, "plain", "engine-server.exe")); err != nil {
		t.Fatal(err)
	}
	p := engines.Profile{Name: "E", Launch: &engines.Launch{Program: "engine-server", Version: []string{"--version"},
		Devices: &engines.DeviceEvidence{List: []string{"--list-devices"}, Seen: []engines.DeviceLine{{Match: "^  (CUDA)[0-9]:", Device: "$1"}}}}}
	other := program("copy", lists, 0o755)
	for link, to := range map[string]string{"loop": "loop", "gone": "nowhere", "v9.9": "llama-b10269-cuda"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	garbage := program("garbage", "", 0o755)
	if err := errors.Join(os.WriteFile(garbage, []byte("\x00garbage"), 0o755), os.Link(bare, filepath.Join(root, "zz-engine-server")), os.MkdirAll(filepath.Join(root, "dir/engine-server"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var asked []string
	got, err := Builds(t.Context(), Search{Engine: p, Roots: []string{root, bare, filepath.Join(root, "v9.9/build/bin/engine-server"), filepath.Join(root, "zz-engine-server")},
		Asking: func(path string) { asked = append(asked, path) }})
	if err != nil {
		t.Fatal(err)
	}
	device := "cuda"
	want := []Build{
		{Path: broken, Tag: "broken", Error: "--version: ended with exit code 127: error while loading shared libraries: libx.so; a program or a library that it needs was not found"},
		{Path: cuda, Tag: "llama-b10269-cuda", Version: "version: 1 (abc)", Device: &device, Devices: "CUDA0: A40", Also: []string{other}},
		{Path: garbage, Tag: "garbage", Error: "--version: it is no program for this machine, or not to be run: exec format error"},
		{Path: bare, Tag: "plain", Version: "hello"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Build{}, "Digest")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{broken, other, garbage, bare}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for _, b := range got {
		if b.Digest == "" {
			t.Errorf("%s has no digest", b.Path)
		}
	}
	linked, err := Builds(t.Context(), Search{Engine: p, Roots: []string{filepath.Join(root, "v9.9")}})
	if err != nil || len(linked) != 1 || linked[0].Tag != "llama-b10269-cuda" {
		t.Errorf("a root that is a link: %+v, %v", linked, err)
	}
	if _, err := Builds(t.Context(), Search{Engine: p, Roots: []string{filepath.Join(root, "none")}}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("a root that is not there: %v", err)
	}
	if _, err := Builds(t.Context(), Search{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("an engine that is not launched: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := Builds(ctx, Search{Engine: p, Roots: []string{cuda}}); !errors.Is(err, enough) {
		t.Errorf("after the end: %v", err)
	}
}
