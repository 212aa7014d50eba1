package build

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// draw keeps the exchange if it is one that people want to see: the first, the one that waited longest for its first token,
// the longest, the first with thinking, with a tool call, and the first that failed in its stream.
func (r *Run) draw(x *exchange.Exchange, a *measure.Analysis, row *exchange.Summary) {
	if len(a.Transcript.Events) == 0 {
		return
	}
	kinds := wire.Kind(0)
	for i := range a.Transcript.Events {
		kinds |= a.Transcript.Events[i].Kinds
	}
	failed := row.Outcome != exchange.OutcomeComplete
	once := func(why string, holds bool) {
		has := slices.ContainsFunc(r.falls, func(f fall) bool { return f.why == why })
		if holds && !has {
			r.keep(fall{why: why}, x, a, row)
		}
	}
	once("the first", !failed)
	once("the first with thinking", !failed && kinds&wire.KindReasoning != 0)
	once("the first with a tool call", !failed && kinds&wire.KindTool != 0)
	once("the first that failed in its stream", failed)
	most := func(why, metric string) {
		f := row.Metrics[metric]
		i := slices.IndexFunc(r.falls, func(f fall) bool { return f.why == why })
		switch {
		case failed || !f.Present():
		case i < 0:
			r.keep(fall{why: why, rank: f.Value}, x, a, row)
		case f.Value > r.falls[i].rank:
			r.falls = slices.Delete(r.falls, i, i+1)
			r.keep(fall{why: why, rank: f.Value}, x, a, row)
		}
	}
	most("the longest wait for a first token", measure.TTFTMS)
	most("the longest answer", measure.TotalWallMS)
}

func (r *Run) keep(f fall, x *exchange.Exchange, a *measure.Analysis, row *exchange.Summary) {
	if len(r.falls) < mostFalls {
		f.row, f.chart = bare(row), waterfall(x, a, row)
		r.falls = append(r.falls, f)
	}
}

// waterfall is where the time of one exchange went.
func waterfall(x *exchange.Exchange, a *measure.Analysis, row *exchange.Summary) chart.Waterfall {
	fs := row.Metrics
	w := chart.Waterfall{Title: "Exchange " + string(row.ID), End: fs[measure.TotalWallMS].Value}
	ttft, last := fs[measure.TTFTMS], fs[measure.LastTokenMS]
	if !ttft.Present() {
		ttft = fs[measure.FirstByteMS]
	}
	waitTo := ttft.Value
	if !ttft.Present() {
		waitTo = w.End
	}
	before := 0.0
	span := func(name string, from, to float64, waiting bool) {
		if to > from {
			w.Spans = append(w.Spans, chart.Span{Name: name, From: from, To: to, Waiting: waiting})
		}
	}
	for _, wait := range []struct{ metric, name string }{{measure.QueueMS, "queue"}, {measure.LoadMS, "load"}} {
		if f := fs[wait.metric]; f.Present() && before+f.Value <= waitTo {
			span(wait.name, before, before+f.Value, true)
			before += f.Value
		}
	}
	span("prefill", before, waitTo, true)
	answer := fs[measure.AnswerTTFTMS]
	if answer.Present() && ttft.Present() {
		span("reasoning", ttft.Value, answer.Value, false)
		span("answer", answer.Value, last.Value, false)
	} else if last.Present() {
		span("reasoning", ttft.Value, last.Value, false)
	}
	span("end", max(last.Value, waitTo), w.End, true)
	w.Lanes = lanes(x, a)
	return w
}

// lanes are the token events by kind. An event of several kinds stands in each.
func lanes(x *exchange.Exchange, a *measure.Analysis) []chart.Lane {
	t0, sent := x.Timeline.SendStart.NS()
	if !sent {
		return nil
	}
	var out []chart.Lane
	for _, k := range []struct {
		kind wire.Kind
		name string
	}{{wire.KindReasoning, "reasoning"}, {wire.KindText, "text"}, {wire.KindRefusal, "refusal"}, {wire.KindTool, "tools"}} {
		l := chart.Lane{Name: k.name}
		for i := range a.Transcript.Events {
			e := &a.Transcript.Events[i]
			if e.Kinds&k.kind != 0 && e.Read >= 0 && e.Read < len(x.Timeline.Reads) {
				l.Times = append(l.Times, float64(x.Timeline.Reads[e.Read].At-t0)/1e6)
			}
		}
		if len(l.Times) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// words say which exchange is drawn and why.
func (f *fall) words() string {
	return fmt.Sprintf("Number %d of the run, %s: %s", f.row.Seq, f.why, f.row.Outcome)
}
