package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (p *program) printPicked(c *cli.Context, list []picked) error {
	measured := c.String("model") != ""
	var failed error
	if measured && list[0].ranked() == nil {
		failed = fmt.Errorf("no build could be measured")
	}
	if c.Bool("json") {
		return errors.Join(json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "engine": c.String("engine"), "builds": list}), failed)
	}
	t := table{cols: []column{{head: "DEVICE"}, {head: "TAG"}, {head: "VERSION"}, {head: "PATH"}}}
	if measured {
		t.cols = append([]column{{head: "RANK", right: true}, {head: "DECODE tok/s", right: true}, {head: "RANGE"}, {head: "BEST", right: true},
			{head: "PREFILL tok/s", right: true}, {head: "RANGE"}}, t.cols...)
	}
	for i := range list {
		b := &list[i]
		row := []string{pickedDevice(b), cmp.Or(printable(b.Tag), "-"), cmp.Or(printable(shortVersion(b.Version)), "-"), printable(b.Path)}
		if measured {
			place := "-"
			if b.Rank > 0 {
				place = fmt.Sprint(b.Rank)
			}
			row = append([]string{place, b.Decode.median(), b.Decode.span(), share(b.ranked(), list[0].ranked()), b.Prefill.median(), b.Prefill.span()}, row...)
		}
		t.add(row...)
	}
	t.print(p.Stdout)
	p.printReasons(list)
	if measured && failed == nil {
		fmt.Fprintln(p.Stdout)
		fmt.Fprintln(p.Stdout, pickVerdict(list))
	}
	return failed
}

// printReasons tells what the table has no room for.
func (p *program) printReasons(list []picked) {
	for i := range list {
		b := &list[i]
		for _, other := range b.Also {
			note(p.Stderr, "%s is the same build as %s", printable(other), printable(b.Path))
		}
		if b.Fallback {
			note(p.Stderr, "%s computes on the CPU, though %s was asked for: it has no rank", printable(b.Path), b.Asked)
		}
		if b.Error != "" {
			note(p.Stderr, "%s: %s", printable(b.Path), b.Error)
		}
	}
}

// pickVerdict is the build to use, in a sentence that can be cited.
func pickVerdict(list []picked) string {
	best := &list[0]
	text := fmt.Sprintf("Use %s: %s", printable(best.Path), printable(cited(best)))
	switch {
	case len(list) < 2 || list[1].ranked() == nil:
		return text + "; there is no other to compare it with."
	case tied(list[0], list[1]):
		text += fmt.Sprintf("; it decodes as fast as %s (within %.0f %%)", printable(cited(&list[1])), 100*pickTie)
		if compareRates(best.Prefill, list[1].Prefill) > 0 {
			text += ", and reads prompts faster"
		}
		return text + "."
	}
	return text + fmt.Sprintf("; it decodes %.0f %% faster than the next, %s.", 100*(best.Decode.Median/list[1].Decode.Median-1), printable(cited(&list[1])))
}

// cited is a build as a report names it: tag and version, as far as they are there.
func cited(b *picked) string {
	return cmp.Or(strings.Join(strings.Fields(b.Tag+" "+shortVersion(b.Version)), " "), b.Path)
}

// shortVersion is a version without the word for it.
func shortVersion(v string) string {
	if rest, ok := strings.CutPrefix(strings.ToLower(v), "version:"); ok {
		return strings.TrimSpace(v[len(v)-len(rest):])
	}
	return v
}

// pickedDevice is where a build computed, else what it lists.
func pickedDevice(b *picked) string {
	switch {
	case b.Observed != nil:
		return printable(*b.Observed)
	case b.Device != nil:
		return "lists " + printable(*b.Device)
	}
	return "-"
}

func (s *sampled) median() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", s.Median)
}

func (s *sampled) span() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f-%.1f, n=%d", s.Min, s.Max, s.N)
}

// share is a rate in parts of the best.
func share(a, best *sampled) string {
	if a == nil || best == nil || best.Median <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*a.Median/best.Median)
}
