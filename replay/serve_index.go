package replay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// index finds recorded answers by the keys of their requests. It holds keys, ids and sizes, no bodies.
type index struct {
	relax []RelaxRule

	mu      sync.Mutex
	takes   []*take            // in the order of the record
	exact   map[string]*queue  // key -> answers to that very request
	relaxed map[string]*queue  // key without what may differ -> answers
	at      map[string][]*take // method and path -> takes, in the order of the record
	wheres  []string           // keys of at, in the order of their first take
	models  []string           // that requests named, in the order of their first take
	left    map[string]int     // records that cannot be given, by reason
	without map[string]string  // their keys -> reason
	last    int                // place of the take that was given last
}

// take is one recorded answer.
type take struct {
	src   Source
	id    exchange.ID
	place int   // in the order of the record
	size  int64 // bytes of its request's body
	used  bool
}

// requestForm is which of its forms a recorded request was asked in.
type requestForm uint8

const (
	formClient      requestForm = iota // as the client sent it
	formSent                           // as the engine got it, where the proxy changed the body
	formDecoded                        // as the client sent it, without its content coding
	formSentDecoded                    // as the engine got it, without its content coding
)

// taken is a take under one form of its request.
type taken struct {
	*take
	form requestForm
}

// queue are the answers to one request, in the order of the record.
type queue struct {
	entries []taken
	next    int // all before it were given
}

// pick is the first answer that was not given; then the last one again, unless each is to be given once.
func (q *queue) pick(strict bool) (e taken, again bool) {
	for q.next < len(q.entries) && q.entries[q.next].used {
		q.next++
	}
	switch {
	case q.next < len(q.entries):
		q.entries[q.next].used = true
		return q.entries[q.next], false
	case strict:
		return taken{}, false
	}
	return q.entries[len(q.entries)-1], true
}

func newIndex(relax []RelaxRule) *index {
	return &index{relax: relax, exact: map[string]*queue{}, relaxed: map[string]*queue{}, at: map[string][]*take{},
		left: map[string]int{}, without: map[string]string{}}
}

// whereOf is the method and the path of a request.
func whereOf(method, target string) string {
	path, _, _ := strings.Cut(target, "?")
	return method + " " + path
}

