package exchange

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// ID names an exchange or a run: a ULID in its 26-character text form, so that ids sort by the time they were made.
type ID string

// crockford is the alphabet of the ULID text form.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID makes an id for an object born at t: 48 bits of milliseconds and 80 random bits.
func NewID(t time.Time) ID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // documented never to fail: it ends the program instead
	return encodeULID(b)
}

// encodeULID writes 128 bits as 26 characters of 5 bits; the first character holds the 3 bits left over.
func encodeULID(b [16]byte) ID {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return ID(out[:])
}

// ValidID reports whether s has the form of an id. Names of runs that have this form are refused, so that an id and a
// name are never mistaken for each other.
func ValidID(s string) bool {
	if len(s) != 26 || s[0] > '7' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' {
			continue
		}
		if c < 'A' || c > 'Z' || c == 'I' || c == 'L' || c == 'O' || c == 'U' {
			return false
		}
	}
	return true
}
