package exchange

import (
	"sync/atomic"
	"unsafe"
)

// Log is an append-only list with one writer and any number of readers. Elements sit in fixed segments that never
// move; the length is published atomically after the elements, so a reader sees only whole elements and neither side
// ever waits for the other.
//
// The zero value is ready for use. Append is for one goroutine at a time and must not be called on a copy.
type Log[T any] struct {
	head atomic.Pointer[segment[T]] // first segment
	n    atomic.Int64               // published length
	last *segment[T]                // owned by the writer
	used int                        // elements of last in use, owned by the writer
}

type segment[T any] struct {
	data []T // its length is the capacity of the segment
	next atomic.Pointer[segment[T]]
}

const (
	minSegmentBytes = 512
	maxSegmentBytes = 64 << 10
)

// Append adds vs in order. Its cost is one copy, and an allocation when the last segment is full.
func (l *Log[T]) Append(vs ...T) {
	for rest := vs; len(rest) > 0; {
		if l.last == nil || l.used == len(l.last.data) {
			l.grow(len(rest))
		}
		n := copy(l.last.data[l.used:], rest)
		l.used += n
		rest = rest[n:]
	}
	l.n.Add(int64(len(vs)))
}

// grow adds a segment. Segments double in size between two bounds: a short stream costs little, a long one few segments.
func (l *Log[T]) grow(want int) {
	var zero T
	size := max(int(unsafe.Sizeof(zero)), 1)
	bytes := minSegmentBytes
	if l.last != nil {
		bytes = 2 * len(l.last.data) * size
	}
	bytes = min(max(bytes, want*size), maxSegmentBytes)
	s := &segment[T]{data: make([]T, max(bytes/size, 1))}
	if l.last == nil {
		l.head.Store(s)
	} else {
		l.last.next.Store(s)
	}
	l.last, l.used = s, 0
}

// Len is the number of elements published so far.
func (l *Log[T]) Len() int { return int(l.n.Load()) }

// Chunks are the first n elements (all published ones when n is larger) as slices of the segments they sit in. The
// slices stay valid and unchanged while the log grows; the caller must not write to them.
func (l *Log[T]) Chunks(n int) [][]T {
	n = min(n, l.Len())
	var out [][]T
	for s := l.head.Load(); s != nil && n > 0; s = s.next.Load() {
		k := min(n, len(s.data))
		out = append(out, s.data[:k:k])
		n -= k
	}
	return out
}

// All is a copy of every element published so far.
func (l *Log[T]) All() []T {
	n := l.Len()
	out := make([]T, 0, n)
	for _, c := range l.Chunks(n) {
		out = append(out, c...)
	}
	return out
}
