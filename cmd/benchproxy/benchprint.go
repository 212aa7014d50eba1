package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/replay/bench"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// event tells what happens.
func (b *benching) event(e bench.Event) {
	if e.Kind == bench.EventCell {
		b.records = append(b.records, e.Record)
	}
	if b.c.Bool("quiet") || b.s.json {
		return
	}
	b.wipe()
	switch e.Kind {
	case bench.EventTurn:
		text := fmt.Sprintf("%*d/%d asking %s", len(strconv.Itoa(e.Total)), e.Ended, e.Total, e.Cell.Name)
		if e.Cell.Repeats > 1 {
			text += fmt.Sprintf(", repeat %d of %d", e.Repeat+1, e.Cell.Repeats)
		}
		b.show(text)
	case bench.EventOpen:
		word := "starting"
		if e.Group.Launch.Transport == matrix.TransportConnect {
			word = "asking"
		}
		note(b.Stderr, "%s %s", word, e.Group.Name)
	case bench.EventUp:
		text := e.Group.Name + " answers"
		if e.Facts.LoadMS != nil {
			text += fmt.Sprintf(" after %.1f s", *e.Facts.LoadMS/1000)
		}
		if e.Facts.ObservedDevice != "" {
			text += ", device " + e.Facts.ObservedDevice
		}
		if e.Facts.CPUFallback {
			text += fmt.Sprintf(", THOUGH %s WAS ASKED FOR", e.Facts.RequestedDevice)
		}
		note(b.Stderr, "%s", printable(text))
	case bench.EventDown:
		if e.Err != nil {
			note(b.Stderr, "%s: %s", e.Group.Name, printable(e.Err.Error()))
		}
	case bench.EventCell:
		note(b.Stderr, "%*d/%d %s", len(strconv.Itoa(e.Total)), e.Ended, e.Total, printable(cellLine(e.Record)))
	}
}

// show draws what is going on behind all that was printed, on a terminal only.
func (b *benching) show(text string) {
	width, tty := b.TTY(b.Stderr)
	if !tty || b.Getenv("TERM") == "dumb" || b.Getenv("CI") != "" {
		return
	}
	fmt.Fprint(b.Stderr, runewidth.Truncate(printable(text), max(width-1, 1), "…"))
	b.shown = true
}

// wipe takes away what was drawn.
func (b *benching) wipe() {
	if b.shown {
		fmt.Fprint(b.Stderr, "\r\x1b[K")
		b.shown = false
	}
}

// cellLine is what a cell came to, in one line.
func cellLine(r *matrix.Record) string {
	switch r.Status {
	case matrix.StatusOK:
		text := fmt.Sprintf("%s ok: ttft %s ms, prefill %s tok/s, decode %s tok/s", r.Cell, decimal(r.TTFTms), decimal(r.PrefillTPS), decimal(r.DecodeTPS))
		if r.Concurrency > 1 {
			text += fmt.Sprintf(", together %s tok/s", decimal(r.AggregateDecodeTPS))
		}
		if r.Turns < r.TurnsExpected {
			text += fmt.Sprintf(", partial %d/%d", r.Turns, r.TurnsExpected)
		}
		return text
	default:
		return fmt.Sprintf("%s %s: %s", r.Cell, r.Status, r.Detail)
	}
}

// benchDoc is the document of --json.
type benchDoc struct {
	Schema  int              `json:"schema"`
	Plan    string           `json:"plan"`
	Results string           `json:"results"`
	Cells   bench.Summary    `json:"cells"`
	Seconds float64          `json:"seconds"`
	Ended   string           `json:"ended,omitempty"` // why the matrix did not come to its end
	Records []*matrix.Record `json:"records"`

	Drafting []bench.Drafting `json:"drafting,omitempty"` // methods of speculative decoding against none
}

