package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Keys of the goldens directory. <scope> is the sha256, in 32 hex digits, of weights, engine, version and variant, which
// a golden is good for; <turn> and <alternate> are 8 hex digits, so that alternates sort in their order.
//
//	g/<request key>/<turn>/<scope>/<alternate>   golden, as JSON
//	i/<id>                                       its key
//	r/<scope>/<digest>                           reply of a reference to a need: see goldenreply.go
const (
	goldenPrefix   = "g/"
	goldenIDPrefix = "i/"
	replyPrefix    = "r/"
)

// goldens is the second database of a store. It is opened when it is first asked for.
type goldens struct {
	mu     sync.RWMutex // held for reading while db is in use, for writing to open and close it
	db     *badger.DB
	writes sync.Mutex // alternates are numbered by what is there
}

// AddGolden keeps a golden. Its alternate is given here: 0 for the first under its request key, turn, weights and engine,
// else the next, and then only when alternate allows it: a golden is never overwritten. The golden that was kept is
// returned. The error wraps exchange.ErrUsage for one that would be an alternate and is not meant to be, and for one that
// was taken from the same exchange as another.
func (s *Store) AddGolden(g exchange.Golden, alternate bool) (exchange.Golden, error) {
	if g.ID == "" {
		g.ID = exchange.NewID(now())
	}
	err := s.writeGoldens(func(txn *badger.Txn) error {
		if g.Key == "" || !exchange.ValidID(string(g.ID)) {
			return fmt.Errorf("%w: it has no key or no id", exchange.ErrUsage)
		}
		if _, err := txn.Get([]byte(goldenIDPrefix + string(g.ID))); !errors.Is(err, badger.ErrKeyNotFound) {
			return errors.Join(err, fmt.Errorf("%w: golden %s is there already", exchange.ErrUsage, g.ID))
		}
		g.Alternate = 0
		if err := s.eachGolden(txn, goldenScope(&g), func(before *exchange.Golden) error {
			if before.Source == g.Source && g.Source != "" {
				return fmt.Errorf("%w: golden %s was taken from the same exchange", exchange.ErrUsage, before.ID)
			}
			g.Alternate = before.Alternate + 1
			return nil
		}); err != nil {
			return err
		}
		if g.Alternate > 0 && !alternate {
			return fmt.Errorf("%w: there is a golden of request %s of these weights and this engine", exchange.ErrUsage, g.Key)
		}
		return setGolden(txn, &g)
	})
	if err != nil {
		hint := ""
		if g.Alternate > 0 && !alternate {
			hint = "add it as a further recording with --alternate, or remove the old one"
		}
		return exchange.Golden{}, &exchange.Error{Op: "add golden", Object: string(g.Source), Side: exchange.SideStore, Cause: err, Hint: hint}
	}
	return g, nil
}

func setGolden(txn *badger.Txn, g *exchange.Golden) error {
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	packed, err := packGolden(b)
	if err != nil {
		return err
	}
	key := goldenKey(g)
	if err := txn.Set(key, packed); err != nil {
		return err
	}
	return txn.Set([]byte(goldenIDPrefix+string(g.ID)), key)
}

// packGolden compresses a value. Goldens are written one by one and seldom: no encoder is kept for them.
func packGolden(b []byte) ([]byte, error) {
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	packed := pack(enc, b)
	if err := enc.Close(); err != nil {
		return nil, err
	}
	if len(packed) > valueLogFileSize/2 {
		return nil, fmt.Errorf("%d bytes are more than a value can have", len(packed))
	}
	return packed, nil
}

