package proxy

import (
	"bytes"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// maxChunkLine bounds a chunk's size line with its extensions, and maxTrailer the trailer section.
const (
	maxChunkLine = 8 << 10
	maxTrailer   = 64 << 10
)

// dechunker undoes chunked coding. It keeps its place between calls, so the bytes may come in any split, and it never
// waits for a line end to give out data that is there.
type dechunker struct {
	state    chunkState
	size     int64 // what the size line says so far; then what is left of the chunk
	digits   int   // hexadecimal digits seen in the size line
	line     int   // bytes of the size line
	trailer  []byte
	trailers []exchange.Header
}

type chunkState uint8

const (
	chunkSize    chunkState = iota // hexadecimal digits
	chunkExt                       // rest of the size line
	chunkSizeLF                    // line feed of the size line, after its carriage return
	chunkData                      // payload
	chunkDataEnd                   // carriage return or line feed after the payload
	chunkDataLF                    // line feed after the payload
	chunkTrailer                   // trailer section up to its blank line
	chunkEnd                       // all read
)

// decode moves the payload in b to its front and returns it, with the number of bytes of b that were used: all of
// them, until the body has ended.
func (d *dechunker) decode(b []byte) (data []byte, used int, err error) {
	out := 0
	for used < len(b) && d.state != chunkEnd {
		switch d.state {
		case chunkData:
			n := int(min(d.size, int64(len(b)-used)))
			copy(b[out:], b[used:used+n])
			out, used = out+n, used+n
			if d.size -= int64(n); d.size == 0 {
				d.state = chunkDataEnd
			}
		case chunkTrailer:
			n, err := d.trailerBytes(b[used:])
			used += n
			if err != nil {
				return b[:out], used, err
			}
		default:
			if err := d.framing(b[used]); err != nil {
				return b[:out], used, err
			}
			used++
		}
	}
	return b[:out], used, nil
}

// framing takes one byte between payloads.
func (d *dechunker) framing(c byte) error {
	switch d.state {
	case chunkSize:
		if v, ok := hexDigit(c); ok {
			if d.digits++; d.digits > 15 {
				return fmt.Errorf("%w: chunk size", errMalformed)
			}
			d.size = d.size<<4 | int64(v)
			return nil
		}
		if d.digits == 0 {
			return fmt.Errorf("%w: chunk size", errMalformed)
		}
		return d.sizeLine(c)
	case chunkExt:
		return d.sizeLine(c)
	case chunkSizeLF, chunkDataLF:
		if c != '\n' {
			return fmt.Errorf("%w: chunk line end", errMalformed)
		}
		if d.state == chunkSizeLF {
			d.startChunk()
		} else {
			d.nextSize()
		}
	case chunkDataEnd:
		switch c {
		case '\r':
			d.state = chunkDataLF
		case '\n':
			d.nextSize()
		default:
			return fmt.Errorf("%w: chunk end", errMalformed)
		}
	}
	return nil
}

// sizeLine takes a byte of the size line after its digits: blanks, an extension or the line end.
func (d *dechunker) sizeLine(c byte) error {
	switch {
	case c == '\r':
		d.state = chunkSizeLF
	case c == '\n':
		d.startChunk()
	case d.state == chunkSize && c != ';' && c != ' ' && c != '\t':
		return fmt.Errorf("%w: chunk size", errMalformed)
	default:
		d.state = chunkExt
		if d.line++; d.line > maxChunkLine {
			return fmt.Errorf("%w: chunk extension too long", errMalformed)
		}
	}
	return nil
}

func (d *dechunker) startChunk() {
	d.state = chunkData
	if d.size == 0 {
		d.state = chunkTrailer
	}
}

func (d *dechunker) nextSize() { d.state, d.size, d.digits, d.line = chunkSize, 0, 0, 0 }

// trailerBytes takes the trailer section, line by line, until its blank line.
func (d *dechunker) trailerBytes(b []byte) (used int, err error) {
	for used < len(b) {
		n := bytes.IndexByte(b[used:], '\n') + 1
		if n == 0 {
			n = len(b) - used
		}
		d.trailer = append(d.trailer, b[used:used+n]...)
		used += n
		if len(d.trailer) > maxTrailer {
			return used, fmt.Errorf("%w: trailers too long", errMalformed)
		}
		if blankEnd(d.trailer) {
			d.state = chunkEnd
			d.trailers, err = parseHeaders(d.trailer)
			return used, err
		}
	}
	return used, nil
}

// blankEnd reports whether b is whole lines and the last of them is blank.
func blankEnd(b []byte) bool {
	b, ok := bytes.CutSuffix(b, []byte{'\n'})
	b = bytes.TrimSuffix(b, []byte{'\r'})
	return ok && (len(b) == 0 || b[len(b)-1] == '\n')
}

func hexDigit(c byte) (v byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// bodyFrame finds the end of a response body in the bytes of its connection.
type bodyFrame struct {
	framing
	left int64 // of a body with a length
	dec  dechunker
}

func newBodyFrame(f framing) bodyFrame { return bodyFrame{framing: f, left: f.length} }

// decode takes bytes of the connection and gives the body bytes among them, at most all, in place.
func (b *bodyFrame) decode(p []byte) (data []byte, used int, err error) {
	switch {
	case b.chunked:
		return b.dec.decode(p)
	case b.length < 0:
		return p, len(p), nil
	}
	n := int(min(b.left, int64(len(p))))
	b.left -= int64(n)
	return p[:n], n, nil
}

// ended reports whether the framing says that the body is whole.
func (b *bodyFrame) ended() bool {
	if b.chunked {
		return b.dec.state == chunkEnd
	}
	return b.length >= 0 && b.left == 0
}

// endsByClose reports whether the end of the connection is the proper end of the body.
func (b *bodyFrame) endsByClose() bool { return !b.chunked && b.length < 0 }

// holdsData reports whether the next decode of p, the first bytes behind the head, surely gives body bytes. It may be
// wrong about odd chunk lines only, and then it says no.
func (b *bodyFrame) holdsData(p []byte) bool {
	if !b.chunked {
		return len(p) > 0
	}
	line := bytes.IndexByte(p, '\n')
	if line < 0 || line+1 == len(p) {
		return false
	}
	digit, ok := hexDigit(p[0])
	return ok && digit > 0
}