// print tells what the sitting came to.
func (b *benching) print(sum bench.Summary, ran error) error {
	took := clock.Since(b.began)
	if b.s.json {
		doc := benchDoc{Schema: 1, Plan: b.plan.Hash, Results: b.results, Cells: sum, Seconds: took.Seconds(), Records: b.records, Drafting: bench.Draftings(bench.Standing(b.results, b.plan, b.records))}
		if doc.Records == nil {
			doc.Records = []*matrix.Record{}
		}
		if ran != nil {
			doc.Ended = ran.Error()
		}
		return json.NewEncoder(b.Stdout).Encode(doc)
	}
	t := table{cols: []column{{head: "CELL"}, {head: "STATUS"}, {head: "TTFT ms", right: true}, {head: "PREFILL tok/s", right: true},
		{head: "DECODE tok/s", right: true}, {head: "SOURCE"}, {head: "TOGETHER tok/s", right: true}, {head: "OK", right: true}}}
	for _, r := range b.records {
		if r.Status == matrix.StatusSkipped {
			continue
		}
		status := string(r.Status)
		if r.Status == matrix.StatusOK && r.Turns < r.TurnsExpected {
			status = fmt.Sprintf("partial %d/%d", r.Turns, r.TurnsExpected)
		}
		t.add(printable(r.Cell), status, decimal(r.TTFTms), decimal(r.PrefillTPS), decimal(r.DecodeTPS), string(r.DecodeSource),
			decimal(r.AggregateDecodeTPS), answered(r))
	}
	if len(t.rows) > 0 {
		t.print(b.Stdout)
	}
	b.tellWhy(matrix.StatusFail, "failed")
	b.tellWhy(matrix.StatusUnsupported, "unsupported")
	b.tellWhy(matrix.StatusSkipped, "skipped")
	for _, d := range bench.Draftings(bench.Standing(b.results, b.plan, b.records)) {
		fmt.Fprintln(b.Stdout, printable(draftLine(d)))
	}
	lacking := ""
	if sum.Unsupported > 0 {
		lacking = fmt.Sprintf(" unsupported=%d", sum.Unsupported)
	}
	fmt.Fprintf(b.Stdout, "ok=%d/%d failed=%d skipped=%d kept=%d%s in %s, results in %s\n", sum.OK+sum.Kept, sum.Planned, sum.Failed, sum.Skipped, sum.Kept, lacking,
		took.Round(time.Millisecond), b.results)
	return nil
}

// answered is how many of the requests that ran together were answered; of what the engine lacks none was to be.
func answered(r *matrix.Record) string {
	if r.Status == matrix.StatusUnsupported {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.RequestsOK, r.Concurrency)
}

// needing says how many cells need something.
func needing(cells int) string {
	if cells == 1 {
		return "1 cell needs"
	}
	return fmt.Sprintf("%d cells need", cells)
}

// mostNamed is how many cells of one reason are named.
const mostNamed = 4

// tellWhy tells the reasons of cells that have no numbers, each once with the cells that it holds for.
func (b *benching) tellWhy(status matrix.Status, word string) {
	var order []string
	cells := map[string][]string{}
	for _, r := range b.records {
		if r.Status != status {
			continue
		}
		if cells[r.Detail] == nil {
			order = append(order, r.Detail)
		}
		cells[r.Detail] = append(cells[r.Detail], r.Cell)
	}
	for _, why := range order {
		names := cells[why]
		text := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(b.Stdout, "%s %s: %s\n", word, printable(text), printable(why))
	}
}

// draftLine is which method of speculative decoding is worth it.
func draftLine(d bench.Drafting) string {
	var text string
	switch {
	case d.Ratio == nil:
		text = "drafts: nothing to hold against " + d.Baseline
	case d.Winner == d.Baseline:
		text = fmt.Sprintf("drafts: none is %.0f %% faster than %s, the fastest is at %.2f", bench.DraftMargin*100, d.Baseline, *d.Ratio)
	default:
		text = fmt.Sprintf("drafts: %s wins, %.2f of %s", d.Winner, *d.Ratio, d.Baseline)
	}
	if len(d.Failed) > 0 {
		text += "; failed: " + strings.Join(d.Failed, ", ")
	}
	if len(d.Silent) > 0 {
		text += "; without drafts: " + strings.Join(d.Silent, ", ")
	}
	return text
}
