package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func TestOutcome(t *testing.T) {
	engineError := &wire.Error{Message: "engine failed", Type: "InternalServerError", Where: "event"}
	ended := wire.Transcript{Dialect: wire.DialectChat, DialectEnd: true}
	open := wire.Transcript{Dialect: wire.DialectChat}
	failed := wire.Transcript{Dialect: wire.DialectChat, DialectEnd: true, Error: engineError}
	garbled := wire.Transcript{Dialect: wire.DialectChat, DialectEnd: true, ParseErrors: 3}
	none := wire.Transcript{}
	for _, c := range []struct {
		name   string
		end    exchange.End
		status int
		t      wire.Transcript
		want   exchange.Outcome
	}{
		{"dialect's end, proper end", exchange.EndEOF, 200, ended, exchange.OutcomeComplete},
		{"events that are not JSON", exchange.EndEOF, 200, garbled, exchange.OutcomeComplete},
		{"client gone after the dialect's end", exchange.EndClientGone, 200, ended, exchange.OutcomeComplete},
		{"reset after the dialect's end", exchange.EndReset, 200, ended, exchange.OutcomeComplete},
		{"idle deadline after the dialect's end", exchange.EndTimeout, 200, ended, exchange.OutcomeComplete},
		{"clean early end", exchange.EndEOF, 200, open, exchange.OutcomeUpstreamTruncated},
		{"short body", exchange.EndShort, 200, open, exchange.OutcomeUpstreamTruncated},
		{"reset", exchange.EndReset, 200, open, exchange.OutcomeUpstreamTruncated},
		{"client gone", exchange.EndClientGone, 200, open, exchange.OutcomeClientAbort},
		{"deadline", exchange.EndTimeout, 200, open, exchange.OutcomeTimeout},
		{"shutdown", exchange.EndShutdown, 200, open, exchange.OutcomeShutdown},
		{"error in the stream and then an end", exchange.EndEOF, 200, failed, exchange.OutcomeStreamError},
		{"error in the stream, client gone", exchange.EndClientGone, 200, failed, exchange.OutcomeStreamError},
		{"status 503", exchange.EndEOF, 503, none, exchange.OutcomeUpstreamError},
		{"status 400 with a body that errs", exchange.EndEOF, 400, failed, exchange.OutcomeUpstreamError},
		{"status 302", exchange.EndEOF, 302, none, exchange.OutcomeUpstreamError},
		{"status 500, client gone", exchange.EndClientGone, 500, none, exchange.OutcomeUpstreamError},
		{"no connection", exchange.EndConnectFailed, 0, none, exchange.OutcomeUpstreamError},
		{"closed before the head", exchange.EndShort, 0, none, exchange.OutcomeUpstreamError},
		{"reset before the head", exchange.EndReset, 0, none, exchange.OutcomeUpstreamError},
		{"client gone during prefill", exchange.EndClientGone, 0, none, exchange.OutcomeClientAbort},
		{"no head in time", exchange.EndTimeout, 0, none, exchange.OutcomeTimeout},
		{"shutdown during prefill", exchange.EndShutdown, 0, none, exchange.OutcomeShutdown},
		{"no dialect, proper end", exchange.EndEOF, 204, none, exchange.OutcomeComplete},
		{"no dialect, short", exchange.EndShort, 200, none, exchange.OutcomeUpstreamTruncated},
		{"no dialect, client gone", exchange.EndClientGone, 200, none, exchange.OutcomeClientAbort},
	} {
		x := &exchange.Exchange{Request: exchange.Request{Method: "POST"}, Response: exchange.Response{Status: c.status}, End: c.end}
		got := Outcome(x, &c.t)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if why := cause(x, &c.t, got); (why == nil) != (got == exchange.OutcomeComplete) {
			t.Errorf("%s: outcome %s has the cause %v", c.name, got, why)
		}
	}
}

