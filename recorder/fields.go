package recorder

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

var errShortValue = errors.New("value ends early")

// fieldWriter appends fields in a fixed order: numbers as varints, texts with their length.
type fieldWriter struct{ b []byte }

func (w *fieldWriter) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *fieldWriter) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }

func (w *fieldWriter) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *fieldWriter) str(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *fieldWriter) bytes(s []byte) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *fieldWriter) mark(m exchange.Mark) {
	ns, ok := m.NS()
	w.bool(ok)
	if ok {
		w.int(ns)
	}
}

// time keeps the instant in UTC, to the nanosecond.
func (w *fieldWriter) time(t time.Time) {
	w.int(t.Unix())
	w.uint(uint64(t.Nanosecond()))
}

func (w *fieldWriter) headers(hs []exchange.Header) {
	w.uint(uint64(len(hs)))
	for _, h := range hs {
		w.str(h.Name)
		w.str(h.Value)
	}
}

// fieldReader reads what fieldWriter wrote. The first error sticks; after it every field is empty.
type fieldReader struct {
	b   []byte
	err error
}

func (r *fieldReader) fail() {
	r.b = nil
	if r.err == nil {
		r.err = errShortValue
	}
}

func (r *fieldReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *fieldReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of elements, each of which takes at least a byte: a damaged value cannot ask for more memory
// than it has bytes.
func (r *fieldReader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *fieldReader) bool() bool {
	if len(r.b) == 0 {
		r.fail()
		return false
	}
	v := r.b[0] != 0
	r.b = r.b[1:]
	return v
}

func (r *fieldReader) str() string { return string(r.raw()) }

// bytes is a copy, nil when empty.
func (r *fieldReader) bytes() []byte { return append([]byte(nil), r.raw()...) }

func (r *fieldReader) raw() []byte {
	n := r.count()
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *fieldReader) mark() exchange.Mark {
	if !r.bool() {
		return exchange.Mark{}
	}
	return exchange.MarkAt(r.int())
}

func (r *fieldReader) time() time.Time {
	sec := r.int()
	return time.Unix(sec, int64(r.uint())).UTC()
}

func (r *fieldReader) headers() []exchange.Header {
	n := r.count()
	if n == 0 {
		return nil
	}
	hs := make([]exchange.Header, n)
	for i := range hs {
		hs[i] = exchange.Header{Name: r.str(), Value: r.str()}
	}
	return hs
}
