package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// revalidator judges the exchanges of one run. Workers judge; the results are taken in the order of acceptance, so that
// what comes of it does not depend on their number.
type revalidator struct {
	run        *exchange.Run
	o          *RevalidateOptions
	weights    []string
	derive     *Rows
	superseded map[attempt]int // the last attempt, where there were several
	cases      []*CaseJudged   // of a suite, in the order of its plan
	caseOf     map[exchange.ID]*CaseJudged
	met        map[exchange.ID]*captured // answers that gates of the cases needed
	spans      *Spans                    // of the run, where answers are held against goldens; nil where they are not known
	lacks      map[exchange.ID]*captured // refusals for which cases were not sent; nil where one is not on record

	result    *Revalidated
	now, then measure.Totals
	rows      bool // there are stored rows
	gates     map[gateKey]map[exchange.VerdictStatus]int
	moved     map[string]*MetricChange
	waves     *waveTally
}

type gateKey struct {
	id      string
	version int
}

// judgeJob is one exchange on its way through the workers.
type judgeJob struct {
	of     *captured
	result *Judged
	err    error
	done   chan struct{} // closed when result or err is there
}

// ahead is how many exchanges, for each worker, may be read before their turn has come.
const ahead = 4

// Run judges what items gives, with as many workers as there are processors. It leaves nothing running.
func (v *revalidator) Run(ctx context.Context, items iter.Seq2[*captured, error]) (*Revalidated, error) {
	v.begin()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := cmp.Or(v.o.Workers, runtime.GOMAXPROCS(0))
	work, order := make(chan *judgeJob), make(chan *judgeJob, ahead*workers)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(order)
		defer close(work)
		v.feed(ctx, items, work, order)
	})
	for range workers {
		wg.Go(func() {
			for j := range work {
				j.result, j.err = v.judge(j.of)
				close(j.done)
			}
		})
	}
	err := v.gather(ctx, order)
	cancel()
	for range order { // what was begun comes to its end
	}
	wg.Wait()
	if err != nil {
		return nil, err
	}
	return v.end(), nil
}

// feed hands the exchanges to the workers, and to the one who takes the results in order.
func (v *revalidator) feed(ctx context.Context, items iter.Seq2[*captured, error], work, order chan<- *judgeJob) {
	for c, err := range items {
		j := &judgeJob{of: c, err: err, done: make(chan struct{})}
		select {
		case order <- j:
		case <-ctx.Done():
			return
		}
		if err != nil {
			close(j.done)
			return
		}
		select {
		case work <- j:
		case <-ctx.Done():
			j.err = context.Cause(ctx)
			close(j.done)
			return
		}
	}
}

// gather takes the results in order.
func (v *revalidator) gather(ctx context.Context, order <-chan *judgeJob) error {
	for j := range order {
		<-j.done
		switch {
		case j.err != nil:
			return j.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		v.take(j.result)
		if v.o.Each != nil {
			if err := v.o.Each(j.result); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil { // the feed stopped before the first result
		return context.Cause(ctx)
	}
	return nil
}

// begin makes the empty result.
func (v *revalidator) begin() {
	v.result = &Revalidated{
		Schema: RevalidateSchema, Mode: ModeRevalidation, Harness: v.o.Harness, Rules: measure.Rules(), Checks: v.o.Checks,
		Source:   EvidenceSource{Run: v.run.ID, Name: v.run.Name, State: v.run.State, Harness: v.run.Harness, Rules: []exchange.Rules{}, Weights: v.weights},
		Statuses: map[exchange.VerdictStatus]int{}, Lenient: map[exchange.VerdictStatus]int{},
		Changes: []VerdictChange{}, Moved: []MetricChange{},
	}
	v.now.Limit, v.then.Limit = v.o.Limit, v.o.Limit
	v.gates, v.moved, v.waves = map[gateKey]map[exchange.VerdictStatus]int{}, map[string]*MetricChange{}, newWaveTally(v.run)
}

// changesKept bounds the list of changed verdicts; all of them are counted.
const changesKept = 10_000

// take counts one judged exchange.
func (v *revalidator) take(j *Judged) {
	r := v.result
	r.Recorded++
	if j.stored != nil && !slices.Contains(r.Source.Rules, j.Rules) {
		r.Source.Rules = append(r.Source.Rules, j.Rules)
	}
	r.ChangesTotal += len(j.changes)
	r.Changes = append(r.Changes, j.changes[:min(len(j.changes), changesKept-len(r.Changes))]...)
	for _, name := range slices.Sorted(maps.Keys(j.Moved)) {
		m := v.moved[name]
		if m == nil {
			m = &MetricChange{Metric: name, Example: j.ID, MetricMoved: j.Moved[name]}
			v.moved[name] = m
		}
		m.Exchanges++
	}
	v.waves.add(j)
	if j.Status == "" {
		return
	}
	r.Judged++
	r.Statuses[j.Status]++
	r.Lenient[j.Lenient]++
	if j.broken {
		r.Broken++
	}
	if j.remained {
		r.Remained++
	}
	for _, g := range j.Verdicts {
		k := gateKey{g.Gate, g.Version}
		if v.gates[k] == nil {
			v.gates[k] = map[exchange.VerdictStatus]int{}
		}
		v.gates[k][g.Status]++
	}
	r.Lines = append(r.Lines, JudgedLine{j.ID, j.Seq, j.Case, j.Status, j.Reason})
	if j.Status == exchange.VerdictOK {
		v.now.Add(j.today)
		if j.stored != nil {
			v.rows = true
			v.then.Add(j.stored)
		}
	}
}

// end sums up.
func (v *revalidator) end() *Revalidated {
	r := v.result
	r.Now = v.now.Run()
	if v.rows {
		then := v.then.Run()
		r.Then = &then
	}
	r.Gates = []GateCount{}
	for _, k := range slices.SortedFunc(maps.Keys(v.gates), func(a, b gateKey) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.version, b.version))
	}) {
		r.Gates = append(r.Gates, GateCount{k.id, k.version, v.gates[k]})
	}
	for _, name := range slices.Sorted(maps.Keys(v.moved)) {
		r.Moved = append(r.Moved, *v.moved[name])
	}
	for _, o := range v.o.Outside {
		r.Outside = append(r.Outside, o.Told)
	}
	r.Waves, r.Cases = v.waves.end(), v.cases
	missing := v.missingCase()
	switch {
	case v.run.State != exchange.RunComplete && v.run.Counts.Dropped == 0 && v.run.Replay != nil && v.run.Replay.Incomplete != "":
		r.Why = fmt.Sprintf("the run is %s: %s", v.run.State, v.run.Replay.Incomplete)
	case v.run.State != exchange.RunComplete:
		r.Why = fmt.Sprintf("the run is %s: %d exchanges were dropped", v.run.State, v.run.Counts.Dropped)
	case v.run.Counts.Stored > 0 && int64(r.Recorded) != v.run.Counts.Stored:
		r.Why = fmt.Sprintf("the run was closed with %d exchanges, and %d are there", v.run.Counts.Stored, r.Recorded)
	case missing != "":
		r.Why = missing
	case r.Broken > 0:
		r.Why = count(r.Broken, "record", "records") + " cannot be read whole"
	}
	r.Complete = r.Why == ""
	return r
}
