package recorder

import (
	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// FileDigest is the digest that PutFileDigest kept under a stamp; ok is false when there is none. A stamp stands for one
// state of a file, so that a large file need not be read again.
func (s *Store) FileDigest(stamp string) (digest string, ok bool) {
	err := s.view(func(txn *badger.Txn) error {
		v, err := getValue(txn, fileKey(stamp))
		digest = string(v)
		return err
	})
	return digest, err == nil && digest != ""
}

// PutFileDigest keeps the digest of the file with that stamp.
func (s *Store) PutFileDigest(stamp, digest string) error {
	err := s.gone()
	if err == nil {
		err = s.update(func(txn *badger.Txn) error { return txn.Set(fileKey(stamp), []byte(digest)) })
	}
	if err != nil {
		return &exchange.Error{Op: "keep file digest", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	return nil
}

func fileKey(stamp string) []byte { return []byte(filePrefix + stamp) }
