package main

import (
	"context"
	"errors"
	"iter"
	"os"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestASignalEndsACommand(t *testing.T) {
	for _, want := range []struct {
		signal os.Signal
		code   int
	}{{os.Interrupt, 130}, {syscall.SIGTERM, 143}} {
		signals := make(chan os.Signal, 1)
		p := &program{env: env{Signals: signals}}
		err := p.interruptible(func(c *cli.Context) error {
			signals <- want.signal
			<-c.Context.Done()
			return c.Context.Err()
		})(&cli.Context{Context: t.Context()})
		if err == nil || err.Error() != "ended by signal: "+want.signal.String() {
			t.Errorf("got %v", err)
		}
		if got := exitCode(err); got != want.code {
			t.Errorf("%v: exit code %d, want %d", want.signal, got, want.code)
		}
	}
}

func TestWithoutASignalACommandEndsAsItDoes(t *testing.T) {
	own := errors.New("its own")
	p := &program{}
	for _, want := range []error{nil, own} {
		got := p.interruptible(func(c *cli.Context) error { return want })(&cli.Context{Context: t.Context()})
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// endless is a store whose run has no end.
type endless struct{ reading }

func (endless) Summaries(exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for yield(exchange.Summary{}, nil) {
		}
	}
}

func TestAListingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	for _, err := range rowsOf(ctx, endless{}, "") {
		if n++; n == 3 {
			cancel(interrupted{os.Interrupt})
		}
		if err != nil {
			if exitCode(err) != 130 || n != 4 {
				t.Errorf("row %d: %v", n, err)
			}
			return
		}
	}
	t.Error("the listing ended without an error")
}
