package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// TestEvidentlyTooLarge holds that only weights that are more than the memory they go to are refused, that a file which two
// engines map counts once, and that what is not known refuses nothing.
func TestEvidentlyTooLarge(t *testing.T) {
	const gib = int64(1) << 30
	weights := filepath.Join(t.TempDir(), "w.gguf")
	f, err := os.Create(weights)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 * gib); err != nil { // it takes no room
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	group := func(kind, offload string, devices ...string) matrix.Group {
		l := matrix.Launch{Transport: matrix.TransportServer, Registry: engines.Backend{Kind: kind}, CPUMoE: offload, Devices: devices}
		l.Model.Weights = weights
		return matrix.Group{Launch: l}
	}
	gpu := func(index int, size int64) exchange.GPU { return exchange.GPU{Index: index, MemoryBytes: &size} }
	ram := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name   string
		groups []matrix.Group
		gpus   []exchange.GPU
		ram    *int64
		want   string
	}{
		{"both fit", []matrix.Group{group("gpu", ""), group("gpu", "")}, []exchange.GPU{gpu(0, 24*gib)}, nil, ""},
		{"one of two fits", []matrix.Group{group("gpu", ""), group("gpu", "")}, []exchange.GPU{gpu(0, 16*gib)}, nil, "the GPUs they are to be on have 16"},
		{"other devices", []matrix.Group{group("gpu", "", "1"), group("gpu", "", "1")}, []exchange.GPU{gpu(0, 80*gib), gpu(1, 16*gib)}, nil, "GPUs"},
		{"two devices", []matrix.Group{group("gpu", "", "0"), group("gpu", "", "1")}, []exchange.GPU{gpu(0, 16*gib), gpu(1, 16*gib)}, nil, ""},
		{"no tool tells of GPUs", []matrix.Group{group("gpu", ""), group("gpu", "")}, nil, nil, ""},
		{"experts on the host", []matrix.Group{group("gpu", "8"), group("gpu", "all")}, []exchange.GPU{gpu(0, gib)}, ram(gib), ""},
		{"one file is mapped once", []matrix.Group{group("cpu", ""), group("cpu", "")}, nil, ram(16 * gib), ""},
		{"more than the machine has", []matrix.Group{group("cpu", ""), group("cpu", "")}, nil, ram(8 * gib), "the machine has 8"},
		{"running ones are not ours", []matrix.Group{{}, {}}, nil, ram(1), ""},
	} {
		got := evidently(&matrix.Plan{Groups: c.groups}, []int{0, 1}, &exchange.Machine{GPUs: c.gpus, MemoryBytes: c.ram})
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
