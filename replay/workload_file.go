package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Format is a form of workload files.
type Format string

// The formats. FormatParquet is written only.
const (
	FormatJSONL    Format = "jsonl"    // ours: benchproxy.workload/1, bodies and answers included
	FormatHAR      Format = "har"      // HTTP archive 1.2
	FormatBatch    Format = "batch"    // OpenAI batch requests
	FormatMooncake Format = "mooncake" // lengths, arrivals and prefix blocks
	FormatBurstGPT Format = "burstgpt" // lengths, arrivals and sessions
	FormatAzure    Format = "azure"    // lengths and arrivals
	FormatParquet  Format = "parquet"  // tables for analysis
)

// InFormats are the formats that can be read.
func InFormats() []Format {
	return []Format{FormatJSONL, FormatHAR, FormatBatch, FormatMooncake, FormatBurstGPT, FormatAzure}
}

// FileOptions say how a file is to be read. The zero value is ready for use.
type FileOptions struct {
	Format   Format // "" = by what the file begins with
	MaxBytes int64  // of the file when unpacked; 0 = DefaultMaxBytes
	MaxEntry int64  // of one line or entry; 0 = DefaultMaxEntry
	Trace    TraceOptions
}

// Bounds of what a file may unpack to, in bytes.
const (
	DefaultMaxBytes = 8 << 30
	DefaultMaxEntry = 256 << 20
)

// entry is one record as a format gives it.
type entry struct {
	Item     Item
	Exchange *exchange.Exchange // with its answer; nil where the file has none
}

// reader gives the entries of a file one by one. next ends with io.EOF.
type reader interface {
	next() (*entry, error)
	about() *fileInfo
}

// fileInfo is what a file says of itself, complete when its last entry was read.
type fileInfo struct {
	run   *exchange.Run // it was exported from
	pick  string        // what of that run it holds, "" for all
	whole bool          // every exchange of that run is in it
	notes []string
}

// LineError says what is wrong where in a file.
type LineError struct {
	Unit  string // line or entry
	N     int    // which, from 1; 0 for what is before them
	Field string // "" when it is the line as a whole
	Value string // as it stands there, cut to a readable length; "" when there is none
	Why   string // what was wanted, or what is wrong with it
}

// Error is "line 3: field t_ms: "x": want a number".
func (e *LineError) Error() string {
	var b strings.Builder
	if e.N > 0 {
		fmt.Fprintf(&b, "%s %d: ", e.Unit, e.N)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "field %s: ", e.Field)
	}
	if e.Value != "" {
		fmt.Fprintf(&b, "%s: ", shown(e.Value))
	}
	return b.String() + e.Why
}

// shown is a value for a message: quoted, since it can hold anything, and not longer than a line.
func shown(v string) string {
	const most = 60
	if len(v) > most {
		v = v[:most] + "..."
	}
	return fmt.Sprintf("%q", v)
}

// errTooLarge ends the reading of a file that unpacks to more than it may.
var errTooLarge = errors.New("it is larger than the limit")

// bounded reads no more than left bytes, and no more than entry bytes between two resets.
type bounded struct {
	r           io.Reader
	left, entry int64
	ofFile      int64 // the bounds, for the message
	ofEntry     int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	most := min(b.left, b.entry)
	if most <= 0 {
		var one [1]byte // a file of just the limit is in order
		if n, err := b.r.Read(one[:]); n == 0 {
			return 0, err
		}
		if b.left <= 0 {
			return 0, fmt.Errorf("%w of %d bytes unpacked", errTooLarge, b.ofFile)
		}
		return 0, fmt.Errorf("%w of %d bytes for one line or entry", errTooLarge, b.ofEntry)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), most)])
	b.left -= int64(n)
	b.entry -= int64(n)
	return n, err
}

// reset begins the next entry. What was read ahead of it counts for it.
func (b *bounded) reset() { b.entry = b.ofEntry }

// File is a workload file that is opened as often as it is read.
type File struct {
	Name    string // for people
	open    func() (io.ReadCloser, error)
	options FileOptions
}

// OpenFile names the file at path for reading.
func OpenFile(path string, o FileOptions) *File {
	return &File{Name: filepath.Base(path), open: func() (io.ReadCloser, error) { return os.Open(path) }, options: o}
}

// each gives the entries of the file to visit and says what the file told of itself.
func (f *File) each(ctx context.Context, visit func(*entry) error) (*fileInfo, error) {
	raw, err := f.open()
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	r, done, err := f.reader(raw)
	if err != nil {
		return nil, err
	}
	defer done()
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e, err := r.next()
		if err == io.EOF {
			return r.about(), nil
		}
		if err == nil {
			err = visit(e)
		}
		if err != nil {
			return nil, err
		}
	}
}

