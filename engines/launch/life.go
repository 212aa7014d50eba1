package launch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// life is the one goroutine that owns a process. What only it reads and writes is here.
type life struct {
	p      *Process
	began  time.Time
	exited chan struct{} // the process ended; it is not reaped yet
	probes chan probe
	stop   context.CancelFunc // of running probes
	ctx    context.Context
	wg     sync.WaitGroup // of running probes
	unseen int            // probes that were answered by a process that cannot be seen
	silent int            // probes in a row that connected and heard nothing
	status Status
}

// live starts the process and follows it to its end.
func (p *Process) live(started chan<- error) {
	// The kernel kills the engine when the thread that started it ends. This thread is ours alone, and ends with this
	// goroutine, when the engine has ended.
	runtime.LockOSThread()
	err := p.cmd.Start()
	p.log.closeInput()
	if err != nil {
		started <- err
		return
	}
	p.pid = p.cmd.Process.Pid
	p.family.leader = p.pid
	p.start, _ = startOf(p.pid) // it may have ended
	started <- nil
	l := &life{p: p, began: clock.Now(), exited: make(chan struct{}), probes: make(chan probe, 1), status: *p.status.Load()}
	l.ctx, l.stop = context.WithCancel(context.Background())
	go p.await(l.exited)
	l.run()
}

// await closes exited when the process has ended. Until it is reaped its id belongs to nobody else, nor does its group's.
func (p *Process) await(exited chan<- struct{}) {
	awaitExit(p.cmd)
	close(exited)
}

// end is why an engine has to end.
type end struct {
	state  State
	reason string
	when   string          // for hints
	asked  context.Context // of the request to stop, nil without one
	theirs bool            // the port is somebody else's
}

func (l *life) run() {
	e, ready := l.becomeReady()
	if ready {
		l.publish(Ready, "")
		close(l.p.settled)
		e = l.serve()
	}
	l.stop()
	l.wg.Wait()
	if e.asked != nil {
		l.publish(Stopping, e.reason)
	}
	if !ready {
		close(l.p.settled)
	}
	l.finish(e)
	close(l.p.done)
}

// publish lets everybody see a new state.
func (l *life) publish(s State, reason string) {
	if l.status.State != s {
		l.status.Since = clock.Now()
	}
	l.status.State, l.status.Reason = s, reason
	shown := l.status
	l.p.status.Store(&shown)
}

// firstProbe is how soon after the start the first ready check is sent; the waits then grow to Times.Every.
const firstProbe = 50 * time.Millisecond

// becomeReady follows the start. ready is false when the engine has to end.
func (l *life) becomeReady() (e end, ready bool) {
	p := l.p
	limit := time.NewTimer(p.spec.Times.Ready)
	defer limit.Stop()
	wait := min(firstProbe, p.spec.Times.Every)
	next := time.NewTimer(wait)
	defer next.Stop()
	for {
		select {
		case <-l.exited:
			return l.died(", before it was ready" + l.portTaken()), false
		case ctx := <-p.stops:
			return end{state: Exited, reason: "stopped before it was ready", asked: ctx}, false
		case <-limit.C:
			return end{state: Failed, when: hintTimeout, reason: fmt.Sprintf("not ready within %s: %s", p.spec.Times.Ready, l.lastSign())}, false
		case <-next.C:
			p.watch()
			l.wg.Go(func() { l.probes <- p.probe(l.ctx) })
		case r := <-l.probes:
			if e, settled := l.weigh(r); settled {
				return e, e.state == Ready
			}
			wait = min(wait*2, p.spec.Times.Every)
			next.Reset(wait)
		}
	}
}

// Close ends the probes of a life that does not go on.
func (l *life) Close() {
	l.stop()
	l.wg.Wait()
}

// lastSign is what was last seen of a start.
func (l *life) lastSign() string {
	if l.status.Reason != "" {
		return l.status.Reason
	}
	return "its port does not answer"
}

// weigh draws the consequences of a ready check.
func (l *life) weigh(r probe) (e end, settled bool) {
	p := l.p
	if !r.connected {
		l.publish(Starting, "its port does not answer yet")
		return end{}, false
	}
	if !r.silent {
		l.silent = 0
	} else {
		l.silent++
	}
	o, known := p.owner()
	if known && o.pid == 0 && l.unseen == 0 { // it may be ours, which is just ending: then the next check finds nobody
		l.unseen++
		l.publish(Loading, fmt.Sprintf("its port answers, and belongs to %s", o))
		return end{}, false
	}
	if known && !o.ours {
		return end{state: Failed, when: hintExit, theirs: true, reason: fmt.Sprintf(
			"port %d answers, and it belongs to %s, not to the process that was started", p.port, o)}, true
	}
	switch {
	case r.ready:
		return end{state: Ready}, true
	case r.silent:
		l.publish(Loading, fmt.Sprintf("its port accepts connections and does not answer (%d times)", l.silent))
	default:
		l.publish(Loading, r.says)
	}
	return end{}, false
}

