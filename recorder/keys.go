package recorder

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Keys of the exchanges directory. <seq> is 16 hex digits, so that keys sort in the order of acceptance; all but the
// blobs are text.
//
//	run/<run>                   the run, as JSON
//	i/<id>                      index entry: run and seq. A record exists exactly when this does
//	x/<run>/<seq>/<id>          manifest: the exchange without its bodies
//	s/<run>/<seq>/<id>          summary row
//	h/<key>/<run>/<seq>/<id>    take: sha256 of the canonical request
//	b/<run>/<digest>/<n>        chunk n of the blob with that sha256; once per run
//	p/<run>                     batch being written: its ids and new blobs. Gone when it is committed
//	d/<run>                     run being pruned
//	t/<host>                    newest selftest of the machine with that fingerprint, as JSON
const (
	runPrefix     = "run/"
	indexPrefix   = "i/"
	recordPrefix  = "x/"
	summaryPrefix = "s/"
	takePrefix    = "h/"
	blobPrefix    = "b/"
	pendingPrefix = "p/"
	prunePrefix   = "d/"
	hostPrefix    = "t/"
)

// FormatVersion is the version of keys and values that this build writes. A store of a newer one is refused.
const FormatVersion = 1

const (
	idLen  = 26
	seqLen = 16
	// locLen is the length of "<run>/<seq>/<id>", which ends the keys of records, rows and takes.
	locLen = idLen + 1 + seqLen + 1 + idLen
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
	k = hex.AppendEncode(k, binary.BigEndian.AppendUint64(nil, l.seq))
	return append(append(k, '/'), l.id...)
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
func indexKey(id exchange.ID) []byte  { return []byte(indexPrefix + string(id)) }
func recordKey(l location) []byte     { return l.key(recordPrefix) }
func summaryKey(l location) []byte    { return l.key(summaryPrefix) }
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

// indexValue is what an index entry holds.
func indexValue(l location) []byte {
	return binary.BigEndian.AppendUint64([]byte(l.run), l.seq)
}

func parseIndex(id exchange.ID, v []byte) (location, error) {
	if len(v) != idLen+8 || !exchange.ValidID(string(v[:idLen])) {
		return location{}, fmt.Errorf("read index entry of %s: %d bytes that name no run", id, len(v))
	}
	return location{run: exchange.ID(v[:idLen]), seq: binary.BigEndian.Uint64(v[idLen:]), id: id}, nil
}
