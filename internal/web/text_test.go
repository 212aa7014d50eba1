package web

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func parse(x *exchange.Exchange) *wire.Transcript { return wire.Parse(x) }

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nü 漢 \U0001f468\u200d\U0001f469": "plain\ttext\nü 漢 \U0001f468\u200d\U0001f469",
		"\x1b[31m":       "[\u241b][31m",
		"a\u202eb":       "a[U+202E]b",
		"\xff\xfe":       `[\xff\xfe]`,
		"\r\n":           "[\u240d]\n",
		"\x7f\u0085":     "[\u2421U+0085]",
		"\ufeffx\u00ad":  "[U+FEFF]x[U+00AD]",
		"\U000e0041 tag": "[U+E0041] tag",
		"\ufffd":         "\ufffd",
		"a\u00a0b":       "a\u00a0b",
	} {
		segments, cut := visible(in, 1000)
		if got := bracketed(segments); got != want || cut != 0 {
			t.Errorf("%q: %q, %d cut; want %q", in, got, cut, want)
		}
	}
	for limit := range 7 { // a character is never parted
		segments, cut := visible("a漢字", limit)
		if got := bracketed(segments); !strings.HasPrefix("a漢字", got) || len(got)+cut != 7 {
			t.Errorf("limit %d: %q, %d cut", limit, got, cut)
		}
	}
}

func bracketed(segments []segment) string {
	var b strings.Builder
	for _, s := range segments {
		if s.Mark {
			b.WriteString("[" + s.Text + "]")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

var markForms = regexp.MustCompile(`\\x[0-9a-f]{2}|U\+[0-9A-F]{4,6}|[\x{2400}-\x{2421}]`)

// unmark gives back what marks stand for.
func unmark(marks string) string {
	return markForms.ReplaceAllStringFunc(marks, func(m string) string {
		if hex, ok := strings.CutPrefix(m, `\x`); ok {
			n, _ := strconv.ParseUint(hex, 16, 8)
			return string([]byte{byte(n)})
		}
		if hex, ok := strings.CutPrefix(m, "U+"); ok {
			n, _ := strconv.ParseUint(hex, 16, 32)
			return string(rune(n))
		}
		r, _ := utf8.DecodeRuneInString(m)
		if r == 0x2421 {
			return "\x7f"
		}
		return string(r - 0x2400)
	})
}

// FuzzVisible holds that nothing is lost: text and marks together say each byte, whatever came, and that what is shown is
// valid and steers nothing.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a\x1bb", "\xff", "\u202e\u202d", "漢\r\n", "\xed\xa0\x80", "\U000e0001", "U+202E \\xff \u2400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		segments, cut := visible(in, len(in))
		var back strings.Builder
		for _, s := range segments {
			if s.Mark {
				back.WriteString(unmark(s.Text))
			} else {
				back.WriteString(s.Text)
			}
			if !utf8.ValidString(s.Text) || strings.ContainsAny(s.Text, "\x1b\x00\r\u202e\u2066\ufeff") {
				t.Errorf("%q shows %q", in, s.Text)
			}
		}
		if back.String() != in || cut != 0 {
			t.Errorf("%q came back as %q, %d cut", in, back.String(), cut)
		}
		if line := oneLine(in, 20); utf8.RuneCountInString(line) > 21 || strings.ContainsAny(line, "\n\t\x1b\u202e") || !utf8.ValidString(line) {
			t.Errorf("%q is the line %q", in, line)
		}
	})
}
