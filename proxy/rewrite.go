package proxy

import (
	"io"
	"mime"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Rewrite is what is changed of one exchange, on the user's demand: the body that goes to the engine, and in return the
// stream that the client gets. The record has both sides as they were: the client's request, the engine's answer, and the
// notes that lead from one to the other.
type Rewrite struct {
	Body  []byte                  // what the engine gets instead of the call's body; nil leaves that
	Notes []exchange.Intervention // what was changed, or why nothing was
	// Answer makes the filter of an answer that is streamed. Nil passes all answers as they come.
	Answer func() Filter
}

// Filter holds back, removes and adds bytes of one streamed answer on its way to the client. One goroutine uses it.
type Filter interface {
	// Feed takes the body bytes of one read and returns what the client gets now, which may be nothing. The result is
	// valid until the next call.
	Feed(data []byte) []byte
	// End returns what is left when the body has ended; whole says that it ended properly.
	End(whole bool) []byte
	// Notes tell what was done, once the body has ended.
	Notes() []exchange.Intervention
}

// rewrite asks how the call is to be changed, before anything is sent.
func (f *flight) rewrite(ask func(*Call, exchange.Identity) Rewrite) {
	r := ask(&f.call, f.s.identity(f.up.opts.Name))
	f.call.Notes = append(f.call.Notes, r.Notes...)
	f.makeFilter = r.Answer
	if r.Body != nil {
		f.call.sent = r.Body
		f.rec.request += int64(len(r.Body))
		f.rec.reserve(int64(len(r.Body)))
	}
}

// body is what the engine gets as body.
func (c *Call) body() []byte {
	if c.sent != nil {
		return c.sent
	}
	return c.Body
}

// startFilter puts the filter into the way of the answer, where it is a stream that can be filtered: a coded one cannot be
// read, and one of known length cannot change it.
func (f *flight) startFilter() {
	kind, _ := exchange.HeaderValue(f.response.Headers, "Content-Type")
	media, _, _ := mime.ParseMediaType(kind)
	coding, _ := exchange.HeaderValue(f.response.Headers, "Content-Encoding")
	switch {
	case f.response.Status != 200 || f.frame.ended() || lower(media) == "application/json":
	case coding != "" && lower(coding) != "identity":
		f.noteClient("response_kept", "body", "", "", "content_coding")
	case f.frame.length >= 0:
		f.noteClient("response_kept", "body", "", "", "content_length")
	default:
		f.filter = f.makeFilter()
	}
}

// filtered is what the client gets of the body bytes of one read. With the last of them comes what was held back: the end
// of a chunked body goes out with the last write.
func (f *flight) filtered(data []byte) []byte {
	out := f.filter.Feed(data)
	if !f.frame.ended() {
		return out
	}
	f.flushed = true
	return append(append([]byte(nil), out...), f.filter.End(true)...)
}

// flush gives the client what the filter still holds when the body has ended, unless the exchange was canceled: then
// nobody waits for it.
func (f *flight) flush(w io.Writer, whole bool) (n int, err error) {
	if f.filter == nil || w == nil || f.stopped() != nil {
		return 0, nil
	}
	if !f.flushed {
		f.flushed = true
		if rest := f.filter.End(whole); len(rest) > 0 {
			n, err = w.Write(rest)
		}
	}
	f.tl.ClientDone = exchange.MarkAt(f.origin.NS()) // the last read may have given it nothing
	return n, err
}
