package recorder

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Replies are what a reference engine answered when a gate asked: kept by weights, build, launch variant and request, so
// that it runs once. They are exchanges in the form that transfer.go writes.

// Reference says which engine a reply is of.
type Reference struct {
	Weights string
	Engine  exchange.Identity
	Launch  string // command line of one that is started for it, as Golden.Launch
	Build   string // digest of what is started, as Golden.Build
}

// AddReply keeps what the reference answered to a need. A reply that is there stays as it is. Answers of a candidate are
// evidence about one build, not a cache, and are refused with an error that wraps exchange.ErrUsage.
func (s *Store) AddReply(of Reference, n exchange.Need, x *exchange.Exchange, row exchange.Summary) error {
	if n.Party != exchange.Reference || of.Weights == "" || of.Engine.Version == "" {
		return goldenError("keep reply", n.ID, fmt.Errorf("%w: only those of a reference whose weights and build are known are kept", exchange.ErrUsage))
	}
	kept := *x
	if !kept.Masked {
		redact.Exchange(&kept)
	}
	kept.Request.Body.Digest, kept.Response.Body.Digest = x.Request.Body.Sum(), x.Response.Body.Sum()
	var form bytes.Buffer
	if err := WriteExchange(&form, &kept, &row); err != nil {
		return goldenError("keep reply", n.ID, err)
	}
	packed, err := packGolden(form.Bytes())
	if err != nil {
		return goldenError("keep reply", n.ID, err)
	}
	if err := s.writeGoldens(func(txn *badger.Txn) error {
		key := replyKey(of, n)
		if _, err := txn.Get(key); !errors.Is(err, badger.ErrKeyNotFound) {
			return err
		}
		return txn.Set(key, packed)
	}); err != nil {
		return goldenError("keep reply", n.ID, err)
	}
	return nil
}

// Replies are those of the needs that the reference has answered before, in the order of the needs. Of a group there are
// all or none: each of its requests builds on the cache that the one before left behind, so a rest of it cannot be sent.
func (s *Store) Replies(of Reference, needs exchange.Needs) ([]exchange.Reply, error) {
	var found []exchange.Reply
	lacking := map[string]bool{} // groups
	err := s.viewGoldens(func(txn *badger.Txn) error {
		for _, n := range needs {
			x, err := s.readReply(txn, replyKey(of, n))
			switch {
			case n.Party != exchange.Reference, errors.Is(err, badger.ErrKeyNotFound):
				lacking[n.Group] = true
			case err != nil:
				return err
			default:
				found = append(found, exchange.Reply{Need: n.ID, Exchange: x})
			}
		}
		return nil
	})
	if err != nil {
		return nil, goldenError("read replies", of.Weights, err)
	}
	whole := found[:0]
	for _, r := range found {
		for _, n := range needs {
			if n.ID == r.Need && (n.Group == "" || !lacking[n.Group]) {
				whole = append(whole, r)
			}
		}
	}
	return sortedReplies(whole, needs), nil
}

// replyKey is of the request itself: the same one that two gates need is sent once.
func replyKey(of Reference, n exchange.Need) []byte {
	request := exchange.Request{Method: n.Method, Target: n.Path, Body: exchange.NewBody(n.Body),
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}}
	return fmt.Appendf(nil, "%s%s/%x", replyPrefix, scopeOf(of, n.Variant), sum256(canon.RequestKey(&request).Canonical))
}

func (s *Store) readReply(txn *badger.Txn, key []byte) (*exchange.Exchange, error) {
	item, err := txn.Get(key)
	if err != nil {
		return nil, err
	}
	return s.decodeReply(item)
}

func (s *Store) decodeReply(item *badger.Item) (x *exchange.Exchange, err error) {
	err = item.Value(func(v []byte) error {
		b, err := unpack(s.dec, v)
		if err != nil {
			return damaged(err)
		}
		x, _, err = ReadExchange(bytes.NewReader(b))
		return err
	})
	return x, err
}

// replies holds that every reply is whole.
func (c *checker) replies(txn *badger.Txn) error {
	return eachKey(txn, []byte(replyPrefix), func(item *badger.Item) error {
		c.report.Replies++
		x, err := c.s.decodeReply(item)
		if err != nil {
			c.problem(fmt.Sprintf("%q", item.Key()), "%v", err)
			return c.ctx.Err()
		}
		for _, p := range exchange.Problems(x) {
			c.problem(string(x.ID), "%s", p)
		}
		return c.ctx.Err()
	})
}
