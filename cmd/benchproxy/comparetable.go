package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Bounds of what a terminal shows of a comparison; --json has more.
const (
	comparedTexts    = 3
	comparedFailures = 10
)

// printComparison shows a comparison to a person: who, the ratios, the answers, and what to know before believing it.
func printComparison(w io.Writer, r *compare.Report) {
	for _, side := range []struct {
		name string
		v    compare.RunView
	}{{"reference", r.Reference}, {"candidate", r.Candidate}} {
		fmt.Fprintf(w, "%s  %s\n", side.name, sideText(side.v))
	}
	fmt.Fprintf(w, "%s by %s\n\n", pairsCounted(r.Pairing.Pairs), r.Pairing.By)
	printRatios(w, r)
	printKinds(w, r)
	printAnswers(w, r)
	printFailures(w, r)
	printAudit(w, r)
	for _, b := range r.Bounds {
		fmt.Fprintf(w, "bound  %s: %s\n", b.Bound, boundText(b))
	}
}

// sideText is one run on two lines: which it is, and what load it ran under.
func sideText(v compare.RunView) string {
	who := []string{printable(runLabel(v)), string(v.ID), v.Mode + ", " + string(v.State)}
	if v.Engine.Engine != "" {
		who = append(who, "engine "+printable(strings.TrimSpace(v.Engine.Engine+" "+v.Engine.Version)))
	}
	return strings.Join(who, "  ") + "\n           " + loadText(&v.Load)
}

// loadText is how busy a run was.
func loadText(l *compare.Load) string {
	load := []string{fmt.Sprintf("%d of %d complete", l.Complete, l.Requests)}
	if l.Peak > 0 {
		load = append(load, fmt.Sprintf("%d in flight, %d at most", l.InFlight, l.Peak), fmt.Sprintf("%.1f s", l.WholeS))
	}
	if l.WholeTPS != nil {
		load = append(load, fmt.Sprintf("%.1f tok/s", *l.WholeTPS))
	}
	if l.Peak > 1 {
		load = append(load, fmt.Sprintf("steady for %.1f s", l.SteadyS))
		if l.SteadyTPS != nil {
			load[len(load)-1] += fmt.Sprintf(" at %.1f tok/s", *l.SteadyTPS)
		}
		load = append(load, fmt.Sprintf("drain %.0f %%", 100*l.Drain))
	}
	if g := l.Goodput; g != nil {
		text := fmt.Sprintf("goodput %d of %d", g.Part, g.Whole)
		if g.PerS != nil {
			text += fmt.Sprintf(" (%.2f/s)", *g.PerS)
		}
		load = append(load, text)
	}
	return strings.Join(load, ", ")
}

// printRatios is the table of metrics. Those that neither run can have are left out.
func printRatios(w io.Writer, r *compare.Report) {
	t := table{cols: []column{{head: "METRIC"}, {head: "REFERENCE", right: true}, {head: "CANDIDATE", right: true}, {head: "UNIT"},
		{head: "RATIO", right: true}, {head: "INTERVAL"}, {head: "n", right: true}, {head: "VERDICT"}}}
	for _, m := range r.Metrics {
		if !worthShowing(m) || m.Name == measure.AnswerTTFTMS && sameAsTTFT(r, m) {
			continue
		}
		n := strconv.Itoa(m.N)
		if m.Ratio == nil {
			n = "-"
		}
		t.add(m.Name, number(m.Reference, digits(m.Unit)), number(m.Candidate, digits(m.Unit)), m.Unit, number(m.Ratio, 3), ratioInterval(m), n, verdictText(m))
	}
	t.print(w)
	fmt.Fprintf(w, "ratios are candidate / reference, medians over pairs; intervals of 95 %%; differences below %s %% are none\n",
		strconv.FormatFloat(100*r.Margin, 'f', -1, 64))
	if told := toldApart(r); told > 1 {
		fmt.Fprintf(w, "each metric may differ by chance in 5 %% of comparisons of equal sides: among %d a single one is weak evidence\n", told)
	}
	fmt.Fprintln(w)
}

// toldApart is the number of metrics that were tested for a difference.
func toldApart(r *compare.Report) int {
	n := 0
	for _, m := range r.Metrics {
		if m.P != nil {
			n++
		}
	}
	return n
}

// worthShowing reports whether a metric has a ratio, or lacks it for a reason that is more than the engines' silence.
func worthShowing(m compare.Metric) bool {
	if m.Ratio != nil || m.Name == measure.TTFTMS || m.Name == measure.DecodeTPS {
		return true
	}
	for why := range m.Excluded {
		if why == compare.ReasonCache || why == compare.ReasonLoad || why == compare.ReasonLength {
			return true
		}
	}
	return false
}

// sameAsTTFT reports whether no answer was thought about first, so that the first token is that of the answer.
func sameAsTTFT(r *compare.Report, m compare.Metric) bool {
	ttft, ok := r.Metric(measure.TTFTMS)
	return ok && ttft.Ratio != nil && m.Ratio != nil && *ttft.Ratio == *m.Ratio && *ttft.Reference == *m.Reference
}

func number(v *float64, places int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', places, 64)
}

func ratioInterval(m compare.Metric) string {
	if m.Interval == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f to %.3f", m.Interval.Lo, m.Interval.Hi)
}

