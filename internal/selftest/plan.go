package selftest

import (
	"fmt"
	"time"
)

// Level is one number of streams and what each of them does. The rates keep two cores below saturation, so that what
// is timed is the way of a byte and not the length of a queue.
type Level struct {
	Streams int     `json:"streams"`
	Answers int     `json:"answers"` // of each stream in one play, one after the other
	Tokens  int     `json:"tokens"`  // of each answer, one an event
	Rate    float64 `json:"rate"`    // tokens a second of each stream

	together bool // the streams start within one pace, not spread over an answer
}

// pace is the time from one token to the next.
func (l Level) pace() time.Duration { return time.Duration(float64(time.Second) / l.Rate) }

// stagger is when a stream starts, so that all of them spread over one answer.
func (l Level) stagger(stream int) time.Duration {
	span := l.pace()
	if !l.together {
		span *= time.Duration(l.Tokens)
	}
	return span * time.Duration(stream) / time.Duration(l.Streams)
}

// options are the level's options of the scripted engine.
func (l Level) options() string {
	return fmt.Sprintf("answer=%d; decode=%g; jitter=0.5", l.Tokens, l.Rate)
}

// Plan says what is played.
type Plan struct {
	Levels []Level `json:"levels"`
	Rounds int     `json:"rounds"` // direct and proxied plays of each level and load
	Search Search  `json:"search"`
}

// DefaultDuration is about what the plan of NewPlan takes when its duration is not given.
const DefaultDuration = 30 * time.Second

// rounds are the least that give a median an interval of 95 %.
const rounds = 6

// NewPlan is a plan that takes about d; a quick one plays few streams for a quarter of the time. A shorter duration has
// fewer samples, so that more percentiles fall below their floor; the rounds stay.
func NewPlan(d time.Duration, quick bool) Plan {
	p := Plan{
		// Each level gives the stamp error the samples that a p99 takes. The last token of an answer shares its read with
		// the end of the stream, and gives none.
		Levels: []Level{
			{Streams: 1, Answers: 8, Tokens: 20, Rate: 700},
			{Streams: 16, Answers: 2, Tokens: 6, Rate: 60},
			{Streams: 64, Answers: 2, Tokens: 4, Rate: 40},
			{Streams: 256, Answers: 2, Tokens: 3, Rate: 20},
		},
		Rounds: rounds,
		Search: Search{Streams: 16, From: 2000, To: 512_000, Play: 300 * time.Millisecond, Refine: 2},
	}
	if quick {
		p.Levels = p.Levels[:2]
		p.Search.Play, p.Search.Refine = 100*time.Millisecond, 0
	}
	scale := float64(d) / float64(DefaultDuration)
	for i := range p.Levels {
		p.Levels[i].Answers = max(1, int(float64(p.Levels[i].Answers)*scale+0.5))
	}
	return p
}
