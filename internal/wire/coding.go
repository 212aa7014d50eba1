package wire

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// The bounds of decoding: a few kilobytes can decode to terabytes, and a list of codings can be as long as a header.
const (
	maxDecoded    = 64 << 20
	maxCodings    = 4
	maxZstdWindow = 32 << 20
)

// errOurLimit marks what we do not decode though it may be in order: it says nothing against the engine.
var errOurLimit = errors.New("not decoded")

var errDecodedTooLarge = fmt.Errorf("%w: the decoded body is larger than the limit of 64 MiB", errOurLimit)

// codedBody gathers a body under a content coding, and which read brought which of its bytes.
type codedBody struct {
	name    string   // the codings as the header lists them
	codings []string // in the order they were applied
	data    []byte
	cuts    []cut
	pos     int // next byte to decode
	limit   int // most bytes that may come out
	at      int // index in cuts of the read that brought it
}

// cut says that the bytes before end came with the given read or an earlier one.
type cut struct{ end, read int }

// newCodedBody is nil for a body without content coding.
func newCodedBody(header string) *codedBody {
	if header == "" {
		return nil
	}
	c := &codedBody{limit: maxDecoded}
	for s := range strings.SplitSeq(header, ",") {
		if s = strings.ToLower(strings.TrimSpace(s)); s != "" && s != "identity" {
			c.codings = append(c.codings, s)
		}
	}
	if len(c.codings) == 0 {
		return nil
	}
	c.name = strings.Join(c.codings, ", ")
	return c
}

func (c *codedBody) add(b []byte, read int) {
	if len(b) == 0 {
		return
	}
	c.data = append(c.data, b...)
	c.cuts = append(c.cuts, cut{len(c.data), read})
}

// Read implements io.Reader. It never crosses from one read of the wire into the next, so a decoder that gives what it
// has before it asks for more names the right read for its output.
func (c *codedBody) Read(b []byte) (int, error) {
	if c.pos == len(c.data) {
		return 0, io.EOF
	}
	if c.pos == c.cuts[c.at].end {
		c.at++
	}
	n := copy(b, c.data[c.pos:c.cuts[c.at].end])
	c.pos += n
	return n, nil
}

// ReadByte implements io.ByteReader, which keeps flate from reading ahead.
func (c *codedBody) ReadByte() (byte, error) {
	var b [1]byte
	_, err := c.Read(b[:])
	return b[0], err
}

// decode undoes the codings and feeds what comes out, each piece under the read whose bytes completed it. What was
// decoded before an error has been fed.
func (c *codedBody) decode(feed func(b []byte, read int)) error {
	if len(c.data) == 0 {
		return nil
	}
	r, err := c.decoder()
	if err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for total := 0; ; {
		n, err := r.Read(buf)
		if total += n; total > c.limit {
			return errDecodedTooLarge
		}
		feed(buf[:n], c.cuts[c.at].read)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode %s: %w", c.name, err)
		}
	}
}

// decoder chains the decoders, the coding that was applied last first.
func (c *codedBody) decoder() (io.Reader, error) {
	if len(c.codings) > maxCodings {
		return nil, fmt.Errorf("%w: %d content codings", errOurLimit, len(c.codings))
	}
	var r io.Reader = c
	for i := len(c.codings) - 1; i >= 0; i-- {
		var err error
		if r, err = open(c.codings[i], r); err != nil {
			return nil, fmt.Errorf("decode %s: %w", c.codings[i], err)
		}
	}
	return r, nil
}

func open(coding string, r io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return openDeflate(r)
	case "br":
		return brotli.NewReader(byByte{r}), nil
	case "zstd":
		return openZstd(r)
	}
	return nil, fmt.Errorf("%w: unknown content coding", errOurLimit)
}

// byByte hands out one byte at a time. The brotli decoder drops output it has when it meets an error in the same input,
// so what comes out of a damaged body would depend on how the body was cut.
type byByte struct{ r io.Reader }

// Read implements io.Reader.
func (o byByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }

// openDeflate reads what the standard calls deflate, zlib, and what some servers send under its name, bare deflate.
func openDeflate(r io.Reader) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 16)
	head, err := br.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}

// zstdReader lets go of the decoder's buffers at the end of its input.
type zstdReader struct{ d *zstd.Decoder }

func openZstd(r io.Reader) (io.Reader, error) {
	// One thread: blocks are then decoded as they are asked for, without goroutines.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, err
	}
	return zstdReader{d}, nil
}

// Read implements io.Reader.
func (z zstdReader) Read(b []byte) (int, error) {
	n, err := z.d.Read(b)
	if err != nil {
		z.d.Close()
	}
	return n, err
}
