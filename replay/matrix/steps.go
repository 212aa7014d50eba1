package matrix

// steps puts the measuring in order. Groups without a cell to run have no step.
func (p *Plan) steps(order string) {
	p.Steps = nil
	if order == OrderEngine {
		for g := range p.Groups {
			p.alone(g)
		}
		return
	}
	for _, set := range p.sets() {
		switch {
		case len(set) == 1:
			p.alone(set[0])
		case order == OrderTogether:
			p.together(set)
		default:
			p.alternate(set)
		}
	}
}

// alone is a step of one group: each cell with all its repeats.
func (p *Plan) alone(g int) {
	s := Step{Groups: []int{g}}
	for c := range p.Groups[g].Cells {
		for r := range p.Groups[g].repeats(c) {
			s.Turns = append(s.Turns, Turn{Group: g, Cell: c, Repeat: r})
		}
	}
	p.add(s)
}

func (p *Plan) add(s Step) {
	if len(s.Turns) > 0 {
		p.Steps = append(p.Steps, s)
	}
}

// repeats is how often a cell is measured: not at all when it is not to run.
func (g *Group) repeats(cell int) int {
	if c := &g.Cells[cell]; c.Do == DoRun {
		return max(c.Repeats, 1)
	}
	return 0
}

// sets are the groups that differ by their engine only, in the order of the first of each.
func (p *Plan) sets() [][]int {
	at := map[Axes]int{}
	var out [][]int
	for g := range p.Groups {
		if p.Groups[g].Runs() == 0 {
			continue
		}
		key := p.Groups[g].Axes
		key.Engine = ""
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], g)
	}
	return out
}

// alternate is a step for each repeat of each group of a set. The order turns round with each repeat, so that what drifts
// is the same for all.
func (p *Plan) alternate(set []int) {
	most := 0
	for _, g := range set {
		for c := range p.Groups[g].Cells {
			most = max(most, p.Groups[g].repeats(c))
		}
	}
	for r := range most {
		for _, g := range turned(set, r) {
			s := Step{Groups: []int{g}}
			for c := range p.Groups[g].Cells {
				if r < p.Groups[g].repeats(c) {
					s.Turns = append(s.Turns, Turn{Group: g, Cell: c, Repeat: r})
				}
			}
			p.add(s)
		}
	}
}

// together is one step in which all groups of a set are up: each cell is measured on all of them before the next.
func (p *Plan) together(set []int) {
	s := Step{Groups: set}
	cells := 0
	for _, g := range set {
		cells = max(cells, len(p.Groups[g].Cells))
	}
	for c := range cells { // the cells of groups that differ by their engine only are the same, in the same order
		for r := 0; ; r++ {
			before := len(s.Turns)
			for _, g := range turned(set, r) {
				if c < len(p.Groups[g].Cells) && r < p.Groups[g].repeats(c) {
					s.Turns = append(s.Turns, Turn{Group: g, Cell: c, Repeat: r})
				}
			}
			if len(s.Turns) == before {
				break
			}
		}
	}
	p.add(s)
}

// turned is a set in its order, or the other way round in every second repeat.
func turned(set []int, repeat int) []int {
	if repeat%2 == 0 {
		return set
	}
	out := make([]int, len(set))
	for i, g := range set {
		out[len(set)-1-i] = g
	}
	return out
}
