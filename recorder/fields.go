package recorder

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"iter"
	"math"
	"strings"
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

// float keeps every bit.
func (w *fieldWriter) float(v float64) {
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
}

// digest writes a digest of the records in half the length of its text, and any other text as it is.
func (w *fieldWriter) digest(s string) {
	sum, ok := parseDigest(s)
	if w.bool(ok); ok {
		w.b = append(w.b, sum[:]...)
	} else {
		w.str(s)
	}
}

// parseDigest undoes digestText; ok is false for any other text.
func parseDigest(s string) (sum digest, ok bool) {
	digits, ok := strings.CutPrefix(s, exchange.DigestPrefix)
	if !ok || len(digits) != hex.EncodedLen(len(sum)) || strings.ContainsAny(digits, "ABCDEF") {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}

// digestText is the digest in the form of the records.
func digestText(sum digest) string { return exchange.DigestPrefix + hex.EncodeToString(sum[:]) }

// head writes a raw head, and its headers only when they are not what the head itself says: they nearly always are.
func (w *fieldWriter) head(raw []byte, hs []exchange.Header) {
	w.bytes(raw)
	same := saysHeaders(raw, hs)
	if w.bool(same); !same {
		w.headers(hs)
	}
}

// saysHeaders reports whether parseHeaders(raw) is hs, without making it.
func saysHeaders(raw []byte, hs []exchange.Header) bool {
	n := 0
	for name, value := range headerLines(raw) {
		if n == len(hs) || string(name) != hs[n].Name || string(value) != hs[n].Value {
			return false
		}
		n++
	}
	return n == len(hs)
}

// headerLines are the lines of a head behind its first, up to an empty one, cut at the colon. They need not be right
// for every head, only the same in both directions: what they do not give is stored beside the head.
func headerLines(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		_, rest, more := bytes.Cut(raw, []byte{'\n'})
		for more {
			var line []byte
			line, rest, more = bytes.Cut(rest, []byte{'\n'})
			line = bytes.TrimSuffix(line, []byte{'\r'})
			name, value, _ := bytes.Cut(line, []byte{':'})
			if len(line) == 0 || !yield(name, bytes.Trim(value, " \t")) {
				return
			}
		}
	}
}

func parseHeaders(raw []byte) (hs []exchange.Header) {
	for name, value := range headerLines(raw) {
		hs = append(hs, exchange.Header{Name: string(name), Value: string(value)})
	}
	return hs
}

func (w *fieldWriter) cause(c *exchange.Cause) {
	if w.bool(c != nil); c != nil {
		w.str(string(c.Side))
		w.str(c.Code)
		w.str(c.Text)
	}
}

func (w *fieldWriter) interventions(list []exchange.Intervention) {
	w.uint(uint64(len(list)))
	for i := range list {
		v := &list[i]
		for _, s := range [...]string{v.Kind, string(v.Where), v.Name, v.From, v.To, v.Reason} {
			w.str(s)
		}
		w.int(v.Offset)
		w.int(v.Length)
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

func (r *fieldReader) raw() []byte { return r.next(r.uint()) }

// next are the next n bytes, not copied.
func (r *fieldReader) next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
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

func (r *fieldReader) float() float64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

func (r *fieldReader) digest() string {
	if !r.bool() {
		return r.str()
	}
	sum := r.sum()
	if r.err != nil {
		return ""
	}
	return digestText(sum)
}

// sum reads the bytes of a digest.
func (r *fieldReader) sum() (d digest) {
	if len(r.b) < len(d) {
		r.fail()
		return d
	}
	copy(d[:], r.b)
	r.b = r.b[len(d):]
	return d
}

func (r *fieldReader) head() (raw []byte, hs []exchange.Header) {
	raw = r.bytes()
	if r.bool() {
		return raw, parseHeaders(raw)
	}
	return raw, r.headers()
}

func (r *fieldReader) cause() *exchange.Cause {
	if !r.bool() {
		return nil
	}
	return &exchange.Cause{Side: exchange.Side(r.str()), Code: r.str(), Text: r.str()}
}

// interventions is nil when there are none.
func (r *fieldReader) interventions() []exchange.Intervention {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]exchange.Intervention, n)
	for i := range list {
		list[i] = exchange.Intervention{
			Kind: r.str(), Where: exchange.Side(r.str()), Name: r.str(), From: r.str(), To: r.str(), Reason: r.str(),
			Offset: r.int(), Length: r.int(),
		}
	}
	return list
}
