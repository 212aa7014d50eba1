package compare

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// circle are the takes of a pair that were made under the same circumstances as far as a metric depends on them.
type circle struct {
	first  *Entry // of the reference; the others are held against it
	values stat.Matched
}

// samples are what a pair gives to a metric. Its takes are set against each other only where their circumstances are the
// same: a cold prompt against cold ones and a warm one against warm ones, so that a run that repeats its requests is not
// faster for that alone. left counts the takes that give nothing, by the reason. Without samples, why is what forbids the
// pair, else what keeps the takes of a side out.
func (j *judge) samples(p *pair, m metric) (samples []stat.Matched, left map[exchange.Reason]int, why exchange.Reason) {
	var circles []circle
	left = map[exchange.Reason]int{}
	var out [2]exchange.Reason
	for _, e := range p.reference {
		v, not := j.take(0, e, m)
		if not != "" {
			left[not]++
			out[0] = not
			continue
		}
		i := slices.IndexFunc(circles, func(c circle) bool { return j.apart(c.first, e, m) == "" })
		if i < 0 {
			i = len(circles)
			circles = append(circles, circle{first: e})
		}
		circles[i].values.Reference = append(circles[i].values.Reference, v)
	}
	for _, e := range p.candidate {
		v, not := j.take(1, e, m)
		if not == "" {
			i := slices.IndexFunc(circles, func(c circle) bool {
				not = j.apart(c.first, e, m)
				return not == ""
			})
			if i >= 0 {
				circles[i].values.Candidate = append(circles[i].values.Candidate, v)
				continue
			}
		}
		if not != "" {
			left[not]++
			out[1] = not
		}
	}
	for _, c := range circles {
		if len(c.values.Candidate) > 0 {
			samples = append(samples, c.values)
		}
	}
	if len(samples) == 0 {
		return nil, left, j.without(p, m, out)
	}
	j.alone(circles, left)
	return samples, left, ""
}

// alone counts the takes of the reference that found no take of the candidate in their circumstances.
func (j *judge) alone(circles []circle, left map[exchange.Reason]int) {
	for _, c := range circles {
		if len(c.values.Candidate) == 0 {
			left[ReasonCircumstances] += len(c.values.Reference)
		}
	}
}

// without is why a pair gives nothing; out is what kept the last take of each side out.
func (j *judge) without(p *pair, m metric, out [2]exchange.Reason) exchange.Reason {
	if a, b := p.both(); a.complete() && b.complete() {
		if why := j.apart(a, b, m); why != "" {
			return why
		}
	}
	if out[0] != "" {
		return out[0]
	}
	return out[1]
}
