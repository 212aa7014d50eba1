package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Load is how busy a run kept its engine, over the whole run and in the steady window: the longest stretch in which at
// least 90 % of the peak was in flight. Rates are of complete answers; their tokens are spread evenly from first to last.
type Load struct {
	Requests   int      `json:"requests"`
	Complete   int      `json:"complete"`
	InFlight   int      `json:"in_flight"` // requests in flight when one was sent, itself included: the median
	Peak       int      `json:"peak"`
	WholeS     float64  `json:"whole_s"`   // first send to last end
	SteadyS    float64  `json:"steady_s"`  // length of the steady window
	Ramp       float64  `json:"ramp"`      // share of the whole before the steady window
	Drain      float64  `json:"drain"`     // share of the whole after the last request was sent
	WholeTPS   *float64 `json:"whole_tps"` // null, like the next, when no token count is known
	SteadyTPS  *float64 `json:"steady_tps"`
	RequestsPS *float64 `json:"requests_per_s"` // complete ones, over the whole
	Goodput    *Goodput `json:"goodput"`        // null without objectives
}

// Goodput is how many requests met every objective.
type Goodput struct {
	stat.Share
	PerS *float64 `json:"per_s"` // over the whole run
}

// loadOf measures the load of a side by its takes.
func loadOf(takes []*Entry, objectives []Objective) Load {
	requests := make([]loadRequest, len(takes))
	for i, e := range takes {
		requests[i] = loadRequest{instants: e.instants, complete: e.complete(), good: meetsAll(&e.Row, objectives), tokens: e.Row.Metrics[measure.CompletionTokens].Value}
	}
	return loadOfRequests(requests, len(objectives) > 0)
}

// instants are those of a request, in seconds since 1970.
type instants struct {
	sent, first, last, end float64 // send, first and last token (the whole request when it had none), end of the body
}

func instantsOf(t *exchange.Timeline, f exchange.Figures) (at instants) {
	sent, _ := t.SendStart.NS()
	at.sent = seconds(t.Wall, sent)
	at.end = at.sent
	if end, ok := t.BodyEnd.NS(); ok {
		at.end = seconds(t.Wall, end)
	}
	at.first, at.last = at.sent, at.end
	if ttft, last := f[measure.TTFTMS], f[measure.LastTokenMS]; ttft.Present() && last.Present() {
		at.first, at.last = at.sent+ttft.Value/1e3, at.sent+last.Value/1e3
	}
	return at
}

// loadRequest is what a load needs of a request.
type loadRequest struct {
	instants
	complete, good bool
	tokens         float64 // 0 when unknown
}

func loadOfRequests(all []loadRequest, objectives bool) Load {
	l := Load{Requests: len(all)}
	var requests, answers []stat.Span
	good := 0
	for i := range all {
		r := &all[i]
		requests = append(requests, stat.Span{Start: r.sent, End: r.end})
		if r.complete {
			l.Complete++
			answers = append(answers, stat.Span{Start: r.first, End: r.last, Weight: r.tokens})
		}
		if r.good {
			good++
		}
	}
	l.InFlight = usualInFlight(requests)
	if objectives {
		l.Goodput = &Goodput{Share: stat.ShareOf(good, len(all))}
	}
	busy, ok := stat.LoadOf(requests)
	if !ok {
		return l
	}
	l.Peak, l.WholeS, l.SteadyS, l.Ramp, l.Drain = busy.Peak, busy.Whole.Length(), busy.Steady.Length(), busy.Ramp, busy.Drain
	if whole, steady := stat.Rate(answers, busy.Whole), stat.Rate(answers, busy.Steady); whole > 0 {
		l.WholeTPS, l.SteadyTPS = &whole, &steady
	}
	perS := float64(l.Complete) / l.WholeS
	l.RequestsPS = &perS
	if l.Goodput != nil {
		goodPS := float64(good) / l.WholeS
		l.Goodput.PerS = &goodPS
	}
	return l
}

// LoadMeter gathers the load of a run while it is measured: some 300 bytes of memory a request. It is safe for concurrent use.
type LoadMeter struct {
	objectives []Objective

	mu       sync.Mutex
	requests []loadRequest
	attempts map[exchange.PlanItem]attempted // by request
}

// attempted is the last attempt at a request so far, and where its requests entry is.
type attempted struct{ attempt, at int }

// NewLoadMeter gathers goodput by the objectives; nil for none.
func NewLoadMeter(objectives []Objective) *LoadMeter {
	return &LoadMeter{objectives: objectives, attempts: map[exchange.PlanItem]attempted{}}
}

