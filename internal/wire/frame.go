package wire

import (
	"bytes"
	"slices"
	"strings"
)

// Frame is one event of a body as its framing delimits it. What lies between two frames (comments, blank lines, the
// commas of an array) is a gap; frames never overlap, so frames and gaps cover every byte.
type Frame struct {
	Start, End int64  // first byte and one past the last, counted from the start of the body
	Read       int    // read that brought the byte which completed it
	Name       []byte // event name of SSE, nil when none was given; valid during the call only
	Data       []byte // payload free of framing; valid during the call only
}

// Framer cuts a body into frames as its bytes come. It belongs to one goroutine.
//
// The framing is chosen by the content type, with the first bytes as the check: engines do send events under
// text/plain and errors under text/event-stream.
type Framer struct {
	contentType string
	framing     Framing
	split       splitter // nil until the framing is known, and for an opaque body
	emit        func(Frame)

	buf      []byte // bytes not yet consumed
	base     int64  // offset in the body of the first of them
	size     int64  // bytes fed so far
	read     int    // read that brought the last byte
	frames   int    // frames emitted so far
	comments int    // comment lines of SSE so far
}

// splitter finds the events of one framing. It is given the bytes that are not consumed yet, always from the first of
// them, and looks at each byte once: it remembers how far it came until it hands out a step, which consumes bytes.
type splitter interface {
	next(buf []byte) (step, bool)
	// end judges what is left when the body is over; whole says that the body came to its proper end.
	end(buf []byte, whole bool) tail
}

// step consumes buf[:end]. With event set, buf[start:end] is an event; else all of it is gap.
type step struct {
	start, end int
	event      bool
	name, data []byte
	comments   int
}

// tail is what a body leaves behind when it ends between or inside events.
type tail struct {
	step             // an event that only the end of the body could complete, with event set
	cut    bool      // the body ended inside an event
	pieces *leftover // payload of an unterminated SSE block, nil when there is none
	closed bool      // the framing itself was closed: the "]" of an array
}

// leftover is the payload of an event that was never dispatched.
type leftover struct{ name, data []byte }

// NewFramer makes the framer of a body with the given content type. Frames are handed to emit in order.
func NewFramer(contentType string, emit func(Frame)) *Framer {
	return &Framer{contentType: contentType, emit: emit}
}

// Framing is the framing found so far: FramingNone before the first bytes told.
func (f *Framer) Framing() Framing { return f.framing }

// Comments is the number of comment lines of an SSE body so far.
func (f *Framer) Comments() int { return f.comments }

// Feed takes the next bytes of the body, brought by the given read. It keeps nothing of b.
func (f *Framer) Feed(b []byte, read int) {
	if len(b) == 0 {
		return
	}
	f.size += int64(len(b))
	f.read = read
	work := b
	if len(f.buf) > 0 {
		f.buf = append(f.buf, b...)
		work = f.buf
	}
	if f.framing == FramingNone && !f.choose(work, false) {
		f.keep(work, len(b))
		return
	}
	if f.split == nil { // opaque: nothing in it will ever be looked at
		f.base, f.buf = f.size, nil
		return
	}
	rest := f.drain(work)
	if len(rest) < len(work) || len(f.buf) == 0 {
		f.keep(rest, len(b))
	}
}

// drain takes every step that b completes and returns what is left of it.
func (f *Framer) drain(b []byte) []byte {
	for {
		s, ok := f.split.next(b)
		if !ok {
			return b
		}
		f.take(s)
		b = b[s.end:]
	}
}

// keep holds the unconsumed bytes until the next feed. They may be the end of the buffer itself. A buffer that one big
// event blew up is let go with it.
func (f *Framer) keep(rest []byte, fed int) {
	if len(rest) == 0 && cap(f.buf) > 64<<10 && fed < cap(f.buf)/4 {
		f.buf = nil
		return
	}
	f.buf = append(f.buf[:0], rest...)
}

func (f *Framer) take(s step) {
	f.comments += s.comments
	if s.event {
		f.frames++
		if f.framing == FramingJSON && f.frames > 1 {
			f.framing = FramingNDJSON // a second value makes it a sequence of values, whatever its type says
		}
		f.emit(Frame{Start: f.base + int64(s.start), End: f.base + int64(s.end), Read: f.read, Name: s.name, Data: s.data})
	}
	f.base += int64(s.end)
}

