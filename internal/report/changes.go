package report

import "math"

// Change is one number that two reports have.
type Change struct {
	Section, Row, Column string
	SectionID            string
	Was, Is              float64
	Moved                bool // the spreads of both lie apart and the difference is at least leastChange
	Large                bool // the difference is at least leastChange
	Unknown              bool // a side has no spread
	Better, Worse        bool // where the column says which way is good, and it moved
}

// leastChange is the relative difference below which a number has not moved.
const leastChange = 0.02

// leastSamples is the number of samples from which on a range of samples stands for their spread.
const leastSamples = 6

// Compare sets the numbers of two reports that stand under one name beside each other, in the order of now: those of which one
// direction is good, and those with a spread.
func Compare(now, then *Document) []Change {
	older := map[string]Named{}
	for _, n := range then.numbers() {
		older[n.Name] = n
	}
	var out []Change
	for _, n := range now.numbers() {
		if o, ok := older[n.Name]; ok && (n.column.Better != "" || n.cell.spread != nil) {
			out = append(out, changed(n, o))
		}
	}
	return out
}

func changed(n, o Named) Change {
	c := Change{Section: n.where[0], Row: n.where[1], Column: n.where[2], SectionID: n.section, Was: o.Value, Is: n.Value}
	c.Large = math.Abs(n.Value-o.Value) >= leastChange*math.Max(math.Abs(o.Value), math.Abs(n.Value)) && n.Value != o.Value
	c.Unknown = !n.told() || !o.told()
	c.Moved = c.Large && !c.Unknown && (n.Lo > o.Hi || n.Hi < o.Lo)
	if c.Moved && n.column.Better != "" {
		c.Better = (n.Value > o.Value) == (n.column.Better == Higher)
		c.Worse = !c.Better
	}
	return c
}

// told reports whether the number has a spread that says how sure it is.
func (n *Named) told() bool {
	s, ok := n.cell.Spreads()
	return ok && (s.Kind == SpreadInterval || s.N >= leastSamples)
}

// Missing is how many numbers stand in one of two reports alone.
func Missing(now, then *Document) (gone, added int) {
	names := map[string]int{}
	for _, n := range then.numbers() {
		names[n.Name] |= 1
	}
	for _, n := range now.numbers() {
		names[n.Name] |= 2
	}
	for _, in := range names {
		switch in {
		case 1:
			gone++
		case 2:
			added++
		}
	}
	return gone, added
}
