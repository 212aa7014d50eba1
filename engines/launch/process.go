package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Process is an engine that we started. Its methods may be called from any goroutine.
type Process struct {
	caller   // load and unload
	spec     Spec
	port     int
	pid      int
	argv     []string // as it was started
	start    string   // tells it from a later one of the same number
	family   *family
	marker   string // in its environment, so that what it starts can be told
	identity Identity
	log      *capture
	devs     *deviceScan
	entry    *entry // its note in the state directory, nil without one; it stands when noted is closed
	noted    chan struct{}
	cmd      *exec.Cmd

	status  atomic.Pointer[Status]
	stops   chan context.Context // requests to end; the context bounds the grace
	settled chan struct{}        // closed when ready, exited or failed
	done    chan struct{}        // closed when exited or failed
	err     error                // of the end; read after done
}

// Start starts an engine. It returns once the process runs, long before it is ready: WaitReady waits for that. The end of
// ctx after Start has returned does nothing; Stop ends the engine.
//
// The error says what stood in the way: a missing program or file (ErrMissing), a busy port with the process that holds
// it (ErrPortBusy), or another engine of the same group (ErrBusy).
func Start(ctx context.Context, s Spec) (*Process, error) {
	s.Times = s.Times.withDefaults()
	if err := checkSpec(&s); err != nil {
		return nil, err
	}
	claim, err := claimGroup(&s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = claim.Close() }() // it only unlocks
	p := &Process{spec: s, marker: string(exchange.NewID(clock.Now())), stops: make(chan context.Context, 1),
		noted: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{})}
	p.devs = newDeviceScan(s.Engine.Launch)
	p.family = newFamily(noGroup, p.marker, nil)
	p.status.Store(&Status{State: Starting, Since: clock.Now()})
	if p.identity, err = IdentityOf(ctx, s); err != nil { // before the start: a build may be replaced while it runs
		return nil, err
	}
	p.listDevices(ctx)
	if err := p.choosePort(); err != nil { // last, for others choose as well while builds are read and devices listed
		return nil, err
	}
	if p.entry, err = claim.note(p); err != nil { // before the start: a kill between the two leaves nothing without a note
		return nil, err
	}
	if err := p.begin(); err != nil {
		p.entry.remove()
		return nil, err
	}
	return p, p.note()
}

// choosePort chooses the port and puts it where it is told.
func (p *Process) choosePort() (err error) {
	s := &p.spec
	if p.port, err = choosePort(s); err != nil {
		return err
	}
	p.caller = caller{engine: s.Engine, base: "http://" + net.JoinHostPort(s.Host, strconv.Itoa(p.port)), headers: s.Headers, times: s.Times,
		client: engines.Client(engines.ClientOptions{})}
	p.argv = append([]string{s.Program}, fillAll(s.Args, s.Host, p.port)...)
	return nil
}

// findProgram puts the path of the program into the Spec.
func findProgram(s *Spec) error {
	path, err := exec.LookPath(s.Program)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return missing(s, s.Program, err, "install the engine, or name its program")
	}
	s.Program = cmp.Or(path, s.Program)
	return nil
}

func missing(s *Spec, object string, cause error, hint string) error {
	return &exchange.Error{Op: "launch " + s.Engine.ID, Object: object, Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", ErrMissing, cause), Hint: hint}
}

// checkSpec finds the program and the files.
func checkSpec(s *Spec) error {
	if err := findProgram(s); err != nil {
		return err
	}
	for _, f := range s.Files {
		if _, err := os.Stat(f); err != nil {
			return missing(s, f, errors.New("there is no such file"), "name a file that is there, or fetch it first")
		}
	}
	if s.Dir != "" {
		if _, err := os.Stat(s.Dir); err != nil {
			return missing(s, s.Dir, errors.New("there is no such directory"), "")
		}
	}
	return nil
}

// fillAll fills in host and port.
func fillAll(args []string, host string, port int) []string {
	r := strings.NewReplacer("${host}", host, "${port}", strconv.Itoa(port))
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.Replace(a)
	}
	return out
}

