package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSampler(t *testing.T) {
	var asked atomic.Int64
	var pid atomic.Int64
	query := func(context.Context) (map[int]int64, int64, error) {
		n := asked.Add(1)
		return map[int]int64{int(pid.Load()): 100 * n, 1: 5}, 1000 + 100*n, nil
	}
	s := NewSampler(MemoryOptions{Every: 5 * time.Millisecond, Query: query})
	s.Baseline(t.Context())
	p := startFake(t, fakeSpec(t, "-child", "session"))
	pid.Store(int64(p.PID()))
	ended := make(chan struct{})
	go func() { s.Run(context.Background(), p); close(ended) }()
	eventually(t, "samples", func() bool { return asked.Load() >= 3 && s.Memory().Samples >= 3 })
	if err := p.Stop(hurried()); err != nil {
		t.Fatal(err)
	}
	<-ended
	m := s.Memory()
	if m.HostPeak == nil || *m.HostPeak < 1<<20 || m.HostLast == nil || *m.HostLast > *m.HostPeak {
		t.Errorf("host %v, %v", m.HostPeak, m.HostLast)
	}
	if m.GPUBaseline == nil || *m.GPUBaseline != 1100 || m.GPUPeak == nil || *m.GPUPeak < 1300 || m.GPUModel == nil || *m.GPUModel != *m.GPUPeak-1100 {
		t.Errorf("GPU %+v", m)
	}
	if m.GPUOwnPeak == nil || *m.GPUOwnPeak >= *m.GPUPeak {
		t.Errorf("own %v", m.GPUOwnPeak)
	}
	s.o.Held = true
	if s.Memory().GPUModel != nil {
		t.Error("a baseline with a model in it gives a difference")
	}
}

func TestSamplerWithoutGPU(t *testing.T) {
	s := NewSampler(MemoryOptions{Every: 5 * time.Millisecond, Query: func(context.Context) (map[int]int64, int64, error) { return nil, 0, errors.New("none") }})
	s.Baseline(t.Context())
	p := startFake(t, fakeSpec(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx, p); close(ended) }()
	eventually(t, "a sample", func() bool { return s.Memory().Samples > 0 })
	cancel()
	<-ended
	if m := s.Memory(); m.GPUPeak != nil || m.GPUBaseline != nil || m.GPUModel != nil || m.GPUOwnPeak != nil {
		t.Errorf("%+v", m)
	}
}

func TestNvidiaOutput(t *testing.T) {
	got := mibByID([]byte("0, 1024\n1, 2\n1, 3\n2, [N/A]\nnonsense\n\n"))
	if diff := cmp.Diff(map[int]int64{0: 1 << 30, 1: 5 << 20}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNvidiaTool holds the questions that are asked of the tool, against one that answers them.
func TestNvidiaTool(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in\n'--query-gpu=index,memory.used --format=csv,noheader,nounits') echo '0, 10'; echo '1, 20';;\n" +
		"'--query-compute-apps=pid,used_memory --format=csv,noheader,nounits') echo '42, 7';;\n*) exit 9;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	byPID, total, err := nvidiaMemory(t.Context())
	if err != nil || total != 30<<20 || byPID[42] != 7<<20 {
		t.Errorf("%v, %d, %v", byPID, total, err)
	}
	t.Setenv("PATH", filepath.Join(dir, "none"))
	if _, _, err := nvidiaMemory(t.Context()); err == nil {
		t.Error("no tool is no error")
	}
}
