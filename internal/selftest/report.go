package selftest

import (
	"encoding/json"
	"math"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Report is the result of a selftest. All times are in microseconds, where the name says nothing else.
type Report struct {
	Schema    int                   `json:"schema"`
	ID        exchange.ID           `json:"id"`
	Time      time.Time             `json:"time"`      // when it began, UTC
	Seconds   float64               `json:"seconds"`   // how long it took
	Harness   string                `json:"harness"`   // version of benchproxy
	Recording bool                  `json:"recording"` // the proxy kept every exchange
	Host      exchange.Host         `json:"host"`
	Plan      Plan                  `json:"plan"`
	Method    map[string]string     `json:"method"` // how the numbers were made, by their name
	Cells     []Cell                `json:"cells"`
	Rate      Rate                  `json:"rate"`
	Noise     []exchange.NoiseFloor `json:"noise"`
}

// Instrument is what later runs carry of the report.
func (r *Report) Instrument() exchange.Instrument {
	return exchange.Instrument{ID: r.ID, Time: r.Time, Harness: r.Harness, Host: r.Host, Noise: r.Noise}
}

// JSON is the document that `selftest --json` prints and the store keeps.
func (r *Report) JSON() (json.RawMessage, error) { return json.Marshal(r) }

// Cell is what one level came to under one load.
type Cell struct {
	Load    string `json:"load"`
	Streams int    `json:"streams"`

	TTFT  Added `json:"ttft_us"`  // request sent to first token, less what the engine took itself
	Event Added `json:"event_us"` // event written to event at the client

	Stamp      stat.Summary    `json:"stamp_error_us"`         // of the proxy's records
	Driver     stat.Summary    `json:"driver_stamp_error_us"`  // of the client that replay uses, at the engine itself
	ReadReturn stat.Summary    `json:"driver_read_error_us"`   // what it would be without stamps of the kernel
	OwnCost    stat.Summary    `json:"proxy_added_us"`         // read's stamp to end of its write to the client, by the records
	Merged     *float64        `json:"merged_share"`           // token events in one read with a later one; null without events
	Unsure     *float64        `json:"unsure_share"`           // events without a stamp error, for the engine was held up in its write; null without events
	Lost       *float64        `json:"lost_stamps_share"`      // answers with a read that the kernel had no stamp for; null without answers
	Noise      *float64        `json:"noise_us"`               // differences below say nothing; null with the reason
	NoiseWhy   exchange.Reason `json:"noise_reason,omitempty"` // why Noise is null
	NoiseFrom  string          `json:"noise_from,omitempty"`   // what Noise is
}

// Added is a time on both ways and their difference.
type Added struct {
	Direct   stat.Summary `json:"direct"`
	Proxied  stat.Summary `json:"proxied"`
	Added    stat.Summary `json:"added"`     // of the rounds' differences of medians: its median and interval are the added time
	AddedP99 *float64     `json:"added_p99"` // difference of the two p99; null when one of them is
}

// methods say how the numbers of a report were made.
var methods = map[string]string{
	"ttft_us":              "send of the request to first token at the client, less the time from the engine having read the request to its write of the token",
	"event_us":             "the engine's write of a token event to the event at the client",
	"added":                "each round plays direct and proxied in turns: median proxied - median direct of a round; median and interval over the rounds",
	"added_p99":            "p99 of all proxied samples - p99 of all direct ones; no interval, a round has too few samples for a p99",
	"stamp_error_us":       "the proxy's stamp of a read - the engine's write of the last event in it, both on the host's wall clock",
	"unsure_share":         "events last in their read whose write call took the engine more than 100 us, so that its stamp is no measure; left out of the stamp errors",
	"driver_read_error_us": "moment at which the read had been taken and done with, instead of the kernel's stamp, for the same reads as driver_stamp_error_us",
	"merged_share":         "token events that share a read of the proxy with a later token event / all token events",
	"lost_stamps_share":    "answers in which the proxy stamped at least one read by its own clock for want of the kernel's stamp / all answers",
	"noise_us":             "the largest of: p99 of the stamp error (its maximum below the sample floor), half of the interval of added TTFT, half of that of added time per event",
}

func (r *runner) report(began clock.Origin, steps []RateStep) (*Report, error) {
	out := &Report{
		Schema: 1, ID: exchange.NewID(began.Wall()), Time: began.Wall(), Seconds: float64(began.NS()) / 1e9,
		Harness: r.cfg.Harness, Recording: true, Host: r.cfg.Host, Plan: r.cfg.Plan, Method: methods,
	}
	for _, c := range r.cells {
		cell := c.report()
		out.Cells = append(out.Cells, cell)
		out.Noise = append(out.Noise, exchange.NoiseFloor{
			Load: cell.Load, Streams: cell.Streams, US: cell.Noise, Reason: cell.NoiseWhy,
		})
	}
	var err error
	if r.cfg.Plan.Search.Streams > 0 {
		out.Rate, err = best(steps, r.cfg.Plan.Search.Streams)
	}
	return out, err
}

func (c *cell) report() Cell {
	out := Cell{
		Load: c.load, Streams: c.level.Streams,
		TTFT:  c.compare(func(s samples) []float64 { return s.ttft }),
		Event: c.compare(func(s samples) []float64 { return s.event }),
		Stamp: stat.Summarize(c.proxy.errors), Driver: stat.Summarize(c.driver.errors), ReadReturn: stat.Summarize(c.driver.returned),
		OwnCost: stat.Summarize(c.added),
		Merged:  share(c.proxy.merged, c.proxy.events), Lost: share(c.proxy.lost, c.proxy.answers),
		Unsure: share(c.proxy.unsure, c.proxy.unsure+len(c.proxy.errors)),
	}
	out.floor()
	return out
}

// compare compares the ways in one kind of sample.
func (c *cell) compare(of func(samples) []float64) Added {
	all, differences := map[string][]float64{}, []float64{}
	for _, round := range c.rounds {
		medians := map[string]float64{}
		for _, way := range ways {
			s := of(round[way])
			all[way] = append(all[way], s...)
			if m := stat.Summarize(s).Median; m != nil {
				medians[way] = *m
			}
		}
		if len(medians) == len(ways) {
			differences = append(differences, medians[proxied]-medians[direct])
		}
	}
	a := Added{Direct: stat.Summarize(all[direct]), Proxied: stat.Summarize(all[proxied]), Added: stat.Summarize(differences)}
	if a.Direct.P99 != nil && a.Proxied.P99 != nil {
		d := *a.Proxied.P99 - *a.Direct.P99
		a.AddedP99 = &d
	}
	return a
}

func share(part, of int) *float64 {
	if of == 0 {
		return nil
	}
	s := float64(part) / float64(of)
	return &s
}

// floor derives the noise floor of a cell by the rule in methods.
func (c *Cell) floor() {
	if c.Stamp.N == 0 {
		c.NoiseWhy = stat.ReasonNoSamples
		return
	}
	us, from := math.Abs(*c.Stamp.Max), "largest stamp error"
	if c.Stamp.P99 != nil {
		us, from = math.Abs(*c.Stamp.P99), "p99 of the stamp error"
	}
	for _, a := range []struct {
		of   *stat.Interval
		from string
	}{{c.TTFT.Added.Interval, "interval of added TTFT"}, {c.Event.Added.Interval, "interval of added time per event"}} {
		if a.of == nil {
			c.NoiseWhy = stat.ReasonNoInterval
			return
		}
		if half := (a.of.Hi - a.of.Lo) / 2; half > us {
			us, from = half, a.from
		}
	}
	c.Noise, c.NoiseFrom = &us, from
}
