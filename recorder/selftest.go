package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// selftestVersion is the version of Selftest as stored. A newer one is not read.
const selftestVersion = 1

// Selftest is what a machine found about itself as a measuring instrument.
type Selftest struct {
	Version    int                 `json:"version"` // of this form
	Instrument exchange.Instrument `json:"instrument"`
	Report     json.RawMessage     `json:"report"` // whole, as `selftest --json` printed it
}

func selftestKey(host string) []byte { return []byte(hostPrefix + host) }

// PutSelftest stores the result of a selftest in the place of an older one of the same machine, on disk before it
// returns. Runs that begin after it under Options.Host carry it.
func (s *Store) PutSelftest(i exchange.Instrument, report json.RawMessage) error {
	v, err := json.Marshal(Selftest{Version: selftestVersion, Instrument: i, Report: report})
	if err == nil {
		err = s.update(func(txn *badger.Txn) error { return txn.Set(selftestKey(i.Host.Fingerprint()), v) })
	}
	if err == nil {
		err = s.sync()
	}
	if err != nil {
		return &exchange.Error{Op: "store selftest", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	return nil
}

// Selftest is the newest selftest of the machine with that fingerprint. The error wraps exchange.ErrMiss when there is
// none, exchange.ErrDamaged when this build cannot read it.
func (s *Store) Selftest(host string) (Selftest, error) {
	var t Selftest
	err := s.view(func(txn *badger.Txn) error {
		v, err := getValue(txn, selftestKey(host))
		if err != nil {
			return err
		}
		return json.Unmarshal(v, &t)
	})
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		err, t = fmt.Errorf("%w: none was made on this machine", exchange.ErrMiss), Selftest{}
	case err == nil && t.Version == selftestVersion:
		return t, nil
	case errors.Is(err, errClosed):
	case err == nil:
		err = fmt.Errorf("%w: version %d, this build knows %d", exchange.ErrDamaged, t.Version, selftestVersion)
	default:
		err = fmt.Errorf("%w: %w", exchange.ErrDamaged, err)
	}
	return Selftest{}, &exchange.Error{Op: "read selftest", Object: host, Side: exchange.SideStore, Cause: err, Hint: "benchproxy selftest makes one"}
}

// instrument is what a run that begins at that instant says about this machine; nil when no selftest does. A selftest
// that cannot be read does not stop a recording.
func (s *Store) instrument(start time.Time) *exchange.Instrument {
	if s.o.Host == "" {
		return nil
	}
	t, err := s.Selftest(s.o.Host)
	if err != nil {
		if !errors.Is(err, exchange.ErrMiss) {
			s.o.log().Warn("a run goes without the selftest of this machine", "err", err)
		}
		return nil
	}
	return t.Instrument.At(start)
}
