package wire

import (
	"bytes"
	"slices"
)

// The events of a stream are much alike: most differ from the one before in the text they add, and some in a time or a
// running number as well. Such an event is not taken apart. It is held against the last one that was: where all but
// these values is the same bytes, its values go where those of that event went. What can be said of the whole event then
// was said of that one: each dialect names, through again, the events that add one text and do nothing else that is not
// done already. A test reads every body both ways.

const (
	maxAlike  = 4 << 10 // bytes of an event that is kept to compare with
	maxGaps   = 3       // values in which events that are alike can differ
	maxUnlike = 8       // events in a row that are not alike, before no more are kept
)

// pattern is the last event that was taken apart, cut where the next one may differ; without gaps there is none.
type pattern struct {
	name, data []byte
	gaps       []gap // in the order of data
	unlike     int   // patterns in a row that the next event did not have
}

// gap is a place in the data of a pattern where another value may stand.
type gap struct {
	from, to int
	number   bool              // digits, which mean nothing; else the inside of a string
	take     func(text []byte) // nil for a number
}

// forget drops the pattern, which the present event does not have.
func (p *pattern) forget() {
	if len(p.gaps) > 0 {
		p.unlike++
		p.gaps = p.gaps[:0]
	}
}

// keep makes a pattern of an event that was just taken apart, if what it did can be done again.
func (p *pattern) keep(data []byte, a *answer) {
	e := &a.event
	plain := e.again != nil && e.pieces == 1 && e.kinds == e.piece.kind && e.phase == PhaseNone && !e.counted && !e.hasUsage && !e.unknown
	if !plain || p.unlike >= maxUnlike || len(data) > maxAlike || bytes.IndexByte(data, '\\') >= 0 {
		return
	}
	gaps := p.gaps[:0]
	ok := true
	add := func(value []byte, take func([]byte)) {
		from := onlyString(data, value)
		gaps = append(gaps, gap{from: from, to: from + len(value), take: take})
		ok = ok && from >= 0
	}
	add(e.piece.text, e.again)
	if e.moment != 0 {
		add(e.stamp, a.stampMoment)
	}
	if from, to := runningNumber(data); to > from {
		gaps = append(gaps, gap{from: from, to: to, number: true})
	}
	if !ok {
		return
	}
	slices.SortFunc(gaps, func(x, y gap) int { return x.from - y.from })
	p.gaps = gaps
	p.name, p.data = append(p.name[:0], e.name...), append(p.data[:0], data...)
}

// onlyString is where the one string of data that is the text begins, or -1. Without escapes in data every string stands
// there as it is, so a single match is the string itself.
func onlyString(data, text []byte) int {
	found := -1
	for from := 1; ; {
		i := bytes.Index(data[from:], text)
		if i < 0 {
			return found
		}
		at := from + i
		from = at + 1
		if end := at + len(text); data[at-1] == '"' && end < len(data) && data[end] == '"' {
			if found >= 0 {
				return -1
			}
			found = at
		}
	}
}

var runningNumberKey = []byte(`"sequence_number":`) // of Responses

// runningNumber is where the number stands that counts the events, from = to when there is none.
func runningNumber(data []byte) (from, to int) {
	i := bytes.Index(data, runningNumberKey)
	if i < 0 || bytes.Contains(data[i+1:], runningNumberKey) {
		return 0, 0
	}
	from = i + len(runningNumberKey)
	return from, from + digits(data[from:])
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

// span is a range of an event.
type span struct{ from, to int }

// fits cuts an event as the pattern is cut; ok is false when it does not have it.
func (p *pattern) fits(name, data []byte) (values [maxGaps]span, ok bool) {
	if len(p.gaps) == 0 || !bytes.Equal(name, p.name) {
		return values, false
	}
	at, done := 0, 0 // in data, in p.data
	for i := range p.gaps {
		g := &p.gaps[i]
		same := p.data[done:g.from]
		if !bytes.HasPrefix(data[at:], same) {
			return values, false
		}
		at += len(same)
		n := g.length(data[at:])
		if n == 0 {
			return values, false
		}
		values[i] = span{at, at + n}
		at, done = at+n, g.to
	}
	return values, bytes.Equal(data[at:], p.data[done:])
}

// length is how long the value is that b begins with: digits, or what comes before the quote that ends a string.
func (g *gap) length(b []byte) int {
	if g.number {
		return digits(b)
	}
	n := bytes.IndexByte(b, '"')
	if n > 0 && b[n-1] == '\\' {
		return skipString(b, -1) - 1
	}
	return max(n, 0)
}

// readAlike reads an event that is like the last one that was taken apart, and reports whether it is.
func (p *Parser) readAlike(name, data []byte) bool {
	if p.answer.quiet || len(data) > maxUnchecked {
		return false
	}
	values, ok := p.last.fits(name, data)
	if !ok {
		return false
	}
	for i := range p.last.gaps {
		take, v := p.last.gaps[i].take, values[i]
		if take == nil {
			continue
		}
		b := data[v.from:v.to]
		if bytes.IndexByte(b, '\\') >= 0 {
			s, err := p.json.ParseBytes(data[v.from-1 : v.to+1]) // with its quotes, it is a value
			if err != nil {
				return false
			}
			b = text(s)
		}
		take(b)
	}
	p.last.unlike = 0
	return true
}
