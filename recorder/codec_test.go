package recorder

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// coders are a compressor and a decompressor.
func coders(t testing.TB) (*zstd.Encoder, *zstd.Decoder) {
	t.Helper()
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dec.Close)
	return enc, dec
}

func encodeManifest(m *manifest) []byte {
	w := &fieldWriter{}
	writeManifest(w, m)
	return w.b
}

// roundTrip codes and decodes a record; bodies keep their bytes by hand, for they are not in it.
func roundTrip(t *testing.T, x *exchange.Exchange) *exchange.Exchange {
	t.Helper()
	enc, dec := coders(t)
	m, err := parseRecord(dec, appendRecord(nil, enc, &fieldWriter{}, &manifest{x: x}, packReads(enc, x.Timeline.Reads)))
	if err != nil {
		t.Fatal(err)
	}
	m.x.Request.Body.Chunks, m.x.Response.Body.Chunks = x.Request.Body.Chunks, x.Response.Body.Chunks
	return m.x
}

func TestManifestKeepsEveryField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		x := &exchange.Exchange{}
		fill(r, reflect.ValueOf(x).Elem())
		if d := same(x, roundTrip(t, x)); d != "" {
			t.Fatal(d)
		}
	}
	for _, x := range []*exchange.Exchange{{}, streamed("{}", "a"), streamed("")} {
		x.Masked = true // nothing else is stored
		if d := same(x, roundTrip(t, x)); d != "" {
			t.Fatal(d)
		}
	}
}

func TestManifestKeepsReferences(t *testing.T) {
	in := &manifest{x: streamed("{}", "a"), request: blobRef{sum256([]byte("q")), 7}, response: blobRef{sum256([]byte("a")), 1 << 40}, reads: blobRef{sum256([]byte("r")), 9}}
	out, err := decodeManifest(encodeManifest(in))
	if err != nil {
		t.Fatal(err)
	}
	if out.request != in.request || out.response != in.response || out.reads != in.reads {
		t.Errorf("references %+v became %+v", in, out)
	}
}

func TestManifestRefusesDamage(t *testing.T) {
	good := encodeManifest(&manifest{x: streamed(`{"a":1}`, "b", "c")})
	for n := range good {
		if _, err := decodeManifest(good[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(good))
		}
	}
	if _, err := decodeManifest(append(bytes.Clone(good), 0)); err == nil {
		t.Error("bytes after the end were accepted")
	}
	newer := append([]byte{manifestVersion + 1}, good[1:]...)
	if _, err := decodeManifest(newer); !errors.Is(err, exchange.ErrDamaged) {
		t.Errorf("a newer version gives %v", err)
	}
}

// FuzzManifest holds: what decodes is coded again to something that decodes to the same.
func FuzzManifest(f *testing.F) {
	f.Add(encodeManifest(&manifest{x: streamed(`{"a":1}`, "b", "c")}))
	x := &exchange.Exchange{}
	fill(rand.New(rand.NewPCG(3, 4)), reflect.ValueOf(x).Elem())
	f.Add(encodeManifest(&manifest{x: x, reads: blobRef{size: 5}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		again, err := decodeManifest(encodeManifest(m))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, again, cmp.AllowUnexported(manifest{}, blobRef{}, exchange.Mark{})); d != "" {
			t.Error(d)
		}
	})
}

// TestReadsKeepEveryNumber holds unpackReads(packReads(x)) == x, at the edges of the numbers too.
func TestReadsKeepEveryNumber(t *testing.T) {
	enc, dec := coders(t)
	r := rand.New(rand.NewPCG(11, 12))
	lists := [][]exchange.Read{nil, {{}}, {{At: math.MaxInt64, Write: math.MinInt64, Size: math.MaxInt}, {At: math.MinInt64, Write: -1, Size: -1}}}
	for n := range 60 {
		reads := make([]exchange.Read, n*n)
		at := int64(0)
		for i := range reads {
			at += r.Int64N(1 << (n % 40))
			reads[i] = exchange.Read{At: at, Write: r.Int64N(1 << 20), Size: r.IntN(300)}
		}
		lists = append(lists, reads)
	}
	for _, reads := range lists {
		packed := packReads(enc, reads)
		got, err := unpackReads(dec, packed)
		if err != nil || len(got) != len(reads) || len(reads) > 0 && cmp.Diff(reads, got) != "" {
			t.Fatalf("%d reads came back as %d, %v", len(reads), len(got), err)
		}
		for _, cut := range []int{1, len(packed) / 2, len(packed) - 1} {
			if cut > 0 && cut < len(packed) {
				if _, err := unpackReads(dec, packed[:cut]); err == nil {
					t.Fatalf("%d of %d bytes were accepted", cut, len(packed))
				}
			}
		}
	}
	for _, bad := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0x7f}, {1}, {1, 9}, {2, 1, 2, codecRaw, 5}, {1, 1, 2, 7, 5}} {
		if _, err := unpackReads(dec, bad); err == nil {
			t.Errorf("%v was unpacked", bad)
		}
		if _, err := parseRecord(dec, bad); err == nil {
			t.Errorf("%v is a record", bad)
		}
	}
}

func TestChunksKeepBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		var segments [][]byte
		for range r.IntN(6) {
			s := make([]byte, r.IntN(chunkSize*2))
			for i := 0; i < len(s); i += 1000 {
				s[i] = byte(r.IntN(256))
			}
			segments = append(segments, s)
		}
		whole := bytes.Join(segments, nil)
		parts := chunks(segments)
		if !bytes.Equal(bytes.Join(parts, nil), whole) || len(parts) != chunkCount(int64(len(whole))) {
			t.Fatalf("%d bytes became %d chunks with other bytes", len(whole), len(parts))
		}
		for i, p := range parts {
			if len(p) > chunkSize || i < len(parts)-1 && len(p) != chunkSize {
				t.Fatalf("chunk %d of %d has %d bytes", i, len(parts), len(p))
			}
		}
	}
}

func TestPackUnpack(t *testing.T) {
	enc, dec := coders(t)
	random := make([]byte, 5000)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range random {
		random[i] = byte(r.IntN(256))
	}
	for name, tc := range map[string]struct {
		in    []byte
		codec byte
	}{
		"empty": {nil, codecRaw}, "one": {[]byte("x"), codecRaw}, "short": {bytes.Repeat([]byte("t"), minPacked-1), codecRaw}, "random": {random, codecRaw}, "text": {bytes.Repeat([]byte("text "), 999), codecZstd},
	} {
		v := pack(enc, tc.in)
		if v[0] != tc.codec || len(v) > len(tc.in)+1 {
			t.Errorf("%s: codec %d, %d bytes of %d", name, v[0], len(v), len(tc.in))
		}
		if out, err := unpack(dec, v); err != nil || !bytes.Equal(out, tc.in) {
			t.Errorf("%s: %d bytes came back, %v", name, len(out), err)
		}
	}
	for _, bad := range [][]byte{nil, {9, 1}, {codecZstd, 1, 2, 3}} {
		if _, err := unpack(dec, bad); err == nil {
			t.Errorf("%v was unpacked", bad)
		}
	}
}

