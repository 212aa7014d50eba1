package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// draftingFlags are what only the user can say of speculative decoding.
func draftingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "spec-method", Usage: "`NAME` of the engine's method of speculative decoding (mtp, eagle3, ngram ...): the wire does not tell it"},
		&cli.Float64Flag{Name: "baseline-tgs", Usage: "decode rate in `TOK/S` of the same requests without drafts: the speedup is told against it"},
	}
}

// drafting reads them; nil when nothing was said.
func drafting(c *cli.Context) (*exchange.Drafting, error) {
	d := exchange.Drafting{Method: strings.TrimSpace(c.String("spec-method"))}
	if c.IsSet("baseline-tgs") {
		rate := c.Float64("baseline-tgs")
		if !(rate > 0 && rate < 1e9) {
			return nil, usagef("--baseline-tgs %v is no rate in tok/s", rate)
		}
		d.BaselineTPS = &rate
	}
	if d == (exchange.Drafting{}) {
		return nil, nil
	}
	return &d, nil
}

// draftingText is "mtp (as stated), 1.84 times the stated 52 tok/s without drafts".
func draftingText(d *exchange.Drafting, sum measure.Run) string {
	if d == nil {
		return ""
	}
	text := "method not stated"
	if d.Method != "" {
		text = printable(d.Method) + " (as stated)"
	}
	if d.BaselineTPS == nil {
		return text
	}
	against := fmt.Sprintf("the stated %g tok/s without drafts", *d.BaselineTPS)
	f := sum.DraftSpeedup(*d.BaselineTPS)
	if !f.Present() {
		return fmt.Sprintf("%s, no rate to hold against %s (%s)", text, against, f.Reason)
	}
	return fmt.Sprintf("%s, %s times %s", text, figure(f, 2), against)
}
