package main

import (
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// toyFlag is what --toy takes: a language model of a few words, and where its numerics differ from those of another one.
type toyFlag struct {
	Seed   uint64 `json:"seed"`   // of the model; toys of one seed are the same model
	Drafts bool   `json:"drafts"` // it drafts, unless a request says draft:false
	Limit  int    `json:"limit"`  // tokens of a prompt; 0 = any number
	Delay  int    `json:"delay_ms"`
	Nudges []struct {
		At   int                      `json:"at"`   // place, in tokens of prompt and answer
		Gaps map[sim.Numerics]float64 `json:"gaps"` // nats by which the first choice is preferred, by the way of computing
	} `json:"nudges"`
}

// toyOf is the engine that --toy asks for.
func toyOf(text string) (sim.Handler, error) {
	var f toyFlag
	if err := strict.Decode([]byte(text), &f, ""); err != nil {
		return nil, usagef("--toy %s: %v", text, err)
	}
	o := sim.ToyOptions{Seed: f.Seed, Drafts: f.Drafts, Limit: f.Limit}
	known := []sim.Numerics{sim.NumericsDrafted, sim.NumericsRace, sim.NumericsTogether, sim.NumericsWarm, sim.NumericsMicro, sim.NumericsBatch, sim.NumericsDecode, sim.NumericsAny}
	for _, n := range f.Nudges {
		for name := range n.Gaps {
			if !slices.Contains(known, name) {
				return nil, usagef("--toy: there is no way of computing %q; there is %v", name, known)
			}
		}
		o.Nudges = append(o.Nudges, sim.Nudge{At: n.At, Gaps: n.Gaps})
	}
	toy := sim.NewToy(o).Handler()
	return func(r sim.Request) *sim.Script {
		s := toy(r)
		for i := range s.Steps {
			s.Steps[i].At = time.Duration(f.Delay) * time.Millisecond
		}
		return s
	}, nil
}
