package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func (p *program) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "set one run against another: ratios with intervals and verdicts, and where the answers part",
		ArgsUsage: "REFERENCE CANDIDATE",
		Description: "Both are runs: an id or a name, and RUN@UPSTREAM for the exchanges of one upstream of it. Requests that carry out the same\n" +
			"item of a plan, or repeat the same recording, belong together; where neither run has a plan, equal requests do. Every\n" +
			"ratio is candidate / reference. What the evidence does not bear is incomparable and says why; --accept WHY compares\n" +
			"across that difference all the same.\n\n" +
			"   benchproxy compare before after\n" +
			"   benchproxy compare before after --fail-if \"decode_tps<0.95\" --fail-if \"ttft_ms=worse\" --fail-if \"failed>0\"",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "fail-if", Usage: "end with 3 when `BOUND` holds (repeatable): METRIC<RATIO, also <=, >, >= and percentages, or METRIC=worse; beside the metrics there are identical, prefix_agreement, difflib_ratio, failed, newly_failed, unpaired; newly_failed>0 always counts beside a bound, unless one on failures is given"},
			&cli.StringSliceFlag{Name: "accept", Usage: "compare across `WHY` (repeatable), a reason of the report: " + acceptableText()},
			sloFlag(),
			&cli.Float64Flag{Name: "margin", Value: compare.DefaultMargin, Usage: "relative difference below `SHARE` is none"},
			&cli.StringFlag{Name: "from", Usage: "`DIR` of the store that has REFERENCE, where it is not --store"},
			storeFlag(), jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			o, err := compareOptions(c)
			if err != nil {
				return err
			}
			return p.withReading(2, 2, func(c *cli.Context, r reading) error {
				reference, err := p.referenceStore(c, r)
				if err != nil {
					return err
				}
				if reference != r {
					defer reference.Close()
				}
				return p.compare(c, [2]reading{reference, r}, o)
			})(c)
		},
	}
}

