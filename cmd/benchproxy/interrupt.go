package main

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"
)

// interrupted is the end of a command by a signal.
type interrupted struct{ signal os.Signal }

// Error names the signal.
func (i interrupted) Error() string { return "ended by signal: " + i.signal.String() }

// code is the exit code by which a shell knows the signal.
func (i interrupted) code() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailure
}

// interruption cancels a context at the first signal, with the signal as its cause.
type interruption struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newInterruption(ctx context.Context, signals <-chan os.Signal) *interruption {
	i := &interruption{}
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	i.await(signals)
	return i
}

func (i *interruption) await(signals <-chan os.Signal) {
	i.wg.Go(func() {
		select {
		case s := <-signals:
			i.cancel(interrupted{s})
		case <-i.ctx.Done():
		}
	})
}

// Close stops waiting for a signal.
func (i *interruption) Close() {
	i.cancel(nil)
	i.wg.Wait()
}

// interruptible ends an action by its context at the first signal. Signals never end the process by themselves, so every
// command that does not wait for them itself needs this.
func (p *program) interruptible(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		i := newInterruption(c.Context, p.Signals)
		defer i.Close()
		c.Context = i.ctx
		err := action(c)
		if cause := context.Cause(i.ctx); err != nil && cause != nil {
			return cause
		}
		return err
	}
}
