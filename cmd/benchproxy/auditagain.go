package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchproxy/benchproxy/internal/audit"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/bench"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// What files state beside the record, by their kind: these places are theirs alone.
var (
	statedOfGates = []string{"harness", "package", "prompts", "why", "deferred", "goldens", "notes", "verdicts.*.question", "verdicts.*.family", "target.model", "target.weights", "target.launch",
		"target.build", "target.url", "target.told", "target.basis", "reference.model", "reference.launch", "reference.build", "reference.url", "reference.told", "reference.basis"}
	statedOfValidations = []string{"harness_sha256", "engine", "url", "model", "weights_id", "profile", "native_sha256", "server_build", "started_utc", "finished_utc", "scope",
		"cases.*.input_sha256", "benchproxy.harness", "benchproxy.suite", "benchproxy.dialect", "benchproxy.launch", "benchproxy.build",
		"benchproxy.requested_device", "benchproxy.observed_device", "comparison.reference", "not_covered"}
	statedOfCells = []string{"load_ms", "memory", "slots", "context", "command", "log", "environment", "identity", "launch", "build", "model_files", "weights", "requested_device", "observed_device",
		"cpu_fallback", "started", "ended", "harness", "definition", "plan", "max_tokens", "warmup", "drafter", "split"}
	statedOfRevalidations = []string{"harness"}
	statedOfCaptured      = []string{"harness", "created_at_unix", "revalidation_tool_sha256", "source_report"}
)

// record reads a run of a suite and judges it again, once.
func (a *auditing) record(ctx context.Context, id exchange.ID) (*replay.RunRecord, error) {
	if r := a.records[id]; r != nil {
		return r, nil
	}
	if a.from == nil {
		return nil, fmt.Errorf("%w: there is no store", exchange.ErrMiss)
	}
	if !exchange.ValidID(string(id)) {
		return nil, fmt.Errorf("%w: it names no run", exchange.ErrMiss)
	}
	run, err := a.from.Run(string(id))
	if err != nil {
		return nil, err
	}
	r, err := replay.RecordOf(ctx, a.from, &run, a.again())
	if err != nil {
		return nil, err
	}
	a.records[id] = r
	return r, nil
}

// again are the options under which recorded answers are judged here.
func (a *auditing) again() replay.RevalidateOptions {
	return replay.RevalidateOptions{Harness: version(), Limit: sampleLimit, Goldens: goldensOf(a.from)}
}

// judgedAgain gives the verdicts of a run of gates what they come to today.
func (a *auditing) judgedAgain(ctx context.Context, g *audit.GateRun) error {
	r, err := a.record(ctx, g.Run)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	seen := map[string]bool{}
	for _, v := range g.Verdicts {
		if seen[v.Case] {
			continue
		}
		seen[v.Case] = true
		c := audit.CaseAgain{Case: v.Case, Status: exchange.VerdictNotRun}
		switch {
		case err != nil:
			c.Reason = err.Error()
		case r.Again(v.Case) == nil:
			c.Reason = "its run keeps no such case"
		default:
			j := r.Again(v.Case)
			c.Status, c.Reason, c.Verdicts, c.Question = j.Status, j.Reason, j.Verdicts(), r.Question(v.Case)
		}
		g.JudgedAgain(&c)
	}
	return nil
}

// comparisons makes the comparisons again that files state.
func (a *auditing) comparisons(ctx context.Context) error {
	for _, d := range a.in.Documents {
		if d.Comparison == nil {
			continue
		}
		c := audit.Comparison{Source: d.Source, Document: *d.Comparison}
		again, err := a.compared(ctx, d)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.Why = err.Error()
		default:
			c.Again = again
		}
		a.in.Comparisons = append(a.in.Comparisons, c)
	}
	return nil
}

