package proxy

import (
	"context"
	"errors"
	"io"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ErrShutdown is the cause to cancel a context of Do with when the program stops: the exchange then ends as
// EndShutdown, not as one that its client left.
var ErrShutdown = errors.New("shutdown")

// Do sends one request and copies the response body to w, read by read; a nil w keeps it in the record only. It
// returns the sealed exchange, which is also offered to the session's sink, whatever became of it: End and Cause say so.
//
// Canceling ctx closes the connection at once: EndShutdown for the cause ErrShutdown, EndTimeout for a deadline, else
// EndClientGone. An error of w ends the exchange as EndClientGone.
func (s *Session) Do(ctx context.Context, u *Upstream, c Call, w io.Writer) *exchange.Exchange {
	f := s.open(u, c, clock.Start())
	defer context.AfterFunc(ctx, func() { f.cancel(canceled(ctx)) })()
	if f.begin(context.WithoutCancel(ctx)) == nil {
		_, _ = f.stream(w) // how it ended is in the record
	}
	return f.seal()
}

// canceled says how the end of a caller's context ends its exchange.
func canceled(ctx context.Context) (exchange.End, exchange.Cause) {
	err := context.Cause(ctx)
	c := exchange.Cause{Side: exchange.SideClient, Code: "client_gone", Text: err.Error()}
	switch {
	case errors.Is(err, ErrShutdown):
		c.Side, c.Code = exchange.SideProxy, "shutdown"
		return exchange.EndShutdown, c
	case errors.Is(err, context.DeadlineExceeded):
		c.Code = "deadline"
		return exchange.EndTimeout, c
	}
	return exchange.EndClientGone, c
}