// add makes the exchange of a row an answer, or notes why it is none. given says that its client got the answer when it was
// recorded, so that it counts as given.
func (ix *index) add(src Source, row *exchange.Summary, given bool) error {
	var x *exchange.Exchange
	// A row tells all that is asked of most exchanges. A body that was cut, a request under a content coding, and what is
	// left of a request without what may differ are in the exchange only.
	coded := row.Digest == "" && row.RequestBytes > 0
	if row.State != exchange.StateStored || coded || len(ix.relax) > 0 {
		var err error
		if x, _, err = src.Exchange(row.ID); err != nil {
			return fmt.Errorf("read exchange for the index: %w", err)
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if why := unserved(row, x); why != "" {
		ix.left[why]++
		for _, key := range []string{row.Key, row.SentKey} {
			if ix.without[key] == "" {
				ix.without[strings.Clone(key)] = why
			}
		}
		return nil
	}
	t := &take{src: src, id: exchange.ID(strings.Clone(string(row.ID))), place: len(ix.takes), size: row.RequestBytes, used: given}
	ix.takes = append(ix.takes, t)
	where := whereOf(row.Method, row.Path)
	if ix.at[where] == nil {
		ix.wheres = append(ix.wheres, where)
	}
	ix.at[where] = append(ix.at[where], t)
	ix.model(row.Model)
	put(ix.exact, row.Key, taken{t, formClient})
	put(ix.exact, row.SentKey, taken{t, formSent})
	if x != nil {
		ix.addForms(x, t)
	}
	return nil
}

// addForms puts a take under the forms of its request that its row does not tell.
func (ix *index) addForms(x *exchange.Exchange, t *take) {
	for _, form := range []requestForm{formClient, formSent, formDecoded, formSentDecoded} {
		req, ok := form.of(x)
		if !ok {
			continue
		}
		if form >= formDecoded {
			put(ix.exact, canon.RequestKey(&req).Key, taken{t, form})
		}
		if k, ok := relaxedKey(&req, ix.relax); ok {
			put(ix.relaxed, k.Key, taken{t, form})
		}
	}
}

func put(m map[string]*queue, key string, e taken) {
	if key == "" {
		return
	}
	q := m[key]
	if q == nil {
		q = &queue{}
		m[strings.Clone(key)] = q
	}
	q.entries = append(q.entries, e)
}

// model notes the name of a model for listings.
func (ix *index) model(name string) {
	const most = 256
	if name == "" || len(ix.models) == most {
		return
	}
	for _, m := range ix.models {
		if m == name {
			return
		}
	}
	ix.models = append(ix.models, strings.Clone(name))
}

// Reasons for which a record is no answer.
const (
	leftNoAnswer = "no answer was recorded"
	leftNoFinal  = "no final answer was recorded"
	leftCut      = "the answer was recorded in part"
	leftTunnel   = "it is an upgraded connection"
	leftRequest  = "the request was recorded in part"
)

// unserved is why a record is no answer, "" for one that is. x may be nil where the row tells that all of it is there.
func unserved(row *exchange.Summary, x *exchange.Exchange) string {
	switch {
	case row.End == exchange.EndConnectFailed:
		return leftNoAnswer
	case row.Status == 101:
		return leftTunnel
	case row.Status >= 100 && row.Status < 200:
		return leftNoFinal
	case x != nil && !x.Request.Body.Whole():
		return leftRequest
	case x != nil && (!x.Response.Body.Whole() || bodyMissing(x)):
		return leftCut
	}
	return ""
}

// bodyMissing reports whether an archive of another tool has an answer without the body that belongs to it.
func bodyMissing(x *exchange.Exchange) bool {
	r := &x.Response
	return x.State == exchange.StateTruncated && r.Body.Size == 0 && len(x.Timeline.Reads) == 0 &&
		x.Request.Method != "HEAD" && r.Status >= 200 && r.Status != 204 && r.Status != 304
}

// of is the request of x in this form; ok is false when it has none of its own.
func (f requestForm) of(x *exchange.Exchange) (req exchange.Request, ok bool) {
	req, ok = x.Request, true
	if f == formSent || f == formSentDecoded {
		req, ok = exchange.SentRequest(x)
	}
	if ok && f >= formDecoded {
		req, ok = decodedRequest(&req)
	}
	return req, ok
}

// decodedRequest is a request without the content coding of its body; ok is false when it has none, or none that can be
// undone.
func decodedRequest(r *exchange.Request) (exchange.Request, bool) {
	coding, coded := exchange.HeaderValue(r.Headers, "Content-Encoding")
	if !coded || !r.Body.Whole() {
		return exchange.Request{}, false
	}
	plain, ok := wire.DecodeBody(coding, r.Body.Bytes())
	if !ok {
		return exchange.Request{}, false
	}
	out := *r
	out.Headers, out.Body = nil, exchange.NewBody(plain)
	for _, h := range r.Headers {
		if !strings.EqualFold(h.Name, "Content-Encoding") {
			out.Headers = append(out.Headers, h)
		}
	}
	return out, true
}

// match is what was found for a request.
type match struct {
	taken
	relaxed bool       // under a relax rule
	again   bool       // it had been given before
	plain   bool       // the request was looked up without its content coding
	why     MissReason // when there is no take
}

// find gives the next answer to a request: to the very request, else to the one without its content coding, else to one
// that differs in no more than the relax rules allow.
func (ix *index) find(a *inquiry, strict bool) match {
	if m, ok := ix.next(ix.exact, a.key.Key, strict, match{}); ok {
		return m
	}
	asked := &a.request
	plain, coded := decodedRequest(asked)
	if coded {
		if m, ok := ix.next(ix.exact, canon.RequestKey(&plain).Key, strict, match{plain: true}); ok {
			return m
		}
		asked = &plain
	}
	if k, ok := relaxedKey(asked, ix.relax); ok {
		if m, ok := ix.next(ix.relaxed, k.Key, strict, match{plain: coded, relaxed: true}); ok {
			return m
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.without[a.key.Key] != "" {
		return match{why: MissNoAnswer}
	}
	return match{why: MissNotRecorded}
}

// next takes the next answer under a key of one of the maps; ok is false when the key is not there.
func (ix *index) next(from map[string]*queue, key string, strict bool, m match) (_ match, ok bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	q := from[key]
	if q == nil {
		return m, false
	}
	if m.taken, m.again = q.pick(strict); m.take == nil {
		m.why = MissExhausted
		return m, true
	}
	ix.last = m.place
	return m, true
}

// holds reports whether there is an answer to that very request.
func (ix *index) holds(a *inquiry) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.exact[a.key.Key] != nil
}

// confirms holds the request of the record against the one that was asked, byte for byte of their canonical forms: what
// only shares a hash is no answer.
func (m *match) confirms(x *exchange.Exchange, a *inquiry, relax []RelaxRule) bool {
	recorded, ok := m.form.of(x)
	if !ok {
		return false
	}
	want, wanted := canon.RequestKey(&recorded), a.key
	if m.plain || m.relaxed {
		asked := a.request
		if m.plain {
			if asked, ok = decodedRequest(&asked); !ok {
				return false
			}
		}
		wanted = canon.RequestKey(&asked)
		if m.relaxed {
			want, _ = relaxedKey(&recorded, relax)
			wanted, _ = relaxedKey(&asked, relax)
		}
	}
	return len(want.Canonical) > 0 && bytes.Equal(want.Canonical, wanted.Canonical)
}

// counts are the answers there are, those never given, and what is left out.
func (ix *index) counts() (all, unserved int, left map[string]int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	left = map[string]int{}
	for why, n := range ix.left {
		left[why] = n
	}
	for _, t := range ix.takes {
		if !t.used {
			unserved++
		}
	}
	return len(ix.takes), unserved, left
}

// excuses are the reasons for which records are no answers, each with their number: " (2 records: REASON)".
func (ix *index) excuses() string {
	_, _, left := ix.counts()
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, count(left[why], "record", "records")+": "+why)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