// compared makes a comparison of the runs that another one names.
func (a *auditing) compared(ctx context.Context, d *audit.Document) (*audit.ComparisonDocument, error) {
	told := d.Comparison
	if a.from == nil {
		return nil, fmt.Errorf("%w: there is no store", exchange.ErrMiss)
	}
	var sides [2]*compare.Side
	for i, r := range []audit.ComparedRun{told.Reference, told.Candidate} {
		if !exchange.ValidID(string(r.ID)) {
			return nil, fmt.Errorf("%w: it names no run", exchange.ErrMiss)
		}
		name := string(r.ID)
		if r.Upstream != "" {
			name += "@" + r.Upstream
		}
		s, err := readSide(ctx, a.from, name)
		if err != nil {
			return nil, err
		}
		sides[i] = s
	}
	made, err := compare.Compare(ctx, sides[0], sides[1], compare.Options{Margin: told.Margin, Accept: told.Accepted}, func(ctx context.Context, id exchange.ID) (compare.Answer, error) {
		d, err := a.from.Detail(ctx, id)
		return compare.AnswerOf(&d), err
	})
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	d.Remade = &audit.Remade{JSON: b, Stated: []string{"harness"}}
	a.older(d)
	out := &audit.ComparisonDocument{}
	return out, json.Unmarshal(b, out)
}

// remake makes again of the record what files state.
func (a *auditing) remake(ctx context.Context) error {
	for _, d := range a.in.Documents {
		var made any
		var err error
		remade := d.Remade
		if remade == nil {
			remade = &audit.Remade{}
		}
		switch d.Kind {
		case audit.KindGates:
			made, err = a.remakeGates(ctx, d)
			remade.Stated = statedOfGates
		case audit.KindValidation:
			made, err = a.remakeValidation(ctx, d)
			remade.Stated = statedOfValidations
		case audit.KindCell:
			if !d.States() {
				continue
			}
			made, err = a.remakeCell(ctx, d)
			remade.Stated = statedOfCells
		case audit.KindRevalidation:
			made, err = a.remakeRevalidation(ctx, d, remade)
		case audit.KindCaptured:
			made, err = a.remakeCaptured(ctx, d)
			remade.Stated = statedOfCaptured
		default:
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			remade.JSON, err = json.Marshal(made)
		}
		if err != nil {
			remade.Why = err.Error()
		}
		d.Remade = remade
		a.older(d)
	}
	return nil
}

// older notes that a file was written by another version.
func (a *auditing) older(d *audit.Document) {
	var by struct {
		Harness string
		Own     struct{ Harness string } `json:"benchproxy"`
	}
	if json.Unmarshal(d.Raw, &by) != nil {
		return
	}
	d.Remade.Older = by.Harness != version() && by.Own.Harness != version()
}

func (a *auditing) remakeGates(ctx context.Context, d *audit.Document) (any, error) {
	told := &replay.GateReport{}
	if err := json.Unmarshal(d.Raw, told); err != nil {
		return nil, err
	}
	return replay.GatesAgain(told, func(id exchange.ID) (*replay.RunRecord, error) { return a.record(ctx, id) })
}

func (a *auditing) remakeCell(ctx context.Context, d *audit.Document) (any, error) {
	told := &matrix.Record{}
	if err := json.Unmarshal(d.Raw, told); err != nil {
		return nil, err
	}
	r, err := a.record(ctx, told.Run)
	if err != nil {
		return nil, err
	}
	return bench.Again(told, r)
}

func (a *auditing) remakeValidation(ctx context.Context, d *audit.Document) (any, error) {
	told := &replay.ValidationReport{}
	if err := json.Unmarshal(d.Raw, told); err != nil {
		return nil, err
	}
	r, err := a.record(ctx, told.Instrument.Run)
	if err != nil {
		return nil, err
	}
	made, err := r.Validation(told)
	if err != nil || told.Comparison == nil {
		return made, err
	}
	made.Comparison = nil
	name, err := a.beside(d, told.Comparison.Reference, told.Comparison.ReferenceSum)
	if err != nil {
		return nil, fmt.Errorf("what it was compared with: %w", err)
	}
	reference, sum, err := replay.ReadValidation(name)
	if err != nil {
		return nil, err
	}
	made.Comparison = replay.CompareValidations(made, reference, r.Number("tolerance", replay.DefaultTolerance, told.Comparison.Tolerance))
	made.Comparison.ReferenceSum = sum
	return made, nil
}

