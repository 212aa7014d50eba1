package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lines are a plan as rows of text for people: a title row, and one for each cell in the order of the groups. Columns that
// say the same of every cell of the plan (no drafts, one device) are left out.
func (p *Plan) Lines() [][]string { return p.lines(func(*Cell) bool { return true }) }

// Planned are the lines of the cells that are not skipped.
func (p *Plan) Planned() [][]string { return p.lines(func(c *Cell) bool { return c.Do != DoSkip }) }

// Skips are the skipped cells as rows of text, a title row before them: those of one reason for one engine, backend and
// model in one row, with their number and scenarios.
func (p *Plan) Skips() [][]string {
	type key struct{ engine, backend, model, why string }
	var order []key
	counts, scenarios := map[key]int{}, map[key][]string{}
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			c := &p.Groups[i].Cells[j]
			if c.Do != DoSkip {
				continue
			}
			k := key{c.Engine, c.Backend, c.Model, c.Skip.Reason}
			if counts[k]++; counts[k] == 1 {
				order = append(order, k)
			}
			if !slices.Contains(scenarios[k], c.Scenario) {
				scenarios[k] = append(scenarios[k], c.Scenario)
			}
		}
	}
	out := [][]string{{"SKIP", "ENGINE", "BACKEND", "MODEL", "SCENARIOS", "WHY"}}
	for _, k := range order {
		out = append(out, []string{strconv.Itoa(counts[k]), k.engine, k.backend, k.model, some(scenarios[k]), k.why})
	}
	return out
}

// some names the first of a list and how many there are behind.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most-1], ", "), len(list)-most+1)
}

func (p *Plan) lines(shown func(*Cell) bool) [][]string {
	columns := tableColumns()
	used := make([]bool, len(columns))
	var rows [][]string
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			if !shown(&p.Groups[i].Cells[j]) {
				continue
			}
			row := make([]string, len(columns))
			for k, c := range columns {
				row[k] = c.text(&p.Groups[i].Cells[j])
				used[k] = used[k] || c.always || row[k] != c.plain
			}
			rows = append(rows, row)
		}
	}
	head := make([]string, len(columns))
	for k, c := range columns {
		head[k] = c.head
	}
	out := [][]string{pick(head, used)}
	for _, row := range rows {
		out = append(out, pick(row, used))
	}
	return out
}

func pick(row []string, used []bool) []string {
	var out []string
	for i, text := range row {
		if used[i] {
			out = append(out, text)
		}
	}
	return out
}

// tableColumn is one column of the table of a plan.
type tableColumn struct {
	head   string
	plain  string // what stands in it for the baseline
	always bool
	text   func(*Cell) string
}

func tableColumns() []tableColumn {
	onOff := map[bool]string{true: "on", false: "off"}
	return []tableColumn{
		{"DO", "", true, func(c *Cell) string { return string(c.Do) }},
		{"ENGINE", "", true, func(c *Cell) string { return c.Engine }},
		{"BACKEND", "", true, func(c *Cell) string { return c.Backend }},
		{"MODEL", "", true, func(c *Cell) string { return c.Model }},
		{"SCENARIO", "", true, func(c *Cell) string { return c.Scenario }},
		{"MTP", "off", false, func(c *Cell) string { return onOff[c.MTP] }},
		{"TP", "1", false, func(c *Cell) string { return strconv.Itoa(c.TP) }},
		{"CPU MOE", "off", false, offloadText},
		{"DRAFTS", "", false, draftText},
		{"DEVICE", "", false, func(c *Cell) string { return c.Device }},
		{"THINKING", "off", false, func(c *Cell) string { return onOff[c.Thinking] }},
		{"CONC", "", true, func(c *Cell) string { return strconv.Itoa(c.Concurrency) }},
		{"TOKENS", "", true, func(c *Cell) string { return strconv.Itoa(c.MaxTokens) }},
		{"REPEATS", "1", false, func(c *Cell) string { return strconv.Itoa(c.Repeats) }},
		{"WHY", "", false, func(c *Cell) string {
			if c.Skip != nil {
				return c.Skip.Reason
			}
			return c.Reason
		}},
	}
}

func offloadText(c *Cell) string {
	switch {
	case c.CPUMoELayers == 0:
		return "off"
	case c.CPUMoEThreads > 0:
		return layersWord(c.CPUMoELayers) + ", " + plural(c.CPUMoEThreads, "thread")
	}
	return layersWord(c.CPUMoELayers)
}

func draftText(c *Cell) string {
	if c.Depth > 0 {
		return c.Method + " of " + strconv.Itoa(c.Depth)
	}
	return c.Method
}

// Summary is one line on what a plan comes to.
func (p *Plan) Summary() string {
	n, turns := p.Counts(), 0
	for _, s := range p.Steps {
		turns += len(s.Turns)
	}
	text := fmt.Sprintf("plan %s: %s, %d to run in %s (%s), %d skipped", p.Hash[:len(PlanScheme)+12], plural(n.Cells, "cell"), n.Run,
		plural(starts(p), "start"), plural(turns, "timed request set"), n.Skip)
	if n.Keep > 0 {
		text += fmt.Sprintf(", %d kept", n.Keep)
	}
	if n.Leave > 0 {
		text += fmt.Sprintf(", %d left as they are", n.Leave)
	}
	return text
}

// starts is the number of times that a server is brought up, or connected to.
func starts(p *Plan) int {
	n := 0
	for _, s := range p.Steps {
		n += len(s.Groups)
	}
	return n
}
