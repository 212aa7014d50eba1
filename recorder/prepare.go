package recorder

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// record is an exchange ready to be committed: keys, values and blobs.
type record struct {
	loc       location
	summary   exchange.Summary
	canonical digest // of the canonical request
	manifest  []byte
	row       []byte
	bodies    [2]body // of request and response, where they are small
	blobs     []blob  // what is too large for a block
	cost      int64   // bytes of memory it holds in the queue
}

// blob is a body, or a long list of reads, with entries of its own. chunks is nil when the store has it already.
type blob struct {
	sum    digest
	chunks [][]byte
}

// usedRecords are records whose commit is over, for the memory of their rows and manifests.
var usedRecords sync.Pool

func newRecord() *record {
	if r, ok := usedRecords.Get().(*record); ok {
		return r
	}
	return &record{row: make([]byte, 0, 512), manifest: make([]byte, 0, 1<<10)}
}

// release gives the records of a batch back, but for memory that an odd one made large.
func release(batch []*record) {
	for _, r := range batch {
		if cap(r.row)+cap(r.manifest) <= 8<<10 {
			*r = record{row: r.row, manifest: r.manifest}
			usedRecords.Put(r)
		}
	}
}

// inBlock is the number of bytes that r takes in a block, at most.
func (r *record) inBlock() int {
	n := len(r.manifest) + len(r.row)
	for i := range r.bodies {
		if q := &r.bodies[i]; q.small {
			n += q.size()
		}
	}
	return n
}

// size is the number of bytes that r adds to the store, at most.
func (r *record) size() int64 {
	n := int64(r.inBlock())
	for _, b := range r.blobs {
		n += b.bytes()
	}
	return n
}

func (b blob) bytes() (n int64) {
	for _, c := range b.chunks {
		n += int64(len(c))
	}
	return n
}

// preparer is one worker: it turns exchanges into records.
type preparer struct {
	w       *Writer
	enc     *zstd.Encoder
	x       exchange.Exchange // the one at work
	scratch fieldWriter
}

func newPreparer(w *Writer) (*preparer, error) {
	enc, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	return &preparer{w: w, enc: enc}, nil
}

// work prepares what is queued until the queue has ended and is empty.
func (p *preparer) work() {
	timer := time.NewTimer(handDelay)
	timer.Stop()
	var batch []queued
	for {
		var ok bool
		if batch, ok = p.w.take(batch, timer); !ok {
			return
		}
		if records := p.prepareAll(batch); len(records) > 0 {
			p.w.ready <- records
		}
		clear(batch) // neither must hold what is stored
		p.x = exchange.Exchange{}
	}
}

// prepareAll prepares a batch, without what cannot be coded and what must be dropped to end in time.
func (p *preparer) prepareAll(batch []queued) []*record {
	records := make([]*record, 0, len(batch))
	for i := range batch {
		q := &batch[i]
		select {
		case <-p.w.hurry:
			p.w.drop(q.x.ID, q.cost, DropShutdown)
			continue
		default:
		}
		r, err := p.prepare(q)
		if err != nil {
			p.w.store.o.log().Error("prepare record", "id", q.x.ID, "err", err)
			p.w.drop(q.x.ID, q.cost, DropEncode)
			continue
		}
		records = append(records, r)
	}
	return records
}

// prepare masks, keys, digests, summarizes and compresses one exchange. The exchange itself stays as it is.
func (p *preparer) prepare(q *queued) (*record, error) {
	p.x = *q.x
	x := &p.x
	x.Run, x.Seq = p.w.run.ID, q.seq
	if !x.Masked { // the proxy has done it; nothing unmasked must reach the disk
		redact.Exchange(x)
	}
	requestSum, responseSum := sumBody(&x.Request.Body), sumBody(&x.Response.Body)

	key, bodyDigest := canon.RequestIdentity(&x.Request)
	r := newRecord()
	r.loc, r.canonical, r.cost = location{run: x.Run, seq: x.Seq, id: x.ID}, sum256(key.Canonical), q.cost
	r.summary = p.summarize(x, key)
	r.summary.Digest = bodyDigest

	var err error
	if r.row, err = appendRow(r.row[:0], &r.summary); err != nil {
		return nil, fmt.Errorf("code summary: %w", err)
	}
	m := manifest{x: x}
	m.request = p.addBody(r, &r.bodies[0], requestSum, x.Request.Body.Chunks)
	m.response = p.addBody(r, &r.bodies[1], responseSum, x.Response.Body.Chunks)
	reads := packReads(p.enc, x.Timeline.Reads)
	if len(reads) > inlineReads {
		m.reads = blobRef{sum: sum256(reads), size: int64(len(reads))}
		p.addBlob(r, m.reads, [][]byte{reads})
		reads = nil
	}
	r.manifest = appendRecord(r.manifest[:0], p.enc, &p.scratch, &m, reads)
	return r, nil
}

