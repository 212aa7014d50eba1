package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// What a JSON reader would change in silence is refused or repaired here: a byte that is no UTF-8 and half of a surrogate
// pair would both become U+FFFD, and another request would be sent than the file says.

// errNotText ends the reading of a file that is no UTF-8.
var errNotText = errors.New("the file, unpacked, is no UTF-8 text")

// textReader reads a file that must be UTF-8, without the byte order mark at its beginning.
type textReader struct {
	r     io.Reader
	begun bool
	at    int64  // bytes that were found in order, the mark among them
	tail  []byte // the beginning of a character whose end was not read yet
	err   error
}

// Read implements io.Reader. What is before a bad byte is read first.
func (t *textReader) Read(p []byte) (int, error) {
	if t.err != nil || len(p) == 0 {
		return 0, t.err
	}
	n, err := t.first(p)
	text := append(t.tail, p[:n]...)
	whole := len(text) - cutCharacter(text)
	if !utf8.Valid(text[:whole]) {
		good := validBytes(text)
		t.err = fmt.Errorf("%w: %#02x at byte %d", errNotText, text[good], t.at+int64(good)+1)
		return max(good-len(t.tail), 0), t.err
	}
	t.at += int64(whole)
	t.tail = append([]byte(nil), text[whole:]...)
	if err == io.EOF && len(t.tail) > 0 {
		err = fmt.Errorf("%w: it ends inside a character", errNotText)
	}
	t.err = err
	return n, err
}

// first reads, the first time without a mark.
func (t *textReader) first(p []byte) (int, error) {
	if t.begun {
		return t.r.Read(p)
	}
	t.begun = true
	var mark [3]byte
	n, err := io.ReadFull(t.r, mark[:])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	head := bytes.TrimPrefix(mark[:n], []byte("\xef\xbb\xbf"))
	t.at = int64(n - len(head))
	if len(head) > len(p) {
		t.r = io.MultiReader(bytes.NewReader(head[len(p):]), t.r)
		head, err = head[:len(p)], nil
	}
	return copy(p, head), err
}

// cutCharacter is how many bytes at the end of text begin a character that goes on behind it.
func cutCharacter(text []byte) int {
	for n := 1; n < min(utf8.UTFMax, len(text)+1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// validBytes is how many bytes of text are in order, of which not all are.
func validBytes(text []byte) int {
	at := 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return max(at-1, 0)
}

// halfPair reports whether the JSON string holds an escaped half of a surrogate pair without the other one.
func halfPair(in []byte) bool {
	high := false // the escape just before was the first half of a pair
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' || i+1 >= len(in) {
			if high {
				return true
			}
			continue
		}
		i++
		var unit uint64
		if in[i] == 'u' && i+4 < len(in) {
			var err error
			if unit, err = strconv.ParseUint(string(in[i+1:i+5]), 16, 16); err != nil {
				return false // no JSON
			}
			i += 4
		}
		low := 0xdc00 <= unit && unit < 0xe000
		if high != low {
			return true
		}
		high = 0xd800 <= unit && unit < 0xdc00
	}
	return high
}

// errHalfPair is why a string is refused whose bytes no JSON reader would give back.
var errHalfPair = errors.New("has half of a surrogate pair, which no text has: write it as base64")

// exactText is a string of JSON that its reader gives back as it stands there.
type exactText string

// UnmarshalJSON reads a string.
func (t *exactText) UnmarshalJSON(in []byte) error {
	if halfPair(in) {
		return errHalfPair
	}
	return json.Unmarshal(in, (*string)(t))
}

// exactHeaders are the headers of a file with the values as they crossed the wire. JSON cannot say bytes that are no
// UTF-8, which header values may be; the head beside them has them.
func exactHeaders(hs []exchange.Header, head []byte) []exchange.Header {
	odd := false
	for _, h := range hs {
		odd = odd || strings.ContainsRune(h.Value, utf8.RuneError)
	}
	lines := strings.Split(string(head), "\r\n")
	if !odd || len(lines) < len(hs)+1 {
		return hs
	}
	out := make([]exchange.Header, len(hs))
	for i, h := range hs {
		name, value, _ := strings.Cut(lines[i+1], ":")
		out[i] = h
		if value = strings.TrimSpace(value); name == h.Name && string([]rune(value)) == h.Value {
			out[i].Value = value
		}
	}
	return out
}