func verdictText(m compare.Metric) string {
	text := string(m.Verdict)
	if len(m.Reasons) > 0 {
		text += ": " + reasonsText(m.Reasons)
	}
	if m.Ratio == nil {
		return text
	}
	if left := excludedText(m.Excluded); left != "" {
		text += " (left out: " + left + ")"
	}
	if left := excludedText(m.LeftOut); left != "" {
		text += " (single takes left out: " + left + ")"
	}
	return text
}

func printAnswers(w io.Writer, r *compare.Report) {
	a := r.Answers
	if a.Identical.Whole == 0 {
		return
	}
	fmt.Fprintf(w, "answers  %d of %d identical; prefix_agreement %s; difflib_ratio %s\n", a.Identical.Part, a.Identical.Whole, spread(a.Prefix), spread(a.Difflib))
	if a.Cut > 0 {
		fmt.Fprintf(w, "         %d the same as far as the shorter one goes, which was cut at its output limit\n", a.Cut)
	}
	for i, side := range []string{"reference", "candidate"} {
		if a.Unstable[i] > 0 {
			fmt.Fprintf(w, "         %d requests got different answers within the %s itself\n", a.Unstable[i], side)
		}
	}
	for _, d := range a.Divergences[:min(len(a.Divergences), comparedTexts)] {
		fmt.Fprintf(w, "  %s/%d against %s/%d part in the %s after %d characters\n", printable(runLabel(r.Reference)), d.Seq[0],
			printable(runLabel(r.Candidate)), d.Seq[1], strings.ReplaceAll(d.Channel, "_", " "), d.Offset)
		for i, name := range []string{"reference", "candidate"} {
			fmt.Fprintf(w, "    %s  …%s▸%s\n", name, printable(d.Shared), printable(d.Texts[i]))
		}
	}
	if more := a.Diverged - comparedTexts; more > 0 {
		fmt.Fprintf(w, "  and %d more; --json has them\n", more)
	}
	fmt.Fprintln(w)
}

func spread(m compare.Measure) string {
	if m.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", *m.Mean, *m.Min, *m.Max)
}

func printFailures(w io.Writer, r *compare.Report) {
	total := r.Reference.Failed + r.Candidate.Failed
	if total == 0 && len(r.Partials) == 0 {
		return
	}
	for _, f := range r.Failures[:min(len(r.Failures), comparedFailures)] {
		fmt.Fprintf(w, "failed  %s number %d  %s", f.Side, f.Seq, f.Outcome)
		if f.Cause != nil {
			fmt.Fprintf(w, "  %s: %s", f.Cause.Code, shorten(f.Cause.Text))
		}
		fmt.Fprintln(w)
	}
	if more := total - comparedFailures; more > 0 {
		fmt.Fprintf(w, "and %d more failures; --json has them\n", more)
	}
	for _, s := range r.Partials[:min(len(r.Partials), comparedFailures)] {
		fmt.Fprintf(w, "partial  %s, conversation %s: %d/%d turns\n", s.Side, printable(s.Conversation), s.Turns, s.Planned)
	}
	fmt.Fprintln(w)
}

// printAudit tells what is not known to be the same on both sides.
func printAudit(w io.Writer, r *compare.Report) {
	var unknown []string
	for _, k := range r.Checks {
		switch k.Answer {
		case compare.Unknown:
			unknown = append(unknown, k.Name)
		case compare.Differs:
			fmt.Fprintf(w, "differs  %s%s\n", k.Name, checkText(k))
		}
	}
	for _, f := range r.Fields {
		if f.Field != "messages" && f.Field != "prompt" && f.Field != "input" {
			fmt.Fprintf(w, "differs  request field %s in %d pairs: %s against %s\n", printable(f.Field), f.Pairs, absentOr(f.Reference), absentOr(f.Candidate))
		}
	}
	for _, d := range r.Deployments.Differs {
		fmt.Fprintf(w, "differs  deployment %s: %s against %s\n", d.Field, printable(d.Reference), printable(d.Candidate))
	}
	if len(unknown) > 0 {
		fmt.Fprintf(w, "unknown  %s\n", strings.Join(unknown, ", "))
	}
	if len(r.Deployments.Unknown) > 0 {
		fmt.Fprintf(w, "unknown  of the deployments: %s\n", strings.Join(r.Deployments.Unknown, ", "))
	}
}

func checkText(k compare.Check) string {
	text := ""
	if k.Pairs > 0 {
		text += fmt.Sprintf(", %d", k.Pairs)
	}
	if k.Detail != "" {
		text += ": " + printable(k.Detail)
	}
	switch {
	case k.Accepted:
		text += " [accepted]"
	case k.Forbids != "":
		text += " [" + string(k.Forbids) + "]"
	}
	return text
}

func absentOr(s string) string {
	if s == "" {
		return "absent"
	}
	return printable(s)
}

func boundText(b compare.BoundResult) string {
	switch {
	case b.Value == nil:
		return "no number: " + reasonsText(b.Reasons)
	case b.Violated:
		return fmt.Sprintf("holds at %.4g%s: FAIL", *b.Value, verdictIn(b))
	}
	return fmt.Sprintf("does not hold at %.4g%s", *b.Value, verdictIn(b))
}

func verdictIn(b compare.BoundResult) string {
	if b.Verdict == "" {
		return ""
	}
	return ", " + string(b.Verdict)
}

func pairsCounted(n int) string {
	if n == 1 {
		return "1 pair"
	}
	return strconv.Itoa(n) + " pairs"
}
