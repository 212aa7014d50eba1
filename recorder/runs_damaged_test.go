package recorder

import (
	"errors"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestDamagedRunRecord holds that the record of a run that is cut or empty is told as damage of the store.
func TestDamagedRunRecord(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	run := recordAll(t, s, "whole")
	key := []byte(runPrefix + string(run.ID))
	var sound []byte
	err := s.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		sound, err = item.ValueCopy(nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(v []byte) {
		if err := s.db.Update(func(txn *badger.Txn) error { return txn.Set(key, v) }); err != nil {
			t.Fatal(err)
		}
	}
	defer put(sound) // the store is checked at the end of each test
	for _, harm := range []string{"", "{", `{"id":`} {
		put([]byte(harm))
		if _, err := s.Runs(); !errors.Is(err, exchange.ErrDamaged) {
			t.Errorf("%q: %v", harm, err)
		}
	}
}
