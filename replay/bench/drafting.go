package bench

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// DraftMargin is the share by which a method of speculative decoding must be faster than none to win.
const DraftMargin = 0.03

// noMethod is the method that drafts nothing.
const noMethod = "none"

// Drafting is what the methods of speculative decoding came to on the same requests.
type Drafting struct {
	Baseline string   `json:"baseline"`         // the cell without drafts
	Winner   string   `json:"winner"`           // cell of the fastest method, or the baseline where none is faster by DraftMargin
	Ratio    *float64 `json:"ratio"`            // decode rate of the fastest method over that of none; null when no method has a rate
	Failed   []string `json:"failed,omitempty"` // cells of methods that were rejected, or had no answer
	Silent   []string `json:"silent,omitempty"` // cells of methods of which no draft is known: they are not compared
}

// Standing are the records that stand for the cells of a plan, in its order: those of this sitting, and of the cells that it
// left out the results that are of the same definition.
func Standing(dir string, p *matrix.Plan, sitting []*matrix.Record) (out []*matrix.Record) {
	made := map[string]*matrix.Record{}
	for _, r := range sitting {
		made[r.Cell] = r
	}
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			c := &p.Groups[i].Cells[j]
			r := made[c.Name]
			if r == nil && (c.Do == matrix.DoKeep || c.Do == matrix.DoLeave) {
				if kept, err := matrix.ReadRecord(filepath.Join(dir, c.File())); err == nil && kept.Definition == c.Definition {
					r = &kept
				}
			}
			if r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// Draftings sets the methods of speculative decoding against none, one entry for each set of cells that differ in nothing
// else, in the order of the records. Cells that were skipped, or that need what the engine lacks, have no part; without a baseline that has a rate nothing wins.
func Draftings(records []*matrix.Record) (out []Drafting) {
	of := func(r *matrix.Record) string {
		return fmt.Sprintf("%q %q %q %q %d %d %d %d %q %v %v", r.Engine, r.Backend, r.Model, r.Scenario, r.Concurrency, r.TP, r.CPUMoELayers, r.CPUMoEThreads, r.Device, r.MTP, r.Thinking)
	}
	var order []string
	sets := map[string][]*matrix.Record{}
	for _, r := range records {
		if r.Method == "" || r.Status == matrix.StatusSkipped || r.Status == matrix.StatusUnsupported {
			continue
		}
		key := of(r)
		if sets[key] == nil {
			order = append(order, key)
		}
		sets[key] = append(sets[key], r)
	}
	for _, key := range order {
		if d, ok := drafting(sets[key]); ok {
			out = append(out, d)
		}
	}
	return out
}

// drafting judges one set. It is none without a baseline, or without a method beside it.
func drafting(set []*matrix.Record) (d Drafting, ok bool) {
	i := slices.IndexFunc(set, func(r *matrix.Record) bool { return r.Method == noMethod })
	if i < 0 || len(set) < 2 {
		return d, false
	}
	none := set[i]
	d.Baseline, d.Winner = none.Cell, none.Cell
	fastest := ""
	for _, r := range set {
		switch {
		case r.Method == noMethod:
		case r.Status != matrix.StatusOK:
			d.Failed = append(d.Failed, r.Cell)
		case slices.Contains(r.Flags, FlagNotSpeculating):
			d.Silent = append(d.Silent, r.Cell)
		case none.Status == matrix.StatusOK && sameFormula(r, none):
			if ratio := togetherTPS(r) / togetherTPS(none); d.Ratio == nil || ratio > *d.Ratio {
				d.Ratio, fastest = &ratio, r.Cell
			}
		}
	}
	if d.Ratio != nil && *d.Ratio >= 1+DraftMargin {
		d.Winner = fastest
	}
	return d, true
}

// sameFormula reports whether the rates of two cells are there and of one formula.
func sameFormula(a, b *matrix.Record) bool {
	return togetherTPS(a) > 0 && togetherTPS(b) > 0 && a.DecodeSource == b.DecodeSource
}

// togetherTPS is the rate of all requests of a cell, as it was before it was rounded; 0 where there is none, or where it
// is that of short answers.
func togetherTPS(r *matrix.Record) float64 {
	switch v := r.Exact(measure.AggregateDecodeTPS); {
	case r.AggregateDecodeTPS == nil || slices.Contains(r.Flags, measure.FlagShortAnswer):
		return 0
	case v != nil:
		return *v
	}
	return *r.AggregateDecodeTPS
}