// Golden is the golden of an id. The error wraps exchange.ErrMiss when there is none.
func (s *Store) Golden(id exchange.ID) (*exchange.Golden, error) {
	var g *exchange.Golden
	err := s.viewGoldens(func(txn *badger.Txn) (err error) {
		key, err := getValue(txn, []byte(goldenIDPrefix+string(id)))
		if err != nil {
			return err
		}
		item, err := txn.Get(key)
		if err != nil {
			return damaged(err)
		}
		g, err = s.decodeGolden(item)
		return err
	})
	switch {
	case errors.Is(err, badger.ErrKeyNotFound) && !errors.Is(err, exchange.ErrDamaged), err == nil && g == nil:
		return nil, &exchange.Error{Op: "find golden", Object: string(id), Side: exchange.SideStore,
			Cause: fmt.Errorf("%w: not in this store", exchange.ErrMiss), Hint: "golden ls shows what there is"}
	case err != nil:
		return nil, goldenError("read golden", string(id), err)
	}
	return g, nil
}

// GoldensOf are the goldens of a request, of all weights and engines: those of one turn, weights and engine stand
// together, alternates in their order. With "" for the key they are those of all requests. Which of them is good for a
// comparison, and why another is not, is for the gates to say.
func (s *Store) GoldensOf(key string) (list []*exchange.Golden, err error) {
	prefix := []byte(goldenPrefix)
	if key != "" {
		prefix = []byte(goldenPrefix + key + "/")
	}
	err = s.viewGoldens(func(txn *badger.Txn) error {
		return s.eachGolden(txn, prefix, func(g *exchange.Golden) error {
			list = append(list, g)
			return nil
		})
	})
	if err != nil {
		return nil, goldenError("list goldens", key, err)
	}
	return list, nil
}

// RemoveGolden removes one golden. The numbers of its alternates stay.
func (s *Store) RemoveGolden(id exchange.ID) error {
	g, err := s.Golden(id)
	if err != nil {
		return err
	}
	if err := s.writeGoldens(func(txn *badger.Txn) error {
		if err := txn.Delete(goldenKey(g)); err != nil {
			return err
		}
		return txn.Delete([]byte(goldenIDPrefix + string(id)))
	}); err != nil {
		return goldenError("remove golden", string(id), err)
	}
	return nil
}

func goldenError(op, object string, err error) error {
	return &exchange.Error{Op: op, Object: object, Side: exchange.SideStore, Cause: err}
}

// scopeOf is what a recording of a reference is good for: the same weights in the same build, launched alike. Of an engine
// that somebody else runs its flags are not known.
func scopeOf(r Reference, variant string) string {
	of := []string{r.Weights, r.Engine.Engine, r.Engine.Version, variant}
	if r.Launch != "" || r.Build != "" {
		of = append(of, r.Launch, r.Build)
	}
	var parts [][]byte
	for _, s := range of {
		parts = append(parts, []byte(s), []byte{0})
	}
	sum := sum256(parts...)
	return fmt.Sprintf("%x", sum[:16])
}

// goldenScope is what the keys of a golden and its alternates begin with.
func goldenScope(g *exchange.Golden) []byte {
	return fmt.Appendf(nil, "%s%s/%08x/%s/", goldenPrefix, g.Key, g.Turn, scopeOf(Reference{g.Weights, g.Engine, g.Launch, g.Build}, g.Variant))
}

func goldenKey(g *exchange.Golden) []byte { return fmt.Appendf(goldenScope(g), "%08x", g.Alternate) }

// eachGolden visits the goldens under a prefix, in the order of their keys.
func (s *Store) eachGolden(txn *badger.Txn, prefix []byte, visit func(*exchange.Golden) error) error {
	return eachKey(txn, prefix, func(item *badger.Item) error {
		g, err := s.decodeGolden(item)
		if err != nil {
			return err
		}
		return visit(g)
	})
}

// decodeGolden reads a golden. One of a newer schema is read as far as this build knows it: gates refuse it by that name.
func (s *Store) decodeGolden(item *badger.Item) (*exchange.Golden, error) {
	g := &exchange.Golden{}
	if err := item.Value(func(v []byte) error {
		b, err := unpack(s.dec, v)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, g)
	}); err != nil {
		return nil, damaged(fmt.Errorf("read golden at %q: %w", item.Key(), err))
	}
	return g, nil
}

