package stat

import (
	"math"
	"slices"
)

// Matched is one thing that was measured on both sides of a comparison, a request of a workload say: one or more takes
// of each. All values are above 0.
type Matched struct {
	Reference, Candidate []float64
}

// Comparison is what matched takes say about candidate / reference.
type Comparison struct {
	N         int      // things that were measured on both sides
	Takes     [2]int   // of them all, reference and candidate
	Reference float64  // median over the things of each one's median; 0 when N is 0
	Candidate float64  // the same of the other side
	Ratio     float64  // median over the things of candidate / reference; 0 when N is 0
	Interval  Interval // of Ratio; meaningless unless Tellable
	P         float64  // chance of a difference this large if the sides were the same, by permutation
	Tellable  bool     // there are takes enough for P to come below 1 - Confidence at all
}

// Compare asks whether the candidate differs from the reference.
//
// Each thing is compared with itself only, so that large and small requests do not hide a difference. The interval
// and P take no distribution for granted. P relabels the takes within each thing; its statistic is the mean of the log ratios, each held to three times their median size, so that one
// stalled request neither makes a difference nor hides one (medians are too coarse for it: many relabelings leave one as it is). The labels are drawn from a fixed seed: the same takes give the
// same answer, whatever the order of the things. Things without a take on either side are left out.
func Compare(things []Matched) Comparison {
	m := newMatching(things)
	c := Comparison{N: len(m.things), Takes: m.takes, P: 1}
	if c.N == 0 {
		return c
	}
	var sides [2][]float64
	for _, t := range m.things {
		sides[0] = append(sides[0], math.Exp(middle(t.Reference)))
		sides[1] = append(sides[1], math.Exp(middle(t.Candidate)))
	}
	c.Reference, c.Candidate = middle(sides[0]), middle(sides[1])
	c.Ratio = math.Exp(middle(m.ratios()))
	c.Tellable = m.relabelings() >= 2/(1-Confidence)
	if c.Tellable {
		c.Interval = m.interval()
		c.P = float64(m.asFar(0, m.rounds, m.rounds)+1) / float64(m.rounds+1)
	}
	return c
}

// matching holds logarithms of the takes.
type matching struct {
	things []Matched
	takes  [2]int
	rounds int
	plain  bool // the statistic is the mean as it is: no log ratio is held to a size
}

// newMatching orders things and takes, so that the random draws do not depend on the order they came in.
func newMatching(things []Matched) *matching {
	m := &matching{}
	for _, t := range things {
		logs := Matched{Reference: logarithms(t.Reference), Candidate: logarithms(t.Candidate)}
		if len(logs.Reference) == 0 || len(logs.Candidate) == 0 {
			continue
		}
		m.things = append(m.things, logs)
		m.takes[0] += len(logs.Reference)
		m.takes[1] += len(logs.Candidate)
	}
	slices.SortFunc(m.things, func(a, b Matched) int {
		if c := slices.Compare(a.Reference, b.Reference); c != 0 {
			return c
		}
		return slices.Compare(a.Candidate, b.Candidate)
	})
	if n := m.takes[0] + m.takes[1]; n > 0 {
		m.rounds = min(max(drawBudget/n, leastRounds), mostRounds)
	}
	return m
}

// Random draws of a comparison: as many rounds as keep it short, within bounds that keep P and interval fine enough.
const (
	drawBudget   = 4_000_000 // takes drawn in all
	leastRounds  = 400
	mostRounds   = 2_000
	searchRounds = 500 // of each step towards the end of an interval
	mostSearched = 600 // takes
)

// logarithms are the sorted logarithms of the values that have one.
func logarithms(values []float64) []float64 {
	var out []float64
	for _, v := range finite(values) {
		if v > 0 {
			out = append(out, math.Log(v))
		}
	}
	return out
}

// middle is the median of values, which it may reorder; there is at least one.
func middle(values []float64) float64 {
	if len(values) == 1 {
		return values[0]
	}
	slices.Sort(values)
	return Quantile(values, 0.5)
}

func (m *matching) ratios() []float64 {
	out := make([]float64, len(m.things))
	for i, t := range m.things {
		out[i] = middle(t.Candidate) - middle(t.Reference)
	}
	return out
}

