package recorder

import (
	"crypto/sha256"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// manifestVersion is the version of the field list below. Readers accept older ones and refuse newer ones.
const manifestVersion = 5

// plannedManifest is the version from which on a record has its plan item and the intended mark.
const plannedManifest = 4

// countedManifest is the version from which on a record has the engine's counters around it.
const countedManifest = 5

// oldestManifest is the oldest version that is read.
const oldestManifest = 3

// manifest is a record as stored: the exchange without the bytes of its bodies, and where those are.
type manifest struct {
	x        *exchange.Exchange
	request  blobRef
	response blobRef
	reads    blobRef // zero when the reads are beside the fields
}

// blobRef names a blob of the same run; size 0 is no blob.
type blobRef struct {
	sum  digest
	size int64
}

// writeManifest writes the uncompressed form of m. Nothing of the exchange is left out but the body bytes and the reads,
// which are coded apart: see reads.go.
func writeManifest(w *fieldWriter, m *manifest) {
	w.uint(manifestVersion)
	x := m.x
	for _, s := range []string{string(x.ID), string(x.Run), x.Cell, x.Wave, x.Upstream, x.UpstreamURL, x.Mode, x.Harness, x.Dialect, string(x.End), string(x.State)} {
		w.str(s)
	}
	w.uint(x.Seq)
	for _, s := range []string{x.Identity.Engine, x.Identity.Version, x.Identity.Basis} {
		w.str(s)
	}
	writeRequest(w, &x.Request, m.request)
	writeResponse(w, &x.Response, m.response)
	writeEnd(w, x)
	writeTimeline(w, &x.Timeline)
	writeRef(w, m.reads)
	w.item(x.Item)
	w.mark(x.Timeline.Intended)
	w.counters(x.Counters)
}

// decodeManifest is the inverse of writeManifest.
func decodeManifest(b []byte) (*manifest, error) {
	r := &fieldReader{b: b}
	v := r.uint()
	if v < oldestManifest || v > manifestVersion {
		return nil, fmt.Errorf("read manifest of version %d: %w", v, exchange.ErrDamaged)
	}
	x := &exchange.Exchange{Masked: true} // nothing else is stored
	m := &manifest{x: x}
	x.ID, x.Run = exchange.ID(r.str()), exchange.ID(r.str())
	for _, p := range []*string{&x.Cell, &x.Wave, &x.Upstream, &x.UpstreamURL, &x.Mode, &x.Harness, &x.Dialect, (*string)(&x.End), (*string)(&x.State)} {
		*p = r.str()
	}
	x.Seq = r.uint()
	x.Identity = exchange.Identity{Engine: r.str(), Version: r.str(), Basis: r.str()}
	m.request = readRequest(r, &x.Request)
	m.response = readResponse(r, &x.Response)
	readEnd(r, x)
	readTimeline(r, &x.Timeline)
	m.reads = readRef(r)
	if v >= plannedManifest {
		x.Item, x.Timeline.Intended = r.item(), r.mark()
	}
	if v >= countedManifest {
		x.Counters = r.counters()
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, fmt.Errorf("read manifest: %w", r.err)
	}
	return m, nil
}

func writeRef(w *fieldWriter, ref blobRef) {
	w.uint(uint64(ref.size))
	if ref.size > 0 {
		w.b = append(w.b, ref.sum[:]...)
	}
}

func readRef(r *fieldReader) (ref blobRef) {
	ref.size = int64(r.uint())
	if ref.size == 0 {
		return ref
	}
	ref.sum = r.sum()
	if ref.size < 0 {
		r.fail()
	}
	if r.err != nil {
		return blobRef{}
	}
	return ref
}

// writeBody writes the digest once where the body and the blob of its bytes have the same one.
func writeBody(w *fieldWriter, b *exchange.Body, ref blobRef) {
	w.uint(uint64(b.Size))
	w.uint(uint64(b.Kept))
	writeRef(w, ref)
	sum, ok := parseDigest(b.Digest)
	same := ok && ref.size > 0 && sum == ref.sum
	if w.bool(same); !same {
		w.digest(b.Digest)
	}
}

func readBody(r *fieldReader) (b exchange.Body, ref blobRef) {
	b.Size, b.Kept = int64(r.uint()), int64(r.uint())
	ref = readRef(r)
	if r.bool() {
		b.Digest = digestText(ref.sum)
	} else {
		b.Digest = r.digest()
	}
	return b, ref
}

func writeRequest(w *fieldWriter, q *exchange.Request, body blobRef) {
	w.str(q.Method)
	w.str(q.Target)
	w.str(q.Proto)
	w.head(q.Head, q.Headers)
	writeBody(w, &q.Body, body)
}

func readRequest(r *fieldReader, q *exchange.Request) (body blobRef) {
	q.Method, q.Target, q.Proto = r.str(), r.str(), r.str()
	q.Head, q.Headers = r.head()
	q.Body, body = readBody(r)
	return body
}

func writeResponse(w *fieldWriter, a *exchange.Response, body blobRef) {
	w.int(int64(a.Status))
	w.str(a.Reason)
	w.str(a.Proto)
	w.head(a.Head, a.Headers)
	w.headers(a.Trailers)
	w.uint(uint64(len(a.Informational)))
	for _, code := range a.Informational {
		w.int(int64(code))
	}
	writeBody(w, &a.Body, body)
}

func readResponse(r *fieldReader, a *exchange.Response) (body blobRef) {
	a.Status, a.Reason, a.Proto = int(r.int()), r.str(), r.str()
	a.Head, a.Headers = r.head()
	a.Trailers = r.headers()
	for range r.count() {
		a.Informational = append(a.Informational, int(r.int()))
	}
	a.Body, body = readBody(r)
	return body
}

// writeEnd writes what may be absent: cause, origin and tunnel, each behind a flag, and the interventions.
func writeEnd(w *fieldWriter, x *exchange.Exchange) {
	w.cause(x.Cause)
	w.origin(x.Origin)
	if w.bool(x.Tunnel != nil); x.Tunnel != nil {
		w.int(x.Tunnel.ToEngine)
		w.int(x.Tunnel.ToClient)
	}
	w.interventions(x.Interventions)
}

func readEnd(r *fieldReader, x *exchange.Exchange) {
	x.Cause = r.cause()
	x.Origin = r.origin()
	if r.bool() {
		x.Tunnel = &exchange.Tunnel{ToEngine: r.int(), ToClient: r.int()}
	}
	x.Interventions = r.interventions()
}

// marks are the marks of t in their order.
func marks(t *exchange.Timeline) []*exchange.Mark {
	return []*exchange.Mark{
		&t.Accepted, &t.RequestRead, &t.Dialed, &t.SendStart, &t.SendDone,
		&t.HeaderRead, &t.FirstRead, &t.LastRead, &t.BodyEnd, &t.ClientDone,
	}
}

func writeTimeline(w *fieldWriter, t *exchange.Timeline) {
	w.time(t.Wall)
	w.str(string(t.Clock))
	w.bool(t.Reused)
	for _, m := range marks(t) {
		w.mark(*m)
	}
}

func readTimeline(r *fieldReader, t *exchange.Timeline) {
	t.Wall, t.Clock, t.Reused = r.time(), exchange.StampClock(r.str()), r.bool()
	for _, m := range marks(t) {
		*m = r.mark()
	}
}

func sum256(chunks ...[]byte) (d digest) {
	if len(chunks) == 1 {
		return sha256.Sum256(chunks[0])
	}
	h := sha256.New()
	for _, c := range chunks {
		h.Write(c)
	}
	h.Sum(d[:0])
	return d
}
