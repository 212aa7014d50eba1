package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	got, err := Builds(t.Context(), p, []string{root, bare}, nil)
	if err != nil {
		t.Fatal(err)
	}
	device := "cuda"
	want := []Build{
		{Path: broken, Tag: "broken", Error: "ended with exit code 127: error while loading shared libraries: libx.so; a program or a library that it needs was not found"},
		{Path: cuda, Tag: "llama-b10269-cuda", Version: "version: 1 (abc)", Device: &device, Devices: "CUDA0: A40"},
		{Path: bare, Tag: "plain", Version: "hello"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Builds(t.Context(), p, []string{filepath.Join(root, "none")}, nil); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("a root that is not there: %v", err)
	}
	if _, err := Builds(t.Context(), engines.Profile{}, nil, nil); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("an engine that is not launched: %v", err)
	}
}
