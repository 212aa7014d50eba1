package recorder

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Keys of the exchanges directory. <seq> is 16 hex digits and <no> 8, so that keys sort in the order of acceptance; all
// but the blobs are text.
//
//	run/<run>                          the run, as JSON
//	i/<bucket>/<run>/<seq>/<no>        index page: ids that begin with the bucket, and their slots in the block of that
//	                                   run, seq and number. A record exists exactly when a page lists it
//	x/<run>/<seq>/<no>                 block: rows, manifests and small bodies of records; seq is the lowest of theirs
//	h/<key>/<run>/<seq>/<id>           take: sha256 of the canonical request
//	b/<run>/<digest>/<n>               chunk n of the blob with that sha256; once per run
//	p/<run>                            batch being written: its ids and new blobs. Gone when it is committed
//	d/<run>                            run being pruned
//	t/<host>                           newest selftest of the machine with that fingerprint, as JSON
//	w/<stamp>                          sha256 of the file with that stamp, as text; see FileDigest
const (
	runPrefix     = "run/"
	indexPrefix   = "i/"
	blockPrefix   = "x/"
	takePrefix    = "h/"
	blobPrefix    = "b/"
	pendingPrefix = "p/"
	prunePrefix   = "d/"
	hostPrefix    = "t/"
	filePrefix    = "w/"
)

// FormatVersion is the version of keys and values that this build writes and reads. A store of another one is refused.
// Version 1 had an entry for each manifest, row and small body.
const FormatVersion = 2

const (
	idLen  = 26
	seqLen = 16
	noLen  = 8
	// locLen is the length of "<run>/<seq>/<id>", which ends the keys of takes.
	locLen = idLen + 1 + seqLen + 1 + idLen
	// blockLen is the length of "<run>/<seq>/<no>", which ends the keys of blocks and index pages.
	blockLen = idLen + 1 + seqLen + 1 + noLen
)

// digest is a sha256.
type digest [32]byte

// location is where a record is.
type location struct {
	run exchange.ID
	seq uint64
	id  exchange.ID
}

func (l location) String() string { return string(l.key("")) }

// key is "<prefix><run>/<seq>/<id>".
func (l location) key(prefix string) []byte {
	k := append(make([]byte, 0, len(prefix)+locLen), prefix...)
	k = append(append(k, l.run...), '/')
	k = appendHex64(k, l.seq)
	return append(append(k, '/'), l.id...)
}

func appendHex64(dst []byte, v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return hex.AppendEncode(dst, b[:])
}

func appendBlock(k []byte, run exchange.ID, id blockID) []byte {
	k = append(append(k, run...), '/')
	k = append(appendHex64(k, id.seq), '/')
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], id.no)
	return hex.AppendEncode(k, b[:])
}

func blockKey(run exchange.ID, id blockID) []byte {
	return appendBlock(append(make([]byte, 0, len(blockPrefix)+blockLen), blockPrefix...), run, id)
}

// parseBlockKey reads the run and block that key ends with.
func parseBlockKey(key []byte) (run exchange.ID, id blockID, err error) {
	fail := func() (exchange.ID, blockID, error) {
		return "", blockID{}, fmt.Errorf("read key %q: no run, seq and number", key)
	}
	if len(key) < blockLen {
		return fail()
	}
	s := string(key[len(key)-blockLen:])
	seq, err1 := strconv.ParseUint(s[idLen+1:idLen+1+seqLen], 16, 64)
	no, err2 := strconv.ParseUint(s[blockLen-noLen:], 16, 32)
	if err1 != nil || err2 != nil || !exchange.ValidID(s[:idLen]) {
		return fail()
	}
	return exchange.ID(s[:idLen]), blockID{seq: seq, no: uint32(no)}, nil
}

// bucketPrefix is what the keys of all index pages of a bucket begin with.
func bucketPrefix(bucket string) []byte { return []byte(indexPrefix + bucket + "/") }

func pageKey(bucket string, run exchange.ID, id blockID) []byte {
	k := make([]byte, 0, len(indexPrefix)+bucketLen+1+blockLen)
	k = append(append(append(k, indexPrefix...), bucket...), '/')
	return appendBlock(k, run, id)
}

func parsePageKey(key []byte) (bucket string, run exchange.ID, id blockID, err error) {
	if len(key) != len(indexPrefix)+bucketLen+1+blockLen {
		return "", "", blockID{}, fmt.Errorf("read key %q: no index page", key)
	}
	run, id, err = parseBlockKey(key)
	return string(key[len(indexPrefix) : len(indexPrefix)+bucketLen]), run, id, err
}

// parseLocation reads the location that key ends with.
func parseLocation(key []byte) (location, error) {
	if len(key) < locLen {
		return location{}, fmt.Errorf("read key %q: too short", key)
	}
	s := string(key[len(key)-locLen:])
	run, seq, id := s[:idLen], s[idLen+1:idLen+1+seqLen], s[locLen-idLen:]
	n, err := strconv.ParseUint(seq, 16, 64)
	if err != nil || !exchange.ValidID(run) || !exchange.ValidID(id) {
		return location{}, fmt.Errorf("read key %q: no run, seq and id", key)
	}
	return location{run: exchange.ID(run), seq: n, id: exchange.ID(id)}, nil
}

func runKey(run exchange.ID) []byte   { return []byte(runPrefix + string(run)) }
func pendingKey(r exchange.ID) []byte { return []byte(pendingPrefix + string(r)) }
func pruneKey(run exchange.ID) []byte { return []byte(prunePrefix + string(run)) }
func takeKey(key string, l location) []byte {
	return l.key(takePrefix + key + "/")
}

// inRun is the prefix of the keys of one run under one of the prefixes above.
func inRun(prefix string, run exchange.ID) []byte { return []byte(prefix + string(run) + "/") }

func blobKey(run exchange.ID, d digest, n int) []byte {
	k := inRun(blobPrefix, run)
	k = append(k, d[:]...)
	k = append(k, '/')
	return binary.BigEndian.AppendUint32(k, uint32(n))
}
