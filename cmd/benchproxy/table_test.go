package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestRowsFitTheScreen holds that a narrow screen loses columns and not the shape of the table.
func TestRowsFitTheScreen(t *testing.T) {
	cells := exchangeCells(exchange.Summary{Seq: 7, Model: strings.Repeat("模型", 20), Outcome: exchange.OutcomeUpstreamTruncated})
	for _, c := range []struct {
		screen int
		want   string
	}{
		{0, "#  MODEL                   PROMPT  OUTPUT   TTFT ms  PREFILL tok/s  DECODE tok/s   TOTAL ms  OUTCOME"},
		{120, "#  MODEL                   PROMPT  OUTPUT   TTFT ms  PREFILL tok/s  DECODE tok/s   TOTAL ms  OUTCOME"},
		{100, "#  MODEL                   PROMPT  OUTPUT   TTFT ms  DECODE tok/s   TOTAL ms  OUTCOME"},
		{80, "#  MODEL                   OUTPUT   TTFT ms  DECODE tok/s  OUTCOME"},
		{60, "#  MODEL        TTFT ms  DECODE tok/s  OUTCOME"},
		{20, "#  MODEL        TTFT ms  DECODE tok/s  OUTCOME"}, // narrower than the least: lines wrap
	} {
		r := newRows(exchangeColumns(), c.screen)
		if diff := cmp.Diff(c.want, strings.TrimSpace(r.head())); diff != "" {
			t.Errorf("%d columns: -want +got\n%s", c.screen, diff)
		}
		line := r.line(cells)
		if width := runewidth.StringWidth(line); c.screen >= 60 && width > c.screen {
			t.Errorf("%d columns: a line of %d: %s", c.screen, width, line)
		}
		if !strings.HasSuffix(line, string(exchange.OutcomeUpstreamTruncated)) {
			t.Errorf("%d columns: the outcome is cut: %s", c.screen, line)
		}
	}
}
