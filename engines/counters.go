package engines

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// CounterNames say where an engine counts the drafts of speculative decoding, in a Prometheus text. Of several names of
// one number the first that is there counts; its series are added up.
type CounterNames struct {
	Path      string   `json:"path"`
	Drafted   []string `json:"drafted"`
	Accepted  []string `json:"accepted"`
	Steps     []string `json:"steps,omitempty"`
	Generated []string `json:"generated,omitempty"`
}

// Source names the document in which an engine counts drafts; ok is false for one that is not known to.
func (c *Catalog) Source(engine string) (source string, ok bool) {
	p, ok := c.Lookup(engine)
	if !ok || p.Counters == nil {
		return "", false
	}
	return p.ID + " " + p.Counters.Path, true
}

// ReadCounters asks an engine of a known profile for its counters. One that does not speculate counts no drafts: see
// exchange.CounterReading.Drafts. The error is for an answer that did not come, and for a profile without counters it
// wraps exchange.ErrUsage.
func (c *Catalog) ReadCounters(ctx context.Context, do Doer, base, engine string, o Options) (exchange.CounterReading, error) {
	var r exchange.CounterReading
	profile, ok := c.Lookup(engine)
	if !ok || profile.Counters == nil {
		return r, fmt.Errorf("read counters: %w: %q is not known to count drafts", exchange.ErrUsage, engine)
	}
	p, err := newProber(do, base, o)
	if err != nil {
		return r, err
	}
	names := profile.Counters
	a := p.get(ctx, names.Path)
	if err := p.failure(ctx); err != nil {
		return r, fmt.Errorf("read counters: %w", err)
	}
	if !a.ok() {
		return r, nil // llama.cpp counts only when it is started so
	}
	series := sumSeries(string(a.body))
	r.Drafted, r.Accepted = firstCounter(series, names.Drafted), firstCounter(series, names.Accepted)
	r.Steps, r.Generated = firstCounter(series, names.Steps), firstCounter(series, names.Generated)
	return r, nil
}

// sumSeries adds up the series of each name of a Prometheus text.
func sumSeries(text string) map[string]float64 {
	sums := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "{ \t")
		if end <= 0 || line[0] == '#' {
			continue
		}
		name, rest := line[:end], line[end:]
		if rest[0] == '{' {
			rest = rest[strings.LastIndexByte(rest, '}')+1:]
		}
		fields := strings.Fields(rest) // a value, perhaps with a time behind it
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			sums[name] += v
		}
	}
	return sums
}

// firstCounter is the first of the names that is there as a whole number.
func firstCounter(sums map[string]float64, names []string) *int64 {
	for _, name := range names {
		if v, ok := sums[name]; ok && v >= 0 && v < 1<<53 && v == math.Trunc(v) {
			return pointer(int64(v))
		}
	}
	return nil
}

// checkCounters refuses counters that could not be read.
func (p Profile) checkCounters() error {
	c := p.Counters
	switch {
	case c == nil:
		return nil
	case !strings.HasPrefix(c.Path, "/") || p.avoids(c.Path):
		return fmt.Errorf("counters cannot be read at %q", c.Path)
	case len(c.Drafted) == 0 || len(c.Accepted) == 0:
		return fmt.Errorf("counters need names of drafted and accepted tokens")
	}
	return nil
}
