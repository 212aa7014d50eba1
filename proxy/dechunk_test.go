package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// decodeSplit runs b through a dechunker in parts: at most step bytes at a time, for step 0 at random.
func decodeSplit(b []byte, step int, rng *rand.Rand) (body []byte, left int, trailers []exchange.Header, ended bool, err error) {
	var d dechunker
	for len(b) > 0 && d.state != chunkEnd {
		n := step
		if n == 0 {
			n = 1 + rng.IntN(40)
		}
		part := append([]byte(nil), b[:min(n, len(b))]...)
		data, used, err := d.decode(part)
		body = append(body, data...)
		b = b[used:]
		if err != nil {
			return body, len(b), nil, false, err
		}
		if used != len(part) && d.state != chunkEnd {
			panic("bytes were left before the end")
		}
	}
	return body, len(b), d.trailers, d.state == chunkEnd, nil
}

// FuzzDechunk holds that the split of the input changes nothing, and that garbage is refused without a panic.
func FuzzDechunk(f *testing.F) {
	for _, s := range []string{
		"5\r\nhello\r\n0\r\n\r\n", "5;ext=1\r\nhello\r\n0;x\r\nX-T: 1\r\n\r\nrest", "a\nhelloworld\n0\n\n", "0\r\n\r\n", "", "zz\r\n",
		"5\r\nhelloX", "ffffffffffffffffffff\r\n", "-1\r\n", "0\r\nbad trailer\r\n\r\n", "00005\r\nhello\r\n000\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		body, left, trailers, ended, err := decodeSplit(b, len(b)+1, rng)
		for _, step := range []int{1, 3, 0} {
			body2, left2, trailers2, ended2, err2 := decodeSplit(b, step, rng)
			if !bytes.Equal(body, body2) || ended != ended2 || (err == nil) != (err2 == nil) || !cmp.Equal(trailers, trailers2) {
				t.Fatalf("split %d of %q: %q %v %v, whole: %q %v %v", step, b, body2, ended2, err2, body, ended, err)
			}
			if err == nil && left != left2 {
				t.Fatalf("split %d of %q leaves %d bytes, whole %d", step, b, left2, left)
			}
		}
		if err != nil && !errors.Is(err, errMalformed) {
			t.Fatalf("error %v is not about the bytes", err)
		}
	})
}

// chunked encodes body in random chunks with random extensions and line ends.
func chunked(body []byte, rng *rand.Rand) []byte {
	var b bytes.Buffer
	for len(body) > 0 {
		n := min(1+rng.IntN(1+rng.IntN(9000)), len(body))
		ext := ""
		if rng.IntN(4) == 0 {
			ext = ";a=\"b\""
		}
		fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, ext, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\n")
	if rng.IntN(2) == 0 {
		b.WriteString("X-T: 1\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// TestBodiesAreIdentical sends random bodies in random chunks and TCP cuts over one reused connection.
func TestBodiesAreIdentical(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const n = 200
	bodies, wires := make([][]byte, n), make([][]byte, n)
	for i := range bodies {
		bodies[i] = make([]byte, rng.IntN(1+rng.IntN(60_000)))
		for j := range bodies[i] {
			bodies[i][j] = byte(rng.Uint32())
		}
		wires[i] = chunked(bodies[i], rng)
	}
	e := newEngine(t, func(p *peer, a asked) bool {
		wire := append([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), wires[p.n-1]...)
		cut := rand.New(rand.NewPCG(uint64(p.n), 3))
		for len(wire) > 0 {
			k := min(1+cut.IntN(1+cut.IntN(20_000)), len(wire))
			_, _ = p.Write(wire[:k])
			wire = wire[k:]
		}
		return true
	})
	r := newRig(t, e.url())
	c := r.dial()
	for i := range bodies {
		if got := c.post("{}").ok(200); got != string(bodies[i]) {
			t.Fatalf("body %d differs: %d bytes, want %d", i, len(got), len(bodies[i]))
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if !bytes.Equal(x.Response.Body.Bytes(), bodies[i]) {
			t.Fatalf("record %d differs", i)
		}
	}
	if n := e.open.Load(); n != 1 {
		t.Errorf("%d connections to the engine, want 1", n)
	}
}

// FuzzResponseHead holds that no head panics, and that the end of the head does not depend on how it arrives.
func FuzzResponseHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\n\n"))
	f.Add([]byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole := headEnd(b, 0)
		for i := range b {
			if n := headEnd(b[:i+1], i); n >= 0 {
				if n != whole {
					t.Fatalf("head of %q ends at %d when read byte by byte, at %d when whole", b, n, whole)
				}
				break
			}
		}
		if r, err := parseResponse(b); err == nil {
			_, _ = frameResponse(&r, "POST")
		}
	})
}