// reader unpacks raw and finds its format.
func (f *File) reader(raw io.Reader) (r reader, done func(), err error) {
	plain, done, err := unpack(bufio.NewReader(raw))
	if err != nil {
		return nil, nil, err
	}
	o := &f.options
	b := &bounded{r: &textReader{r: plain}, ofFile: o.MaxBytes, ofEntry: o.MaxEntry}
	if b.ofFile <= 0 {
		b.ofFile = DefaultMaxBytes
	}
	if b.ofEntry <= 0 {
		b.ofEntry = DefaultMaxEntry
	}
	b.left = b.ofFile
	b.reset()
	buf := bufio.NewReaderSize(b, 64<<10)
	format := o.Format
	if format == "" {
		head, err := buf.Peek(32 << 10)
		if format = sniffFormat(head); err != nil && err != io.EOF && !(format == "" && errors.Is(err, errNotText)) {
			done()
			return nil, nil, err
		}
		if err == io.EOF && len(bytes.TrimSpace(head)) == 0 {
			done()
			return nil, nil, fmt.Errorf("%w: the file is empty, and that is no workload format that is known", exchange.ErrUsage)
		}
	}
	if r, err = newReader(format, &lineReader{r: buf, limit: b}, o); err != nil {
		done()
		return nil, nil, err
	}
	return r, done, nil
}

func newReader(format Format, l *lineReader, o *FileOptions) (reader, error) {
	switch format {
	case FormatJSONL:
		return newJSONLReader(l), nil
	case FormatHAR:
		return newHARReader(l), nil
	case FormatBatch:
		return newBatchReader(l), nil
	case FormatMooncake:
		return newMooncakeReader(l, &o.Trace)
	case FormatBurstGPT:
		return newBurstReader(l, &o.Trace)
	case FormatAzure:
		return newAzureReader(l, &o.Trace)
	case "":
		return nil, fmt.Errorf("%w: what the file begins with is no workload format that is known; name one of %v", exchange.ErrUsage, InFormats())
	}
	return nil, fmt.Errorf("%w: format %q cannot be read; there is %v", exchange.ErrUsage, format, InFormats())
}

// unpack undoes one layer of gzip or zstd. A packed file inside a packed one stays as it is, and is then no format.
func unpack(r *bufio.Reader) (io.Reader, func(), error) {
	head, _ := r.Peek(4) // a shorter file is not packed
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("unpack gzip: %w", err)
		}
		return z, func() { _ = z.Close() }, nil
	case bytes.Equal(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("unpack zstd: %w", err)
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

// sniffFormat finds the format of a file by its beginning, "" when it is none that is known.
func sniffFormat(head []byte) Format {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return ""
	}
	if head[0] != '{' {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		return sniffCSV(string(line))
	}
	keys := firstKeys(head)
	has := func(k string) bool { return slices.Contains(keys, k) }
	switch {
	case has("log"):
		return FormatHAR
	case has("schema"), has("path") && has("method"):
		return FormatJSONL
	case has("custom_id"):
		return FormatBatch
	case has("input_length"), has("hash_ids"):
		return FormatMooncake
	}
	return ""
}

// firstKeys are the keys of the object that b begins with, as far as b goes.
func firstKeys(b []byte) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			break
		}
		keys = append(keys, fmt.Sprint(k))
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			break
		}
	}
	return keys
}

// lineReader reads lines and counts them.
type lineReader struct {
	r     *bufio.Reader
	limit *bounded
	n     int // number of the last line
	buf   []byte
}

// next is the next line that is not blank, without its end; it is valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	for {
		l.limit.reset()
		l.buf = l.buf[:0]
		var part []byte
		err := bufio.ErrBufferFull
		for errors.Is(err, bufio.ErrBufferFull) {
			part, err = l.r.ReadSlice('\n')
			l.buf = append(l.buf, part...)
		}
		l.n++
		switch {
		case err == io.EOF && len(l.buf) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, l.bad("", "", err.Error())
		}
		if line := bytes.TrimSpace(l.buf); len(line) > 0 {
			return line, nil
		}
	}
}

// bad is an error at the last line.
func (l *lineReader) bad(field, value, why string) error {
	return &LineError{Unit: "line", N: l.n, Field: field, Value: value, Why: why}
}

// Records are the recorded exchanges of the file, each under its item. Requests without an answer are exchanges that
// were not sent. The first error ends the sequence.
func (f *File) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		stop := errors.New("enough")
		_, err := f.each(ctx, func(e *entry) error {
			rec, err := e.record()
			if err == nil && !yield(rec, nil) {
				err = stop
			}
			return err
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Record{}, f.fail(err))
		}
	}
}

// fail is err with the file named.
func (f *File) fail(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &exchange.Error{Op: "read workload", Object: f.Name, Side: exchange.SideClient, Cause: err}
}