// begin opens the log and starts the process on the goroutine that owns it.
func (p *Process) begin() error {
	var err error
	if p.log, err = newCapture(p.spec, p.Command()); err != nil {
		return err
	}
	p.family.output = pipeName(p.log.r)
	p.cmd = exec.Command(p.argv[0], p.argv[1:]...)
	p.cmd.Dir, p.cmd.Env = p.spec.Dir, p.environ()
	p.cmd.Stdout, p.cmd.Stderr = p.log.input(), p.log.input()
	p.cmd.SysProcAttr = ownGroup()
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return errors.Join(&exchange.Error{Op: "launch " + p.spec.Engine.ID, Object: p.argv[0], Side: exchange.SideClient, Cause: err,
			Hint: "check that it is a program for this machine"}, p.log.Close())
	}
	p.log.start(p.devs.see)
	return nil
}

// markerName is the variable by which the processes of an engine are told from others.
const markerName = "BENCHPROXY_LAUNCH"

// environ is what the engine is started with: what we inherit without our own settings, the engine's, and the marker.
func (p *Process) environ() []string {
	env := slices.DeleteFunc(slices.Clone(p.spec.Environ), func(v string) bool { return strings.HasPrefix(v, "BENCHPROXY_") })
	env = append(env, fillAll(p.spec.Env, p.spec.Host, p.port)...)
	return append(env, markerName+"="+p.marker)
}

// note adds to the engine's note which process it is. Without that it is not left running.
func (p *Process) note() error {
	err := p.entry.started(p.pid, p.start)
	close(p.noted)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

// PID is the process id of the engine.
func (p *Process) PID() int { return p.pid }

// Port is the port it listens on.
func (p *Process) Port() int { return p.port }

// Spec is what it was started with.
func (p *Process) Spec() Spec { return p.spec }

// Identity is what was started: build and environment.
func (p *Process) Identity() Identity { return p.identity }

// Command is its command line with the variables set for it before it, as a shell would take it, secrets masked.
func (p *Process) Command() string {
	return p.spec.Command(p.port)
}

// Tail is the end of its output, at most n lines, without line ends.
func (p *Process) Tail(n int) []string { return p.log.tail(n) }

// LogLost is how many bytes of its output came too fast to be kept in the file.
func (p *Process) LogLost() int64 { return p.log.lost() }

// Status is what is known now.
func (p *Process) Status() Status {
	s := *p.status.Load()
	s.Device, s.Evidence = p.devs.seen()
	s.Notes = p.hints(func(h engines.Hint) bool { return h.When == engines.HintReady })
	return s
}

// Done is closed when the process has ended and nothing is left of it, or the reason names what is.
func (p *Process) Done() <-chan struct{} { return p.done }

// WaitReady waits until the engine can answer, or has failed. The error of a failure tells the end of its output.
func (p *Process) WaitReady(ctx context.Context) error {
	select {
	case <-p.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch s := p.Status(); s.State {
	case Ready:
		return nil
	case Stopping:
		return p.failure("wait for", Status{Reason: "it is being stopped"})
	default:
		<-p.done
		return p.failure("launch", p.Status())
	}
}

// Wait waits for the end, and is nil when the engine ended as it was asked to.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s := p.Status(); s.State == Failed {
		return p.failure("run", s)
	}
	return p.err
}

// Stop asks the engine to end, kills it after its grace, and waits until nothing is left of it and its port is free. The
// end of ctx ends the grace. It is nil for an engine that had ended before; an error names what is left.
func (p *Process) Stop(ctx context.Context) error {
	select {
	case p.stops <- ctx:
	case <-p.done:
	}
	<-p.done
	return p.err
}

// Close is Stop with the whole grace.
func (p *Process) Close() error { return p.Stop(context.Background()) }

// failure is an error of op that tells the status and the end of the output.
func (p *Process) failure(op string, s Status) error {
	cause := errors.New(s.Reason)
	if lines := p.Tail(lastLines); len(lines) > 0 {
		cause = fmt.Errorf("%w; its last lines:\n  %s", cause, strings.Join(plainLines(lines), "\n  "))
	}
	hint := s.Hint
	if p.spec.LogFile != "" {
		hint = strings.TrimPrefix(hint+"; all of its output is in "+p.spec.LogFile, "; ")
	}
	return &exchange.Error{Op: op + " " + p.spec.Engine.ID, Side: exchange.SideEngine, Cause: fmt.Errorf("%w: %w", exchange.ErrUnreachable, cause), Hint: hint}
}

// lastLines is how much of the output a failure tells.
const lastLines = 25
