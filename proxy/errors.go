package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// writeError answers with an error object in the form that OpenAI clients read. The head is parsed, not set: setting
// it up afresh would bring back the headers that the library adds by itself.
func writeError(ctx *fasthttp.RequestCtx, status int, kind, code, message string) {
	body := `{"error":{"message":` + quote(message) + `,"type":"` + kind + `","code":"` + code + `","param":null}}` + "\n"
	ctx.Response.ResetBody()
	ctx.Response.ImmediateHeaderFlush = false
	_ = readHead(&ctx.Response.Header, fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		status, fasthttp.StatusMessage(status), len(body)))
	ctx.Response.SetBodyString(body)
}

// readHead makes head the head of a response.
func readHead(h *fasthttp.ResponseHeader, head []byte) error {
	return h.Read(bufio.NewReaderSize(bytes.NewReader(head), max(len(head), 16)))
}

// quote is a JSON string. Bytes that are not UTF-8 become replacement characters.
func quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return string(append(b, '"'))
}

// badRequest answers what is not HTTP, or too much of it. It never repeats bytes of the request.
func (s *Server) badRequest(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var netErr net.Error
	switch {
	case errors.As(err, &small):
		s.session.refused[refusedMalformed].Add(1)
		writeError(ctx, 431, "invalid_request_error", "head_too_large",
			"the request head is larger than "+strconv.Itoa(s.fast.ReadBufferSize)+" bytes")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.session.refused[refusedTooLarge].Add(1)
		writeError(ctx, 413, "invalid_request_error", "request_too_large",
			"the request body is larger than "+strconv.Itoa(s.fast.MaxRequestBodySize)+" bytes")
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, fasthttp.ErrTimeout):
		s.session.refused[refusedSlow].Add(1)
		writeError(ctx, 408, "invalid_request_error", "request_timeout", "the request did not arrive in time")
	default:
		s.session.refused[refusedMalformed].Add(1)
		writeError(ctx, 400, "invalid_request_error", "malformed_request", "the request is not valid HTTP")
	}
	if c := clientOf(ctx.Conn()); c != nil {
		c.linger = true
	}
}

// engineError answers for an engine that gave no response, after x was sealed.
func engineError(ctx *fasthttp.RequestCtx, x *exchange.Exchange) {
	if x.End == exchange.EndClientGone {
		// Only a client that closed its sending side alone can still read this. Nothing tells it from one that left until
		// something is written, and to wait would leave the engine at work for nobody; the fault is not the engine's.
		writeError(ctx, 400, "invalid_request_error", "client_closed",
			"the client closed its side of the connection before the answer, which is taken for its leaving: the request to the engine was "+
				"ended; keep the connection open until the answer has come")
		return
	}
	status, code, next := 502, "engine_error", "look into the engine's log; the request reached it at most once and was not sent again"
	switch x.End {
	case exchange.EndConnectFailed:
		code, next = "engine_unreachable", "check that it runs and that the proxy's --upstream names its address"
	case exchange.EndTimeout:
		status, code, next = 504, "engine_timeout", "look into the engine's log, or give the proxy longer timeouts"
	case exchange.EndShutdown:
		status, code, next = 503, "proxy_shutdown", "the proxy was stopped; send the request again when it is back"
	}
	writeError(ctx, status, "upstream_error", code,
		fmt.Sprintf("engine %q at %s: %s; %s", x.Upstream, x.UpstreamURL, redact.Text(x.Cause.Text), next))
}
