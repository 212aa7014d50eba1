package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// DigestPrefix names the hash of every digest in the records.
const DigestPrefix = "sha256:"

// Body is a message body as it crossed the wire: after de-chunking, content coding untouched. Bytes past the memory
// bound are counted and take part in the digest but are not kept.
type Body struct {
	Size   int64    // bytes that crossed
	Kept   int64    // bytes held in Chunks: the first Kept of Size
	Digest string   // "sha256:<hex>" over all Size bytes; "" until computed, which is off the measured path
	Chunks [][]byte // the kept bytes, in order
}

// NewBody is a body that is kept whole. It holds b, which must not change after.
func NewBody(b []byte) Body {
	body := Body{Size: int64(len(b)), Kept: int64(len(b))}
	if len(b) > 0 {
		body.Chunks = [][]byte{b}
	}
	return body
}

// Whole reports whether every byte that crossed is kept.
func (b Body) Whole() bool { return b.Kept == b.Size }

// Bytes are the kept bytes in one slice. It is a copy unless they sit in one chunk already.
func (b Body) Bytes() []byte {
	if len(b.Chunks) == 1 {
		return b.Chunks[0]
	}
	return bytes.Join(b.Chunks, nil)
}

// Reader reads the kept bytes.
func (b Body) Reader() io.Reader {
	rs := make([]io.Reader, len(b.Chunks))
	for i, c := range b.Chunks {
		rs[i] = bytes.NewReader(c)
	}
	return io.MultiReader(rs...)
}

// Sum is the digest of the body: the sealed one, else that of the kept bytes when they are all. It is "" for a body
// that was cut and carries no digest.
func (b Body) Sum() string {
	if b.Digest != "" || !b.Whole() {
		return b.Digest
	}
	h := sha256.New()
	for _, c := range b.Chunks {
		h.Write(c)
	}
	return DigestPrefix + hex.EncodeToString(h.Sum(nil))
}
