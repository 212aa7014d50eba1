package measure

import (
	"cmp"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The rates of a wave: requests that were sent together. They are three different things and never stand for each other.
const (
	// AggregateDecodeTPS is the sum of max(n-1, 0) over the window from the first token of any stream to the last of any.
	AggregateDecodeTPS = "aggregate_decode_tps"
	// SteadyTPS is the tokens of events within the window in which all streams decode, over that window. An event at its
	// very start does not count: its tokens were decoded before.
	SteadyTPS = "steady_tps"
	// BatchTPS is all tokens over the whole wall: from the first request byte of any to the last body end of any.
	BatchTPS = "batch_tps"
)

// WaveMember is one request of a wave, on the clock of all of them.
type WaveMember struct {
	failed     bool
	start, end int64           // first request byte and end of the body, ns of the wall clock
	completion exchange.Figure // tokens
	noStream   exchange.Reason // why it has no place in the windows of tokens, "" when it has
	events     []waveEvent
}

// waveEvent is a token event with its share of the tokens.
type waveEvent struct {
	at     int64 // ns of the wall clock
	tokens float64
}

// WaveMemberOf takes from an exchange what its wave needs. The members of a wave are put on one clock by the wall time of
// their origins, so they must come from one machine.
func WaveMemberOf(x *exchange.Exchange, a *Analysis) WaveMember {
	m := WaveMember{failed: a.Outcome != exchange.OutcomeComplete || a.Flagged(FlagErrorAsContent)}
	s := newStream(x, a.Transcript, a.Request)
	origin := x.Timeline.Wall.UnixNano()
	end, ended := x.Timeline.BodyEnd.NS()
	m.completion = s.completion
	m.start, m.end = origin+s.t0, origin+end
	m.failed = m.failed || !s.sent || !ended
	if m.noStream = s.noWindow(); m.noStream != "" {
		return m
	}
	tokens := s.spread()
	m.events = make([]waveEvent, len(s.events))
	for i := range s.events {
		m.events[i] = waveEvent{at: origin + s.t0 + s.events[i].at, tokens: tokens[i]}
	}
	return m
}

// noWindow is why the token events of s do not say when its tokens were decoded, or "".
func (s *stream) noWindow() exchange.Reason {
	if why := s.noTokens(); why != "" {
		return why
	}
	switch {
	case s.cut:
		return ReasonRecordTruncated
	case s.buffered:
		return ReasonBuffered
	case s.hidden:
		return ReasonHiddenReasoning
	case !s.completion.Present():
		return s.completion.Reason
	}
	return ""
}

// FailedMember is one of which nothing is kept: it was never sent, or not with the others. It voids the rates of its wave.
func FailedMember() WaveMember { return WaveMember{failed: true} }

func (m *WaveMember) first() int64 { return m.events[0].at }
func (m *WaveMember) last() int64  { return m.events[len(m.events)-1].at }

// Wave is what the members of a wave come to, in any order. One failed member voids all rates; one whose tokens cannot be
// placed in time voids the two that need it.
func Wave(name string, members []WaveMember) exchange.WaveRate {
	w := exchange.WaveRate{Wave: name, Streams: len(members), Figures: exchange.Figures{}}
	why, noStream, basis := exchange.Reason(""), exchange.Reason(""), exchange.BasisMeasured
	if len(members) == 0 {
		why = ReasonNotSent
	}
	for i := range members {
		m := &members[i]
		switch {
		case m.failed:
			w.Failed++
		case !m.completion.Present():
			why = cmp.Or(why, m.completion.Reason)
		case m.completion.Basis == exchange.BasisEstimated:
			basis = exchange.BasisEstimated
		}
		noStream = cmp.Or(noStream, m.noStream)
	}
	if w.Failed > 0 {
		why = ReasonMemberFailed
	}
	w.PeakLive = peakLive(members)
	set := func(name string, why exchange.Reason, tokens float64, window int64) {
		switch {
		case why != "":
			w.Figures[name] = exchange.Absent(unitTPS, why)
		case window <= 0:
			w.Figures[name] = exchange.Absent(unitTPS, ReasonZeroWindow)
		default:
			w.Figures[name] = exchange.Figure{Value: tokens / (float64(window) / nsPerSecond), Unit: unitTPS, Basis: basis}
		}
	}
	if why != "" {
		noStream = why
	}
	tokens, window := batchOf(members)
	set(BatchTPS, why, tokens, window)
	if noStream != "" {
		set(AggregateDecodeTPS, noStream, 0, 0)
		set(SteadyTPS, noStream, 0, 0)
		return w
	}
	tokens, window = aggregateOf(members)
	set(AggregateDecodeTPS, "", tokens, window)
	tokens, window = steadyOf(members)
	if window < 0 || window == 0 && len(members) > 1 {
		noStream = ReasonNotTogether
	}
	set(SteadyTPS, noStream, tokens, window)
	return w
}

// batchOf is all tokens and the whole wall in ns.
func batchOf(members []WaveMember) (tokens float64, window int64) {
	var start, end int64
	for i := range members {
		m := &members[i]
		if tokens += m.completion.Value; i == 0 || m.start < start {
			start = m.start
		}
		end = max(end, m.end)
	}
	return tokens, end - start
}

// aggregateOf is the tokens behind the first of each stream, and ns from the first token of any to the last of any.
func aggregateOf(members []WaveMember) (tokens float64, window int64) {
	first, last := members[0].first(), members[0].last()
	for i := range members {
		m := &members[i]
		tokens += max(m.completion.Value-1, 0)
		first, last = min(first, m.first()), max(last, m.last())
	}
	return tokens, last - first
}

// steadyOf is the tokens within the window in which all streams decode, and its length in ns: below 0 when there is none.
func steadyOf(members []WaveMember) (tokens float64, window int64) {
	from, to := members[0].first(), members[0].last()
	for i := range members {
		from, to = max(from, members[i].first()), min(to, members[i].last())
	}
	for i := range members {
		for _, e := range members[i].events {
			if e.at > from && e.at <= to {
				tokens += e.tokens
			}
		}
	}
	return tokens, to - from
}

// peakLive is the most streams that decoded at the same time.
func peakLive(members []WaveMember) int {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for i := range members {
		if m := &members[i]; len(m.events) > 0 {
			edges = append(edges, edge{m.first(), 1}, edge{m.last(), -1})
		}
	}
	// At one instant starts come first: streams that touch have decoded together for that instant.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step)) })
	live, peak := 0, 0
	for _, e := range edges {
		live += e.step
		peak = max(peak, live)
	}
	return peak
}
