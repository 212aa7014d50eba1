package main

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// side is what one kind of stamps came to. Times are in microseconds.
type side struct {
	Name    string                      `json:"stamps"`
	Answers int                         `json:"answers"`
	Clocks  map[exchange.StampClock]int `json:"clocks"` // answers by what stamped them
	Events  int                         `json:"events"`
	Merged  int                         `json:"merged"`       // events in one read with a later one
	Early   int                         `json:"early"`        // stamps before the write
	Unsort  int                         `json:"out_of_order"` // reads stamped before the one ahead of them
	P50     float64                     `json:"p50_us"`
	P99     float64                     `json:"p99_us"`
	Max     float64                     `json:"max_us"`
	Least   float64                     `json:"min_us"`

	errors []float64
}

// add holds one answer against the engine's account of it.
func (s *side) add(x *exchange.Exchange, truth sim.Record) {
	s.Answers++
	s.Clocks[x.Timeline.Clock]++
	reads := x.Timeline.Reads
	for i := 1; i < len(reads); i++ {
		if reads[i].At < reads[i-1].At {
			s.Unsort++
		}
	}
	wall := x.Timeline.Wall.UnixNano()
	read, got := -1, 0
	for i, w := range truth.Writes {
		for got < w.Body {
			read++
			got += reads[read].Size
		}
		if !w.Token {
			continue
		}
		s.Events++
		if i+1 < len(truth.Writes) {
			if next := truth.Writes[i+1].Body; w.Body < next && next <= got { // what the engine wrote next came with it
				s.Merged++
				continue
			}
		}
		late := wall + reads[read].At - w.Wall
		if late < 0 {
			s.Early++
		}
		s.errors = append(s.errors, float64(late)/1e3)
	}
}

// derive makes the figures of the samples.
func (s *side) derive() {
	if len(s.errors) == 0 {
		return
	}
	slices.Sort(s.errors)
	s.Least, s.P50 = s.errors[0], stat.Quantile(s.errors, 0.5)
	s.P99, s.Max = stat.Quantile(s.errors, 0.99), s.errors[len(s.errors)-1]
}

// mergedShare is the part of the events that share their read with a later one.
func (s *side) mergedShare() float64 { return float64(s.Merged) / float64(max(s.Events, 1)) }
