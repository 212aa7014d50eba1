package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// sheet is a table: what the report says, before it is text or Markdown.
type sheet struct {
	title string
	head  []string // of the columns after the first
	rows  [][]string
}

// row adds a row: its name and its cells.
func (s *sheet) row(name string, cells ...string) {
	s.rows = append(s.rows, append([]string{name}, cells...))
}

// width is that of the first column, whose cells stand left.
func (s *sheet) width() int {
	w := len(s.title)
	for _, row := range s.rows {
		w = max(w, len(row[0]))
	}
	return w
}

// sheets are the tables of the report; those without rows are left out.
func (r *report) sheets() []sheet {
	all := []sheet{r.addedSheet(), r.costSheet(), r.onceSheet(), r.ratioSheet(records), r.ratioSheet(proxied), r.tracingSheet(), r.budgetSheet()}
	return slices.DeleteFunc(all, func(s sheet) bool { return len(s.rows) == 0 })
}

func (r *report) addedSheet() sheet {
	t := sheet{title: "added over direct, us: median over rounds [range]", head: append([]string{"direct itself"}, r.Targets[1:]...)}
	for _, s := range r.Scenarios {
		if s.Queue {
			continue
		}
		for _, p := range []string{"p50", "p99"} {
			t.row(fmt.Sprintf("%s %s (%s)", s.Name, p, s.What), r.cells(s, func(name string, x *targetRow) string { return x.time(name, p) })...)
		}
	}
	return t
}

func (r *report) costSheet() sheet {
	t := sheet{title: "cost and loss", head: append([]string{"engine itself"}, r.Targets[1:]...)}
	for _, s := range r.Scenarios {
		t.row(fmt.Sprintf("%s: CPU us each %s", s.Name, s.Per), r.cells(s, func(_ string, x *targetRow) string { return x.CPU.String() })...)
		if s.Queue {
			t.row(fmt.Sprintf("%s: %ss a second (%s)", s.Name, s.Per, s.What), r.cells(s, func(_ string, x *targetRow) string { return x.Rate.String() })...)
		}
	}
	for _, s := range r.Scenarios {
		t.row(fmt.Sprintf("%s: failed or cut", s.Name), r.cells(s, func(_ string, x *targetRow) string {
			return fmt.Sprintf("%d of %d", x.Failed, x.Requests)
		})...)
	}
	return t
}

// onceSheet is what is measured once.
func (r *report) onceSheet() sheet {
	t := sheet{title: "measured once", head: r.Targets}
	gone, memory, request, event := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	for _, g := range r.Gone {
		gone[g.Target] = fmt.Sprintf("%s / %s / %d", number(g.P50), number(g.Max), g.Missed)
	}
	for _, m := range r.Memory {
		memory[m.Target] = fmt.Sprintf("%.1f", m.PerStream/1024)
		if m.Failed > 0 {
			memory[m.Target] += fmt.Sprintf(" (%d failed)", m.Failed)
		}
	}
	for _, a := range r.Allocations {
		request[a.Target] = fmt.Sprintf("%.1f / %.0f", a.PerRequest, a.BytesPerRequest)
		event[a.Target] = fmt.Sprintf("%.2f / %.0f", a.PerEvent, a.BytesPerEvent)
	}
	for _, x := range []struct {
		what  string
		cells map[string]string
	}{
		{"client gone to engine stopped, ms: p50 / max / missed", gone},
		{fmt.Sprintf("KB resident each idle stream, at %d", r.Streams), memory},
		{"allocations / bytes each JSON request (runtime counters)", request},
		{"allocations / bytes each event (runtime counters)", event},
	} {
		if len(x.cells) == 0 {
			continue
		}
		var cells []string
		for _, name := range r.Targets {
			cells = append(cells, dash(x.cells[name]))
		}
		t.row(x.what, cells...)
	}
	return t
}

