package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// stream is the hot path: it moves the response body from the engine to w, one write for each read, and stamps both.
// It returns when the body has ended, properly or not. w may be nil, which keeps the body in the record only.
//
// The exchange is whole when the engine's body is, even if the last write fails; the error then still says that the
// client's is not, and nothing may be sent to it any more.
func (f *flight) stream(w io.Writer) (sent int64, err error) {
	at := f.headAt // the bytes behind the head came with its last read
	var werr error
	for !f.frame.ended() {
		if len(f.conn.unread()) == 0 {
			if at, err = f.read(); err != nil {
				n, werr := f.flush(w, f.endsWell(err))
				return sent + int64(n), cmp.Or(f.readFailed(err, at), lastWrite(werr))
			}
		}
		data, used, err := f.frame.decode(f.conn.unread())
		if f.frame.ended() {
			f.tooLate()
		}
		f.rec.addBody(data)
		var n int
		n, werr = f.pass(w, data, at)
		sent += int64(n)
		f.conn.use(used)
		if werr != nil && !f.frame.ended() {
			return sent, f.writeFailed(werr)
		}
		if err != nil {
			n, _ := f.flush(w, false) // the early end is the error
			return sent + int64(n), f.readFailed(err, at)
		}
	}
	n, ferr := f.flush(w, true)
	f.ended(at)
	return sent + int64(n), lastWrite(cmp.Or(werr, ferr))
}

// lastWrite is the error of the last write of a body that the engine has sent whole.
func lastWrite(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write end of response body: %w", err)
}

// read waits for the engine's next bytes.
func (f *flight) read() (at int64, err error) {
	if deadline, due := f.idle.renew(f.origin.NS()); due {
		_ = f.conn.SetReadDeadline(deadline)
	}
	f.conn.grow()
	return f.conn.fill(f.origin)
}

// pass writes the body bytes of one read to the client and records the read.
func (f *flight) pass(w io.Writer, data []byte, at int64) (n int, err error) {
	rd := exchange.Read{At: at, Size: len(data)}
	if len(data) > 0 {
		f.mark(at)
		if f.filter != nil {
			data = f.filtered(data)
		}
		if w != nil && len(data) > 0 {
			n, err = w.Write(data)
			done := f.origin.NS()
			rd.Write = done - at
			f.tl.ClientDone = exchange.MarkAt(done)
		}
	}
	f.rec.addRead(rd)
	return n, err
}

func (f *flight) mark(at int64) {
	m := exchange.MarkAt(at)
	if !f.tl.FirstRead.Happened() {
		f.tl.FirstRead = m
	}
	f.tl.LastRead = m
}

// ended is the proper end of the body: the connection may be used again.
func (f *flight) ended(at int64) {
	f.end = exchange.EndEOF
	f.tl.BodyEnd = exchange.MarkAt(at)
	f.response.Trailers = f.frame.dec.trailers
	f.detach(f.frame.persist)
}

// endsWell reports whether a failed read is the proper end of the body.
func (f *flight) endsWell(err error) bool {
	return err == io.EOF && f.frame.endsByClose() && f.stopped() == nil
}

// readFailed ends the body by what a read or its framing said. The end of the connection is the proper end of a body
// that has no other; everything else is an early end, and the error makes it one for the client too.
func (f *flight) readFailed(err error, at int64) error {
	if f.endsWell(err) {
		f.ended(at)
		return nil
	}
	f.tl.BodyEnd = exchange.MarkAt(at)
	_ = f.fail(err, "idle")
	return fmt.Errorf("read response body: %w", io.ErrUnexpectedEOF)
}

// writeFailed ends the exchange because the client does not take the body any more.
func (f *flight) writeFailed(err error) error {
	now := exchange.MarkAt(f.origin.NS())
	f.tl.BodyEnd, f.tl.ClientDone = now, now
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f.cancel(exchange.EndTimeout, exchange.Cause{Side: exchange.SideClient, Code: "write_timeout", Text: err.Error()})
	} else {
		f.cancel(exchange.EndClientGone, exchange.Cause{Side: exchange.SideClient, Code: "client_gone", Text: err.Error()})
	}
	_ = f.fail(err, "client")
	return fmt.Errorf("write response body: %w", err)
}
