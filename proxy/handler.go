package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// handle serves one request. It returns before the response body is sent: answer leaves that to a bodyStream, which
// the library drives in the same goroutine.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	c := clientOf(ctx.Conn())
	began := c.requestBegan()
	consumed, ok := s.authorize(&ctx.Request.Header)
	if !ok {
		s.session.refused[refusedKey].Add(1)
		writeError(ctx, 401, "authentication_error", "invalid_api_key", "missing or wrong API key for this proxy")
		return
	}
	call, err := takeCall(ctx)
	if err != nil {
		s.badRequest(ctx, err)
		ctx.SetConnectionClose()
		return
	}
	if len(call.Body) > largeRequest && !s.session.budget.room(int64(len(call.Body))) {
		s.session.refused[refusedBusy].Add(1)
		writeError(ctx, 503, "overloaded_error", "memory_budget",
			"running exchanges hold all the memory this proxy may use; try again later")
		return
	}
	call.consumed, call.server = consumed, s
	f := s.session.open(s.up, call, began)
	defer s.survive(ctx, c, f)
	f.call.identity = s.opts.Measured(call.Target)
	if s.opts.Rewrite != nil {
		f.rewrite(s.opts.Rewrite)
	}
	c.arm(f.clientGone)
	if err := f.begin(context.Background()); err != nil {
		s.refuse(ctx, c, f)
		return
	}
	s.answer(ctx, c, f)
}

// survive turns a panic of the handler into a record and a 500.
func (s *Server) survive(ctx *fasthttp.RequestCtx, c *clientConn, f *flight) {
	if p := recover(); p != nil {
		c.disarm()
		f.panicked(p)
		writeError(ctx, 500, "proxy_error", "panic", "the proxy failed on this request; the record says how")
	}
}

// panicked seals the exchange as one that the proxy itself broke.
func (f *flight) panicked(p any) {
	f.end = exchange.EndReset
	f.cause = &exchange.Cause{Side: exchange.SideProxy, Code: "panic", Text: fmt.Sprint(p)}
	f.detach(false)
	f.seal()
}

// refuse answers for an engine that gave no response.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, c *clientConn, f *flight) {
	c.disarm()
	if f.end != exchange.EndClientGone {
		f.tl.ClientDone = exchange.MarkAt(f.origin.NS())
	}
	x := f.seal()
	engineError(ctx, x)
	if x.End == exchange.EndClientGone || x.End == exchange.EndShutdown {
		ctx.SetConnectionClose()
	}
}

// authorize checks the client's key and says, in lower case, which headers carried it: the engine must see none of them.
func (s *Server) authorize(h *fasthttp.RequestHeader) (consumed []string, ok bool) {
	if s.opts.Key == "" {
		return nil, true
	}
	for k, v := range h.All() {
		name := lower(string(k))
		switch {
		case name == "authorization" && len(v) > 7 && lower(string(v[:7])) == "bearer " && s.isKey(v[7:]),
			name == "x-api-key" && s.isKey(v):
			consumed = append(consumed, name)
		}
	}
	return consumed, len(consumed) > 0
}

// isKey compares digests, so that neither length nor content of the key shows in the time it takes.
func (s *Server) isKey(b []byte) bool {
	sum := sha256.Sum256(b)
	return subtle.ConstantTimeCompare(sum[:], s.key[:]) == 1
}

// takeCall copies the head out of the library's memory and takes the body over without a copy.
func takeCall(ctx *fasthttp.RequestCtx) (Call, error) {
	h := &ctx.Request.Header
	c := Call{Method: string(h.Method()), Target: string(h.RequestURI()), Proto: string(h.Protocol())}
	line := c.Method + " " + c.Target + " " + c.Proto + "\r\n"
	raw := h.RawHeaders()
	c.Head = append(append(make([]byte, 0, len(line)+len(raw)), line...), raw...)
	headers, err := parseHeaders(c.Head[len(line):])
	if err != nil {
		return c, err
	}
	if c.Method == "CONNECT" || strings.ContainsAny(c.Target, " \r\n") {
		return c, errMalformed
	}
	c.Headers = headers
	for _, k := range h.PeekTrailerKeys() {
		c.trailers = append(c.trailers, string(k))
	}
	c.Body = takeBody(&ctx.Request)
	return c, nil
}

// takeBody owns the body. A small body in a large buffer is copied: the record would hold the buffer.
func takeBody(r *fasthttp.Request) []byte {
	b := r.SwapBody(nil)
	if cap(b) > 2*len(b)+512 {
		small := append([]byte(nil), b...)
		r.SwapBody(b[:0])
		return small
	}
	return b
}
