package stat

import (
	"cmp"
	"slices"
)

// Span is work that went on from Start to End, in any unit of time: a request, or the decoding of one. Weight is spread
// evenly over it: tokens, say.
type Span struct {
	Start, End float64
	Weight     float64
}

// Window is a stretch of time.
type Window struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// Length is how long the window is, in the unit of its ends.
func (w Window) Length() float64 { return w.End - w.Start }

// Load is how busy a set of spans was over time.
type Load struct {
	Peak   int     // the most that went on at once
	Mean   float64 // over the whole window, spans that went on at once
	Whole  Window  // first start to last end
	Steady Window  // longest stretch in which at least SteadyShare of the peak went on
	Ramp   float64 // share of the whole window before the steady one
	Drain  float64 // share of the whole window after the last span began: nothing new replaces what ends
}

// SteadyShare of the peak must go on in the steady window.
const SteadyShare = 0.9

// LoadOf measures spans; ok is false when none has a length.
func LoadOf(spans []Span) (l Load, ok bool) {
	var edges []edge
	busy, lastStart := 0.0, 0.0
	for _, s := range spans {
		if !(s.End > s.Start) {
			continue
		}
		edges = append(edges, edge{s.Start, 1}, edge{s.End, -1})
		busy += s.End - s.Start
		if len(edges) == 2 || s.Start > lastStart {
			lastStart = s.Start
		}
	}
	if len(edges) == 0 {
		return Load{}, false
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	levels := levelsOf(edges)
	for _, v := range levels {
		l.Peak = max(l.Peak, v.live)
	}
	l.Whole = Window{levels[0].at, levels[len(levels)-1].at}
	l.Mean = busy / l.Whole.Length()
	begun, inside := 0.0, false
	for _, v := range levels {
		switch steady := float64(v.live) >= SteadyShare*float64(l.Peak); {
		case steady && !inside:
			begun, inside = v.at, true
		case !steady && inside:
			inside = false
			if v.at-begun > l.Steady.Length() {
				l.Steady = Window{begun, v.at}
			}
		}
	}
	l.Ramp = (l.Steady.Start - l.Whole.Start) / l.Whole.Length()
	l.Drain = (l.Whole.End - lastStart) / l.Whole.Length()
	return l, true
}

// level is how many spans go on from an instant to the next one.
type level struct {
	at   float64
	live int
}

// levelsOf sums sorted edges up. What ends and begins at one instant counts at once: a request that replaces another one
// leaves no gap, and the two never went on together.
func levelsOf(edges []edge) []level {
	var out []level
	live := 0
	for i, e := range edges {
		live += e.step
		if i+1 == len(edges) || edges[i+1].at != e.at {
			out = append(out, level{e.at, live})
		}
	}
	return out
}

// edge is where a span begins (step 1) or ends (-1).
type edge struct {
	at   float64
	step int
}

// Rate is the weight of spans that falls into the window, per unit of time; 0 for an empty window.
func Rate(spans []Span, w Window) float64 {
	if !(w.Length() > 0) {
		return 0
	}
	sum := 0.0
	for _, s := range spans {
		overlap := min(s.End, w.End) - max(s.Start, w.Start)
		if length := s.End - s.Start; length > 0 && overlap > 0 {
			sum += s.Weight * overlap / length
		}
	}
	return sum / w.Length()
}
