package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// The targets, in the order of the table.
const (
	direct    = "direct"       // the engine itself
	proxied   = "proxy"        // benchproxy, nothing recorded
	records   = "record"       // benchproxy, all recorded
	traced    = "traced"       // as record, every exchange in a trace that is exported to a collector of little work
	unsampled = "unsampled"    // as record, every exchange in a trace of which nothing is exported
	compare   = "reverseproxy" // httputil.ReverseProxy
	nginx     = "nginx"
	haproxy   = "haproxy"
)

// targetNames are all of them.
var targetNames = []string{direct, proxied, records, traced, unsampled, compare, nginx, haproxy}

// target is what clients are pointed at.
type target struct {
	name  string
	addr  string
	pid   int
	proxy *rig.Proxy   // of benchproxy
	other *rig.Process // of a comparison
	dir   string       // of its files, "" when it has none
}

// Close ends its process and removes its files. The engine is ended by its owner.
func (t *target) Close() {
	if t.proxy != nil {
		t.proxy.Close()
	}
	if t.other != nil {
		t.other.Close()
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir) // it is in the system's temporary directory
	}
}

// cpu is the processor time that the target has used, in all its processes.
func (t *target) cpu() (time.Duration, error) {
	pids, err := rig.Tree(t.pid)
	sum := time.Duration(0)
	for _, pid := range pids {
		d, err := rig.CPU(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, err
}

// resident is the memory of all its processes, in bytes. What they share is counted for each.
func (t *target) resident() (int64, error) {
	pids, err := rig.Tree(t.pid)
	sum := int64(0)
	for _, pid := range pids {
		m, err := rig.MemoryOf(pid)
		if err != nil {
			return 0, err
		}
		sum += m.Now
	}
	return sum, err
}

// settle waits until the target has done all the work that its requests made.
func (t *target) settle(ctx context.Context) error {
	if t.proxy == nil {
		return nil
	}
	return rig.Poll(ctx, func() (bool, error) {
		h, err := t.proxy.Health(ctx)
		if err != nil || h.Proxy.Running > 0 {
			return false, err
		}
		return h.Recorder == nil || h.Recorder.Stored+h.Recorder.Dropped >= h.Proxy.Accepted, nil
	})
}

// bench holds what runs during a measurement.
type bench struct {
	cfg      config
	dir      string
	progress io.Writer
	began    time.Time
	engine   *rig.Engine
	targets  []*target
	spans    *collector // nil where nothing is traced
	stores   int
	serial   int // of requests
}

// Close ends every process.
func (b *bench) Close() {
	for _, t := range b.targets {
		t.Close()
	}
	if b.spans != nil {
		b.spans.Close()
	}
	if b.engine != nil {
		b.engine.Close()
	}
}

// note says what is going on and how many seconds it took to get there.
func (b *bench) note(format string, args ...any) {
	fmt.Fprintf(b.progress, "%4.0f s: %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts the engine and one process for each target.
func (b *bench) start(ctx context.Context) (err error) {
	if b.engine, err = rig.StartEngine(ctx, b.cfg.benchproxy); err != nil {
		return err
	}
	for _, name := range b.cfg.targets {
		t, err := b.open(ctx, name)
		if err != nil {
			return err
		}
		b.targets = append(b.targets, t)
	}
	return nil
}

// open starts a fresh process of a target.
func (b *bench) open(ctx context.Context, name string) (*target, error) {
	t := &target{name: name}
	var err error
	switch name {
	case direct:
		t.addr, t.pid = b.engine.Addr, b.engine.PID()
	case proxied:
		t.proxy, err = rig.StartProxy(ctx, b.cfg.benchproxy, "proxy", "--upstream", b.engine.URL, "--quiet")
	case records:
		t.proxy, err = b.record(ctx, nil)
	case traced, unsampled:
		var vars []string
		if vars, err = b.tracing(ctx, name); err == nil {
			t.proxy, err = b.record(ctx, vars)
		}
	case compare:
		err = t.startOther(ctx, b.cfg.reverseproxy, b.engine.URL)
	default:
		i := slices.IndexFunc(peerList, func(p peer) bool { return p.name == name })
		err = t.startPeer(ctx, peerList[i], b.cfg.peers[name], b.engine.Addr)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	if t.proxy != nil {
		t.addr, t.pid = t.proxy.Addr, t.proxy.PID()
	}
	return t, nil
}

// record starts a recording proxy with variables of its environment set.
func (b *bench) record(ctx context.Context, vars []string) (*rig.Proxy, error) {
	b.stores++
	return rig.StartProxyWith(ctx, vars, b.cfg.benchproxy, "record", "--upstream", b.engine.URL, "--quiet",
		"--store", fmt.Sprintf("%s/store%d", b.dir, b.stores))
}

func (t *target) startOther(ctx context.Context, path, upstream string) error {
	if path == "" {
		return fmt.Errorf("start %s: its path is not given (-%s PATH)", t.name, t.name)
	}
	p, err := rig.Start(path, "-upstream", upstream)
	if err != nil {
		return err
	}
	m, err := p.Out.Match(ctx, regexp.MustCompile(`http://(\S+)\n`))
	if err != nil {
		p.Close()
		return fmt.Errorf("start %s: %w", path, err)
	}
	t.other, t.addr, t.pid = p, m[1], p.PID()
	return nil
}
