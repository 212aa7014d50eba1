package proxy

import "sync/atomic"

const (
	// quantum is the step in which a record asks the budget for memory, so that most reads ask for nothing.
	quantum = 16 << 10
	// largeRequest is the size from which a new request is refused while the budget is spent.
	largeRequest = 1 << 20
)

// budget counts the bytes that running exchanges hold.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take adds n bytes and reports whether the limit is still kept.
func (b *budget) take(n int64) bool { return b.used.Add(n) <= b.limit }

func (b *budget) release(n int64) { b.used.Add(-n) }

// room reports whether n more bytes fit. It is advice: nothing is taken.
func (b *budget) room(n int64) bool { return b.used.Load()+n <= b.limit }
