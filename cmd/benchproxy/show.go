package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// excerpt bounds the texts that a terminal shows; --json has them whole.
const excerpt = 600

// printDetail shows one exchange to a person.
func printDetail(w io.Writer, d exchange.Detail) {
	fmt.Fprintf(w, "%s %s  ->  %s\n", d.Method, printable(d.Path), verdict(d.Summary))
	facts := [][2]string{
		{"id", string(d.ID)}, {"run", fmt.Sprintf("%s, number %d", d.Run, d.Seq)}, {"started", d.Started.Local().Format("2006-01-02 15:04:05.000")},
		{"key", d.Key}, {"sent key", d.SentKey}, {"digest", d.Digest}, {"model", d.Model}, {"engine", d.Engine}, {"answer", printable(d.Response.Line)},
		{"end", string(d.End)}, {"cause", causeText(d.Cause)}, {"finish", text(d.FinishReason)}, {"record", recordText(d)},
		{"repeats", originText(d.Origin)}, {"item", itemText(d.Item)},
	}
	for _, f := range facts {
		if f[1] != "" {
			fmt.Fprintf(w, "  %-9s %s\n", f[0], printable(f[1]))
		}
	}
	if d.Error != nil {
		fmt.Fprintf(w, "  %-9s %s (%s, %s)\n", "error", printable(d.Error.Message), printable(d.Error.Type), d.Error.Where)
	}
	printTexts(w, d)
	fmt.Fprintln(w)
	printMetrics(w, d)
	printTimeline(w, d)
	if d.Instrument != nil {
		fmt.Fprintln(w, instrumentText(d.Instrument))
	}
	for _, i := range d.Interventions {
		fmt.Fprintf(w, "changed   %s to the %s: %s%s (%s)\n", i.Kind, i.Where, printable(i.Name), changeText(i)+placeText(i), i.Reason)
	}
}

// changeText is what an intervention put in the place of what.
func changeText(i exchange.Intervention) string {
	switch {
	case i.From == "" && i.To == "":
		return ""
	case i.To == "":
		return " " + shorten(i.From)
	case i.From == "":
		return " " + shorten(i.To)
	}
	return " " + shorten(i.From) + " -> " + shorten(i.To)
}

// placeText is where in the body a change is.
func placeText(i exchange.Intervention) string {
	switch {
	case i.Length > 0:
		return fmt.Sprintf(" at bytes %d to %d", i.Offset, i.Offset+i.Length-1)
	case i.Kind == exchange.KindBodyChanged:
		return fmt.Sprintf(" at byte %d", i.Offset)
	}
	return ""
}

func causeText(c *exchange.Cause) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s [%s]", c.Code, c.Text, c.Side)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func recordText(d exchange.Detail) string {
	s := fmt.Sprintf("%s; request %s, response %s in %d reads", d.State, bytesText(d.RequestBytes), bytesText(d.ResponseBytes), len(d.Timeline.Reads))
	if d.Timeline.Clock != "" {
		s += " stamped by the " + string(d.Timeline.Clock) + " clock"
	}
	return s
}

func printTexts(w io.Writer, d exchange.Detail) {
	for _, part := range [][2]string{{"reasoning", d.ReasoningText}, {"refusal", d.RefusalText}, {"output", d.OutputText}} {
		if part[1] != "" {
			fmt.Fprintf(w, "  %-9s %s\n", part[0], shorten(part[1]))
		}
	}
	for _, c := range d.Calls {
		fmt.Fprintf(w, "  %-9s %s(%s)\n", "call", printable(c.Name), shorten(c.Arguments))
	}
}

// shorten is the start of a text on one line.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > excerpt {
		s = string(r[:excerpt]) + "…"
	}
	return printable(s)
}

// printMetrics lists every metric: its value and basis, or why there is none. Where the path speaks no language we read,
// most are absent for that one reason, which is then said once.
func printMetrics(w io.Writer, d exchange.Detail) {
	figures := d.Metrics
	t := table{cols: []column{{head: "METRIC"}, {head: "VALUE", right: true}, {head: "UNIT"}, {head: "BASIS, OR WHY ABSENT"}}}
	for _, m := range measure.Metrics() {
		f, ok := figures[m.Name]
		if !ok || d.Dialect == "" && !f.Present() {
			continue
		}
		why := string(f.Basis)
		if !f.Present() {
			why = string(f.Reason)
		}
		places := digits(m.Unit)
		if places == 0 && f.Value != math.Trunc(f.Value) { // a mean of whole things is none itself
			places = 1
		}
		t.add(m.Name, figure(f, places), m.Unit, why)
	}
	t.print(w)
	if d.Dialect == "" {
		fmt.Fprintln(w, "the path speaks no language we read: there are no figures of tokens")
	}
	fmt.Fprintln(w)
}

// digits is the precision at which a unit is worth printing.
func digits(unit string) int {
	switch unit {
	case "tokens", "chars", "events", "reads":
		return 0
	case "ratio":
		return 3
	}
	return 1
}

// timelineWidth is the number of columns of the timeline's bars.
const timelineWidth = 60

// printTimeline draws where the time went: a bar for each phase, and the arrival of body bytes below them.
func printTimeline(w io.Writer, d exchange.Detail) {
	t := d.Timeline
	sent, ok := t.SendStart.NS()
	end, ended := t.BodyEnd.NS()
	if !ok || !ended || end <= sent {
		return
	}
	span := end - sent
	at := func(ns int64) int { return int(min(max((ns-sent)*timelineWidth/span, 0), timelineWidth-1)) }
	bar := func(name string, from, to exchange.Mark) {
		a, okA := from.NS()
		b, okB := to.NS()
		if !okA || !okB {
			return
		}
		i, j := at(a), max(at(b), at(a)+1) // b can be before a: an answer may be here before the call that sent the request returns
		fmt.Fprintf(w, "%-9s %s%s%s %9.1f ms\n", name, strings.Repeat(" ", i), strings.Repeat("━", j-i),
			strings.Repeat(" ", max(timelineWidth-j, 0)), float64(max(b-a, 0))/1e6)
	}
	bar("send", t.SendStart, t.SendDone)
	bar("head", t.SendDone, t.HeaderRead)
	bar("wait", t.HeaderRead, t.FirstRead)
	bar("body", t.FirstRead, t.BodyEnd)
	fmt.Fprintf(w, "%-9s %s\n\n", "bytes", arrivals(t.Reads, sent, span))
}

// arrivals draws how many body bytes came in each column's share of the time.
func arrivals(reads [][3]int64, sent, span int64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var sums [timelineWidth]int64
	var most int64
	for _, r := range reads {
		i := min(max((r[0]-sent)*timelineWidth/span, 0), timelineWidth-1)
		sums[i] += r[1]
		most = max(most, sums[i])
	}
	out := make([]rune, timelineWidth)
	for i, n := range sums {
		out[i] = ' '
		if n > 0 {
			out[i] = levels[n*int64(len(levels)-1)/most]
		}
	}
	return string(out)
}
