package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// answer passes the response head on and arranges for the body.
func (s *Server) answer(ctx *fasthttp.RequestCtx, c *clientConn, f *flight) {
	if f.response.Status == 101 {
		c.disarm() // in a tunnel one side may finish before the other
		s.hijack(ctx, c, f, newTunnel(f).run)
		return
	}
	bodyless := f.frame.ended()
	head := clientHead(f, bodyless)
	if !bodyless && f.frame.length < 0 && !ctx.Request.Header.IsHTTP11() {
		s.hijack(ctx, c, f, func(nc net.Conn) { f.untilClose(nc, c, head) })
		return
	}
	h := &ctx.Response.Header
	if err := readHead(h, head); err != nil {
		// Not the library's words: they repeat header values, which may be cookies or keys.
		_ = f.fail(fmt.Errorf("%w: a character in the response head that HTTP forbids", errMalformed), "header")
		s.refuse(ctx, c, f)
		return
	}
	h.ResetConnectionClose()
	if bodyless {
		f.finishBodyless(c)
		return
	}
	b := &bodyStream{f: f, c: c, w: ctx.Conn(), header: h}
	if f.frame.length < 0 {
		b.announceTrailers()
		b.chunks = &chunkWriter{w: ctx.Conn(), c: c, f: f, trailers: len(b.names) > 0}
		b.w = b.chunks
	}
	if f.filter == nil && f.frame.holdsData(f.conn.unread()) { // a filter may keep all of it back
		c.holdHead()
	}
	ctx.Response.ImmediateHeaderFlush = true
	ctx.Response.SetBodyStream(b, int(f.frame.length))
}

// finishBodyless ends an exchange whose response is its head.
func (f *flight) finishBodyless(c *clientConn) {
	_, _ = f.stream(nil)
	c.disarm()
	f.tl.ClientDone = exchange.MarkAt(f.origin.NS())
	f.seal()
}

// clientHead is the response head for the client: the engine's lines without what was for one hop only, framed as the
// body will be sent.
func clientHead(f *flight, bodyless bool) []byte {
	r := &f.response
	var b bytes.Buffer
	b.Grow(len(r.Head) + 64)
	writeAll(&b, "HTTP/1.1 ", strconv.Itoa(r.Status), " ", r.Reason, "\r\n")
	hop := nominated(r.Headers)
	for _, h := range r.Headers {
		name := lower(h.Name)
		switch {
		case name == "content-length" && (bodyless || f.frame.length >= 0):
		case name == "content-length" || name == "transfer-encoding":
			continue // the body is framed anew
		case name == "trailer":
			continue // announced again by announceTrailers
		case hopByHop(name) || slices.Contains(hop, name):
			f.noteClient("header_removed", h.Name, h.Value, "", "hop_by_hop")
			continue
		}
		writeAll(&b, h.Name, ": ", h.Value, "\r\n")
	}
	if !bodyless && f.frame.length < 0 {
		b.WriteString("Transfer-Encoding: chunked\r\n")
		if f.frame.endsByClose() {
			f.noteClient("body_reframed", "Transfer-Encoding", "", "chunked", "ends_by_close")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// writeAll writes parts without joining them first.
func writeAll(b *bytes.Buffer, parts ...string) {
	for _, p := range parts {
		b.WriteString(p)
	}
}

func (f *flight) noteClient(kind, name, from, to, reason string) {
	f.notes = append(f.notes, exchange.Intervention{
		Kind: kind, Where: exchange.SideClient, Name: name, From: from, To: to, Reason: reason,
	})
}

// bodyStream lets the library send a response body: WriteTo runs the exchange to its end.
//
// It writes to the connection itself. The library's own writer is empty by then, because the head was flushed, and it
// would hold a body with a length back until its buffer is full.
type bodyStream struct {
	f      *flight
	c      *clientConn
	w      io.Writer
	chunks *chunkWriter // the same; nil for a body with a length
	header *fasthttp.ResponseHeader
	names  []string // trailers that were announced
}

// SupportsBodyWriteTo makes the library call WriteTo.
func (b *bodyStream) SupportsBodyWriteTo() bool { return true }

// Read is never called.
func (b *bodyStream) Read([]byte) (int, error) {
	return 0, errors.New("read response stream: only WriteTo is supported")
}

// WriteTo streams the body. An error makes the library close the connection without a proper end of the body.
func (b *bodyStream) WriteTo(io.Writer) (n int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.f.panicked(p)
			err = fmt.Errorf("stream response: panic: %w", io.ErrUnexpectedEOF)
		}
	}()
	n, err = b.f.stream(b.w)
	if err == nil {
		b.passTrailers()
		if b.chunks != nil {
			err = b.chunks.end()
		}
	}
	return n, err
}

// Close seals the exchange. The library calls it after WriteTo, and also when the head could not be sent.
func (b *bodyStream) Close() error {
	b.c.disarm()
	_ = b.c.releaseHead() // the head of a body that broke before its first byte
	if b.f.end == "" {
		_ = b.f.writeFailed(net.ErrClosed)
	}
	b.f.seal()
	return nil
}

// announceTrailers passes the engine's Trailer header on, as far as the library allows the names.
func (b *bodyStream) announceTrailers() {
	for _, h := range b.f.response.Headers {
		if lower(h.Name) != "trailer" {
			continue
		}
		for _, name := range splitList(h.Value) {
			if b.header.AddTrailer(name) == nil {
				b.names = append(b.names, name)
			} else {
				b.f.noteClient("header_removed", h.Name, name, "", "trailer")
			}
		}
	}
}

// passTrailers sends those trailers that were announced; a name the client was not told of could pass for something
// else there.
func (b *bodyStream) passTrailers() {
	for _, t := range b.f.response.Trailers {
		i := slices.IndexFunc(b.names, func(n string) bool { return lower(n) == lower(t.Name) })
		if i < 0 {
			b.f.noteClient("header_removed", t.Name, t.Value, "", "trailer")
			continue
		}
		b.header.Add(b.names[i], t.Value)
	}
}

// untilClose serves an HTTP/1.0 client, which knows no chunks: the body ends with the connection. An early end becomes
// a reset, the only early end there is.
func (f *flight) untilClose(nc net.Conn, c *clientConn, head []byte) {
	defer c.disarm()
	head = bytes.Replace(head, []byte("Transfer-Encoding: chunked\r\n"), []byte("Connection: close\r\n"), 1)
	f.noteClient("body_reframed", "Transfer-Encoding", "chunked", "close", "http_1_0_client")
	_, err := nc.Write(head)
	if err != nil {
		_ = f.writeFailed(err)
	} else {
		_, err = f.stream(nc)
	}
	if err != nil {
		c.reset()
	}
	f.seal()
}

// hijack takes the connection from the library and runs fn with it, in a goroutine of the library's, without any
// response of its own. Whatever happens the exchange is sealed.
func (s *Server) hijack(ctx *fasthttp.RequestCtx, c *clientConn, f *flight, fn func(net.Conn)) {
	c.owe(func() { // the library closed the connection without calling us
		c.disarm()
		f.seal()
	})
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(nc net.Conn) {
		if !c.unowe() {
			return
		}
		defer func() {
			if p := recover(); p != nil {
				f.panicked(p)
			}
		}()
		fn(nc)
	})
}

// splitList splits a comma separated header value.
func splitList(v string) []string {
	var out []string
	for _, p := range bytes.Split([]byte(v), []byte{','}) {
		if p = bytes.TrimSpace(p); len(p) > 0 {
			out = append(out, string(p))
		}
	}
	return out
}
