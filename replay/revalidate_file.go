package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// digest is "sha256:<hex>" of the bytes of the file.
func (f *File) digest() (string, error) {
	r, err := f.open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return exchange.DigestPrefix + hex.EncodeToString(h.Sum(nil)), nil
}
