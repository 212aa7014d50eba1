package replay

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// An answer of no suite is held against the recordings of the same request that are kept. They are looked up one exchange at
// a time, so that a long run needs no more room than a short one. Nobody is asked: views of the reference are absent, and
// named.

// gateText is the rule that compares texts alone.
const gateText = "text_divergence"

// AgainstGoldens reports whether a gate can judge single answers from the record alone, by the goldens that are kept of
// their requests. The other gates of that family ask an engine again, or look at a whole conversation.
func AgainstGoldens(gate string) bool {
	switch gate {
	case gateNearTie, gateText, gateVision, gateNeedle:
		return true
	}
	return false
}

// heldBy reports whether any of the checks holds answers against goldens.
func heldBy(checks []exchange.Check) bool {
	return slices.ContainsFunc(checks, func(c exchange.Check) bool { return AgainstGoldens(c.Gate) })
}

// heldGoldens are the goldens of one request, as the case of a single exchange takes them.
type heldGoldens struct {
	list []*exchange.Golden
	sums []exchange.EvidenceSum // of them as they are kept
	why  string                 // there is none that will do; "" when there is
}

// held are the recordings of the very request of an exchange, of whatever weights and build: the gate names the field for
// which one will not do. An answer is no reference of itself, and what was launched in another way is none of the usual one.
func (v *revalidator) held(x *exchange.Exchange) (h heldGoldens, err error) {
	if v.o.Goldens == nil {
		h.why = "the goldens are in the store that keeps them, and not here"
		return h, nil
	}
	key, digest := canon.RequestIdentity(&x.Request)
	kept, err := v.o.Goldens.GoldensOf(key.Key)
	if err != nil {
		return h, err
	}
	own, variants := 0, 0
	for _, g := range kept {
		switch {
		case g.Digest != digest:
		case g.Source == x.ID:
			own++
		case g.Variant != "":
			variants++
		default:
			h.sums = append(h.sums, exchange.EvidenceSum{Kind: "golden", ID: string(g.ID), Digest: gates.SumGolden(g)})
			moved := *g
			moved.Turn = 0 // wherever it stood in a conversation, it answers this request
			h.list = append(h.list, &moved)
		}
	}
	switch {
	case len(h.list) > 0:
	case own > 0:
		h.why = "the only one was made of this very answer"
	case variants > 0:
		h.why = "those that are kept are of a reference that was launched in another way"
	default:
		h.why = "golden add keeps those of a reference"
	}
	return h, nil
}

// holdAgainst judges an exchange by a gate that compares with goldens.
func (v *revalidator) holdAgainst(x *exchange.Exchange, row *exchange.Summary, check exchange.Check) (exchange.Verdict, error) {
	h, err := v.held(x)
	if err != nil {
		return exchange.Verdict{}, err
	}
	if check, err = v.withSubject(check, x); err != nil {
		return exchange.Verdict{}, err
	}
	c := &exchange.Case{ID: string(x.ID), Scenario: x.Cell, Exchanges: []*exchange.Exchange{x}, Goldens: h.list}
	if v.spans != nil && row != nil {
		c.Concurrency = v.spans.Together(row)
	}
	for range rounds {
		verdict, needs, err := gates.Judge(gates.Prepare(c), check)
		if err != nil {
			return verdict, err
		}
		if len(needs) > 0 {
			for _, n := range needs {
				c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Reason: "nobody is asked offline"})
			}
			continue
		}
		verdict.Evidence = append([]exchange.EvidenceSum{verdict.Evidence[0]}, h.sums...)
		if verdict.Status == exchange.VerdictIncomparable && h.why != "" && whole(x) {
			verdict.Reason += ": " + h.why
		}
		return verdict, nil
	}
	return exchange.Verdict{}, fmt.Errorf("judge exchange %s by %s: %w: the gate never has enough", x.ID, check.Gate, exchange.ErrUsage)
}

// withSubject gives a check what is known of the engine that answered, where it does not say so itself. What is hidden in a
// prompt counts as not comparable where no golden tells whether a reference finds it.
func (v *revalidator) withSubject(check exchange.Check, x *exchange.Exchange) (exchange.Check, error) {
	fields := map[string]json.RawMessage{}
	if len(check.Params) > 0 {
		if err := json.Unmarshal(check.Params, &fields); err != nil {
			return check, fmt.Errorf("read parameters of %s: %w: %w", check.Gate, exchange.ErrUsage, err)
		}
	}
	set := func(name string, value any) error {
		if _, said := fields[name]; said {
			return nil
		}
		text, err := json.Marshal(value)
		fields[name] = text
		return err
	}
	if id := v.weightsAt(x); id != "" {
		if err := set("weights", id); err != nil {
			return check, err
		}
	}
	if check.Gate == gateNeedle {
		if err := set("reference", true); err != nil {
			return check, err
		}
	}
	text, err := json.Marshal(fields)
	check.Params = text
	return check, err
}

// weightsAt are the weights that answered an exchange, "" where nothing says which.
func (v *revalidator) weightsAt(x *exchange.Exchange) string {
	d := v.run.DeploymentAt(x.Upstream, x.Timeline.Wall)
	switch {
	case v.o.WeightsID != "":
		return v.o.WeightsID
	case d == nil:
		return ""
	case d.WeightsDigest != nil:
		return *d.WeightsDigest
	case d.Weights != nil:
		return d.Weights.Digest
	}
	return ""
}

// Spans are when the exchanges of a run were under way: 16 bytes of each.
type Spans struct{ begins, ends []int64 }

// SpansOf reads the spans of rows.
func SpansOf(rows iter.Seq2[exchange.Summary, error]) (*Spans, error) {
	s := &Spans{}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		begin, end := spanOf(&row)
		s.begins, s.ends = append(s.begins, begin), append(s.ends, end)
	}
	slices.Sort(s.begins)
	slices.Sort(s.ends)
	return s, nil
}

// Together is the number of exchanges that were under way while that of the row was, itself included. The row is one of
// those that were read.
func (s *Spans) Together(row *exchange.Summary) int {
	begin, end := spanOf(row)
	begun, _ := slices.BinarySearch(s.begins, end+1)
	over, _ := slices.BinarySearch(s.ends, begin)
	return begun - over
}

// spanOf is when an exchange began and ended, in nanoseconds since 1970. One of unknown length is an instant.
func spanOf(row *exchange.Summary) (begin, end int64) {
	begin = row.Started.UnixNano()
	end = begin
	if wall := row.Metrics[measure.TotalWallMS]; wall.Present() {
		end += int64(wall.Value * float64(time.Millisecond))
	}
	return begin, end
}
