package measure

// The burst rule: when a stream is called buffered.
//
// Some engines and hops collect an answer and let it go later: the whole of it at the end (an engine that parses tool
// calls first, a proxy that waits for the body), or a piece whenever a buffer fills. The stamps of such a stream say when
// it was released, not when its tokens were made, so TTFT would be late by up to the whole decode time and the decode rate
// absurd. Both are then absent.
//
// A stream is buffered when its shape is that of a release
//
//   - one burst: 3 or more token events, on average no more than 0.5 ms apart, or
//   - flushes: token events in two or more such bursts, each but the last of 16 or more events, with 250 ms and more of
//     silence before every one of them,
//
// and there was silence in which the tokens can have been made:
//
//   - where the engine states its decode time, that time exceeds what the wire shows of it by 50 ms, by as much as the wire shows
//     (for one burst), and by a tenth of the silence before the first token;
//   - where it does not, one burst has a silence of 50 ms and of ten times its length before it. Flushes need no more
//     than their shape.
//
// What it leaves alone, on purpose: two events in the first read; the few tokens a speculative step accepts, which come
// back to back; a short answer of a fast model, whose silence is short as well; token events that a busy machine merged
// into common reads, however many, while the reads keep coming; one event that holds the whole answer.
const (
	burstMinEvents   = 3
	burstMaxSpacing  = 500_000 // ns between neighbors, 2,000 events a second
	flushMinEvents   = 16
	flushMinPause    = 250_000_000 // ns
	silenceMin       = 50_000_000  // ns
	silencePerBurst  = 10          // times the length of the burst
	silenceMinHidden = 10          // the hidden time is at least one part in so many of the silence
)

func isBuffered(s *stream) bool {
	n := len(s.events)
	if n < burstMinEvents {
		return false
	}
	silence, span := s.first(), s.last()-s.first()
	burst := span <= int64(n-1)*burstMaxSpacing
	if !burst && !s.cameInFlushes() {
		return false
	}
	if t := s.t.Timings; t != nil && t.DecodeMS != nil && usable(*t.DecodeMS) {
		hidden := int64(*t.DecodeMS*nsPerMS) - span
		return hidden >= silenceMin && hidden*silenceMinHidden >= silence && (!burst || hidden >= span)
	}
	return !burst || silence >= silenceMin && silence >= silencePerBurst*span
}

// cameInFlushes reports whether the token events came in large bursts with long pauses between them.
func (s *stream) cameInFlushes() bool {
	if s.first() < flushMinPause {
		return false
	}
	flushes, size := 0, 1
	for i := 1; i < len(s.events); i++ {
		gap := s.events[i].at - s.events[i-1].at
		switch {
		case gap <= burstMaxSpacing:
			size++
		case gap < flushMinPause || size < flushMinEvents:
			return false
		default:
			flushes, size = flushes+1, 1
		}
	}
	return flushes > 0
}
