package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Revalidation judges captured answers again, by the gates and metrics of this build. It sends nothing: there is no
// target among its options, and it knows nothing that opens a connection. The evidence is read and never written. What
// failed when it was captured stays failed, whatever the rules of today make of it.

// Words of the documents that revalidations are written as.
const (
	RevalidateSchema = 1
	ModeRevalidation = "revalidation"
)

// RevalidateOptions say how recorded exchanges are judged.
type RevalidateOptions struct {
	Harness string           // version of benchproxy that judges
	Checks  []exchange.Check // of every request for an answer; nil = what its own request asks for, see gates.Auto
	Outside []*OutsideReport // what external gates said of the same evidence
	Weights string           // digest that the weights of the run must have; "" = any
	// WeightsID are the weights that answered, as goldens name theirs; "" = those that the run knows of its engine.
	WeightsID string
	Against   *EarlierJudgments // of the same evidence; nil = none
	Goldens   GoldenSource      // of what cases were held against; nil = none
	Workers   int               // exchanges that are judged at a time; 0 = as many as there are processors
	Limit     int               // exchanges that give samples to the summaries of metrics; 0 = all
	// Each gets every judged exchange in the order of acceptance. Its error ends the revalidation.
	Each func(*Judged) error
}

// Judged is one exchange, judged again.
type Judged struct {
	ID      exchange.ID            `json:"id"`
	Seq     uint64                 `json:"seq"`
	Wave    string                 `json:"wave,omitempty"`
	Case    string                 `json:"case,omitempty"`    // of a suite: it is judged with all turns of it, and the last one carries the verdicts
	Outcome exchange.Outcome       `json:"outcome,omitempty"` // by the rules of today; "" when it cannot be read
	Status  exchange.VerdictStatus `json:"status"`            // of all verdicts together, and a failure of the past stays one; "" for no request for an answer
	Lenient exchange.VerdictStatus `json:"lenient_status"`    // the same in the relaxed reading of the gates that have one
	Reason  string                 `json:"reason,omitempty"`

	Original *exchange.Outcome      `json:"original_outcome"` // as it was stored; null when no row was
	Rules    exchange.Rules         `json:"original_rules"`   // by which it was derived then
	Evidence []exchange.EvidenceSum `json:"evidence"`
	Verdicts []GateVerdict          `json:"verdicts"`
	Moved    map[string]MetricMoved `json:"changed_metrics,omitempty"`
	Flags    []string               `json:"flags,omitempty"` // by the rules of today, those of its model by what the run knows of its engines

	today, stored *exchange.Summary
	changes       []VerdictChange
	member        *measure.WaveMember // of a wave; nil outside of one, and where there is no record
	broken        bool                // the record is not whole or contradicts itself
	remained      bool                // it fails only because it failed before
}

