package recorder

import "github.com/benchproxy/benchproxy/internal/exchange"

// ReferenceCache is what a store keeps of the answers of one reference: recordings that others are held against, and
// replies to what gates needed.
type ReferenceCache struct {
	store  *Store
	of     Reference
	derive func(*exchange.Exchange) exchange.Summary
}

// CacheOf is the cache of a reference. derive makes the row of an answer that is kept.
func (s *Store) CacheOf(of Reference, derive func(*exchange.Exchange) exchange.Summary) *ReferenceCache {
	return &ReferenceCache{s, of, derive}
}

// Goldens are the recordings under a request key, of all weights and engines; see Store.GoldensOf.
func (c *ReferenceCache) Goldens(key string) ([]*exchange.Golden, error) {
	return c.store.GoldensOf(key)
}

// AddGolden keeps a recording; one of the same request, weights and engine that is there already is an error.
func (c *ReferenceCache) AddGolden(g exchange.Golden) (exchange.Golden, error) {
	return c.store.AddGolden(g, false)
}

// Replies are those of the needs that the reference has answered before; see Store.Replies.
func (c *ReferenceCache) Replies(needs exchange.Needs) ([]exchange.Reply, error) {
	return c.store.Replies(c.of, needs)
}

// AddReply keeps what the reference answered to a need; see Store.AddReply.
func (c *ReferenceCache) AddReply(n exchange.Need, x *exchange.Exchange) error {
	return c.store.AddReply(c.of, n, x, c.derive(x))
}
