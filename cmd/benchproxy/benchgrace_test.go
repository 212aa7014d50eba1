package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
)

// TestGraceEndsAtTheSecondSignal holds that it lasts as long as the matrix runs and beyond its end, to the next signal, and
// that nothing waits for signals behind its closing.
func TestGraceEndsAtTheSecondSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		matrix, end := context.WithCancel(t.Context())
		g := newGrace(matrix, signals)
		signals <- os.Interrupt // the first one is not for it
		synctest.Wait()
		if g.ctx.Err() != nil || len(signals) != 1 {
			t.Error("it takes the first signal")
		}
		<-signals
		end()
		synctest.Wait()
		if g.ctx.Err() != nil {
			t.Error("it ends with the matrix")
		}
		signals <- os.Interrupt
		synctest.Wait()
		if !errors.Is(context.Cause(g.ctx), interrupted{os.Interrupt}) {
			t.Errorf("behind the second signal: %v", context.Cause(g.ctx))
		}
		g.Close()

		ended, stop := context.WithCancel(t.Context())
		quiet := newGrace(ended, signals)
		quiet.Close()
		stop()
		waits := newGrace(ended, signals)
		synctest.Wait()
		waits.Close()
		signals <- os.Interrupt
		synctest.Wait()
		if len(signals) != 1 {
			t.Error("a closed one takes signals")
		}
	})
}
