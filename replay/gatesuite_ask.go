package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/proxy"
)

// wantsGoldens reports whether a case is held against recordings of a reference. What was hidden and is found needs none,
// and so spares the reference a long prompt.
func (r *gateRun) wantsGoldens(c *gateCase) bool {
	for _, check := range c.Case.Checks {
		switch {
		case check.Gate == gateNeedle:
			v, _, err := gates.Judge(gates.Prepare(&c.Case), check)
			return err != nil || v.Status != exchange.VerdictOK
		case comparesGoldens(check.Gate), check.Gate == gateSampling && r.o.Reference != nil:
			return true
		}
	}
	return false
}

// goldens gives a case the recordings of the reference, once. Those that are not kept are given as requests to it.
func (r *gateRun) goldens(c *gateCase) (list []wanted, err error) {
	if c.goldens || !c.answered() || !r.wantsGoldens(c) {
		return nil, nil
	}
	for turn := range c.Case.Exchanges {
		if slices.ContainsFunc(c.Case.Goldens, func(g *exchange.Golden) bool { return g.Turn == turn }) {
			continue
		}
		n, kept, err := r.found(c, turn)
		if err != nil {
			return nil, err
		}
		c.Case.Goldens = append(c.Case.Goldens, kept...)
		if len(kept) == 0 && r.o.Reference != nil {
			list = append(list, wanted{c, n, turn})
		}
		r.report.Asked.Kept += len(kept)
	}
	if c.goldens = len(list) == 0; c.goldens && r.o.Reference == nil && len(c.Case.Goldens) == 0 {
		c.lacks = "none is named, and no recording of this request is kept"
	}
	return list, nil
}

// answered reports whether the candidate answered every request of a case in full: others are judged as they are, and the
// reference need not be asked.
func (c *gateCase) answered() bool {
	return !slices.ContainsFunc(c.Case.Exchanges, func(x *exchange.Exchange) bool { return !whole(x) })
}

// whole reports whether an answer came, and came to its end.
func whole(x *exchange.Exchange) bool {
	return x.Response.Status/100 == 2 && x.End == exchange.EndEOF
}

// found are the recordings of a turn that are on record, and the request under which they are. Without a reference they
// may lie under the candidate's very request, or under the one that a reference would have been asked.
func (r *gateRun) found(c *gateCase, turn int) (n exchange.Need, kept []*exchange.Golden, err error) {
	ways := []func(*gateCase, int) (exchange.Need, error){r.recording}
	if r.o.Reference == nil {
		ways = append(ways, verbatim)
	}
	for _, way := range ways {
		if n, err = way(c, turn); err != nil {
			return n, nil, err
		}
		if kept, err = r.kept(n, turn); err != nil || len(kept) > 0 {
			return n, kept, err
		}
	}
	return n, nil, nil
}

// verbatim is the request of a turn as the candidate got it.
func verbatim(c *gateCase, turn int) (exchange.Need, error) {
	x := c.Case.Exchanges[turn]
	return exchange.Need{Method: x.Request.Method, Path: x.Request.Target, Body: x.Request.Body.Bytes()}, nil
}

// recording is the request of a turn as a reference is asked it: the candidate's own words, spelled for the reference,
// computed whole. Without a reference it is spelled as for the candidate.
func (r *gateRun) recording(c *gateCase, turn int) (exchange.Need, error) {
	n := exchange.Need{ID: fmt.Sprintf("reference/%d", turn), Party: exchange.Reference, Why: "what the reference answers"}
	party := r.o.Reference
	if party == nil {
		party = &r.o.Candidate
	}
	asked := c.Asked[turn]
	asked.Cold = true
	d, err := party.draft(c.item(asked), asked)
	if err != nil {
		return n, fmt.Errorf("ask the reference: %w", err)
	}
	n.Method, n.Path, n.Body = d.method, d.target, d.body
	return n, nil
}

// kept are the recordings of a request that are on record: of the reference where there is one, else of the weights of the
// candidate, whoever made them.
func (r *gateRun) kept(n exchange.Need, turn int) (out []*exchange.Golden, err error) {
	if r.o.References == nil {
		return nil, nil
	}
	request := exchange.Request{Method: n.Method, Target: n.Path, Headers: jsonHeaders(), Body: exchange.NewBody(n.Body)}
	key, digest := canon.RequestIdentity(&request)
	list, err := r.o.References.Goldens(key.Key)
	if err != nil {
		return nil, err
	}
	var foreign []*exchange.Golden
	for _, g := range list {
		switch {
		case g.Digest != digest || g.Variant != "" || g.Turn != turn:
		case r.refers(g):
			out = append(out, g)
		case r.o.Reference == nil:
			foreign = append(foreign, g)
		}
	}
	if len(out) == 0 {
		return foreign, nil // to be refused by the name of what differs
	}
	return out, nil
}