// Finish ends the body and reports whether it ended inside an event; whole says that it came to its proper end, which
// lets a last bare number or word count. The framer must not be fed after.
func (f *Framer) Finish(whole bool) (truncated bool) { return f.finish(whole).cut }

func (f *Framer) finish(whole bool) tail {
	if f.framing == FramingNone && f.size > 0 {
		f.choose(f.buf, true)
	}
	if f.split == nil {
		return tail{}
	}
	rest := f.drain(f.buf) // bytes held while the framing was open
	t := f.split.end(rest, whole)
	f.take(t.step)
	return t
}

// choose settles the framing once the first bytes tell it, and reports whether they do. At the end of the body it
// settles it in any case.
func (f *Framer) choose(b []byte, last bool) bool {
	framing, known := sniff(f.contentType, b)
	if !known && !last {
		return false
	}
	f.framing = framing
	switch framing {
	case FramingSSE:
		f.split = &sseSplitter{}
	case FramingNDJSON:
		f.split = &lineSplitter{}
	case FramingJSON:
		f.split = &valueSplitter{}
	case FramingJSONArray:
		f.split = &valueSplitter{array: true}
	}
	return true
}

// bom is the byte order mark that may precede a text.
var bom = []byte("\xef\xbb\xbf")

// sniff chooses the framing from the content type and the first bytes. It is known when more bytes would not change
// the answer; until then the answer is the best guess.
func sniff(contentType string, b []byte) (f Framing, known bool) {
	declared, firm := declaredFraming(contentType)
	if firm {
		return declared, true
	}
	if len(b) < len(bom) && bytes.HasPrefix(bom, b) {
		return declared, false
	}
	b = bytes.TrimLeft(bytes.TrimPrefix(b, bom), " \t\r\n")
	if len(b) == 0 {
		return declared, false
	}
	return sniffText(declared, b)
}

// sniffText chooses the framing from the first bytes that are not white space.
func sniffText(declared Framing, b []byte) (f Framing, known bool) {
	switch {
	case declared == FramingNDJSON && b[0] != ':' && b[0] != 'd' && b[0] != 'e':
		return FramingNDJSON, true
	case b[0] == '{':
		return FramingJSON, true
	case b[0] == '[':
		return FramingJSONArray, true
	case declared == FramingSSE:
		return FramingSSE, true
	}
	sse, known := looksLikeSSE(b)
	switch {
	case sse && known:
		return FramingSSE, true
	case !known:
		return declared, false
	case declared == FramingJSON && !bytes.ContainsRune([]byte(`"-0123456789tfn`), rune(b[0])):
		return FramingOpaque, true
	}
	return declared, true
}

// declaredFraming is what the content type alone promises; types that promise no events are opaque. It is firm when
// the first bytes have no say: sound and pictures can begin with anything.
func declaredFraming(contentType string) (f Framing, firm bool) {
	t := mediaType(contentType)
	major, _, _ := strings.Cut(t, "/")
	switch {
	case t == "text/event-stream":
		return FramingSSE, false
	case slices.Contains(ndjsonTypes, t):
		return FramingNDJSON, false
	case t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json"):
		return FramingJSON, false
	case major == "audio" || major == "image" || major == "video":
		return FramingOpaque, true
	}
	return FramingOpaque, false
}

// ndjsonTypes are the names under which newline-delimited JSON travels.
var ndjsonTypes = []string{
	"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines",
	"application/stream+json",
}

// mediaType is the lower-case type of a Content-Type value, without parameters.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// looksLikeSSE reports whether b begins as an event stream does; known is false while b is too short to say.
func looksLikeSSE(b []byte) (is, known bool) {
	if b[0] == ':' {
		return true, true
	}
	for _, field := range [...]string{"data:", "event:", "id:", "retry:"} {
		n := min(len(b), len(field))
		if string(b[:n]) != field[:n] {
			continue
		}
		return n == len(field), n == len(field)
	}
	return false, true
}
