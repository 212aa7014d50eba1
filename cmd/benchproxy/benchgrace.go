package main

import (
	"context"
	"os"
)

// grace is the patience with engines that are to end: its context ends at the signal that follows the one that ended the
// matrix, for all of them.
type grace struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
	over   chan struct{} // closed when nothing waits for a signal any more
}

// newGrace waits for a signal from the end of ctx on.
func newGrace(ctx context.Context, signals <-chan os.Signal) *grace {
	g := &grace{over: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.stop = context.AfterFunc(ctx, func() {
		defer close(g.over)
		select {
		case s := <-signals:
			g.cancel(interrupted{s})
		case <-g.ctx.Done():
		}
	})
	return g
}

// Close stops waiting.
func (g *grace) Close() {
	g.cancel(nil)
	if !g.stop() {
		<-g.over
	}
}
