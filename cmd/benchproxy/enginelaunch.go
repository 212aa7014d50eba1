package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// launchName is the subcommand of engines that starts one.
const launchName = "launch"

func (p *program) launchCommand() *cli.Command {
	return &cli.Command{
		Name:      launchName,
		Usage:     "start an engine with a measuring proxy in front of it",
		ArgsUsage: "ID [-- ARGS]",
		Description: "It waits until the engine can answer, prints the address of the proxy, and ends the engine with everything it\n" +
			"started at the first Ctrl-C. Arguments after \"--\" are the engine's. What a killed run left is named at the next start,\n" +
			"and ended with --reap, for which no ID is needed. A recording of it makes 'benchproxy record --engine ID'.\n\n" +
			"   benchproxy engines launch llamacpp --model model.gguf --backend ggml_cuda -- --jinja\n" +
			"   benchproxy engines launch --reap",
		Flags: append(proxyFlags(), launchFlags()...),
		Action: func(c *cli.Context) error {
			if c.Args().Len() == 0 && c.Bool("reap") {
				return p.reap(c.Context)
			}
			if err := exactArgs(c, "ID"); err != nil {
				return err
			}
			s, err := p.settings(c, "proxy")
			if err != nil {
				return err
			}
			p.rest = nil // the engine has them
			if c.Bool("reap") {
				if err := p.reap(c.Context); err != nil {
					return err
				}
			}
			return p.capture(c.Context, s)
		},
	}
}

// reap ends what runs that were killed have left.
func (p *program) reap(ctx context.Context) error {
	dir, ok := p.dataDir()
	if !ok {
		return usagef("there is no home directory where engines are noted")
	}
	list, err := launch.Reap(ctx, filepath.Join(dir, "engines"))
	for _, l := range list {
		note(p.Stderr, "ended %s", l)
	}
	if len(list) == 0 && err == nil {
		note(p.Stderr, "nothing is left over")
	}
	if limits := launch.Limits(); limits != "" {
		note(p.Stderr, "on this system: %s", limits)
	}
	return err
}

// launched is the engine that a capture started for itself, or the daemon that it had load a model. A nil one is none.
type launched struct {
	server  launch.Server
	process *launch.Process // that server, nil for a daemon
	model   string          // that a daemon was told to load
	stop    chan struct{}
	wg      sync.WaitGroup
}

// startEngine starts the engine that the settings ask for, waits until it can answer, and fills in where it is. Without
// one it does nothing.
func (p *program) startEngine(ctx context.Context, s *captureSettings) error {
	if s.launch == nil && s.daemon == nil {
		return nil
	}
	i := newInterruption(ctx, p.Signals)
	defer i.Close()
	var err error
	if s.daemon != nil {
		s.launched, err = p.startDaemon(i.ctx, s)
	} else {
		s.launched, err = p.startProcess(i.ctx, s)
	}
	if err != nil {
		return err
	}
	s.upstreams[0].url = s.launched.server.URL()
	fresh := newRun(s.run.Mode, s.run.Name, s.upstreams)
	s.run.ID, s.run.Started, s.run.Upstreams = fresh.ID, fresh.Started, fresh.Upstreams
	return nil
}

// startProcess starts the engine, and notes with the run what it is.
func (p *program) startProcess(ctx context.Context, s *captureSettings) (*launched, error) {
	proc, err := launch.Start(ctx, *s.launch)
	if err != nil {
		return nil, err
	}
	began := clock.Now()
	note(p.Stderr, "starting %s, pid %d", proc.Command(), proc.PID())
	if s.launch.LogFile != "" {
		note(p.Stderr, "log %s", s.launch.LogFile)
	}
	if err := proc.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, proc.Close())
	}
	took := clock.Since(began)
	if s.run.Labels == nil {
		s.run.Labels = map[string]string{}
	}
	labelLaunch(s.run.Labels, proc, p.Environ())
	note(p.Stderr, "%s is ready after %s, %s", s.launch.Engine.ID, took.Round(10*time.Millisecond), deviceSeen(proc))
	for _, n := range proc.Status().Notes {
		note(p.Stderr, "%s: %s", s.launch.Engine.ID, n)
	}
	return &launched{server: proc, process: proc, stop: make(chan struct{})}, nil
}

// labelLaunch keeps with a run what its engine was started with: the command line with what was set for it, the digest of
// its build, and what it inherits that changes its results. Secrets are masked.
func labelLaunch(labels map[string]string, proc *launch.Process, environ []string) {
	labels["launch"] = proc.Command()
	if build := proc.Identity().Build; build != "" {
		labels["build"] = build
	}
	if text := inherited(environ); text != "" {
		labels["environment"] = text
	}
}

// inherited are the variables of an environment that change what an engine does, in order of their names.
func inherited(environ []string) string {
	found := launch.Inherited(environ)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		words = append(words, name+"="+found[name])
	}
	return strings.Join(words, " ")
}

// deviceSeen says where an engine runs, as far as its output shows.
func deviceSeen(proc *launch.Process) string {
	st, asked := proc.Status(), proc.Spec().Asked
	switch {
	case st.Device == nil && asked == "":
		return "where it computes it does not show"
	case st.Device == nil:
		return fmt.Sprintf("%s was asked for, and nothing shows where it computes", asked)
	case engines.CPUFallback(&asked, st.Device):
		return fmt.Sprintf("on %s, though %s was asked for (%s)", *st.Device, asked, printable(st.Evidence))
	}
	return fmt.Sprintf("on %s (%s)", *st.Device, printable(st.Evidence))
}

// observe adds to what was read of the engine what was started, and what its start showed.
func (l *launched) observe(d exchange.Deployment) exchange.Deployment {
	if l.process == nil {
		return d
	}
	return withProcess(d, l.process)
}

// withProcess is a deployment with what was started for it, and what the start showed.
func withProcess(d exchange.Deployment, proc *launch.Process) exchange.Deployment {
	if d.ObservedDevice == nil {
		d.ObservedDevice = proc.Status().Device
		d.CPUFallback = engines.CPUFallback(d.RequestedDevice, d.ObservedDevice)
	}
	return engines.WithLaunch(d, proc.Identity().Digest)
}

// tell sends an error when the engine ends by itself.
func (l *launched) tell(failed chan<- error) {
	if l == nil || l.process == nil {
		return
	}
	l.wg.Go(func() {
		select {
		case <-l.process.Done():
			if err := l.process.Wait(context.Background()); err != nil {
				select {
				case failed <- err:
				case <-l.stop:
				}
			}
		case <-l.stop:
		}
	})
}

// Close ends the engine, and waits until nothing is left of it. A daemon is told to unload what it loaded for us.
func (l *launched) Close() error {
	if l == nil {
		return nil
	}
	close(l.stop)
	l.wg.Wait()
	if l.process == nil {
		if l.model == "" {
			return nil
		}
		return l.server.Unload(context.Background(), l.model)
	}
	return l.process.Close()
}
