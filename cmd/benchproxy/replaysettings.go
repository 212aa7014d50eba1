package main

import (
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// tailText is "2050 between token events of 41 streams: p50 20.0, p90 20.1, max 900.0 ms".
func tailText(t *exchange.Tail) string {
	text := fmt.Sprintf("%s between token events of %s:", countOf(int(t.N), "gap"), countOf(t.Exchanges, "stream"))
	for _, p := range []struct {
		name string
		v    *float64
	}{{"p50", t.P50}, {"p90", t.P90}, {"p99", t.P99}, {"p99.9", t.P999}, {"max", t.Max}} {
		if p.v != nil { // what is left out has too few gaps for it
			text += fmt.Sprintf(" %s %.1f,", p.name, *p.v)
		}
	}
	return strings.TrimSuffix(text, ",") + " ms"
}

// replayRows say how a plan was sent, and what became of it.
func replayRows(p *exchange.Replay) []namedValue {
	if p == nil {
		return nil
	}
	rows := []namedValue{{"source", p.Source}, {"plan", p.Plan}, {"driver", driverText(p)}, {"items", itemsText(p.Items)}, {"sitting", string(p.Group)}}
	if p.EventGaps != nil {
		rows = append(rows, namedValue{"gaps", tailText(p.EventGaps)})
	}
	return append(rows, namedValue{"incomplete", p.Incomplete}, namedValue{"invalid", p.Invalid})
}

// driverText is how a plan was sent, in words. A run of the time before settings were kept has the loop alone.
func driverText(p *exchange.Replay) string {
	s := p.Settings
	parts := []string{p.Driver}
	add := func(holds bool, format string, args ...any) {
		if holds {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	switch p.Driver {
	case "rate":
		add(s.Rate > 0, "%g a second, %s arrivals", s.Rate, s.Arrivals)
		add(s.Concurrency > 0, "at most %d at once", s.Concurrency)
	case "recorded":
		if s.Speed != nil {
			add(true, "speed %g", *s.Speed)
		}
		add(s.MaxGapMS > 0, "gaps of at most %g ms", s.MaxGapMS)
		add(s.Concurrency > 0, "at most %d at once", s.Concurrency)
	default:
		add(s.Concurrency > 0, "%d at a time", s.Concurrency)
	}
	add(s.Targets > 1, "%d targets in turns", s.Targets)
	add(s.Repeats > 1, "%d repeats", s.Repeats)
	add(s.KeepSeed, "seeds kept")
	add(s.Warmup > 0, "%s before", countOf(s.Warmup, "warm-up"))
	add(s.Nonce, "nonces")
	add(s.LiveHistory, "live history")
	add(s.MaxRequests > 0, "at most %s", countOf(s.MaxRequests, "request"))
	add(s.DurationMS > 0, "for %g s", s.DurationMS/1000)
	add(s.Repeats > 0, "%d retries of a 503", s.Retries)
	return strings.Join(parts, ", ")
}

// originText is which recorded exchange one repeats.
func originText(o *exchange.Origin) string {
	if o == nil {
		return ""
	}
	text := string(o.Exchange)
	if o.Key != "" {
		text += fmt.Sprintf(", key %s, take %d", o.Key, o.Occurrence+1)
	}
	return text
}

// itemText is which part of a plan an exchange carried out.
func itemText(p *exchange.PlanItem) string {
	if p == nil {
		return ""
	}
	text := p.Item
	if p.Turns > 1 {
		text += fmt.Sprintf(", turn %d of %d of conversation %s", p.Turn+1, p.Turns, p.Conversation)
	}
	switch {
	case p.Warmup:
		text += fmt.Sprintf(", warm-up %d, in no figure of the run", p.Repeat+1)
	default:
		text += fmt.Sprintf(", repeat %d", p.Repeat+1)
	}
	if p.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d after a 503", p.Attempt+1)
	}
	return text
}