// openGoldens opens the database of the goldens; without create it stays closed where there is none, and db is nil. The
// lock of s.goldens is held for writing.
func (s *Store) openGoldens(create bool) error {
	if s.goldens.db != nil {
		return nil
	}
	if _, err := os.Stat(s.GoldensDir()); err != nil && !create {
		return ignoreGone(err)
	}
	db, err := openBadger(s.GoldensDir(), &s.o)
	if err != nil {
		return fmt.Errorf("open goldens: %w: %w", exchange.ErrDamaged, err)
	}
	s.goldens.db = db
	return nil
}

// withGoldens uses the database of the goldens, nil where there is none.
func (s *Store) withGoldens(create bool, use func(db *badger.DB) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	s.goldens.mu.Lock()
	err := s.openGoldens(create)
	s.goldens.mu.Unlock()
	if err != nil {
		return err
	}
	s.goldens.mu.RLock()
	defer s.goldens.mu.RUnlock()
	return use(s.goldens.db)
}

// viewGoldens reads from one snapshot. Where there are no goldens, read is not called.
func (s *Store) viewGoldens(read func(txn *badger.Txn) error) error {
	return s.withGoldens(false, func(db *badger.DB) error {
		if db == nil {
			return nil
		}
		return db.View(read)
	})
}

// writeGoldens writes in one transaction, which survives a loss of power when it returns: goldens are few, and dear.
func (s *Store) writeGoldens(write func(txn *badger.Txn) error) error {
	if free, ok := s.enoughSpace(); !ok {
		return fmt.Errorf("%w: %d bytes free, the floor is %d", exchange.ErrNoSpace, free, s.o.minFree())
	}
	if err := s.gone(); err != nil {
		return err
	}
	return s.withGoldens(true, func(db *badger.DB) error {
		s.goldens.writes.Lock()
		defer s.goldens.writes.Unlock()
		if err := db.Update(write); err != nil {
			return err
		}
		return db.Sync()
	})
}

// closeGoldens ends the use of the goldens.
func (s *Store) closeGoldens() error {
	s.goldens.mu.Lock()
	defer s.goldens.mu.Unlock()
	if s.goldens.db == nil {
		return nil
	}
	err := s.goldens.db.Close()
	s.goldens.db = nil
	return err
}

// checkGoldens checks the database of the goldens, where there is one.
func (c *checker) checkGoldens() error {
	return c.s.withGoldens(false, func(db *badger.DB) error {
		if db == nil {
			return nil
		}
		return errors.Join(db.VerifyChecksum(), db.View(c.goldens))
	})
}

// goldens holds that every golden and reply is what its key says.
func (c *checker) goldens(txn *badger.Txn) error {
	ids := map[string]bool{}
	if err := eachKey(txn, []byte(goldenPrefix), func(item *badger.Item) error {
		c.report.Goldens++
		g, err := c.s.decodeGolden(item)
		if err != nil {
			c.problem(fmt.Sprintf("%q", item.Key()), "%v", err)
			return c.ctx.Err()
		}
		if !bytes.Equal(goldenKey(g), item.Key()) {
			c.problem(string(g.ID), "golden lies under the key of another")
		}
		if at, err := getValue(txn, []byte(goldenIDPrefix+string(g.ID))); err != nil || !bytes.Equal(at, item.Key()) {
			c.problem(string(g.ID), "its id does not lead to the golden")
		}
		ids[string(g.ID)] = true
		return c.ctx.Err()
	}); err != nil {
		return err
	}
	if err := eachKey(txn, []byte(goldenIDPrefix), func(item *badger.Item) error {
		if id := string(item.Key()[len(goldenIDPrefix):]); !ids[id] {
			c.problem(id, "id of a golden that is not there")
		}
		return nil
	}); err != nil {
		return err
	}
	return c.replies(txn)
}

// sortedReplies keeps replies in the order of their needs.
func sortedReplies(replies []exchange.Reply, needs exchange.Needs) []exchange.Reply {
	at := func(id string) int { return slices.IndexFunc(needs, func(n exchange.Need) bool { return n.ID == id }) }
	slices.SortFunc(replies, func(a, b exchange.Reply) int { return at(a.Need) - at(b.Need) })
	return replies
}