// sumBody is the sha256 of the kept bytes, and the digest of the body when they are all and it has none yet.
func sumBody(b *exchange.Body) digest {
	sum := sum256(b.Chunks...)
	if b.Digest == "" && b.Whole() {
		b.Digest = digestText(sum)
	}
	return sum
}

// addBody makes a body ready for a block when it is small, else for a blob.
func (p *preparer) addBody(r *record, q *body, sum digest, segments [][]byte) blobRef {
	ref := blobRef{sum: sum}
	for _, s := range segments {
		ref.size += int64(len(s))
	}
	switch {
	case ref.size == 0:
		return blobRef{}
	case ref.size < minPacked:
		*q = body{sum: sum, small: true, parts: segments, raw: int(ref.size)}
	case p.w.bodies.has(sum.short()):
		*q = body{sum: sum, small: true}
	case ref.size > chunkSize || p.w.hasBlob(sum, 1):
		p.addBlob(r, ref, segments)
	default:
		packed := pack(p.enc, joined(segments))
		if len(packed) > maxInline {
			r.blobs = append(r.blobs, blob{sum: sum, chunks: [][]byte{packed}})
		} else {
			*q = body{sum: sum, small: true, packed: packed}
		}
	}
	return ref
}

// addBlob compresses the chunks of a blob unless the run has it already.
func (p *preparer) addBlob(r *record, ref blobRef, segments [][]byte) {
	b := blob{sum: ref.sum}
	if !p.w.hasBlob(ref.sum, chunkCount(ref.size)) {
		for _, c := range chunks(segments) {
			b.chunks = append(b.chunks, pack(p.enc, c))
		}
	}
	r.blobs = append(r.blobs, b)
}

// summarize is the row of an exchange: what Derive makes of it, and the facts.
func (p *preparer) summarize(x *exchange.Exchange, key canon.Key) exchange.Summary {
	s := p.derive(x)
	s.Version = exchange.SummaryVersion
	s.ID, s.Run, s.Seq, s.Key = x.ID, x.Run, x.Seq, key.Key
	s.Started, s.Upstream, s.Method = x.Timeline.Wall, x.Upstream, x.Request.Method
	s.Path, _, _ = strings.Cut(x.Request.Target, "?")
	s.Status, s.End, s.Cause, s.State = x.Response.Status, x.End, x.Cause, x.State
	if s.Engine == "" {
		s.Engine = x.Identity.Engine
	}
	s.RequestBytes, s.ResponseBytes = x.Request.Body.Size, x.Response.Body.Size
	s.RequestSum, s.ResponseSum = x.Request.Body.Digest, x.Response.Body.Digest
	s.Interventions = x.Interventions
	if sent, changed := exchange.SentRequest(x); changed {
		s.SentKey = canon.RequestKey(&sent).Key
	}
	if key.Raw {
		s.Flags = append(s.Flags, FlagRawKey)
	}
	return s
}

// Flags that the recorder itself sets in a row.
const (
	FlagRawKey       = "raw_key"       // the key covers the body by its raw bytes
	FlagDeriveFailed = "derive_failed" // the row holds facts only: deriving the rest failed
)

// derive calls Derive. A bug in it costs the derived part of the row, never the record.
func (p *preparer) derive(x *exchange.Exchange) (s exchange.Summary) {
	if p.w.o.Derive == nil {
		return s
	}
	defer func() {
		if v := recover(); v != nil {
			p.w.store.o.log().Error("derive summary", "id", x.ID, "panic", v)
			s = exchange.Summary{Flags: []string{FlagDeriveFailed}}
		}
	}()
	return p.w.o.Derive(x)
}