// relabelings is the number of ways to deal the takes of each thing to the two sides, up to a bound that is enough.
func (m *matching) relabelings() float64 {
	ways := 1.0
	for _, t := range m.things {
		k, n := len(t.Reference), len(t.Reference)+len(t.Candidate)
		for i := 1; i <= k && ways < 1e6; i++ {
			ways = ways * float64(n-k+i) / float64(i)
		}
	}
	return ways
}

// interval holds the ratio: all ratios by which the candidate could be divided without the permutation test calling the
// sides different, so that interval and P say the same. Beyond mostSearched takes, where it would take long, it is the
// distribution-free interval of a median, the things being the sample: wider, but there are many of them.
func (m *matching) interval() Interval {
	if iv, ok := MedianInterval(sortedCopy(m.ratios()), Confidence); ok && m.takes[0]+m.takes[1] > mostSearched {
		return Interval{Lo: math.Exp(iv.Lo), Hi: math.Exp(iv.Hi), Confidence: iv.Confidence}
	}
	return m.intervalAround(middle(m.ratios()))
}

// intervalAround searches the interval from a log ratio on that is in it.
func (m *matching) intervalAround(center float64) Interval {
	return Interval{Lo: math.Exp(m.accepted(center, -1)), Hi: math.Exp(m.accepted(center, 1)), Confidence: Confidence}
}

// accepted is how far from center, in a direction of -1 or 1, a log ratio is not refused by the permutation test.
func (m *matching) accepted(center, direction float64) float64 {
	rounds := min(m.rounds, searchRounds)
	enough := int((1 - Confidence) * float64(rounds+1)) // relabelings that, with the true labels, lift P above 5 %
	fits := func(shift float64) bool { return m.asFar(shift, rounds, enough) >= enough }
	step := 0.01
	for fits(center+direction*step) && step < 32 { // a factor of e^32 is beyond any two measurements
		step *= 2
	}
	near, far := 0.0, step
	for range 12 {
		if half := (near + far) / 2; fits(center + direction*half) {
			near = half
		} else {
			far = half
		}
	}
	return center + direction*far
}

// asFar is the number of relabelings, of so many drawn, whose mean log ratio is at least as far from 0 as the one that was
// measured, once every candidate is divided by e^shift. It stops at enough.
func (m *matching) asFar(shift float64, rounds, enough int) int {
	r := random(1)
	ratios, single := make([]float64, len(m.things)), true
	for i, t := range m.things {
		ratios[i] = mean(t.Candidate) - mean(t.Reference) - shift
		single = single && len(t.Reference) == 1 && len(t.Candidate) == 1
	}
	measured := slices.Clone(ratios)
	limit := m.holdOf(measured)
	found := math.Abs(heldMean(measured, limit))
	atLeast := 0
	var both []float64
	for range rounds {
		if atLeast >= enough {
			break
		}
		for i, t := range m.things {
			if len(t.Reference) == 1 && len(t.Candidate) == 1 {
				if ratios[i] = measured[i]; r.Uint64()&1 == 0 {
					ratios[i] = -ratios[i]
				}
				continue
			}
			both = append(both[:0], t.Reference...)
			for _, v := range t.Candidate {
				both = append(both, v-shift)
			}
			r.Shuffle(len(both), func(a, b int) { both[a], both[b] = both[b], both[a] })
			k := len(t.Reference)
			ratios[i] = mean(both[k:]) - mean(both[:k])
		}
		if !single { // else all sizes are as they were
			limit = m.holdOf(ratios)
		}
		if math.Abs(heldMean(ratios, limit)) >= found-1e-12 {
			atLeast++
		}
	}
	return atLeast
}

// holdOf is three times the median size of values, or no limit.
func (m *matching) holdOf(values []float64) float64 {
	if m.plain {
		return math.Inf(1)
	}
	sizes := make([]float64, len(values))
	for i, v := range values {
		sizes[i] = math.Abs(v)
	}
	return 3 * middle(sizes)
}

// heldMean is the mean of values, each held to a size of at most limit.
func heldMean(values []float64, limit float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += min(max(v, -limit), limit)
	}
	return sum / float64(len(values))
}

func sortedCopy(values []float64) []float64 {
	out := slices.Clone(values)
	slices.Sort(out)
	return out
}
