package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// chunkSize is the length of a blob's chunks before compression, in bytes. It bounds the size of one value.
const chunkSize = 1 << 20

// Codecs: the first byte of every value that may be compressed.
const (
	codecRaw  = 0
	codecZstd = 1
)

// maxValue bounds what one stored value may grow to when it is read, in bytes.
const maxValue = 256 << 20

// newEncoder is the compressor of one worker. A dictionary or a higher level costs more than it saves here. Bytes without
// repetition are still coded by how often each comes: that is what the planes of a list of reads are made of.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithAllLitEntropyCompression(true))
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxValue))
}

// minPacked is the shortest value that is compressed, in bytes. A call of the codec costs about the same for any short
// value, more than all other work on a small exchange, and saves it a few hundred bytes. minPlane is the same for the
// planes of a list of reads, which belong to streams: few calls for long answers, and most planes nearly vanish.
const (
	minPacked = 2 << 10
	minPlane  = 64
)

// pack is b behind a codec byte, compressed when it is long and that makes it smaller.
func pack(enc *zstd.Encoder, b []byte) []byte { return packFrom(minPacked, enc, b) }

func packFrom(least int, enc *zstd.Encoder, b []byte) []byte {
	if len(b) >= least {
		if out := enc.EncodeAll(b, append(make([]byte, 0, len(b)/3+64), codecZstd)); len(out) <= len(b) {
			return out
		}
	}
	return append(append(make([]byte, 0, len(b)+1), codecRaw), b...)
}

// appendPacked adds b as pack codes it, with its length in front. A short one is not copied on the way.
func appendPacked(dst []byte, least int, enc *zstd.Encoder, b []byte) []byte {
	if len(b) >= least {
		packed := packFrom(least, enc, b)
		return append(binary.AppendUvarint(dst, uint64(len(packed))), packed...)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(b)+1)), codecRaw)
	return append(dst, b...)
}

var errCodec = errors.New("unknown codec")

// unpack undoes pack. The result does not share memory with v.
func unpack(dec *zstd.Decoder, v []byte) ([]byte, error) {
	if len(v) == 0 {
		return nil, fmt.Errorf("unpack value: %w", errShortValue)
	}
	switch v[0] {
	case codecRaw:
		return append([]byte(nil), v[1:]...), nil
	case codecZstd:
		b, err := dec.DecodeAll(v[1:], nil)
		if err != nil {
			return nil, fmt.Errorf("unpack value: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("unpack value with codec %d: %w", v[0], errCodec)
}

// chunkCount is the number of chunks of a blob of size bytes.
func chunkCount(size int64) int { return int((size + chunkSize - 1) / chunkSize) }

// chunks cuts a body, which comes in segments of any length, into pieces of chunkSize. A piece that lies within one
// segment is not copied.
func chunks(segments [][]byte) [][]byte {
	var out [][]byte
	var open []byte
	for _, s := range segments {
		for len(s) > 0 {
			n := min(chunkSize-len(open), len(s))
			if len(open) == 0 && n == chunkSize {
				out = append(out, s[:n])
			} else if open = append(open, s[:n]...); len(open) == chunkSize {
				out, open = append(out, open), nil
			}
			s = s[n:]
		}
	}
	if len(open) > 0 {
		out = append(out, open)
	}
	return out
}
