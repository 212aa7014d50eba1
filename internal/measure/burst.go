package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The burst rule: when a stream is called buffered.
//
// Some engines and hops collect an answer and let it go later: the whole of it at the end (an engine that parses tool
// calls first, a hop that waits for the body and plays it again), or a piece whenever a buffer fills. The stamps of such a
// stream say when it was released, not when its tokens were made, so TTFT would be late by up to the whole decode time
// and the decode rate absurd. Both are then absent.
//
// A stream is buffered when its shape is that of a release (the methods of shape below, each with its bounds)
//
//   - one burst: all token events follow each other faster than they can have been made,
//   - a heavy start: the first of several token events holds at least 16 tokens and half of the answer,
//   - flights: few large bursts with the pauses of a network between them, where one release was more than a sender may
//     have on its way at once,
//   - flushes: large bursts with long pauses before every one of them,
//
// and there was silence before it in which the tokens can have been made:
//
//   - where the engine states its decode time, that time exceeds what the wire shows of it by 50 ms, by as much as the
//     wire shows (but for flushes), and by a tenth of the silence before the first token; then nothing else counts;
//   - where it does not, a silence of 50 ms and of ten times the length of the burst. One burst that an engine could
//     just about have made (2,000 to 10,000 tokens a second) needs more: 1 s that is not explained by the prompt. No
//     engine reads a prompt more slowly than it writes, so the prompt explains at most its tokens at the pace of the burst.
//
// Stamps are not always those of the arrival, and then a burst may be our own doing: a read that came late takes several
// events at once, and they share a stamp. How late it may have been counts as part of the length of the burst:
//
//   - a kernel stamp is exact for the newest segment of its read, and the time until the client had it tells how late
//     we were (25 ms of it count: more is a client that does not take its bytes);
//   - a stamp of the read says nothing of that: 5 ms are assumed;
//   - no time counts where every token event had a read of its own, and no pause in which we were writing is one.
//
// What the rule leaves alone, on purpose: two events in the first read; the few tokens a speculative step accepts, which
// come back to back; a short answer of a fast model, whose silence is short as well; an engine of 5,000 tokens a second;
// token events that a busy machine merged into common reads, while the reads keep coming; one event that holds the whole
// answer; an answer that began in time and of which the rest came at once (flag late_burst: first and last token are
// where they were, so TTFT and the mean rate hold, but no gap and no peak does).
//
// What it cannot see: a release that is paced like decoding, when the engine does not state its decode time; an answer of
// fewer than 12 events held back for less than 5 ms an event, by stamps of the read. What it takes for buffered although it
// is not: more than 10,000 tokens a second after 50 ms of silence, from an engine that does not state its decode time.
const (
	burstMinEvents = 3
	fastestToken   = 100_000 // ns: no engine is known to make a token of one stream in less
	fastToken      = 500_000 // ns: few are known to need less
	manyTokens     = 16      // more than a speculative step accepts
	bytesPerToken  = 2       // of text, on average, in any language

	flushMinEvents  = 8
	flushMinPause   = 250_000_000 // ns
	flightMinPause  = 30_000_000  // ns: longer than a busy machine holds up a read
	flightAfterLone = 32          // events that follow a first one on its own

	silenceMin       = 50_000_000    // ns
	silenceLong      = 1_000_000_000 // ns
	silencePerBurst  = 10            // times the length of the burst
	silenceMinHidden = 10            // the hidden time is at least one part in so many of the silence

	lateMost    = 25_000_000 // ns: 99 in 100 reads are not later, with all cores busy
	lateAssumed = 5_000_000  // ns
)

// shape is how the token events of a stream lie in time.
type shape struct {
	s       *stream
	tokens  float64 // that the events brought: no fewer than there are events
	silence int64   // ns before the first event
	span    int64   // ns from the first event to the last
	late    int64   // ns that our own lateness can have taken from the span
	runs    []run   // of events that follow each other at once
}

// run is a group of token events with no more than fastestToken between neighbors.
type run struct {
	events int
	pause  int64 // ns before it in which we were ready to read
}

// newShape lays out two or more token events.
func newShape(s *stream) *shape {
	b := &shape{s: s, tokens: float64(len(s.events)), silence: s.first(), span: s.last() - s.first(), late: s.lateness()}
	counted := s.completion.Present() && s.completion.Basis != exchange.BasisEstimated
	if counted && !s.hidden { // tokens that nobody saw were not in the burst
		b.tokens = max(b.tokens, s.completion.Value)
	}
	b.runs = append(make([]run, 0, s.reads), run{events: 1, pause: s.first()}) // events of one read share a stamp
	for i := 1; i < len(s.events); i++ {
		before, e := &s.events[i-1], &s.events[i]
		if e.at-before.at <= fastestToken {
			b.runs[len(b.runs)-1].events++
			continue
		}
		b.runs = append(b.runs, run{events: 1, pause: e.at - before.at - s.x.Timeline.Reads[before.Read].Write})
	}
	return b
}