// Add takes an exchange with its row. As in a comparison, warm-ups and what asks for no answer are no load, and the last
// attempt at a request counts for it.
func (m *LoadMeter) Add(x *exchange.Exchange, row *exchange.Summary) {
	if row.Dialect == "" || x.Item != nil && x.Item.Warmup {
		return
	}
	r := loadRequest{instants: instantsOf(&x.Timeline, row.Metrics), complete: row.Outcome == exchange.OutcomeComplete,
		good: meetsAll(row, m.objectives), tokens: row.Metrics[measure.CompletionTokens].Value}
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.Item == nil {
		m.requests = append(m.requests, r)
		return
	}
	request := *x.Item
	request.Attempt = 0
	was, again := m.attempts[request]
	switch {
	case !again:
		m.attempts[request] = attempted{x.Item.Attempt, len(m.requests)}
		m.requests = append(m.requests, r)
	case x.Item.Attempt > was.attempt:
		m.attempts[request] = attempted{x.Item.Attempt, was.at}
		m.requests[was.at] = r
	}
}

// Load is that of all exchanges so far.
func (m *LoadMeter) Load() Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	return loadOfRequests(m.requests, len(m.objectives) > 0)
}

// usualInFlight is the median, over the requests, of how many were in flight when each was sent.
func usualInFlight(requests []stat.Span) int {
	if len(requests) == 0 {
		return 0
	}
	starts, ends := make([]float64, len(requests)), make([]float64, len(requests))
	for i, r := range requests {
		starts[i], ends[i] = r.Start, r.End
	}
	slices.Sort(starts)
	slices.Sort(ends)
	counts, ended := make([]int, len(starts)), 0
	for i, at := range starts {
		for ended < len(ends) && ends[ended] <= at {
			ended++
		}
		counts[i] = max(i+1-ended, 1)
	}
	slices.Sort(counts)
	return counts[len(counts)/2]
}

// Objective is a bound that one request is to meet: a latency at most, or a rate at least.
type Objective struct {
	Metric string  `json:"metric"`
	Limit  float64 `json:"limit"` // in the unit of the metric
}

// shortNames are the names that objectives may use beside those of the metrics.
var shortNames = map[string]string{"ttft": measure.TTFTMS, "tpot": measure.TPOTMS, "e2e": measure.TotalWallMS, "e2el": measure.TotalWallMS}

// ParseObjectives reads "ttft=200ms,tpot=20ms,decode_tps=30": a duration is the most a latency may be, a number the least
// that a rate may be. The error wraps exchange.ErrUsage.
func ParseObjectives(text string) ([]Objective, error) {
	var out []Objective
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if long, short := shortNames[name]; short {
			name = long
		}
		m, known := metricNamed(name)
		if !ok || !known {
			return nil, fmt.Errorf("%w: objective %q is not METRIC=LIMIT, such as ttft=200ms or decode_tps=30; metrics are ttft, tpot, e2e and %s",
				exchange.ErrUsage, part, strings.Join(MetricNames(), ", "))
		}
		limit, err := objectiveLimit(m, value)
		if err != nil || !(limit > 0) {
			return nil, fmt.Errorf("%w: objective %q has no limit above 0: a duration such as 200ms for a latency, a number for a rate", exchange.ErrUsage, part)
		}
		out = append(out, Objective{Metric: name, Limit: limit})
	}
	return out, nil
}

func objectiveLimit(m metric, value string) (float64, error) {
	if unitOf(m.name) == "ms" {
		d, err := time.ParseDuration(value)
		return d.Seconds() * 1e3, err
	}
	return strconv.ParseFloat(value, 64)
}

// meetsAll reports whether a request ended complete and met every objective. A rate over tokens that an answer of one
// token does not have is met.
func meetsAll(row *exchange.Summary, objectives []Objective) bool {
	for _, o := range objectives {
		m, _ := metricNamed(o.Metric)
		f := row.Metrics[o.Metric]
		switch {
		case !f.Present():
			if f.Reason != measure.ReasonTooFewTokens {
				return false
			}
		case m.moreBetter && f.Value < o.Limit, !m.moreBetter && f.Value > o.Limit:
			return false
		}
	}
	return row.Outcome == exchange.OutcomeComplete
}

func metricNamed(name string) (metric, bool) {
	i := slices.IndexFunc(metrics[:], func(m metric) bool { return m.name == name })
	if i < 0 {
		return metric{}, false
	}
	return metrics[i], true
}

// MetricNames are the compared metrics in the order of printing.
func MetricNames() []string {
	out := make([]string, len(metrics))
	for i, m := range metrics {
		out[i] = m.name
	}
	return out
}
