package launch

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MemoryOptions say how memory is sampled.
type MemoryOptions struct {
	Every time.Duration // between samples of host memory, and four times that between those of GPU memory; 0 is DefaultMemoryEvery
	// Held says that a model was in memory when the baseline was taken, so that the peak minus the baseline says nothing.
	Held bool
	// Query lists the memory in use of each GPU process; nil asks nvidia-smi where there is one.
	Query func(ctx context.Context) (byPID map[int]int64, total int64, err error)
}

// DefaultMemoryEvery is the pause between two samples.
const DefaultMemoryEvery = 500 * time.Millisecond

// Memory is what an engine used, in bytes. A nil field was not measured: there is no GPU tool, or no process could be read.
type Memory struct {
	HostPeak *int64 `json:"host_peak_bytes"` // resident memory of all its processes together; what they share counts in each
	HostLast *int64 `json:"host_last_bytes"`
	// GPUPeak is the memory of all GPUs together, of every process of the machine; GPUOwnPeak is that of the engine's
	// processes alone, where the driver tells it apart.
	GPUPeak     *int64 `json:"gpu_peak_bytes"`
	GPUOwnPeak  *int64 `json:"gpu_own_peak_bytes"`
	GPUBaseline *int64 `json:"gpu_baseline_bytes"` // GPUPeak's first sample
	// GPUModel is GPUPeak minus GPUBaseline; nil when the baseline still held a model.
	GPUModel *int64 `json:"gpu_model_bytes"`
	Samples  int    `json:"samples"`
}

// Sampler samples the memory of an engine while it runs.
type Sampler struct {
	p *Process
	o MemoryOptions

	mu sync.Mutex
	m  Memory
}

// NewSampler makes a sampler of a process. Nothing is sampled before Baseline or Run.
func NewSampler(o MemoryOptions) *Sampler {
	if o.Every <= 0 {
		o.Every = DefaultMemoryEvery
	}
	if o.Query == nil {
		o.Query = nvidiaMemory
	}
	return &Sampler{o: o}
}

// Baseline samples the GPUs before an engine is started.
func (s *Sampler) Baseline(ctx context.Context) {
	_, total, err := s.o.Query(ctx)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.GPUBaseline = &total
}

// Run samples p until it ends or ctx does.
func (s *Sampler) Run(ctx context.Context, p *Process) {
	s.p = p
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	gpu := true
	for n := 0; ; n++ {
		s.host()
		if gpu && n%4 == 0 {
			gpu = s.gpu(ctx)
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *Sampler) host() {
	var sum int64
	read := false
	for _, m := range s.p.family.living(false) {
		if n, ok := residentBytes(m.pid); ok {
			sum, read = sum+n, true
		}
	}
	if !read {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.Samples++
	s.m.HostLast = &sum
	raise(&s.m.HostPeak, sum)
}

// gpu is false where GPUs cannot be asked.
func (s *Sampler) gpu(ctx context.Context) bool {
	byPID, total, err := s.o.Query(ctx)
	if err != nil {
		return false
	}
	var own int64
	mine := false
	for _, m := range s.p.family.living(false) {
		if n, ok := byPID[m.pid]; ok {
			own, mine = own+n, true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	raise(&s.m.GPUPeak, total)
	if mine {
		raise(&s.m.GPUOwnPeak, own)
	}
	return true
}

// raise keeps the larger value.
func raise(at **int64, n int64) {
	if *at == nil || n > **at {
		*at = &n
	}
}

// Memory is what was sampled so far.
func (s *Sampler) Memory() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.m
	if m.GPUPeak != nil && m.GPUBaseline != nil && !s.o.Held {
		model := max(*m.GPUPeak-*m.GPUBaseline, 0)
		m.GPUModel = &model
	}
	return m
}

// queryTime bounds one question to nvidia-smi.
const queryTime = 5 * time.Second

// nvidiaMemory asks nvidia-smi for the memory in use: of each process, and of all GPUs together.
func nvidiaMemory(ctx context.Context) (byPID map[int]int64, total int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	ask := func(query string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "nvidia-smi", "--query-"+query, "--format=csv,noheader,nounits")
		cmd.WaitDelay = time.Second
		return cmd.Output()
	}
	gpus, err := ask("gpu=index,memory.used")
	if err != nil {
		return nil, 0, err
	}
	for _, mib := range mibByID(gpus) {
		total += mib
	}
	apps, err := ask("compute-apps=pid,used_memory")
	if err != nil {
		return nil, total, nil // an older driver; the total stands
	}
	return mibByID(apps), total, nil
}

// mibByID reads lines of "id, MiB" as bytes, summed up by id. What is not a number, "[N/A]" say, is left out.
func mibByID(out []byte) map[int]int64 {
	sums := map[int]int64{}
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace, r.FieldsPerRecord = true, -1
	for {
		f, err := r.Read()
		if err == io.EOF {
			return sums
		}
		if err != nil || len(f) < 2 {
			continue
		}
		id, idErr := strconv.Atoi(strings.TrimSpace(f[0]))
		mib, mibErr := strconv.ParseInt(strings.TrimSpace(f[1]), 10, 64)
		if idErr == nil && mibErr == nil {
			sums[id] += mib << 20
		}
	}
}
