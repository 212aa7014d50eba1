//go:build unix

package models

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestPrismPull runs a program in the place of Prism's.
func TestPrismPull(t *testing.T) {
	dir := t.TempDir()
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pull := func(ctx context.Context, prism string) error {
		return NewDaemonPull(Daemon{KindPrism, "phi"}, DaemonOptions{Prism: prism}).Run(ctx)
	}
	if err := pull(context.Background(), program("good", `test "$1 $2 $#" = "pull phi 2"`)); err != nil {
		t.Error(err)
	}
	err := pull(context.Background(), program("bad", "echo no such model >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3: no such model") {
		t.Errorf("%v", err)
	}
	if err := pull(context.Background(), filepath.Join(dir, "none")); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := pull(ctx, program("slow", "exec sleep 600")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
