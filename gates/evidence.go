package gates

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Evidence is a case made ready for judging: every exchange is read once, however many gates look at it.
type Evidence struct {
	Case  *exchange.Case
	Turns []Turn // of the subject, in order

	params  any
	digests []exchange.EvidenceSum
}

// Turn is one exchange of the subject and what it says.
type Turn struct {
	*exchange.Exchange
	*measure.Analysis
}

// Prepare reads the exchanges of a case. The case must not change after.
func Prepare(c *exchange.Case) *Evidence {
	e := &Evidence{Case: c}
	for _, x := range c.Exchanges {
		e.Turns = append(e.Turns, Turn{x, measure.Analyze(x)})
		e.digests = append(e.digests, exchange.EvidenceSum{Kind: "exchange", ID: string(x.ID), Digest: SumExchange(x)})
	}
	for _, g := range c.Goldens {
		e.digests = append(e.digests, exchange.EvidenceSum{Kind: "golden", ID: string(g.ID), Digest: SumGolden(g)})
	}
	for _, r := range c.Replies {
		if r.Exchange != nil {
			e.digests = append(e.digests, exchange.EvidenceSum{Kind: "reply", ID: string(r.Exchange.ID), Digest: SumExchange(r.Exchange)})
		}
	}
	return e
}

// Last is the final turn: the one whose answer the answer gates judge. Judge has made sure that there is one.
func (e *Evidence) Last() Turn { return e.Turns[len(e.Turns)-1] }

// Content is the text of the answer's content channel; never reasoning.
func (t Turn) Content() string { return t.Transcript.Choice0().Text }

// sums names what was judged. The slice is shared: verdicts are read, not changed.
func (e *Evidence) sums() []exchange.EvidenceSum { return e.digests }

// unfit says why the evidence of the subject cannot be judged by any gate; ok is true when it can.
func (e *Evidence) unfit() (Finding, bool) {
	if len(e.Turns) == 0 {
		return notRun("no exchange of this case is on record"), false
	}
	for i, t := range e.Turns {
		if t.State == exchange.StateTruncated || !t.Response.Body.Whole() || !t.Exchange.Request.Body.Whole() {
			return incomparable("the record of turn %d is not whole (exchange %s)", i+1, t.Exchange.ID), false
		}
	}
	return Finding{}, true
}

// SumExchange is the digest of what crossed the wire in an exchange: what EvidenceSum.Digest is of one.
func SumExchange(x *exchange.Exchange) string {
	return digest(x.Request.Method, x.Request.Target, x.Request.Body.Sum(), strconv.Itoa(x.Response.Status), x.Response.Body.Sum())
}

// SumGolden is the digest of a golden as a document: what EvidenceSum.Digest is of one.
func SumGolden(g *exchange.Golden) string {
	b, err := json.Marshal(g)
	if err != nil {
		panic("gates: a golden is always JSON: " + err.Error())
	}
	return digest(string(b))
}

// digest hashes the parts, each with its length before it, so that no two lists of parts are one.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(p))) // a hash takes every write
		h.Write([]byte(p))
	}
	return exchange.DigestPrefix + hex.EncodeToString(h.Sum(nil))
}
