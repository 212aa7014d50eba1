package recorder

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// A whole exchange travels between processes in this form, so that commands read the store of a running proxy without
// opening it:
//
//	a line with the name and version of the form
//	the fields of the manifest, the reads, the summary row: each with its length in front
//	the request body, the response body: pieces with their length in front, ended by one of length 0
//	the SHA-256 of all before it
//
// Bodies are as stored; the digest tells an answer that was cut off from a whole one.

// transferVersion is the version of that form. A reader accepts its own only.
const transferVersion = 1

// transferName begins the first line.
const transferName = "benchproxy-exchange"

// WriteExchange writes an exchange as it was stored, with its row, so that ReadExchange gives it back in another
// process. It holds no more than a piece of a body in memory beside x.
func WriteExchange(w io.Writer, x *exchange.Exchange, row *exchange.Summary) error {
	t := &transferWriter{sum: sha256.New()}
	t.w = bufio.NewWriterSize(io.MultiWriter(w, t.sum), 64<<10)
	_, _ = fmt.Fprintf(t.w, "%s %d\n", transferName, transferVersion) // a bufio.Writer keeps its error until Flush
	var fields fieldWriter
	writeManifest(&fields, &manifest{x: x})
	t.section(fields.b)
	t.section(appendPlainReads(nil, x.Timeline.Reads))
	b, err := appendRow(nil, row)
	if err != nil {
		return fmt.Errorf("write exchange %s: %w", x.ID, err)
	}
	t.section(b)
	t.body(&x.Request.Body)
	t.body(&x.Response.Body)
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write exchange %s: %w", x.ID, err)
	}
	if _, err := w.Write(t.sum.Sum(nil)); err != nil {
		return fmt.Errorf("write exchange %s: %w", x.ID, err)
	}
	return nil
}

type transferWriter struct {
	w   *bufio.Writer
	sum hash.Hash
}

func (t *transferWriter) section(b []byte) {
	_, _ = t.w.Write(binary.AppendUvarint(nil, uint64(len(b)))) // as above
	_, _ = t.w.Write(b)
}

func (t *transferWriter) body(b *exchange.Body) {
	for _, c := range b.Chunks {
		for len(c) > 0 {
			n := min(len(c), chunkSize)
			t.section(c[:n])
			c = c[n:]
		}
	}
	t.section(nil)
}

// ReadExchange reads what WriteExchange wrote and nothing behind it. Memory grows with what arrives, not with what the
// lengths announce. The error wraps exchange.ErrDamaged for another version of the form and for bytes that are not what
// was sent, io.ErrUnexpectedEOF for an end that came early.
func ReadExchange(r io.Reader) (*exchange.Exchange, exchange.Summary, error) {
	t := &transferReader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	x, row, err := t.exchange()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, exchange.Summary{}, fmt.Errorf("read exchange: %w", err)
	}
	return x, row, nil
}

type transferReader struct {
	r   *bufio.Reader
	sum hash.Hash
	buf bytes.Buffer
}

func (t *transferReader) exchange() (*exchange.Exchange, exchange.Summary, error) {
	var row exchange.Summary
	if err := t.version(); err != nil {
		return nil, row, err
	}
	fields, err := t.section(maxValue)
	if err != nil {
		return nil, row, err
	}
	m, err := decodeManifest(fields)
	if err != nil {
		return nil, row, damaged(err)
	}
	reads, err := t.section(maxValue)
	if err != nil {
		return nil, row, err
	}
	if m.x.Timeline.Reads, err = parsePlainReads(reads); err != nil {
		return nil, row, damaged(err)
	}
	b, err := t.section(maxValue)
	if err != nil {
		return nil, row, err
	}
	if row, err = decodeRow(b); err != nil {
		return nil, row, err
	}
	for _, body := range []*exchange.Body{&m.x.Request.Body, &m.x.Response.Body} {
		if err := t.body(body); err != nil {
			return nil, row, err
		}
	}
	return m.x, row, t.end()
}

func (t *transferReader) version() error {
	line, err := t.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return damaged(errors.New("it does not begin as an exchange does"))
	}
	if err != nil {
		return err
	}
	t.sum.Write(line)
	name, number, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	v, err := strconv.Atoi(number)
	switch {
	case name != transferName || err != nil:
		return damaged(errors.New("it does not begin as an exchange does"))
	case v != transferVersion:
		return fmt.Errorf("%w: form %d, this build reads %d: use the benchproxy that wrote it", exchange.ErrDamaged, v, transferVersion)
	}
	return nil
}

// section is the next one, good until the one after it.
func (t *transferReader) section(most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(t)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, damaged(fmt.Errorf("a part of %d bytes", n))
	}
	t.buf.Reset()
	if _, err := io.CopyN(io.MultiWriter(&t.buf, t.sum), t.r, int64(n)); err != nil {
		return nil, err
	}
	return t.buf.Bytes(), nil
}

// ReadByte is for lengths.
func (t *transferReader) ReadByte() (byte, error) {
	c, err := t.r.ReadByte()
	if err == nil {
		t.sum.Write([]byte{c})
	}
	return c, err
}

func (t *transferReader) body(b *exchange.Body) error {
	kept := int64(0)
	for {
		piece, err := t.section(chunkSize)
		if err != nil {
			return err
		}
		if len(piece) == 0 {
			break
		}
		kept += int64(len(piece))
		if kept > b.Kept {
			break
		}
		b.Chunks = append(b.Chunks, bytes.Clone(piece))
	}
	if kept != b.Kept {
		return damaged(fmt.Errorf("a body of %d bytes where %d were kept", kept, b.Kept))
	}
	return nil
}

// end holds that all that came is what was sent.
func (t *transferReader) end() error {
	want := t.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(t.r, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return damaged(errors.New("its digest is another"))
	}
	return nil
}

// appendPlainReads codes a list of reads as differences, without compression.
func appendPlainReads(dst []byte, reads []exchange.Read) []byte {
	w := fieldWriter{b: dst}
	w.uint(uint64(len(reads)))
	last := int64(0)
	for _, r := range reads {
		w.int(r.At - last)
		w.int(r.Write)
		w.int(int64(r.Size))
		last = r.At
	}
	return w.b
}

func parsePlainReads(b []byte) ([]exchange.Read, error) {
	r := &fieldReader{b: b}
	n := r.count()
	if n > len(r.b)/3 { // a read takes three bytes at least
		r.fail()
		n = 0
	}
	var reads []exchange.Read
	if n > 0 {
		reads = make([]exchange.Read, n)
	}
	last := int64(0)
	for i := range reads {
		last += r.int()
		reads[i] = exchange.Read{At: last, Write: r.int(), Size: int(r.int())}
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, fmt.Errorf("read reads: %w", r.err)
	}
	return reads, nil
}
