package matrix

// PlanVersion is the schema version of plans.
const PlanVersion = 1

// PlanScheme is the prefix of every plan hash: the version of the rules that make it.
const PlanScheme = "m1:"

// DefinitionScheme is the prefix of every cell definition.
const DefinitionScheme = "c1:"

// Plan is everything that a benchmark measures, in order. It holds no state: a runner carries it out step by step.
type Plan struct {
	Schema int     `json:"schema"`
	Hash   string  `json:"hash"` // over what is measured and in which order, not over paths, ports or what is kept
	Groups []Group `json:"groups"`
	Steps  []Step  `json:"steps"`
}

// Step is a part of the plan for which a set of servers is up: they are started before it and stopped behind it.
type Step struct {
	Groups []int  `json:"groups"` // indices in Plan.Groups; several only where the config says that they fit together
	Turns  []Turn `json:"turns"`  // in order; the warm-up of a group comes before its first one
}

// Turn is one measuring of one cell.
type Turn struct {
	Group  int `json:"group"`
	Cell   int `json:"cell"`   // index in the group's Cells
	Repeat int `json:"repeat"` // from 0
}

// Counts are the cells of a plan by what becomes of them.
type Counts struct {
	Cells int `json:"cells"`
	Run   int `json:"run"`
	Skip  int `json:"skip"`
	Keep  int `json:"keep"`
	Leave int `json:"leave"`
}

// Counts counts the cells.
func (p *Plan) Counts() Counts {
	var n Counts
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			n.Cells++
			switch p.Groups[i].Cells[j].Do {
			case DoRun:
				n.Run++
			case DoSkip:
				n.Skip++
			case DoKeep:
				n.Keep++
			case DoLeave:
				n.Leave++
			}
		}
	}
	return n
}
