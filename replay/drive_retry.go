package replay

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// maxRetryWait bounds what an engine can ask us to wait.
const maxRetryWait = 5 * time.Minute

// retryAfter is how long the engine asks to be left alone before it is asked again: with a 503 that says so. Nothing
// else is ever sent again as it was.
func retryAfter(x *exchange.Exchange) (wait time.Duration, ok bool) {
	if x.Response.Status != http.StatusServiceUnavailable || x.End != exchange.EndEOF {
		return 0, false
	}
	value, ok := exchange.HeaderValue(x.Response.Headers, "Retry-After")
	value = strings.TrimSpace(value)
	if !ok || value == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds >= 0) {
			return 0, false
		}
		return time.Duration(min(seconds, maxRetryWait.Seconds()) * float64(time.Second)), true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now := x.Timeline.Wall
	if ns, seen := x.Timeline.BodyEnd.NS(); seen {
		now = now.Add(time.Duration(ns))
	}
	return min(max(until.Sub(now), 0), maxRetryWait), true
}

// waitUntil waits for an instant; false means that ctx, which ends the sending, ended before. The instant at which the time
// is over is past it.
func waitUntil(ctx context.Context, t time.Time) bool {
	if end, ok := ctx.Deadline(); ok && !t.Before(end) {
		<-ctx.Done()
		return false
	}
	wait := clock.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