// beside finds the file that another one names, with the hex SHA-256 that it states of it: where it is said to be, or in the
// directory of the other one.
func (a *auditing) beside(d *audit.Document, name, sum string) (string, error) {
	places := []string{name, filepath.Join(filepath.Dir(d.Source), name), filepath.Join(filepath.Dir(d.Source), filepath.Base(name))}
	for _, o := range a.in.Documents {
		places = append(places, o.Source)
	}
	for _, place := range places {
		info, err := os.Stat(place)
		if name == "" || err != nil || !info.Mode().IsRegular() || info.Size() > auditFileBytes {
			continue
		}
		raw, err := os.ReadFile(filepath.Clean(place))
		if err != nil {
			return "", err
		}
		if have := sha256.Sum256(raw); hex.EncodeToString(have[:]) == sum {
			return place, nil
		}
	}
	return "", fmt.Errorf("%w: no file here is %s with the SHA-256 %s", exchange.ErrMiss, filepath.Base(name), sum)
}

// remakeRevalidation judges again what a revalidation judged: a run, or the file that it was exported into.
func (a *auditing) remakeRevalidation(ctx context.Context, d *audit.Document, r *audit.Remade) (any, error) {
	var told struct {
		Source struct {
			Run          exchange.ID
			File, Digest string
		}
		Checks  []exchange.Check
		Changes int                  `json:"changed_verdicts_total"`
		Outside []replay.OutsideTold `json:"external_gates"`
	}
	if err := json.Unmarshal(d.Raw, &told); err != nil {
		return nil, err
	}
	if len(told.Outside) > 0 {
		r.Open = true
		return nil, errors.New("external gates judged, too, and only their commands can do that again")
	}
	var text bytes.Buffer
	w := replay.NewRevalidationWriter(&text)
	o := a.again()
	o.Checks, o.Each = told.Checks, w.Add
	result, err := a.revalidated(ctx, d, told.Source.Run, replay.EvidenceSource{File: told.Source.File, Digest: told.Source.Digest}, o)
	if err != nil {
		return nil, err
	}
	if err := w.End(result); err != nil {
		return nil, err
	}
	r.Stated = statedOfRevalidations
	if told.Source.File != "" {
		r.Stated = append(r.Stated[:len(r.Stated):len(r.Stated)], "source.file")
	}
	if told.Changes > result.ChangesTotal { // against an earlier judgment, which is no part of the record
		r.Stated = append(r.Stated[:len(r.Stated):len(r.Stated)], "changed_verdicts", "changed_verdicts_total")
	}
	return json.RawMessage(text.Bytes()), nil
}

func (a *auditing) revalidated(ctx context.Context, d *audit.Document, id exchange.ID, file replay.EvidenceSource, o replay.RevalidateOptions) (*replay.Revalidated, error) {
	if file.File != "" {
		name, err := a.beside(d, file.File, strings.TrimPrefix(file.Digest, exchange.DigestPrefix))
		if err != nil {
			return nil, err
		}
		if a.from == nil {
			o.Goldens = nil
		}
		return replay.RevalidateFile(ctx, replay.OpenFile(name, replay.FileOptions{}), o)
	}
	if a.from == nil {
		return nil, fmt.Errorf("%w: there is no store", exchange.ErrMiss)
	}
	run, err := a.from.Run(string(id))
	if err != nil {
		return nil, err
	}
	return replay.Revalidate(ctx, a.from, &run, o)
}

func (a *auditing) remakeCaptured(ctx context.Context, d *audit.Document) (any, error) {
	name, err := a.beside(d, d.Captured.Name, d.Captured.Digest)
	if err != nil {
		return nil, fmt.Errorf("what it was made of: %w", err)
	}
	return replay.RevalidateCaptured(ctx, name, replay.CaptureOptions{Harness: version(), ToolSum: ownSum(), Now: clock.Now()})
}