// GateVerdict is what one gate says of a judged exchange. Case and evidence are those of the exchange.
type GateVerdict struct {
	Gate    string                 `json:"gate"`
	Version int                    `json:"version"`
	Status  exchange.VerdictStatus `json:"status"`
	Lenient exchange.VerdictStatus `json:"lenient_status,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Detail  json.RawMessage        `json:"detail,omitempty"`
}

// MetricMoved is a metric of which the rules of today make something else than what was stored.
type MetricMoved struct {
	Was exchange.Figure `json:"was"`
	Now exchange.Figure `json:"now"`
}

// EvidenceSource says what was judged, and who recorded it.
type EvidenceSource struct {
	Run     exchange.ID       `json:"run"`
	Name    string            `json:"name,omitempty"`
	State   exchange.RunState `json:"state"`
	Harness string            `json:"harness"`           // version of benchproxy that recorded it
	Rules   []exchange.Rules  `json:"rules"`             // by which its rows were derived, in order of appearance
	File    string            `json:"file,omitempty"`    // it was read from, "" for the store
	Digest  string            `json:"digest,omitempty"`  // of the file, sha256:<hex>
	Weights []string          `json:"weights,omitempty"` // digests of the weights behind the run, as far as they are known
}

// Revalidated is what a revalidation came to.
type Revalidated struct {
	Schema  int            `json:"schema"`
	Mode    string         `json:"mode"`
	NewRun  bool           `json:"new_inference_run"` // always false
	Source  EvidenceSource `json:"source"`
	Harness string         `json:"harness"` // version of benchproxy that judged
	Rules   exchange.Rules `json:"rules"`   // by which it derived
	Outside []OutsideTold  `json:"external_gates,omitempty"`
	// Checks are those that were named; none where each exchange was judged by what it asks for, or as its case.
	Checks []exchange.Check `json:"checks,omitempty"`

	Recorded int                            `json:"recorded"`   // exchanges
	Judged   int                            `json:"judged"`     // of them requests for an answer
	Statuses map[exchange.VerdictStatus]int `json:"statuses"`   // of the judged ones
	Lenient  map[exchange.VerdictStatus]int `json:"lenient"`    // the same in the relaxed reading
	Broken   int                            `json:"broken"`     // of the judged ones, those whose record cannot be read
	Remained int                            `json:"remained"`   // fails only because they failed before
	Complete bool                           `json:"complete"`   // the run was closed with nothing lost, and every record is whole
	Why      string                         `json:"incomplete"` // "" when complete

	Gates        []GateCount     `json:"gates"`
	Waves        []WaveJudged    `json:"waves,omitempty"`
	Cases        []*CaseJudged   `json:"suite_cases,omitempty"` // of a run that sent a suite, unless other checks were named
	Changes      []VerdictChange `json:"changed_verdicts"`      // the first ones
	ChangesTotal int             `json:"changed_verdicts_total"`
	Moved        []MetricChange  `json:"changed_metrics"`
	Now          measure.Run     `json:"metrics"`           // by the rules of today, over the exchanges whose status is ok
	Then         *measure.Run    `json:"metrics_as_stored"` // of the same exchanges, as they were stored; null when none were

	Lines []JudgedLine `json:"-"` // of every judged exchange, in order
}

// JudgedLine is a judged exchange in short.
type JudgedLine struct {
	ID     exchange.ID
	Seq    uint64
	Case   string // of a suite
	Status exchange.VerdictStatus
	Reason string // "" when ok
}

// GateCount says how often a gate said what.
type GateCount struct {
	Gate     string                         `json:"gate"`
	Version  int                            `json:"version"`
	Statuses map[exchange.VerdictStatus]int `json:"statuses"`
}

// VerdictChange is a verdict that differs from that of an earlier judgment, or an outcome that differs from the stored
// one: its gate is "outcome", and its words are outcomes.
type VerdictChange struct {
	ID         exchange.ID `json:"id"`
	Seq        uint64      `json:"seq"`
	Gate       string      `json:"gate"`
	Was        string      `json:"was"`
	WasVersion int         `json:"was_version"`
	Now        string      `json:"now"`
	NowVersion int         `json:"now_version"`
}

// GateOutcome is the name under which a change of outcome stands among the changed verdicts.
const GateOutcome = "outcome"

// MetricChange is a metric that the rules of today derive otherwise, and where that shows first.
type MetricChange struct {
	Metric    string      `json:"metric"`
	Exchanges int         `json:"exchanges"` // in how many
	Example   exchange.ID `json:"example"`
	MetricMoved
}

// captured is one recorded exchange on its way to a judgment.
type captured struct {
	id   exchange.ID
	seq  uint64
	row  *exchange.Summary // as it was stored; nil where none was
	item *exchange.PlanItem
	load func() (*exchange.Exchange, error)
}

// Revalidate judges the exchanges of a recorded run. The error wraps exchange.ErrIncomplete for a run that was never
// closed, exchange.ErrMiss for other weights than those asked for, or where Against is no judgment of this evidence. A
// record that cannot be read is counted, and is no error.
func Revalidate(ctx context.Context, src Source, run *exchange.Run, o RevalidateOptions) (*Revalidated, error) {
	v, err := newRevalidator(run, &o)
	if err != nil {
		return nil, err
	}
	items := capturedIn(src, run.ID)
	if err := v.survey(ctx, items); err != nil {
		return nil, err
	}
	if heldBy(o.Checks) {
		if v.spans, err = SpansOf(src.Summaries(run.ID)); err != nil {
			return nil, err
		}
	}
	return v.Run(ctx, items)
}

// capturedIn are the exchanges of a run in a store.
func capturedIn(src Source, run exchange.ID) iter.Seq2[*captured, error] {
	return func(yield func(*captured, error) bool) {
		for row, err := range src.Summaries(run) {
			if err != nil {
				yield(nil, err)
				return
			}
			load := func() (*exchange.Exchange, error) {
				x, _, err := src.Exchange(row.ID)
				return x, err
			}
			if !yield(&captured{id: row.ID, seq: row.Seq, row: &row, item: row.Item, load: load}, nil) {
				return
			}
		}
	}
}

// RevalidateFile judges the exchanges that a file of ours holds (see InFormats): one that a run was exported into, with
// its answers. The error is that of Revalidate; a file that holds no run, or not all of it, is refused by the same words.
func RevalidateFile(ctx context.Context, f *File, o RevalidateOptions) (*Revalidated, error) {
	digest, err := f.digest()
	if err != nil {
		return nil, f.fail(err)
	}
	info, err := f.each(ctx, func(*entry) error { return ctx.Err() })
	if err != nil {
		return nil, f.fail(err)
	}
	if info.run == nil {
		return nil, f.fail(fmt.Errorf("%w: it does not say which run it holds: only an exported run has answers to judge", exchange.ErrMiss))
	}
	run := *info.run
	if run.State == exchange.RunComplete && !info.whole {
		run.State = exchange.RunIncomplete
	}
	v, err := newRevalidator(&run, &o)
	if err != nil {
		return nil, f.fail(err)
	}
	if err := v.survey(ctx, f.captured(ctx)); err != nil {
		return nil, f.fail(err)
	}
	r, err := v.Run(ctx, f.captured(ctx))
	if err != nil {
		return nil, err
	}
	r.Source.File, r.Source.Digest = f.Name, digest
	if again, err := f.digest(); err != nil || again != digest {
		return nil, f.fail(fmt.Errorf("%w: it was changed while it was judged", exchange.ErrDamaged))
	}
	return r, nil
}

// captured are the exchanges of the file. They were derived by nobody yet.
func (f *File) captured(ctx context.Context) iter.Seq2[*captured, error] {
	return func(yield func(*captured, error) bool) {
		n := uint64(0)
		for rec, err := range f.Records(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			n++
			x := rec.Exchange
			c := &captured{id: x.ID, seq: x.Seq, item: x.Item, load: func() (*exchange.Exchange, error) { return x, nil }}
			if c.seq == 0 {
				c.seq = n
			}
			if c.id == "" && rec.Item != nil {
				c.id = exchange.ID(rec.Item.ID)
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// newRevalidator refuses what is no evidence.
func newRevalidator(run *exchange.Run, o *RevalidateOptions) (*revalidator, error) {
	refuse := func(kind error, hint, format string, args ...any) error {
		return &exchange.Error{Op: "revalidate run", Object: string(run.ID), Side: exchange.SideStore,
			Cause: fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...)), Hint: hint}
	}
	weights := weightsOf(run)
	switch {
	case run.State == exchange.RunOpen:
		return nil, refuse(exchange.ErrIncomplete, "it is being recorded, or its recorder died; what it lacks cannot be told", "it was never closed")
	case o.Weights != "" && len(weights) == 0:
		return nil, refuse(exchange.ErrMiss, "record with --weights FILE, or an engine that tells", "nothing says which weights answered")
	case o.Weights != "" && !slices.Equal(weights, []string{o.Weights}):
		return nil, refuse(exchange.ErrMiss, "", "it was answered by other weights: field weights_digest is %s, want %s", strings.Join(weights, ", "), o.Weights)
	}
	if e := o.Against; e != nil {
		switch {
		case e.source.Run != run.ID:
			return nil, refuse(exchange.ErrMiss, "", "the earlier judgment is one of run %s", e.source.Run)
		case len(e.source.Weights) > 0 && len(weights) > 0 && !slices.Equal(e.source.Weights, weights):
			return nil, refuse(exchange.ErrMiss, "", "the earlier judgment is one of other weights: field weights_digest was %s, is %s",
				strings.Join(e.source.Weights, ", "), strings.Join(weights, ", "))
		}
	}
	rows, err := RowsOf(run)
	if err != nil {
		return nil, err
	}
	return &revalidator{run: run, o: o, weights: weights, derive: rows}, nil
}

// weightsOf are the digests of the weights that answered in a run, sorted, as far as they are known.
func weightsOf(run *exchange.Run) []string {
	var out []string
	for _, d := range run.Deployments {
		if d.WeightsDigest != nil {
			out = append(out, *d.WeightsDigest)
		}
		if d.Weights != nil && d.Weights.Digest != "" {
			out = append(out, d.Weights.Digest)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Verdict is what the revalidation amounts to for a script: nil, or an error that wraps exchange.ErrGate when something
// failed, exchange.ErrDamaged when records cannot be read, exchange.ErrIncomplete when the run is not whole or something
// could not be judged, exchange.ErrMiss when nothing was judged.
func (r *Revalidated) Verdict() error {
	told := func(kind error, format string, args ...any) error {
		return &exchange.Error{Op: "revalidate run", Object: string(r.Source.Run), Cause: kind, Hint: fmt.Sprintf(format, args...)}
	}
	passed := r.Statuses[exchange.VerdictOK]
	skipped := r.Statuses[exchange.VerdictSkipped] + r.Statuses[exchange.VerdictUnsupported] // both do not apply
	switch failed := r.Statuses[exchange.VerdictFail]; {
	case failed > 0:
		return told(exchange.ErrGate, "%d of %d exchanges fail", failed, r.Judged)
	case r.Broken > 0:
		return told(exchange.ErrDamaged, "%s cannot be read whole: store check tells what is damaged", count(r.Broken, "record", "records"))
	case passed+skipped+r.Statuses[exchange.VerdictIncomparable] == r.Judged && passed+skipped < r.Judged && r.Complete && heldBy(r.Checks):
		return told(exchange.ErrMiss, "%d of %d exchanges cannot be compared: there is no golden that will do", r.Judged-passed-skipped, r.Judged)
	case passed+skipped < r.Judged:
		return told(exchange.ErrIncomplete, "%d of %d exchanges could not be judged", r.Judged-passed-skipped, r.Judged)
	case !r.Complete:
		return told(exchange.ErrIncomplete, "%s", r.Why)
	case passed == 0:
		return told(exchange.ErrMiss, "no exchange could be judged: nothing was asked for an answer, or nobody waited for one")
	}
	return nil
}
