package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync/atomic"
	"unsafe"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	// hashFrom is the size from which a response body is hashed as it passes, so that a later cut can still state the
	// digest of all of it without one long stall. Most answers are smaller and are never hashed on the path.
	hashFrom = 256 << 10
	// cutKeep is what stays of a response body that the budget cut.
	cutKeep = 64 << 10
	// readBytes is the memory of one recorded read.
	readBytes = int64(unsafe.Sizeof(exchange.Read{}))
)

// record holds the response body and the reads of a running exchange. One goroutine writes; any may look.
//
// The budget may cut it from another goroutine: it sets cut first and then swaps log for a short copy, and the writer
// loads log first and then cut, so nothing is ever appended behind the copy.
type record struct {
	log   atomic.Pointer[exchange.Log[byte]]
	reads exchange.Log[exchange.Read]
	size  atomic.Int64 // body bytes that passed, kept or not

	cut      atomic.Bool  // no more body bytes are kept
	hashing  atomic.Bool  // hash covers all of size; only then may the budget cut
	reserved atomic.Int64 // bytes taken from the budget
	lost     bool         // reads were dropped at their bound
	hash     hash.Hash

	maxBody  int64
	maxReads int
	request  int64 // bytes of the request body, held as long
	s        *Session
}

func (r *record) init(s *Session, requestBytes int) {
	r.s, r.maxBody, r.maxReads, r.request = s, s.opts.MaxBody, s.opts.MaxReads, int64(requestBytes)
	r.log.Store(new(exchange.Log[byte]))
	r.reserve(r.request + quantum)
}

// addBody appends the body bytes of one read. Its work is bounded: one copy, and one hash past hashFrom.
func (r *record) addBody(data []byte) {
	log := r.log.Load()
	size := r.size.Add(int64(len(data)))
	if r.hash != nil {
		r.hash.Write(data)
	} else if size > min(hashFrom, r.maxBody) {
		r.startHash(log, data)
	}
	if r.cut.Load() {
		return
	}
	if size > r.maxBody {
		r.cut.Store(true)
		data = data[:len(data)-int(size-r.maxBody)]
	}
	log.Append(data...)
}

// addRead appends one read once its bytes are with the client.
func (r *record) addRead(rd exchange.Read) {
	if r.reads.Len() >= r.maxReads {
		r.lost = true
		return
	}
	r.reads.Append(rd)
	if short := r.held() - r.reserved.Load(); short > 0 {
		r.reserve(short + quantum)
	}
}

func (r *record) held() int64 {
	return r.request + int64(r.log.Load().Len()) + int64(r.reads.Len())*readBytes
}

// startHash hashes what is kept so far and data, which is not appended yet.
func (r *record) startHash(log *exchange.Log[byte], data []byte) {
	r.hash = sha256.New()
	for _, c := range log.Chunks(log.Len()) {
		r.hash.Write(c)
	}
	r.hash.Write(data)
	r.hashing.Store(true)
}

func (r *record) reserve(n int64) {
	r.reserved.Add(n)
	if !r.s.budget.take(n) {
		r.s.cutLargest()
	}
}

// release gives all memory back to the budget.
func (r *record) release() { r.s.budget.release(r.reserved.Swap(0)) }

// shorten is the budget's cut; the caller holds the session's lock.
func (r *record) shorten() {
	r.cut.Store(true)
	short := new(exchange.Log[byte])
	for _, c := range r.log.Load().Chunks(cutKeep) {
		short.Append(c...)
	}
	r.log.Store(short)
	was := r.reserved.Load()
	now := min(was, r.held()+quantum)
	r.reserved.Add(now - was)
	r.s.budget.release(was - now)
}

// body is the recorded response body.
func (r *record) body() exchange.Body {
	log := r.log.Load()
	b := exchange.Body{Size: r.size.Load(), Kept: int64(log.Len()), Chunks: log.Chunks(log.Len())}
	if !b.Whole() && r.hash != nil {
		b.Digest = exchange.DigestPrefix + hex.EncodeToString(r.hash.Sum(nil))
	}
	return b
}
