package canon

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Digest is "sha256:<64 hex>" over the interchange form of the JSON text b: as JSON, but numbers the way Python 3
// prints them, so that tools in other languages come to the same digest. The errors are those of JSON.
func Digest(b []byte) (string, error) {
	form, err := Interchange(b)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return exchange.DigestPrefix + hex.EncodeToString(sum[:]), nil
}

// Interchange is the text that Digest hashes. A number beyond the range of a double is written Infinity, as Python
// does, so this form is for hashing only.
func Interchange(b []byte) ([]byte, error) { return canonical(b, appendPython) }
