package build

import "slices"

// set is distinct values as they came.
type set[K comparable] struct {
	order []K
	has   map[K]bool
}

func (s *set[K]) add(v K) {
	if s.has[v] {
		return
	}
	if s.has == nil {
		s.has = map[K]bool{}
	}
	s.has[v] = true
	s.order = append(s.order, v)
}

// place is where cells of several points meet: a configuration, a model and a scenario.
type place struct {
	col             column
	model, scenario string
}

func (c *Cell) place() place { return place{c.column(), c.Model, c.Scenario} }

// deviceKey is a configuration of one model or, for "", of all.
type deviceKey struct {
	col   column
	model string
}

// deviceNote is what is to be told of the devices of a configuration.
type deviceNote struct{ fallback, unknown bool }

// gridIndex finds cells, so that a report of many takes a time that grows as they do.
type gridIndex struct {
	sources, engines, models set[string]
	scenarios                map[string]*set[string] // by model
	columns                  map[string]*set[column] // by model: those with baseline cells
	compared                 map[string]*set[column] // by model: those with baseline cells or waves
	levels                   map[string][]int        // by model: how many requests ran together, in order
	at                       map[place][]*Cell
	devices                  map[deviceKey]deviceNote
	replaced                 int // cells that another of the same point in the same source took the place of
}

func indexOf(cells []Cell) gridIndex {
	x := gridIndex{levels: map[string][]int{}, compared: map[string]*set[column]{}, scenarios: map[string]*set[string]{}, columns: map[string]*set[column]{}, at: map[place][]*Cell{}, devices: map[deviceKey]deviceNote{}}
	type point struct {
		place
		Method                                          string
		MTP                                             bool
		Depth, CPUMoELayers, CPUMoEThreads, Concurrency int
	}
	points := map[point]bool{}
	for i := range cells {
		c := &cells[i]
		x.sources.add(c.Source)
		x.engines.add(c.Engine)
		x.models.add(c.Model)
		if x.scenarios[c.Model] == nil {
			x.scenarios[c.Model], x.columns[c.Model], x.compared[c.Model] = &set[string]{}, &set[column]{}, &set[column]{}
		}
		x.scenarios[c.Model].add(c.Scenario)
		if c.baseline() {
			x.columns[c.Model].add(c.column())
		}
		if c.baseline() || c.wave() {
			x.compared[c.Model].add(c.column())
		}
		if at, there := slices.BinarySearch(x.levels[c.Model], c.Concurrency); c.wave() && !there {
			x.levels[c.Model] = slices.Insert(x.levels[c.Model], at, c.Concurrency)
		}
		x.at[c.place()] = append(x.at[c.place()], c)
		p := point{c.place(), c.Method, c.MTP, c.Depth, c.CPUMoELayers, c.CPUMoEThreads, c.Concurrency}
		if points[p] {
			x.replaced++
		}
		points[p] = true
		for _, model := range []string{c.Model, ""} {
			key := deviceKey{c.column(), model}
			note := x.devices[key]
			if c.Status == StatusOK {
				note.fallback = note.fallback || c.fallback()
				note.unknown = note.unknown || c.ObservedDevice == ""
			}
			x.devices[key] = note
		}
	}
	return x
}
