package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// print writes the report for people.
func (r *report) print(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%d CPUs, %s, %s, load %s before and %s after; %d rounds, every scenario on every target in each\n\n",
		m.CPUs, m.System, m.Go, m.LoadBefore, m.LoadAfter, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(t, "added over direct, us: median over rounds [range]", append([]string{"direct itself"}, targetNames[1:]...)...)
	for _, s := range r.Scenarios {
		if s.Name == "load" {
			continue // a queue, not a path
		}
		for _, p := range []string{"p50", "p99"} {
			row(t, fmt.Sprintf("%s %s (%s)", s.Name, p, s.What), s.cells(func(name string, x *targetRow) string { return x.time(name, p) })...)
		}
	}
	row(t, "")
	row(t, "cost and loss", "engine itself", targetNames[1], targetNames[2], targetNames[3])
	for _, s := range r.Scenarios {
		row(t, fmt.Sprintf("%s: CPU us each %s", s.Name, s.Per), s.cells(func(_ string, x *targetRow) string { return x.CPU.String() })...)
		if s.Name == "load" {
			row(t, "load: requests a second", s.cells(func(_ string, x *targetRow) string { return x.Rate.String() })...)
		}
	}
	for _, s := range r.Scenarios {
		row(t, fmt.Sprintf("%s: failed or cut", s.Name), s.cells(func(_ string, x *targetRow) string {
			return fmt.Sprintf("%d of %d", x.Failed, x.Requests)
		})...)
	}
	r.printRest(t)
	if err := t.Flush(); err != nil {
		return err
	}
	return r.printBudgets(w)
}

// printRest is what is measured once.
func (r *report) printRest(t io.Writer) {
	gone := map[string]string{}
	for _, g := range r.Gone {
		gone[g.Target] = fmt.Sprintf("%s / %s / %d", number(g.P50), number(g.Max), g.Missed)
	}
	memory := map[string]string{}
	for _, m := range r.Memory {
		memory[m.Target] = fmt.Sprintf("%.1f", m.PerStream/1024)
		if m.Failed > 0 {
			memory[m.Target] += fmt.Sprintf(" (%d failed)", m.Failed)
		}
	}
	request, event := map[string]string{}, map[string]string{}
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
		var cells []string
		for _, name := range targetNames {
			cells = append(cells, dash(x.cells[name]))
		}
		row(t, x.what, cells...)
	}
}

func (r *report) printBudgets(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(t, "")
	row(t, "budget", "measured", "must", "aim", "unit")
	for _, b := range r.Budgets {
		row(t, b.What, number(b.Value), fmt.Sprintf("<= %g", b.Must), fmt.Sprintf("<= %g", b.Aim), b.Unit)
	}
	return t.Flush()
}

// row writes a name, which stands left, and cells, which stand right.
func row(t io.Writer, name string, cells ...string) {
	const width = 62
	fmt.Fprintf(t, "%-*s\t%s\t\n", width, name, strings.Join(cells, "\t"))
}

// cells asks cell for every target.
func (s *scenarioRow) cells(cell func(name string, x *targetRow) string) []string {
	var out []string
	for _, name := range targetNames {
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

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
