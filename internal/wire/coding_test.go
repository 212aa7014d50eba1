package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// flusher is an encoder of any of the codings.
type flusher interface {
	io.WriteCloser
	Flush() error
}

func encoder(t testing.TB, coding string, w io.Writer) flusher {
	t.Helper()
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	case "zstd":
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	case "bare deflate":
		z, err := flate.NewWriter(w, 6)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	t.Fatalf("no encoder for %q", coding)
	return nil
}

// encode puts pieces under a coding, flushed after each.
func encode(t testing.TB, coding string, pieces ...[]byte) []byte {
	t.Helper()
	return bytes.Join(encodePieces(t, coding, pieces...), nil)
}

// encodePieces gives the coded bytes of each piece, with the end of the coding as a last one.
func encodePieces(t testing.TB, coding string, pieces ...[]byte) (out [][]byte) {
	t.Helper()
	var buf bytes.Buffer
	e := encoder(t, coding, &buf)
	take := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(buf.Bytes()))
		buf.Reset()
	}
	for _, p := range pieces {
		if _, err := e.Write(p); err != nil {
			t.Fatal(err)
		}
		take(e.Flush())
	}
	take(e.Close())
	return out
}

func chatVector(t testing.TB) wiretest.Vector {
	t.Helper()
	for _, v := range wiretest.Vectors(t) {
		if v.File == "openai-chat-basic.txt" {
			return v
		}
	}
	t.Fatal("no vector")
	return wiretest.Vector{}
}

// TestCodedBody holds that a coded stream gives the transcript of the plain one, and that its events name the very
// reads they came with, as long as the engine flushes its encoder after each event.
func TestCodedBody(t *testing.T) {
	v := chatVector(t)
	events := bytes.SplitAfter(v.Body, []byte("\n\n"))
	events = events[:len(events)-1] // behind the last separator is nothing
	want := parseIn(v, events)
	for coding, header := range map[string]string{
		"gzip": "gzip", "x-gzip": " X-GZIP ", "deflate": "deflate", "bare deflate": "deflate", "br": "br", "zstd": "zstd",
	} {
		p := NewParser(Info{Path: v.Path(), Status: v.Status, ContentType: v.ContentType, ContentEncoding: header})
		for i, b := range encodePieces(t, coding, events...) {
			p.Feed(b, i)
		}
		if s := p.Snapshot(); len(s.Events) != 0 {
			t.Errorf("%s: events before the end", coding)
		}
		got := p.Finish(true)
		if got.Coding != strings.ToLower(strings.TrimSpace(header)) || got.CodingError != "" {
			t.Errorf("%s: coding %q, error %q", coding, got.Coding, got.CodingError)
		}
		got.Coding = ""
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-plain +coded):\n%s", coding, d)
		}
	}
}

func TestSeveralCodings(t *testing.T) {
	v := chatVector(t)
	body := encode(t, "br", encode(t, "gzip", v.Body))
	p := NewParser(Info{Path: v.Path(), ContentType: v.ContentType, ContentEncoding: "gzip, identity, br"})
	p.Feed(body, 0)
	if got := p.Finish(true); got.Coding != "gzip, br" || got.CodingError != "" || len(got.Events) != v.Expected.Events {
		t.Errorf("coding %q, error %q, %d events", got.Coding, got.CodingError, len(got.Events))
	}
}

func TestCodedBodyThatIsDamaged(t *testing.T) {
	v := chatVector(t)
	good := encode(t, "gzip", v.Body)
	for _, tc := range []struct {
		name, header string
		body         []byte
		events       bool // what came before the damage is read
		want         string
	}{
		{"cut", "gzip", good[:len(good)-8], true, "unexpected EOF"},
		{"not coded at all", "gzip", v.Body, false, "invalid header"},
		{"not coded at all", "br", v.Body, false, "brotli"},
		{"not coded at all", "zstd", v.Body, false, "decode zstd"},
		{"checksum", "gzip", append(append([]byte{}, good[:len(good)-8]...), make([]byte, 8)...), true, "invalid checksum"},
		{"unknown", "lzma", good, false, "unknown content coding"},
		{"one too many", "gzip,gzip,gzip,gzip,gzip", good, false, "5 content codings"},
	} {
		p := NewParser(Info{Path: v.Path(), ContentType: v.ContentType, ContentEncoding: tc.header})
		p.Feed(tc.body, 0)
		got := p.Finish(true)
		if !strings.Contains(got.CodingError, tc.want) || got.CodingError == "" {
			t.Errorf("%s %s: error %q, want %q", tc.name, tc.header, got.CodingError, tc.want)
		}
		if (len(got.Events) > 0) != tc.events {
			t.Errorf("%s %s: %d events", tc.name, tc.header, len(got.Events))
		}
	}
	if got := Parse(&exchange.Exchange{Response: exchange.Response{Headers: []exchange.Header{{Name: "Content-Encoding", Value: "gzip"}}}}); got.CodingError != "" {
		t.Errorf("an empty body (to a HEAD, say) gives the error %q", got.CodingError)
	}
}

// TestDecodingIsBounded feeds small bodies that would decode to more than may come out. The limit is lowered, since
// making 64 MiB takes the race detector minutes.
func TestDecodingIsBounded(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		p := NewParser(Info{Path: "/x", ContentType: "application/octet-stream", ContentEncoding: coding})
		if p.coded.limit != 64<<20 {
			t.Fatalf("limit %d", p.coded.limit)
		}
		p.coded.limit = 1 << 20
		p.Feed(encode(t, coding, make([]byte, 1<<20+1)), 0)
		if got := p.Finish(true); got.CodingError != errDecodedTooLarge.Error() {
			t.Errorf("%s: error %q", coding, got.CodingError)
		}
	}
}