// lateness is how long before its stamp an event of a shared read can have arrived, because we were late to read it.
func (s *stream) lateness() int64 {
	if s.merged == 0 {
		return 0
	}
	if s.x.Timeline.Clock == exchange.ClockRead {
		return lateAssumed
	}
	longest := int64(0)
	for i := 1; i < len(s.events); i++ {
		if r := s.events[i].Read; r == s.events[i-1].Read {
			longest = max(longest, s.x.Timeline.Reads[r].Write)
		}
	}
	return min(longest, lateMost)
}

// isBuffered is the rule.
func (b *shape) isBuffered() bool {
	flushes := b.cameInFlushes()
	if t := b.s.t.Timings; t != nil && t.DecodeMS != nil && usable(*t.DecodeMS) {
		hidden := int64(*t.DecodeMS*nsPerMS) - b.span
		enough := hidden >= silenceMin && hidden*silenceMinHidden >= b.silence
		return enough && (flushes || hidden >= b.span && (b.cameWithin(fastToken) || b.beginsHeavy() || b.cameInFlights()))
	}
	switch {
	case flushes:
		return true
	case b.silence < silenceMin || b.silence < silencePerBurst*(b.span+b.late):
		return b.silence >= silenceMin && b.beginsHeavy()
	case b.cameWithin(fastestToken) || b.beginsHeavy():
		return true
	}
	return b.unexplained() >= silenceLong && b.cameWithin(fastToken) || b.silence >= silenceLong && b.cameInFlights()
}

// cameWithin reports whether the events are so many, or hold so many tokens, that each took no more than ns.
func (b *shape) cameWithin(ns float64) bool {
	many := len(b.s.events) >= burstMinEvents || b.tokens >= manyTokens
	return many && float64(b.span+b.late) <= (b.tokens-1)*ns
}

// unexplained is the silence without the longest time that the prompt can have taken an engine that writes at the pace
// of this burst, ns.
func (b *shape) unexplained() int64 {
	if !b.s.prompt.Present() || b.tokens < 2 {
		return b.silence
	}
	return b.silence - int64(b.s.prompt.Value*float64(b.span+b.late)/(b.tokens-1))
}

// cameInFlights reports whether the events came as one release does that a sender had to send in several turns.
func (b *shape) cameInFlights() bool {
	runs, n := b.runs, len(b.s.events)
	if runs[0].events == 1 && n > flightAfterLone { // the first piece may leave alone, and the rest when it is acknowledged
		runs = runs[1:]
	}
	for i, r := range runs {
		if r.pause < flightMinPause || i < len(runs)-1 && r.events < manyTokens {
			return false
		}
	}
	return n >= manyTokens && len(b.runs) > 1
}

// cameInFlushes reports whether the events came in large bursts with long pauses before every one of them.
func (b *shape) cameInFlushes() bool {
	for i, r := range b.runs {
		if r.pause < flushMinPause || i < len(b.runs)-1 && r.events < flushMinEvents {
			return false
		}
	}
	return len(b.runs) > 1
}

// beginsHeavy reports whether the first of several events holds many tokens, and half of all. A count that leaves no
// token for each of the other events is not believed.
func (b *shape) beginsHeavy() bool {
	first, others := b.firstTokens(), float64(len(b.s.events)-1)
	return first >= manyTokens && 2*first >= b.tokens && first <= b.tokens-others
}

// firstTokens is the number of tokens in the first event, 0 when there is no telling. Where the wire does not count them,
// the tokens beyond one for each event are thought to lie where an event is longer than the shortest one, and to be no
// shorter than bytesPerToken. The first event of a tool call is long by itself: nothing is read from that.
func (b *shape) firstTokens() float64 {
	if n := b.s.firstEventTokens(); n > 0 {
		return float64(n)
	}
	events := b.s.events
	if events[0].Kinds&wire.KindTool != 0 {
		return 0
	}
	shortest := events[0].size()
	for i := range events {
		shortest = min(shortest, events[i].size())
	}
	sum := 0.0
	for i := range events {
		sum += float64(events[i].size() - shortest)
	}
	if sum <= 0 {
		return 0
	}
	longer := float64(events[0].size() - shortest)
	return 1 + min((b.tokens-float64(len(events)))*longer/sum, longer/bytesPerToken)
}

// endsInBurst reports whether most of an answer came at once after a long pause, but not its beginning.
func (b *shape) endsInBurst() bool {
	if len(b.s.events) <= manyTokens {
		return false
	}
	for _, r := range b.runs[1:] {
		if r.pause >= flushMinPause && r.events >= manyTokens && 2*r.events > len(b.s.events) {
			return true
		}
	}
	return false
}

// windowTooShort reports whether the tokens are too many for the time from the first to the last, without a decode time of
// the engine that agrees with it.
func (s *stream) windowTooShort() bool {
	span := float64(s.last() - s.first())
	if t := s.t.Timings; t != nil && t.DecodeMS != nil && usable(*t.DecodeMS) && *t.DecodeMS*nsPerMS <= 2*span {
		return false
	}
	return span < (s.completion.Value-1)*fastestToken
}