func acceptableText() string {
	var words []string
	for _, r := range compare.Acceptable() {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

func compareOptions(c *cli.Context) (o compare.Options, err error) {
	if o.Margin = c.Float64("margin"); !(o.Margin >= 0 && o.Margin < 1) {
		return o, usagef("--margin is a share from 0 to below 1, not %v", o.Margin)
	}
	for _, text := range c.StringSlice("fail-if") {
		b, err := compare.ParseBound(text)
		if err != nil {
			return o, err
		}
		o.Bounds = append(o.Bounds, b)
	}
	for _, word := range c.StringSlice("accept") {
		if !slices.Contains(compare.Acceptable(), exchange.Reason(word)) {
			return o, usagef("--accept %q is none of %s", word, acceptableText())
		}
		o.Accept = append(o.Accept, exchange.Reason(word))
	}
	o.Objectives, err = objectives(c)
	return o, err
}

func sloFlag() cli.Flag {
	return &cli.StringFlag{Name: "slo", Usage: "`OBJECTIVES` that requests must meet to count for goodput: ttft=200ms,tpot=20ms"}
}

// objectives are those of --slo, nil for none.
func objectives(c *cli.Context) ([]compare.Objective, error) {
	if text := c.String("slo"); text != "" {
		return compare.ParseObjectives(text)
	}
	return nil, nil
}

// referenceStore is the store that --from names, or the one of the command.
func (p *program) referenceStore(c *cli.Context, r reading) (reading, error) {
	dir, err := p.storeDir(c)
	if err != nil {
		return nil, err
	}
	open, err := p.fromAnother(c, dir)
	if err != nil || open == nil {
		return r, err
	}
	return open()
}

// compare sets the two runs against each other, each read from its own store.
func (p *program) compare(c *cli.Context, stores [2]reading, o compare.Options) error {
	var sides [2]*compare.Side
	home := map[exchange.ID]reading{}
	for i := range sides {
		s, err := readSide(c.Context, stores[i], c.Args().Get(i))
		if err != nil {
			return err
		}
		sides[i] = s
		for j := range s.Entries {
			home[s.Entries[j].Row.ID] = stores[i]
		}
	}
	report, err := compare.Compare(c.Context, sides[0], sides[1], o, func(ctx context.Context, id exchange.ID) (compare.Answer, error) {
		d, err := home[id].Detail(ctx, id)
		return compare.AnswerOf(&d), err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		if err := json.NewEncoder(p.Stdout).Encode(report); err != nil {
			return err
		}
	} else {
		printComparison(p.Stdout, report)
	}
	return outcomeOf(report)
}

// readSide reads the exchanges of RUN or RUN@UPSTREAM, all derived anew by the rules of today.
func readSide(ctx context.Context, r reading, arg string) (*compare.Side, error) {
	run, err := r.Run(arg)
	s := &compare.Side{}
	if name, upstream, ok := cutLast(arg, "@"); err != nil && ok {
		if other, err2 := r.Run(name); err2 == nil {
			if _, known := other.Upstreams[upstream]; !known {
				return nil, usagef("run %s has no upstream %q", name, upstream)
			}
			run, err, s.Upstream = other, nil, upstream
		}
	}
	if err != nil {
		return nil, err
	}
	s.Run = run
	for row, err := range rowsOf(ctx, r, run.ID) {
		if err != nil {
			return nil, err
		}
		if s.Upstream != "" && row.Upstream != s.Upstream || row.Dialect == "" {
			continue
		}
		e, err := readEntry(ctx, r, row.ID)
		if err != nil {
			return nil, err
		}
		s.Entries = append(s.Entries, e)
	}
	return s, nil
}

func readEntry(ctx context.Context, r reading, id exchange.ID) (compare.Entry, error) {
	d, err := r.Detail(ctx, id)
	if err != nil {
		return compare.Entry{}, err
	}
	b, err := r.Bytes(ctx, id, "request", "body")
	if err != nil {
		return compare.Entry{}, err
	}
	defer b.Close()
	body, err := io.ReadAll(b)
	if err != nil {
		return compare.Entry{}, fmt.Errorf("read request of %s: %w", id, err)
	}
	shell := exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody(body)}, Interventions: d.Interventions}
	if sent, ok := exchange.SentRequest(&shell); ok {
		body = sent.Body.Bytes()
	}
	return compare.NewEntry(&d, body), nil
}

// outcomeOf is what a comparison amounts to for a script: a violated bound is a regression; a bound that no number stands
// for, and a comparison without any number, are missing evidence.
func outcomeOf(r *compare.Report) error {
	fail := func(kind error, hint string) error {
		return &exchange.Error{Op: "compare", Object: printable(runLabel(r.Reference)) + " with " + printable(runLabel(r.Candidate)), Cause: kind, Hint: hint}
	}
	var violated, open []string
	for _, b := range r.Bounds {
		switch {
		case b.Violated:
			violated = append(violated, b.Bound)
		case b.Value == nil:
			open = append(open, b.Bound+" ("+reasonsText(b.Reasons)+")")
		}
	}
	missing := exchange.ErrMiss
	if slices.Contains(r.Refused, compare.ReasonIncomplete) {
		missing = exchange.ErrIncomplete
	}
	switch {
	case len(violated) > 0:
		return fail(exchange.ErrGate, "bounds that hold: "+strings.Join(violated, ", "))
	case len(open) > 0:
		return fail(missing, "bounds without a number: "+strings.Join(open, ", "))
	case r.Pairing.Pairs == 0:
		return fail(missing, "no requests belong together: replay one run to make the other, or record the same requests twice")
	case len(r.Refused) > 0:
		return fail(missing, "refused for "+reasonsText(r.Refused)+"; --accept WHY compares all the same")
	case !r.Comparable():
		return fail(missing, "no pair gave a number; the table says why")
	}
	return nil
}

func reasonsText(rs []exchange.Reason) string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

func runLabel(v compare.RunView) string {
	label := v.Name
	if label == "" {
		label = string(v.ID)
	}
	if v.Upstream != "" {
		label += "@" + v.Upstream
	}
	return label
}