func TestOutcomeOfOtherMethodsNeedsNoDialectEnd(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		x := &exchange.Exchange{Request: exchange.Request{Method: method}, Response: exchange.Response{Status: 200}, End: exchange.EndEOF}
		if got := Outcome(x, &wire.Transcript{Dialect: wire.DialectChat}); got != exchange.OutcomeComplete {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// TestOutcomeOfAnOversizedEvent holds that an answer which we did not take apart is not called truncated by its engine.
func TestOutcomeOfAnOversizedEvent(t *testing.T) {
	x := &exchange.Exchange{Request: exchange.Request{Method: "POST"}, Response: exchange.Response{Status: 200}}
	for end, want := range map[exchange.End]exchange.Outcome{
		exchange.EndEOF: exchange.OutcomeComplete, exchange.EndShort: exchange.OutcomeUpstreamTruncated,
	} {
		x.End = end
		a := Derive(x, &wire.Transcript{Dialect: wire.DialectChat, Oversized: 1}, wire.RequestFacts{N: 1})
		if a.Outcome != want {
			t.Errorf("%s: %s, want %s", end, a.Outcome, want)
		}
		if want == exchange.OutcomeComplete {
			wantFlags(t, a, FlagOversizedEvent, FlagOutcomeUnverified)
		} else {
			wantFlags(t, a, FlagOversizedEvent)
		}
	}
}

func TestOutcomeOfTunnels(t *testing.T) {
	for end, want := range map[exchange.End]exchange.Outcome{
		exchange.EndEOF: exchange.OutcomeComplete, exchange.EndClientGone: exchange.OutcomeComplete,
		exchange.EndReset: exchange.OutcomeUpstreamTruncated, exchange.EndShutdown: exchange.OutcomeShutdown,
		exchange.EndTimeout: exchange.OutcomeTimeout,
	} {
		x := &exchange.Exchange{
			Request: exchange.Request{Method: "GET"}, Response: exchange.Response{Status: 101}, End: end, Tunnel: &exchange.Tunnel{},
		}
		a := Derive(x, &wire.Transcript{}, wire.RequestFacts{N: 1})
		if a.Outcome != want {
			t.Errorf("%s: %s, want %s", end, a.Outcome, want)
		}
		wantFlags(t, a)
	}
}

func TestOutcomeOfACutRecordIsThatOfItsTransport(t *testing.T) {
	x := &exchange.Exchange{Request: exchange.Request{Method: "POST"}, Response: exchange.Response{Status: 200, Body: exchange.Body{Size: 9, Kept: 4}}}
	for end, want := range map[exchange.End]exchange.Outcome{
		exchange.EndEOF: exchange.OutcomeComplete, exchange.EndShort: exchange.OutcomeUpstreamTruncated, exchange.EndClientGone: exchange.OutcomeClientAbort,
	} {
		x.End = end
		if got := Outcome(x, &wire.Transcript{Dialect: wire.DialectChat}); got != want {
			t.Errorf("%s: %s, want %s", end, got, want)
		}
	}
}

func TestCause(t *testing.T) {
	seen := &exchange.Cause{Side: exchange.SideEngine, Code: "reset", Text: "read: connection reset by peer"}
	for _, c := range []struct {
		name string
		x    exchange.Exchange
		t    wire.Transcript
		want *exchange.Cause
	}{
		{
			"what the proxy saw is kept", exchange.Exchange{End: exchange.EndReset, Cause: seen, Response: exchange.Response{Status: 200}},
			wire.Transcript{Dialect: wire.DialectChat}, seen,
		},
		{
			"the engine's words win", exchange.Exchange{End: exchange.EndReset, Cause: seen, Response: exchange.Response{Status: 200}},
			wire.Transcript{Error: &wire.Error{Message: "out of memory", Type: "server_error"}},
			&exchange.Cause{Side: exchange.SideEngine, Code: "stream_error", Text: "server_error: out of memory"},
		},
		{
			"a message alone", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 200}},
			wire.Transcript{Error: &wire.Error{Message: "boom"}}, &exchange.Cause{Side: exchange.SideEngine, Code: "stream_error", Text: "boom"},
		},
		{
			"a type alone", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 200}},
			wire.Transcript{Error: &wire.Error{Type: "overloaded"}}, &exchange.Cause{Side: exchange.SideEngine, Code: "stream_error", Text: "overloaded"},
		},
		{
			"a code is better than nothing", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 200}},
			wire.Transcript{Error: &wire.Error{Code: "500"}}, &exchange.Cause{Side: exchange.SideEngine, Code: "stream_error", Text: "error 500"},
		},
		{
			"status with the engine's words", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 503, Reason: "Busy"}},
			wire.Transcript{Error: &wire.Error{Message: "Loading model"}}, &exchange.Cause{Side: exchange.SideEngine, Code: "http_status", Text: "503 Busy: Loading model"},
		},
		{
			"status without a phrase", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 404}},
			wire.Transcript{}, &exchange.Cause{Side: exchange.SideEngine, Code: "http_status", Text: "404 Not Found"},
		},
		{
			"clean early end", exchange.Exchange{End: exchange.EndEOF, Response: exchange.Response{Status: 200}},
			wire.Transcript{Dialect: wire.DialectChat},
			&exchange.Cause{Side: exchange.SideEngine, Code: "no_dialect_end", Text: "the body ended without a finish reason or terminal event"},
		},
	} {
		c.x.Request.Method = "POST"
		got := cause(&c.x, &c.t, Outcome(&c.x, &c.t))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