func TestKeysRoundTrip(t *testing.T) {
	loc := location{run: exchange.NewID(day), seq: 1<<63 + 5, id: exchange.NewID(day)}
	if got, err := parseLocation(takeKey("h1:0123456789abcdef", loc)); err != nil || got != loc {
		t.Errorf("take: %+v, %v", got, err)
	}
	id := blockID{seq: loc.seq, no: 1<<32 - 3}
	if run, got, err := parseBlockKey(blockKey(loc.run, id)); err != nil || got != id || run != loc.run {
		t.Errorf("block: %s, %+v, %v", run, got, err)
	}
	bucket := string(loc.id[:bucketLen])
	if b, run, got, err := parsePageKey(pageKey(bucket, loc.run, id)); err != nil || got != id || run != loc.run || b != bucket {
		t.Errorf("page: %q, %s, %+v, %v", b, run, got, err)
	}
	for _, bad := range []string{"", "x/short", "x/" + string(loc.run) + "/zz00000000000000/" + string(loc.id)} {
		if _, err := parseLocation([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	for _, bad := range []string{"", "x/short", "x/" + string(loc.run) + "/zz00000000000000/00000001", "x/" + string(loc.run) + "/0000000000000000/zz000001", "x/" + strings.ToLower(string(loc.run)) + "/0000000000000000/00000001"} {
		if _, _, err := parseBlockKey([]byte(bad)); err == nil {
			t.Errorf("%q is a block", bad)
		}
		if _, _, _, err := parsePageKey([]byte("i/00000000/" + bad)); err == nil {
			t.Errorf("%q is a page", bad)
		}
	}
	for _, later := range []blockID{{seq: 16, no: 0}, {seq: 9, no: 10}} {
		if bytes.Compare(blockKey(loc.run, blockID{seq: 9, no: 9}), blockKey(loc.run, later)) >= 0 {
			t.Errorf("%+v sorts before its predecessor", later)
		}
	}
}

// TestHeadsSpareTheirHeaders holds that headers are stored once where the head says them, and come back the same where
// it says something else.
func TestHeadsSpareTheirHeaders(t *testing.T) {
	raw := []byte("GET / HTTP/1.1\r\nHost: h\r\nX-Blank:  a b \t\r\nx:\r\n\r\n")
	said := []exchange.Header{{Name: "Host", Value: "h"}, {Name: "X-Blank", Value: "a b"}, {Name: "x", Value: ""}}
	for name, tc := range map[string]struct {
		raw  []byte
		hs   []exchange.Header
		said bool
	}{
		"said":           {raw, said, true},
		"bare LF":        {bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), said, true},
		"none":           {nil, nil, true},
		"no end":         {[]byte("GET /\r\nHost: h"), said[:1], true},
		"one less":       {raw, said[:2], false},
		"one more":       {raw, append(said[:3:3], exchange.Header{Name: "y"}), false},
		"other value":    {raw, []exchange.Header{{Name: "Host", Value: "H"}, said[1], said[2]}, false},
		"other name":     {raw, []exchange.Header{{Name: "host", Value: "h"}, said[1], said[2]}, false},
		"folded":         {[]byte("GET /\r\nA: b\r\n c\r\n\r\n"), []exchange.Header{{Name: "A", Value: "b c"}}, false},
		"behind the end": {[]byte("GET /\r\n\r\nA: b\r\n"), []exchange.Header{{Name: "A", Value: "b"}}, false},
	} {
		w := &fieldWriter{}
		w.head(tc.raw, tc.hs)
		if short := len(w.b) == len(tc.raw)+2; short != tc.said {
			t.Errorf("%s: %d bytes for a head of %d", name, len(w.b), len(tc.raw))
		}
		r := &fieldReader{b: w.b}
		gotRaw, got := r.head()
		if r.err != nil || len(r.b) > 0 || !bytes.Equal(gotRaw, tc.raw) || cmp.Diff(got, tc.hs) != "" {
			t.Errorf("%s: came back as %q, %v, %v", name, gotRaw, got, r.err)
		}
	}
}

func TestBodiesKeepTheirDigests(t *testing.T) {
	body := exchange.NewBody([]byte("kept"))
	sum := sum256([]byte("kept"))
	for _, tc := range []struct {
		digest string
		ref    blobRef
	}{
		{digestText(sum), blobRef{sum, 4}}, {digestText(sum), blobRef{}}, {"", blobRef{sum, 4}}, {"", blobRef{}},
		{digestText(sum256([]byte("kept and cut"))), blobRef{sum, 4}}, {digestText(digest{}), blobRef{}}, {"sha256:odd", blobRef{sum, 4}},
	} {
		w := &fieldWriter{}
		body.Digest = tc.digest
		writeBody(w, &body, tc.ref)
		r := &fieldReader{b: w.b}
		if got, ref := readBody(r); got.Digest != tc.digest || ref != tc.ref || r.err != nil || len(r.b) > 0 {
			t.Errorf("%+v came back as %q, %+v, %v", tc, got.Digest, ref, r.err)
		}
	}
}

func TestPendingRoundTrip(t *testing.T) {
	for _, in := range []pending{nil, {{ID: "a"}}, {{ID: exchange.NewID(day), Blobs: []digest{sum256([]byte("a")), sum256(nil)}}, {ID: "b"}}} {
		b := encodePending(in)
		out, err := decodePending(b)
		if err != nil || cmp.Diff(in, out) != "" {
			t.Errorf("%+v became %+v, %v", in, out, err)
		}
		for n := range b {
			if _, err := decodePending(b[:n]); err == nil {
				t.Errorf("the first %d of %d bytes were accepted", n, len(b))
			}
		}
		if _, err := decodePending(append(b, 0)); err == nil {
			t.Error("bytes after the end were accepted")
		}
	}
	if _, err := decodePending([]byte("[]")); !errors.Is(err, exchange.ErrDamaged) {
		t.Errorf("text gives %v", err)
	}
}
