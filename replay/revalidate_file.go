package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"time"

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

// WriteExchanges writes the exchanges of the file in the form of FormatJSONL, as Export does with those of a run.
func (f *File) WriteExchanges(ctx context.Context, to io.Writer) error {
	w := &jsonlWriter{w: to}
	if err := w.put(runLine{Schema: jsonlSchema}); err != nil {
		return err
	}
	var start time.Time
	for rec, err := range f.Records(ctx) {
		if err != nil {
			return err
		}
		rec.Row.Started = rec.Exchange.Timeline.Wall
		if start.IsZero() {
			start = rec.Row.Started
		}
		if rec.Exchange.ID == "" && rec.Item != nil {
			x := *rec.Exchange
			x.ID = exchange.ID(rec.Item.ID)
			rec.Exchange = &x
		}
		if err := w.add(&outgoing{Record: rec, start: start}); err != nil {
			return err
		}
	}
	return w.end()
}

// FileSum is the hex SHA-256 of a file.
func FileSum(path string) (string, error) {
	digest, err := OpenFile(path, FileOptions{}).digest()
	return strings.TrimPrefix(digest, exchange.DigestPrefix), err
}
