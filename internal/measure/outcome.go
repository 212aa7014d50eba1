package measure

import (
	"fmt"
	"net/http"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Outcome is what an exchange came to. Errors go first, wherever they were seen; then the dialect's own end, after
// which it no longer matters how the connection ended; then the way the transport ended.
func Outcome(x *exchange.Exchange, t *wire.Transcript) exchange.Outcome {
	switch {
	case x.Tunnel != nil:
		return tunnelOutcome(x.End)
	case x.End == exchange.EndConnectFailed:
		return exchange.OutcomeUpstreamError
	case x.Response.Status == 0:
		return headlessOutcome(x.End)
	case x.Response.Status < 200 || x.Response.Status > 299:
		return exchange.OutcomeUpstreamError
	case t.Error != nil || t.FinishNorm == finishError:
		return exchange.OutcomeStreamError
	case !hasDialect(x, t):
		return byTransport(x.End, exchange.OutcomeComplete)
	case t.DialectEnd:
		return exchange.OutcomeComplete
	case !x.Response.Body.Whole() || t.Oversized > 0 || t.Undecoded:
		// We cut the record, or left a huge event unread, so the missing end is our own doing. The transport is all there is
		// to judge by.
		return byTransport(x.End, exchange.OutcomeComplete)
	}
	return byTransport(x.End, exchange.OutcomeUpstreamTruncated)
}

// hasDialect reports whether the answer had to end as its dialect says. Only a POST asks for generation.
func hasDialect(x *exchange.Exchange, t *wire.Transcript) bool {
	return t.Dialect != wire.DialectNone && x.Request.Method == http.MethodPost && x.Tunnel == nil
}

// byTransport judges by the end of the connection alone; atEOF is what a proper end amounts to.
func byTransport(end exchange.End, atEOF exchange.Outcome) exchange.Outcome {
	switch end {
	case exchange.EndEOF:
		return atEOF
	case exchange.EndClientGone:
		return exchange.OutcomeClientAbort
	case exchange.EndTimeout:
		return exchange.OutcomeTimeout
	case exchange.EndShutdown:
		return exchange.OutcomeShutdown
	}
	return exchange.OutcomeUpstreamTruncated
}

// headlessOutcome is that of an exchange without a response head: whoever did not end it, the engine gave no answer.
func headlessOutcome(end exchange.End) exchange.Outcome {
	if o := byTransport(end, exchange.OutcomeUpstreamError); o != exchange.OutcomeUpstreamTruncated {
		return o
	}
	return exchange.OutcomeUpstreamError
}

// tunnelOutcome is that of an upgraded connection. Either side may close it at any time, and that is its proper end.
func tunnelOutcome(end exchange.End) exchange.Outcome {
	if end == exchange.EndClientGone {
		return exchange.OutcomeComplete
	}
	return byTransport(end, exchange.OutcomeComplete)
}

// cause says why an exchange is not complete: the engine's own words where it sent some, else what the proxy saw.
func cause(x *exchange.Exchange, t *wire.Transcript, o exchange.Outcome) *exchange.Cause {
	switch {
	case o == exchange.OutcomeComplete:
		return nil
	case o == exchange.OutcomeStreamError:
		return &exchange.Cause{Side: exchange.SideEngine, Code: "stream_error", Text: streamErrorText(t)}
	case o == exchange.OutcomeUpstreamError && x.Response.Status != 0:
		return &exchange.Cause{Side: exchange.SideEngine, Code: "http_status", Text: statusText(x, t)}
	case x.Cause != nil:
		c := *x.Cause
		return &c
	case suspicions[t.Suspect] != "":
		return &exchange.Cause{Side: exchange.SideEngine, Code: string(t.Suspect), Text: suspicions[t.Suspect]}
	}
	return defaultCause(x.End)
}

// suspicions say what the proxy cannot have seen: why an answer that ended properly is not complete.
var suspicions = map[wire.Suspect]string{
	wire.SuspectSwallowed: "the stream ended without a finish reason behind an empty chunk that names no model, as Ollama's does when an error is lost",
	wire.SuspectNoAPI:     "a success status with a body that is neither JSON nor an event stream, such as a web page",
}

// finishError is the normalized finish reason of an answer that the engine gave up (error, abort, failed ...). Some
// engines say nothing more than that.
const finishError = "error"

func streamErrorText(t *wire.Transcript) string {
	if t.Error == nil {
		return fmt.Sprintf("finish reason %q", *t.FinishReason)
	}
	return errorText(t.Error)
}

func errorText(e *wire.Error) string {
	switch {
	case e.Type != "" && e.Message != "":
		return e.Type + ": " + e.Message
	case e.Message != "":
		return e.Message
	case e.Type != "":
		return e.Type
	}
	return "error " + e.Code
}

func statusText(x *exchange.Exchange, t *wire.Transcript) string {
	text := fmt.Sprintf("%d %s", x.Response.Status, x.Response.Reason)
	if x.Response.Reason == "" {
		text = fmt.Sprintf("%d %s", x.Response.Status, http.StatusText(x.Response.Status))
	}
	if t.Error != nil {
		text += ": " + errorText(t.Error)
	}
	return text
}

// defaultCause covers a record whose proxy noted no cause: a proper end of the body without the dialect's own.
func defaultCause(end exchange.End) *exchange.Cause {
	switch end {
	case exchange.EndEOF:
		return &exchange.Cause{Side: exchange.SideEngine, Code: "no_dialect_end", Text: "the body ended without a finish reason or terminal event"}
	case exchange.EndClientGone:
		return &exchange.Cause{Side: exchange.SideClient, Code: string(end), Text: "the client closed its connection"}
	case exchange.EndTimeout:
		return &exchange.Cause{Side: exchange.SideProxy, Code: string(end), Text: "a deadline passed"}
	case exchange.EndShutdown:
		return &exchange.Cause{Side: exchange.SideProxy, Code: string(end), Text: "the proxy was stopped"}
	case exchange.EndConnectFailed:
		return &exchange.Cause{Side: exchange.SideEngine, Code: "connect", Text: "no connection to the engine"}
	}
	return &exchange.Cause{Side: exchange.SideEngine, Code: string(end), Text: "the engine's connection ended early"}
}
