package recorder

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// inlineReads is the largest coded list of reads kept beside the fields of a manifest, in bytes; a longer one is a
// blob of its own.
const inlineReads = 256 << 10

// Reads are most of what a manifest of a stream holds, and their low bits are noise. So they are cut column by column
// (time since the read before, write delta, size) and each column into planes of its numbers' bytes, lowest first:
// noise stays raw in its own plane and does not spoil the others. A plane is packed by itself.

// packReads codes a list of reads; an empty one is empty.
func packReads(enc *zstd.Encoder, reads []exchange.Read) []byte {
	if len(reads) == 0 {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(reads)))
	column := make([]uint64, len(reads))
	last := int64(0)
	for i, r := range reads {
		column[i] = zigzag(r.At - last)
		last = r.At
	}
	out = appendPlanes(out, enc, column)
	for i, r := range reads {
		column[i] = zigzag(r.Write)
	}
	out = appendPlanes(out, enc, column)
	for i, r := range reads {
		column[i] = zigzag(int64(r.Size))
	}
	return appendPlanes(out, enc, column)
}

// unpackReads undoes packReads.
func unpackReads(dec *zstd.Decoder, b []byte) ([]exchange.Read, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := &fieldReader{b: b}
	n := r.uint()
	if n > maxValue/24 {
		return nil, fmt.Errorf("unpack %d reads: %w", n, errShortValue)
	}
	var columns [3][]uint64
	for i := range columns {
		var err error
		if columns[i], err = planes(r, dec, int(n)); err != nil {
			return nil, err
		}
	}
	reads := make([]exchange.Read, n)
	last := int64(0)
	for i := range reads {
		last += unzigzag(columns[0][i])
		reads[i] = exchange.Read{At: last, Write: unzigzag(columns[1][i]), Size: int(unzigzag(columns[2][i]))}
	}
	return reads, nil
}

// appendPlanes writes the number of planes, then each one packed, with its length in front.
func appendPlanes(out []byte, enc *zstd.Encoder, column []uint64) []byte {
	all := uint64(0)
	for _, v := range column {
		all |= v
	}
	count := 0
	for ; all > 0; all >>= 8 {
		count++
	}
	out = append(out, byte(count))
	plane := make([]byte, len(column))
	for p := range count {
		for i, v := range column {
			plane[i] = byte(v >> (8 * p))
		}
		out = appendPacked(out, minPlane, enc, plane)
	}
	return out
}

// planes reads a column of n numbers.
func planes(r *fieldReader, dec *zstd.Decoder, n int) ([]uint64, error) {
	count := 0
	if len(r.b) > 0 {
		count, r.b = int(r.b[0]), r.b[1:]
	} else {
		r.fail()
	}
	if count > 8 {
		r.fail()
	}
	if r.err != nil {
		return nil, fmt.Errorf("unpack reads: %w", r.err)
	}
	column := make([]uint64, n)
	for p := range count {
		plane, err := unpack(dec, r.raw())
		if err != nil {
			return nil, fmt.Errorf("unpack reads: %w", err)
		}
		if len(plane) != n {
			return nil, fmt.Errorf("unpack reads: plane of %d for %d reads: %w", len(plane), n, errShortValue)
		}
		for i, b := range plane {
			column[i] |= uint64(b) << (8 * p)
		}
	}
	return column, nil
}

// zigzag makes small numbers of either sign small.
func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// appendRecord adds a manifest as it stands in a block: the packed fields, coded in scratch, with their length in
// front, then the reads.
func appendRecord(dst []byte, enc *zstd.Encoder, scratch *fieldWriter, m *manifest, reads []byte) []byte {
	scratch.b = scratch.b[:0]
	writeManifest(scratch, m)
	return append(appendPacked(dst, minPacked, enc, scratch.b), reads...)
}

// parseRecord undoes appendRecord. The reads are those beside the fields only.
func parseRecord(dec *zstd.Decoder, v []byte) (*manifest, error) {
	m, reads, err := recordFields(dec, v)
	if err != nil {
		return nil, err
	}
	m.x.Timeline.Reads, err = unpackReads(dec, reads)
	return m, err
}

// recordFields undoes the fields of appendRecord; reads are those beside them, as they are coded.
func recordFields(dec *zstd.Decoder, v []byte) (m *manifest, reads []byte, err error) {
	r := &fieldReader{b: v}
	fields := r.raw()
	if r.err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", r.err)
	}
	b, err := unpack(dec, fields)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	m, err = decodeManifest(b)
	return m, r.b, err
}
