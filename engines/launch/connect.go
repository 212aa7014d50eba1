package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ConnectOptions say how an engine is reached that somebody else runs.
type ConnectOptions struct {
	Engine  engines.Profile
	URL     string // base URL, with or without /v1
	Headers []exchange.Header
	Times   Times
	Client  engines.Doer // nil is engines.Client
	Daemon  *Daemon      // that FindDaemon found, whose URL counts; nil: it is reached by URL alone
}

// Connection is an engine that somebody else runs. Its methods may be called from any goroutine.
type Connection struct {
	caller
	status atomic.Pointer[Status]
	never  chan struct{}
}

// Connect makes a Server of an engine that runs, or will. Nothing is asked yet.
func Connect(o ConnectOptions) *Connection {
	if o.Client == nil {
		o.Client = engines.Client(engines.ClientOptions{})
	}
	if o.Daemon != nil {
		o.URL = o.Daemon.URL
	}
	base := strings.TrimSuffix(strings.TrimRight(o.URL, "/"), "/v1")
	c := &Connection{caller: caller{engine: o.Engine, base: base, headers: o.Headers, times: o.Times.withDefaults(), client: o.Client, daemon: o.Daemon}, never: make(chan struct{})}
	c.status.Store(&Status{State: Starting, Reason: "it was not asked yet", Since: clock.Now()})
	return c
}

// Status is what the last ready check found.
func (c *Connection) Status() Status { return *c.status.Load() }

// Done is never closed.
func (c *Connection) Done() <-chan struct{} { return c.never }

// Stop does nothing: the engine is not ours.
func (c *Connection) Stop(context.Context) error { return nil }

// WaitReady asks until the engine says that it is ready, at most for Times.Ready.
func (c *Connection) WaitReady(ctx context.Context) error {
	limit, cancel := context.WithTimeoutCause(ctx, c.times.Ready, errNotInTime)
	defer cancel()
	wait := min(firstProbe, c.times.Every)
	for {
		once, stop := context.WithTimeout(limit, c.times.Probe)
		r := c.readyCheck(once)
		stop()
		if r.ready {
			c.publish(Ready, "")
			return nil
		}
		state, reason := Loading, r.says
		if !r.connected {
			state, reason = Starting, "its port does not answer"
		}
		c.publish(state, reason)
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-limit.Done():
			next.Stop()
			if cause := context.Cause(limit); !errors.Is(cause, errNotInTime) {
				return cause
			}
			return c.failure("reach", c.base, fmt.Errorf("%w: not ready within %s: %s", exchange.ErrUnreachable, c.times.Ready, reason), "start it, or check its URL")
		}
		wait = min(wait*2, c.times.Every)
	}
}

// errNotInTime is the cause of a wait that took too long.
var errNotInTime = errors.New("not ready in time")

func (c *Connection) publish(s State, reason string) {
	c.status.Store(&Status{State: s, Reason: reason, Since: clock.Now()})
}
