package build

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// errNoGates says that a JSON document holds no verdicts.
var errNoGates = errors.New("it holds no verdicts of gates")

// ParseGates reads a file of verdicts: gates.json of ours, with a list of verdicts, or one of another harness that has a
// verdict and its seconds for each gate by name. source names it in the report.
func ParseGates(data []byte, source string) (Gates, error) {
	var in struct {
		Level    string
		Verdict  string
		Complete *bool
		Verdicts []struct {
			exchange.Verdict
			Seconds float64 `json:"seconds"`
		}
		Gates map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &in); err != nil || len(in.Verdicts)+len(in.Gates) == 0 {
		return Gates{}, errNoGates
	}
	g := Gates{Source: source, Level: in.Level, Verdict: in.Verdict}
	if in.Complete != nil && !*in.Complete {
		g.Verdict = strings.TrimPrefix(g.Verdict+", incomplete", ", ")
	}
	for _, v := range in.Verdicts {
		c := GateCase{Gate: v.Gate, Case: v.Case, Status: v.Status, Lenient: v.Lenient, Reason: v.Reason, Seconds: v.Seconds}
		for _, e := range v.Evidence {
			if e.Kind == "exchange" {
				c.Exchanges = append(c.Exchanges, exchange.ID(e.ID))
			}
		}
		g.Cases = append(g.Cases, c)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Gates)) {
		if c, ok := namedGate(name, in.Gates[name]); ok {
			g.Cases = append(g.Cases, c)
		}
	}
	if len(g.Cases) == 0 {
		return Gates{}, errNoGates
	}
	return g, nil
}

// namedGate is a gate of which only a verdict is known: a word, or an object with one.
func namedGate(name string, data []byte) (GateCase, bool) {
	c := GateCase{Gate: name, Case: name}
	word := ""
	if json.Unmarshal(data, &word) != nil {
		var f fields
		if json.Unmarshal(data, &f) != nil {
			return c, false
		}
		word, c.Seconds, c.Reason = f.first("verdict", "status"), f.number("seconds"), f.first("reason", "detail")
	}
	switch strings.ToLower(word) {
	case "":
		return c, false
	case "pass", "ok", "passed":
		c.Status = exchange.VerdictOK
	case "fail", "failed":
		c.Status = exchange.VerdictFail
	case "skip", "skipped":
		c.Status = exchange.VerdictSkipped
	default: // deferred, warn: no pass
		c.Status, c.Reason = exchange.VerdictNotRun, strings.TrimSpace(word+" "+c.Reason)
	}
	return c, true
}

// GatesOf are the verdicts that a run of a suite keeps; ok is false for a run that keeps none.
func GatesOf(r *Run) (g Gates, ok bool) {
	if r.Run.Replay == nil {
		return g, false
	}
	g.Source, g.Level = r.Label, r.Run.Labels["level"]
	for i := range r.Run.Replay.Cases {
		c := &r.Run.Replay.Cases[i]
		ids := r.cases[c.ID]
		for _, v := range c.Verdicts {
			reason := ""
			if v.Status != exchange.VerdictOK {
				reason = c.Reason
			}
			g.Cases = append(g.Cases, GateCase{Gate: v.Gate, Case: c.ID, Status: v.Status, Lenient: v.Lenient, Reason: reason, Exchanges: ids})
		}
		if len(c.Verdicts) == 0 {
			status := c.Status
			if status == "" {
				status = exchange.VerdictNotRun
			}
			g.Cases = append(g.Cases, GateCase{Gate: c.Scenario, Case: c.ID, Status: status, Lenient: c.Lenient, Reason: c.Reason, Exchanges: ids})
		}
	}
	return g, len(g.Cases) > 0
}
