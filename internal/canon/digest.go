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
	return digestOf(form), nil
}

// RequestIdentity is the key of req and the digest of its body, "" for a body that is not JSON or takes part in the key
// by its raw bytes. Where the two forms of the body are the same text, as nearly always, it is made once.
func RequestIdentity(req *exchange.Request) (Key, string) {
	body, same := bodyForm(req)
	key := keyOf(req, body)
	switch {
	case body.kind != kindJSON:
		return key, ""
	case same:
		return key, digestOf(body.text)
	}
	digest, err := Digest(req.Body.Bytes())
	if err != nil { // a number that Python does not read
		return key, ""
	}
	return key, digest
}

func digestOf(form []byte) string {
	sum := sha256.Sum256(form)
	return exchange.DigestPrefix + hex.EncodeToString(sum[:])
}

// Interchange is the text that Digest hashes. A number beyond the range of a double is written Infinity, as Python
// does, so this form is for hashing only.
func Interchange(b []byte) ([]byte, error) { return canonical(b, appendPython) }