// ratioSheet is one of ours beside all others.
func (r *report) ratioSheet(own string) sheet {
	others := slices.DeleteFunc(slices.Clone(r.Targets[1:]), func(n string) bool { return n == own || n == proxied || n == traced || n == unsampled })
	t := sheet{title: own + " divided by", head: append([]string{"direct's spread"}, others...)}
	if len(others) == 0 {
		return t
	}
	for _, x := range r.Ratios {
		if x.Own != own {
			continue
		}
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == x.Figure })
		cells := []string{percent(x.Direct)}
		if x.Noisy {
			cells[0] += " noisy"
		}
		for _, name := range others {
			ratio := x.Against[name]
			cells = append(cells, ratioCell(ratio.Value, ratio.Range))
		}
		t.row(x.Scenario+": "+figures[i].what, cells...)
	}
	return t
}

func (r *report) budgetSheet() sheet {
	t := sheet{title: "budget", head: []string{"measured", "must", "aim", "unit", "verdict"}}
	for _, b := range r.Budgets {
		verdict := b.Verdict
		if b.Unsure && b.Verdict != verdictNoisy {
			verdict += ", unsure"
		}
		t.row(b.What, ratioCell(b.Value, b.Range), fmt.Sprintf("<= %g", b.Must), fmt.Sprintf("<= %g", b.Aim), b.Unit, verdict)
	}
	return t
}

// heading is what stands over the tables.
func (r *report) heading() []string {
	lines := []string{r.Machine.String()}
	for _, v := range r.Versions {
		lines[0] += fmt.Sprintf("; %s %s", v.Name, v.Version)
	}
	return append(lines,
		fmt.Sprintf("%d rounds, in each every scenario on every target; those with hundreds of streams in one round of %d", r.Rounds, r.Large))
}

// notes say how to read the tables.
func (r *report) notes() []string {
	return []string{
		fmt.Sprintf("A ratio is of medians over rounds, with its %g %% interval: a paired bootstrap over rounds. It is empty where the other's median is not above 0, and the interval where there are fewer than %d rounds or it has no end.", confidence*100, minRounds),
		fmt.Sprintf("direct's spread is the distance between the quartiles of direct's own figure, as a share of its median. Over %g %% the machine is too noisy and nothing that rests on the figure is judged.", r.Noise*100),
		"traced exports a span pair of every exchange to a collector that reads and says yes, a process of the lowest priority; unsampled only gives the engine a trace's header. What either is more than record is paired by rounds too, with its interval.",
		"unsure: must or aim lies within the interval, so that another run may come out otherwise.",
		fmt.Sprintf("With -judge the exit code is 0 when every budget is met, %d when one is surely not, %d when one could not be judged or is not met but unsure.", exitNotMet, exitNoJudge),
		"Measured elsewhere: how far stamps are off (benchproxy selftest), what the store takes (go test -bench . ./recorder), records lost to kills (scripts/load-test.sh).",
	}
}

// print writes the report for people.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", strings.Join(r.heading(), "\n"))
	for _, s := range r.sheets() {
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range append([][]string{append([]string{s.title}, s.head...)}, s.rows...) {
			fmt.Fprintf(t, "%-*s\t%s\t\n", s.width(), row[0], strings.Join(row[1:], "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(r.notes(), "\n"))
	return err
}

// cells asks cell for every target.
func (r *report) cells(s *scenarioRow, cell func(name string, x *targetRow) string) []string {
	var out []string
	for _, name := range r.Targets {
		x, ok := s.Targets[name]
		if !ok {
			x = &targetRow{}
		}
		out = append(out, cell(name, x))
	}
	return out
}

// time is what a target adds, or takes when it is the direct path.
func (x *targetRow) time(name, p string) string {
	switch {
	case name == direct && p == "p50":
		return x.P50.String()
	case name == direct:
		return x.P99.String()
	case p == "p50":
		return signed(x.AddedP50)
	}
	return signed(x.AddedP99)
}

// String is the median and the range.
func (s series) String() string {
	m, ok := s.median()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f [%.0f..%.0f]", m, slices.Min(s), slices.Max(s))
}

func signed(s series) string {
	if m, ok := s.median(); ok && m >= 0 {
		return "+" + s.String()
	}
	return s.String()
}

func ratioCell(v *float64, in *stat.Interval) string {
	if in == nil {
		return number(v)
	}
	return fmt.Sprintf("%s [%.2f..%.2f]", number(v), in.Lo, in.Hi)
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

func percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", *share*100)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
