package recorder

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Records are written in blocks: one value that holds what the records of a batch have, their small bodies included. An
// entry of Badger costs about the same whatever it holds, more than anything else that is done for a small exchange;
// six of them for each were a third of all its work.
//
// The value is a directory, then the rows of all records, their manifests and the bodies:
//
//	version, number of records, number of bodies
//	each record: id, seq, length of row and manifest, place of the request body and of the response body
//	each body: length
//
// All numbers are varints. A body is coded as pack does it.

// blockVersion is the version of that layout and the first byte of every block.
const blockVersion = 1

// A block ends with the record that takes it past blockBytes: whoever reads one record has the checksum of the whole
// block computed. maxInline is the longest packed body that a block takes; a longer one is a blob of its own.
const (
	blockBytes = 128 << 10
	maxInline  = 16 << 10
)

// blockID names a block of a run: the lowest seq in it, and its number among the blocks of the run.
type blockID struct {
	seq uint64
	no  uint32
}

// bodyPlace is where a body lies: body number n-1 of a block, which is the record's own when in is zero. n is 0 when
// the body is not in a block: then it is empty or a blob of its own.
type bodyPlace struct {
	in blockID
	n  uint32
}

// slot is a record in a block. Its slices point into the block.
type slot struct {
	id       exchange.ID
	seq      uint64
	row      []byte
	manifest []byte
	bodies   [2]bodyPlace // of request and response
}

// block is a block as read. Its slices point into the value.
type block struct {
	slots  []slot
	bodies [][]byte
}

// blockBuilder makes blocks of the records of one batch.
type blockBuilder struct {
	known  *knownBodies
	next   uint32 // number of the next block of the run
	blocks []builtBlock
	fresh  map[shortSum]bodyPlace // bodies that the batch brings; in is always set
	buf    []byte                 // the values of all blocks; kept for the next batch
}

// builtBlock is a block ready to be committed.
type builtBlock struct {
	id      blockID
	value   []byte
	records []*record
}

// build puts a batch, in the order of acceptance, into blocks. The result is good until the next call.
func (b *blockBuilder) build(batch []*record) []builtBlock {
	slices.SortFunc(batch, func(x, y *record) int {
		return cmp.Or(cmp.Compare(x.loc.seq, y.loc.seq), cmp.Compare(x.loc.id, y.loc.id))
	})
	if cap(b.buf) > 4*batchBytes { // long lists of reads made it large, and will hardly do so again
		b.buf = nil
	}
	b.blocks, b.buf = b.blocks[:0], b.buf[:0]
	if b.fresh == nil {
		b.fresh = map[shortSum]bodyPlace{}
	}
	clear(b.fresh)
	for len(batch) > 0 {
		n, size := 0, 0
		for n < len(batch) && size < blockBytes {
			size += batch[n].inBlock()
			n++
		}
		b.add(batch[:n])
		batch = batch[n:]
	}
	return b.blocks
}

// add writes one block.
func (b *blockBuilder) add(records []*record) {
	id := blockID{seq: records[0].loc.seq, no: b.next}
	b.next++
	var bodies []*body
	for _, r := range records {
		for i := range r.bodies {
			if q := &r.bodies[i]; q.small && b.place(q, id, len(bodies)) {
				bodies = append(bodies, q)
			}
		}
	}
	start := len(b.buf)
	w := fieldWriter{b: b.buf}
	w.uint(blockVersion)
	w.uint(uint64(len(records)))
	w.uint(uint64(len(bodies)))
	for _, r := range records {
		w.b = append(w.b, r.loc.id...)
		w.uint(r.loc.seq)
		w.uint(uint64(len(r.row)))
		w.uint(uint64(len(r.manifest)))
		for i := range r.bodies {
			writePlace(&w, r.bodies[i].place)
		}
	}
	for _, q := range bodies {
		w.uint(uint64(q.size()))
	}
	for _, r := range records {
		w.b = append(w.b, r.row...)
	}
	for _, r := range records {
		w.b = append(w.b, r.manifest...)
	}
	for _, q := range bodies {
		w.b = q.appendTo(w.b)
	}
	b.buf = w.b
	b.blocks = append(b.blocks, builtBlock{id: id, value: w.b[start:len(w.b):len(w.b)], records: records})
}

// place finds where the body lies, and reports whether it becomes body number n of the block at work. It leaves the
// place empty when blocks take no more bodies: then this one is a blob.
func (b *blockBuilder) place(q *body, at blockID, n int) (isNew bool) {
	short := q.sum.short()
	p, ok := b.fresh[short]
	if !ok {
		p, ok = b.known.place(short)
	}
	if ok {
		if p.in == at {
			p.in = blockID{}
		}
		q.place = p
		return false
	}
	if b.known.full(len(b.fresh)) {
		return false
	}
	q.place = bodyPlace{n: uint32(n + 1)}
	b.fresh[short] = bodyPlace{in: at, n: q.place.n}
	return true
}

