package telemetry

import (
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Values of error.type beside status codes. They are few, so that metrics can be labeled with them.
const (
	errTimeout = "timeout"
	errRefused = "connection_refused"
	errReset   = "connection_reset"
	errEOF     = "upstream_eof"
	errStream  = "stream_error"
	errClient  = "client_disconnected"
	errOther   = "_OTHER"
)

// errorOf is why an exchange is not complete, "" for one that is.
func errorOf(x *exchange.Exchange, a *measure.Analysis) string {
	switch a.Outcome {
	case exchange.OutcomeComplete:
		return ""
	case exchange.OutcomeStreamError:
		return errStream
	case exchange.OutcomeClientAbort:
		return errClient
	case exchange.OutcomeTimeout:
		return errTimeout
	case exchange.OutcomeShutdown:
		return errOther
	case exchange.OutcomeUpstreamError:
		if x.Response.Status != 0 {
			return strconv.Itoa(x.Response.Status)
		}
	}
	return transportError(x)
}

// transportError is what broke between the proxy and the engine.
func transportError(x *exchange.Exchange) string {
	switch x.End {
	case exchange.EndConnectFailed:
		switch text := causeOf(x); {
		case strings.Contains(text, "refused"):
			return errRefused
		case strings.Contains(text, "timeout"), strings.Contains(text, "deadline"):
			return errTimeout
		}
		return errOther
	case exchange.EndReset:
		if x.Cause != nil && x.Cause.Code == "reset" {
			return errReset
		}
		return errOther
	case exchange.EndShort, exchange.EndEOF:
		return errEOF
	}
	return errOther
}

func causeOf(x *exchange.Exchange) string {
	if x.Cause == nil {
		return ""
	}
	return x.Cause.Text
}

// causeText is the cause in words, which an engine may have written.
func causeText(a *measure.Analysis) string { return cut(redact.Text(a.Cause.Text), maxValue) }