// serve waits for the end of an engine that was ready.
func (l *life) serve() end {
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-l.exited:
			return l.died("")
		case ctx := <-l.p.stops:
			return end{state: Exited, reason: "stopped", asked: ctx}
		case <-look.C:
			look.Reset(l.p.watch())
		}
	}
}

// died is the end of an engine that ended by itself. How is known when it is reaped.
func (l *life) died(when string) end {
	return end{state: Failed, when: hintExit, reason: fmt.Sprintf(" after %s%s", clock.Since(l.began).Round(time.Millisecond), when)}
}

// portTaken names who took the port between the choice of it and the engine's own try.
func (l *life) portTaken() string {
	if o, known := l.p.owner(); known && !o.ours && o.pid != 0 { // who cannot be seen may be the engine, which is just ending
		return fmt.Sprintf("; port %d is in use by %s", l.p.port, o)
	}
	return ""
}

// finish ends what still runs, waits until nothing is left, and publishes the final state.
func (l *life) finish(e end) {
	p := l.p
	byItself := l.hasExited()
	err := l.ladder(e)
	errs := []error{err, l.clearGroup(e.asked != nil)}
	if err == nil {
		l.reap(byItself, &e)
	}
	p.log.drain()
	if !e.theirs {
		errs = append(errs, p.awaitPort())
	}
	errs = append(errs, p.log.Close())
	p.err = errors.Join(errs...)
	p.finalHint(&l.status, e)
	<-p.noted // one that dies at its start may be faster than its note
	if p.err != nil {
		e.reason += "; " + p.err.Error()
	} else if p.entry != nil {
		p.entry.remove()
	}
	l.publish(e.state, e.reason)
}

func (l *life) hasExited() bool {
	select {
	case <-l.exited:
		return true
	default:
		return false
	}
}

// reap takes the exit status, which frees the process id.
func (l *life) reap(byItself bool, e *end) {
	_ = l.p.cmd.Wait() // a code other than 0 is no error of ours
	x := exitOf(l.p.cmd.ProcessState)
	l.status.Exit, l.status.Signal = x.code, x.signal
	if byItself && e.asked == nil && !e.theirs {
		e.reason = x.String() + e.reason
		l.status.Hint = x.meaning()
	}
}

// ladder asks the process to end, and kills it when it does not.
func (l *life) ladder(e end) error {
	p := l.p
	if l.hasExited() {
		return nil
	}
	askToEnd(p.cmd.Process, p.spec.Engine.Launch)
	grace := time.NewTimer(p.spec.Times.Grace)
	defer grace.Stop()
	hurry := context.Background().Done()
	if e.asked != nil {
		hurry = e.asked.Done()
	}
	for waiting := true; waiting; {
		select {
		case <-l.exited:
			return nil
		case ctx := <-p.stops: // a second request may be in more of a hurry
			hurry = ctx.Done()
		case <-hurry:
			waiting = false
		case <-grace.C:
			waiting = false
		}
	}
	p.family.kill(p.cmd.Process)
	kill := time.NewTimer(p.spec.Times.Kill)
	defer kill.Stop()
	select {
	case <-l.exited:
		return nil
	case <-kill.C:
		return fmt.Errorf("pid %d did not end within %s of being killed: it hangs in the kernel, in a driver perhaps, and keeps port %d", p.pid, p.spec.Times.Kill, p.port)
	}
}

// groupGrace is how long the processes an engine started may outlive it when it was asked to end.
const groupGrace = 2 * time.Second

// clearGroup ends what the engine started and did not end itself.
func (l *life) clearGroup(asked bool) error {
	p := l.p
	left := func() bool { return len(p.family.living(true)) > 0 }
	if asked && poll(groupGrace, func() bool { return !left() }) {
		return nil
	}
	if poll(p.spec.Times.Kill, func() bool {
		if !left() {
			return true
		}
		p.family.kill(p.cmd.Process)
		return false
	}) {
		return nil
	}
	return fmt.Errorf("of what it started %s did not end", processList(p.family.living(true)))
}

// awaitPort waits until the engine's port is free again. Somebody else who was quick to take it is no error, unless it was
// started after the engine: it may be what the engine left behind without a trace.
func (p *Process) awaitPort() error {
	var holder owner
	if poll(p.spec.Times.PortFree, func() bool {
		if portFree(p.spec.Host, p.port) {
			return true
		}
		o, known := portOwner(p.spec.Host, p.port)
		holder = o
		return known && o.pid != 0 && !p.owns(o) && !startedSince(o.pid, p.start)
	}) {
		return nil
	}
	return fmt.Errorf("port %d is still in use, by %s", p.port, holder)
}

// pollEvery is the pause between two looks at what has no event to wait for.
const pollEvery = 10 * time.Millisecond

// poll asks whether something holds until it does, or the time is over.
func poll(limit time.Duration, holds func() bool) bool {
	over := time.NewTimer(limit)
	defer over.Stop()
	next := time.NewTicker(pollEvery)
	defer next.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-over.C:
			return holds()
		case <-next.C:
		}
	}
}