// refers reports whether a recording is one of the reference. Of one that is started here it was made under the same flags
// by the same bytes: both change what it prefers.
func (r *gateRun) refers(g *exchange.Golden) bool {
	if r.o.Reference == nil {
		return g.Weights == r.o.Candidate.Weights || r.o.Unknown
	}
	ref := subjectOf(r.o.Reference)
	return GateSubject{Identity: g.Engine, Weights: g.Weights}.same(ref) && g.Launch == ref.Launch && g.Build == ref.Build
}

func jsonHeaders() []exchange.Header {
	return []exchange.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Accept-Encoding", Value: "identity"}}
}

// known takes from the record what the reference has answered before, and gives the rest. Without a reference its answers
// cannot be had.
func (r *gateRun) known(c *gateCase, list []wanted) (left []wanted, err error) {
	var asked exchange.Needs
	for _, w := range list {
		switch {
		case w.need.Party == exchange.Reference && r.o.Reference == nil:
			w.take(exchange.Reply{Need: w.need.ID, Reason: "no reference is named"})
		case w.need.Party == exchange.Reference && w.golden < 0 && r.o.References != nil:
			asked = append(asked, w.need)
			left = append(left, w)
		default:
			left = append(left, w)
		}
	}
	if len(asked) == 0 {
		return left, nil
	}
	replies, err := r.o.References.Replies(asked)
	if err != nil {
		return nil, err
	}
	for _, reply := range replies {
		i := slices.IndexFunc(left, func(w wanted) bool { return w.need.ID == reply.Need })
		left[i].take(reply)
		left = slices.Delete(left, i, i+1)
		r.report.Asked.Kept++
	}
	return left, nil
}

// take gives a case the answer to a need.
func (w wanted) take(reply exchange.Reply) {
	w.of.Case.Replies = append(w.of.Case.Replies, reply)
	met := exchange.MetNeed{Need: reply.Need, Reason: reply.Reason}
	if reply.Exchange != nil {
		met.Exchange = reply.Exchange.ID
	}
	w.of.met = append(w.of.met, met)
}