// writePlace writes 0 for a body that is not in a block, else its number doubled, with a bit that says that another
// block follows. A block number of the own block is never written.
func writePlace(w *fieldWriter, p bodyPlace) {
	tag := uint64(p.n) << 1
	if p.in == (blockID{}) {
		w.uint(tag)
		return
	}
	w.uint(tag | 1)
	w.uint(p.in.seq)
	w.uint(uint64(p.in.no))
}

func readPlace(r *fieldReader) (p bodyPlace) {
	tag := r.uint()
	p.n = uint32(tag >> 1)
	if tag&1 != 0 {
		p.in = blockID{seq: r.uint(), no: uint32(r.uint())}
	}
	return p
}

// parseBlock reads a block. Every length in it is held against what is there.
func parseBlock(v []byte) (*block, error) {
	r := &fieldReader{b: v}
	if version := r.uint(); version != blockVersion {
		return nil, fmt.Errorf("read block of version %d: %w", version, exchange.ErrDamaged)
	}
	records, bodies := r.count(), r.count()
	b := &block{slots: make([]slot, records), bodies: make([][]byte, bodies)}
	lengths := make([]uint64, 2*records+bodies)
	for i := range b.slots {
		s := &b.slots[i]
		s.id, s.seq = exchange.ID(r.next(idLen)), r.uint()
		lengths[i], lengths[records+i] = r.uint(), r.uint()
		s.bodies = [2]bodyPlace{readPlace(r), readPlace(r)}
	}
	for i := range bodies {
		lengths[2*records+i] = r.uint()
	}
	for i := range b.slots {
		b.slots[i].row = r.next(lengths[i])
	}
	for i := range b.slots {
		b.slots[i].manifest = r.next(lengths[records+i])
	}
	for i := range b.bodies {
		b.bodies[i] = r.next(lengths[2*records+i])
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, fmt.Errorf("read block: %w: %w", exchange.ErrDamaged, r.err)
	}
	return b, nil
}

// body is a body of a record on its way to a block.
type body struct {
	sum    digest
	small  bool      // it goes to a block, or lies in one
	place  bodyPlace // set when the block is made
	packed []byte    // with its codec byte; nil when parts hold it raw, or when it lies in a block already
	parts  [][]byte
	raw    int // bytes of parts
}

// size is the length of the body in a block.
func (q *body) size() int {
	if q.packed != nil {
		return len(q.packed)
	}
	return 1 + q.raw
}

func (q *body) appendTo(dst []byte) []byte {
	if q.packed != nil {
		return append(dst, q.packed...)
	}
	dst = append(dst, codecRaw)
	for _, p := range q.parts {
		dst = append(dst, p...)
	}
	return dst
}

// Index pages find records by id: one entry for all ids of a block that were born in the same second or so, which is
// nearly always the same for all. The page of an id is among the few whose keys begin with its bucket.

// bucketLen is the number of characters of an id that name its bucket. Ten hold milliseconds, five bits each.
const bucketLen = 8

// pageEntryLen is the length of an id without its bucket and of the number of its slot.
const pageEntryLen = idLen - bucketLen + 2

// page is an index page: the rest of each id, and its slot in the block.
type page struct {
	bucket string
	value  []byte
}

// pagesOf are the pages of a block, in the order of their buckets.
func pagesOf(records []*record) (pages []page) {
	type entry struct {
		id   exchange.ID
		slot int
	}
	entries := make([]entry, len(records))
	for i, r := range records {
		entries[i] = entry{r.loc.id, i}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range entries {
		bucket := string(e.id[:bucketLen])
		if len(pages) == 0 || pages[len(pages)-1].bucket != bucket {
			pages = append(pages, page{bucket: bucket})
		}
		p := &pages[len(pages)-1]
		p.value = append(p.value, e.id[bucketLen:]...)
		p.value = binary.BigEndian.AppendUint16(p.value, uint16(e.slot))
	}
	return pages
}

// eachInPage visits the ids of a page, in order.
func eachInPage(bucket string, v []byte, visit func(id exchange.ID, slot int) error) error {
	if len(v) == 0 || len(v)%pageEntryLen != 0 {
		return fmt.Errorf("read index page: %d bytes: %w", len(v), exchange.ErrDamaged)
	}
	for ; len(v) > 0; v = v[pageEntryLen:] {
		rest := v[:pageEntryLen-2]
		if err := visit(exchange.ID(bucket+string(rest)), int(binary.BigEndian.Uint16(v[pageEntryLen-2:]))); err != nil {
			return err
		}
	}
	return nil
}

// slotInPage is the slot of an id, -1 when the page does not have it.
func slotInPage(id exchange.ID, v []byte) int {
	rest := string(id[bucketLen:])
	for ; len(v) >= pageEntryLen; v = v[pageEntryLen:] {
		if string(v[:pageEntryLen-2]) == rest {
			return int(binary.BigEndian.Uint16(v[pageEntryLen-2:]))
		}
	}
	return -1
}