// ask sends what is wanted of a seat. An engine that cannot be had as asked is no error unless it is the candidate as it
// always is; one that was there, or is always to be, and is gone ends the suite.
func (r *gateRun) ask(ctx context.Context, s seat, list []wanted) error {
	met := r.met
	target, err := r.at(ctx, s)
	switch {
	case err == nil && r.met != met:
		return nil // what it has said before, in other suites, is looked for first
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s == seat{party: exchange.Candidate}, s.variant == "" && errors.Is(err, exchange.ErrUnreachable):
		return err
	default:
		for _, w := range list {
			w.refuse(err)
		}
		return nil
	}
	// How an engine is after a request is asked before it gets any others.
	slices.SortStableFunc(list, func(a, b wanted) int { return strings.Compare(a.need.Method, b.need.Method) })
	for len(list) > 0 {
		n := 1
		if wave := list[0].need.Wave; wave != "" {
			n, list = waveFirst(list, wave)
		} else if group := list[0].need.Group; group != "" {
			n, list = groupFirst(list, group)
		}
		if err := r.send(ctx, target, s.party, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// refuse says that an answer cannot be had.
func (w wanted) refuse(why error) {
	if w.golden < 0 {
		w.take(exchange.Reply{Need: w.need.ID, Reason: why.Error()})
		return
	}
	w.of.lacks, w.of.goldens = why.Error(), true
}

// waveFirst moves what is to be sent at once to the front, and counts it.
func waveFirst(list []wanted, wave string) (n int, out []wanted) {
	return front(list, func(w wanted) bool { return w.of == list[0].of && w.need.Wave == wave })
}

// groupFirst moves what builds on each other to the front, in its order, and counts it.
func groupFirst(list []wanted, group string) (n int, out []wanted) {
	return front(list, func(w wanted) bool { return w.of == list[0].of && w.need.Group == group && w.need.Wave == "" })
}

func front(list []wanted, belongs func(wanted) bool) (n int, out []wanted) {
	var rest []wanted
	for _, w := range list {
		if belongs(w) {
			out = append(out, w)
		} else {
			rest = append(rest, w)
		}
	}
	return len(out), append(out, rest...)
}

// send sends a wave at once, and everything else one after the other.
func (r *gateRun) send(ctx context.Context, target Target, party exchange.Party, list []wanted) error {
	xs := make([]*exchange.Exchange, len(list))
	if list[0].need.Wave != "" {
		var all sync.WaitGroup
		for i, w := range list {
			all.Go(func() { xs[i] = r.do(target, party, w.need) })
		}
		all.Wait()
	}
	for i, w := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if xs[i] == nil {
			xs[i] = r.do(target, party, w.need)
		}
		if ctx.Err() != nil { // an answer that we cut ourselves is no answer
			return context.Cause(ctx)
		}
		if err := r.got(w, xs[i]); err != nil {
			return err
		}
	}
	return nil
}

// do sends a request, and once more whenever the engine says when to come back. The last answer counts.
func (r *gateRun) do(target Target, party exchange.Party, n exchange.Need) *exchange.Exchange {
	call := proxy.Call{Method: n.Method, Target: n.Path, Headers: jsonHeaders(), Body: n.Body, Wave: n.Wave}
	if n.Method == "GET" {
		call.Headers, call.Body = jsonHeaders()[1:], nil
	}
	call.Headers = append(call.Headers, r.partyOf(party).Changes.Headers...)
	for attempt := 0; ; attempt++ {
		x := target.Session.Do(r.run, target.Upstream, call, nil)
		wait, again := retryAfter(x)
		if !again || attempt == DefaultRetries || !waitUntil(r.run, clock.Now().Add(wait)) {
			return x
		}
	}
}

// got takes an answer in.
func (r *gateRun) got(w wanted, x *exchange.Exchange) error {
	if x.End == exchange.EndConnectFailed {
		if w.golden < 0 { // where its gate needs nothing else, that is its verdict
			w.take(exchange.Reply{Need: w.need.ID, Exchange: x})
		}
		return fmt.Errorf("%w: the %s is gone: %s", exchange.ErrUnreachable, w.need.Party, causeText(x))
	}
	w.of.spent += spentOn(x)
	if w.need.Party == exchange.Candidate {
		r.report.Asked.Candidate++
		w.take(exchange.Reply{Need: w.need.ID, Exchange: x})
		return nil
	}
	r.report.Asked.Reference++
	if w.golden >= 0 {
		return r.record(w, x)
	}
	w.take(exchange.Reply{Need: w.need.ID, Exchange: x})
	ref := r.o.Reference
	if r.o.References == nil || ref.Weights == "" || ref.Identity.Version == "" || !good(x) {
		return nil
	}
	return r.o.References.AddReply(w.need, x)
}

func causeText(x *exchange.Exchange) string {
	if x.Cause != nil {
		return x.Cause.Text
	}
	return string(x.End)
}

// good reports whether an answer is worth keeping: whole, and none of an error.
func good(x *exchange.Exchange) bool {
	return x.Response.Status/100 == 2 && x.State == exchange.StateStored && measure.Analyze(x).Outcome == exchange.OutcomeComplete
}

// record makes a recording of the reference's answer. One that is no reference leaves the case without.
func (r *gateRun) record(w wanted, x *exchange.Exchange) error {
	ref := r.o.Reference
	g, err := gates.GoldenOf(x, gates.Recording{ID: x.ID, Weights: ref.Weights, Unnamed: r.o.Unknown, Engine: ref.Identity, Launch: ref.Launch, Build: ref.Build, Drafting: ref.Drafting, Concurrency: 1, Turn: w.golden})
	w.of.met = append(w.of.met, exchange.MetNeed{Need: w.need.ID, Exchange: x.ID})
	if err != nil {
		w.refuse(err)
		return nil
	}
	if r.o.References != nil && ref.Weights != "" && ref.Identity.Version != "" {
		kept, err := r.o.References.AddGolden(*g)
		switch {
		case errors.Is(err, exchange.ErrUsage): // another case asked the very same
			known, err := r.kept(w.need, w.golden)
			if err != nil {
				return err
			}
			w.of.Case.Goldens = append(w.of.Case.Goldens, known...)
			return nil
		case err != nil:
			return err
		}
		g = &kept
	}
	w.of.Case.Goldens = append(w.of.Case.Goldens, g)
	return nil
}

// spentOn is how long an engine had a request.
func spentOn(x *exchange.Exchange) time.Duration {
	from, started := x.Timeline.SendStart.NS()
	to, ended := x.Timeline.BodyEnd.NS()
	if !started || !ended {
		return 0
	}
	return time.Duration(to - from)
}
