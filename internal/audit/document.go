package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Kinds of files that the audit knows.
const (
	KindComparison   = "comparison"
	KindGates        = "gates"
	KindRevalidation = "revalidation"
	KindCaptured     = "captured_response_revalidation"
	KindValidation   = "validation"
	KindCell         = "cell"
	KindReport       = "report"
	KindLimits       = "limits"
	KindAudit        = "audit"
	KindUnknown      = "unknown"
)

// Document is a file that lies beside the evidence, and what it states.
type Document struct {
	Source     string
	Kind       string
	Raw        []byte // the file
	Comparison *ComparisonDocument
	Gates      *GateRun
	Limits     *Limits
	Runs       []exchange.ID // that it names as its source
	Exchanges  []exchange.ID // that it names as its source
	Captured   CapturedSource
	Remade     *Remade // nil while nobody has made it again

	problems []Check // what the file says against itself
	cell     *cell
	states   int // numbers or verdicts that it states
}

// CapturedSource is the report of another tool that a revalidation of its answers was made of.
type CapturedSource struct {
	Name   string // as that file was called then
	Digest string // hex SHA-256 of it; "" for every other kind of file
}

// Unread is a file of which nothing is known but why: a failure of the audit.
func Unread(source, why string) *Document {
	d := &Document{Source: source, Kind: KindUnknown}
	d.finds(AskDocument, Failure, "%s", why)
	return d
}

// fileShape is every field by which a file is told to be of a kind, and what the audit reads of it. Files of other kinds
// leave most of it empty; a field of a form that is not expected makes a file unknown.
type fileShape struct {
	// comparison
	Pairing   json.RawMessage `json:"pairing"`
	Reference json.RawMessage `json:"reference"`
	// gates
	Level    *string         `json:"level"`
	Verdicts json.RawMessage `json:"verdicts"`
	// revalidation
	Mode string `json:"mode"`
	// validation
	Plan json.RawMessage `json:"execution_plan"`
	// cell
	Engine   json.RawMessage `json:"engine"`
	Scenario json.RawMessage `json:"scenario"`
	Backend  json.RawMessage `json:"backend"`
	Status   json.RawMessage `json:"status"`
	// report
	Sections json.RawMessage `json:"sections"`
	// limits
	Bandwidth *float64           `json:"memory_bandwidth_gb_s"`
	Ceilings  map[string]float64 `json:"ceilings"`
	// audit
	Claims json.RawMessage `json:"claims"`
	Checks json.RawMessage `json:"checks"`
}

// Read tells what a file states. A file that is no JSON object, or of no kind that the audit knows, is a Document of
// KindUnknown; the error is that of a file of a known kind which cannot be read.
func Read(source string, raw []byte) (*Document, error) {
	d := &Document{Source: source, Kind: KindUnknown, Raw: raw}
	var s fileShape
	if json.Unmarshal(raw, &s) != nil {
		return d, nil
	}
	var read func([]byte) error
	switch {
	case s.Claims != nil && s.Checks != nil:
		d.Kind = KindAudit
	case s.Pairing != nil && s.Reference != nil:
		d.Kind, read = KindComparison, d.readComparison
	case s.Mode == KindRevalidation:
		d.Kind, read = KindRevalidation, d.readRevalidation
	case s.Mode == KindCaptured:
		d.Kind, read = KindCaptured, d.readCaptured
	case s.Level != nil && s.Verdicts != nil:
		d.Kind, read = KindGates, d.readGates
	case s.Plan != nil:
		d.Kind, read = KindValidation, d.readValidation
	case s.Engine != nil && s.Scenario != nil && s.Backend != nil && s.Status != nil:
		d.Kind, read = KindCell, d.readCell
	case s.Sections != nil:
		d.Kind, read = KindReport, d.readReport
	case s.Bandwidth != nil || s.Ceilings != nil:
		d.Kind, read = KindLimits, d.readLimits
	}
	if read == nil {
		return d, nil
	}
	if err := read(raw); err != nil {
		return d, fmt.Errorf("read %s %s: %w", d.Kind, source, err)
	}
	return d, nil
}

// States reports whether the file states any number or verdict, or what an engine lacks.
func (d *Document) States() bool { return d.states > 0 || d.unsupported() }

// unsupported reports whether the file is of a cell for which the engine lacks something.
func (d *Document) unsupported() bool { return d.cell != nil && d.cell.Status == statusUnsupported }

// finds notes what the file says against itself.
func (d *Document) finds(name string, status Status, format string, args ...any) {
	d.problems = append(d.problems, Check{Name: name, Object: d.Source, Status: status, Detail: fmt.Sprintf(format, args...)})
}

func (d *Document) readComparison(raw []byte) error {
	d.Comparison = &ComparisonDocument{}
	if err := json.Unmarshal(raw, d.Comparison); err != nil {
		return err
	}
	d.Runs = []exchange.ID{d.Comparison.Reference.ID, d.Comparison.Candidate.ID}
	return nil
}

// gateSubject is an engine of a report of gates.
type gateSubject struct {
	exchange.Identity
	Weights string `json:"weights"`
}

// readGates reads the verdicts that gate --suite writes.
func (d *Document) readGates(raw []byte) error {
	var f struct {
		Level     string      `json:"level"`
		Run       exchange.ID `json:"run"`
		Started   time.Time   `json:"started"`
		Complete  bool        `json:"complete"`
		Target    gateSubject `json:"target"`
		Reference gateSubject `json:"reference"`
		Verdicts  []struct {
			GateVerdict
			Evidence []exchange.EvidenceSum `json:"evidence"`
		} `json:"verdicts"`
		Deferred []struct {
			Case string `json:"case"`
		} `json:"deferred"`
		Notes []string `json:"notes"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	d.Gates = &GateRun{Source: d.Source, Run: f.Run, Engine: f.Target.Identity, Weights: f.Target.Weights, Level: f.Level, At: f.Started, Complete: f.Complete, Stated: true,
		Reference: f.Reference.Identity, ReferenceWeights: f.Reference.Weights}
	for _, v := range f.Verdicts {
		d.Gates.Verdicts = append(d.Gates.Verdicts, v.GateVerdict)
		for _, e := range v.Evidence {
			if e.Kind == "exchange" {
				d.Exchanges = append(d.Exchanges, exchange.ID(e.ID))
			}
		}
	}
	for _, note := range f.Notes {
		d.finds(AskGates, Warning, "%s", note)
	}
	for _, x := range f.Deferred {
		d.Gates.Deferred = append(d.Gates.Deferred, x.Case)
	}
	d.states = len(f.Verdicts)
	if f.Run != "" {
		d.Runs = []exchange.ID{f.Run}
	}
	return nil
}

func (d *Document) readRevalidation(raw []byte) error {
	var f struct {
		Source   struct{ Run exchange.ID }      `json:"source"`
		Judged   int                            `json:"judged"`
		Statuses map[exchange.VerdictStatus]int `json:"statuses"`
		Complete *bool                          `json:"complete"`
		Why      json.RawMessage                `json:"incomplete"`
		Changed  int                            `json:"changed_verdicts_total"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f.Source.Run != "" {
		d.Runs = []exchange.ID{f.Source.Run}
	}
	d.states = f.Judged
	if f.Judged == 0 {
		d.finds(AskGates, Warning, "nothing was judged again")
	}
	open := f.Judged - f.Statuses[exchange.VerdictOK] - f.Statuses[exchange.VerdictSkipped] - f.Statuses[exchange.VerdictFail]
	switch {
	case f.Statuses[exchange.VerdictFail] > 0:
		d.finds(AskGates, Failure, "%d of %d exchanges failed when they were judged again", f.Statuses[exchange.VerdictFail], f.Judged)
	case open > 0:
		d.finds(AskGates, Warning, "%d of %d exchanges could not be judged again", open, f.Judged)
	case f.Complete != nil && !*f.Complete:
		d.finds(AskComplete, Warning, "what was judged again is not whole: %s", f.Why)
	}
	if f.Changed > 0 {
		d.finds(AskGates, Warning, "%d verdicts changed since an earlier judgment", f.Changed)
	}
	return nil
}

// readCaptured reads what the answers that another tool captured come to.
func (d *Document) readCaptured(raw []byte) error {
	var f struct {
		Source   string `json:"source_report"`
		Sum      string `json:"source_report_sha256"`
		Complete *bool  `json:"complete"`
		Recorded int    `json:"recorded_cases"`
		Passed   int    `json:"passed"`
		Failed   int    `json:"failed"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	d.Captured, d.states = CapturedSource{f.Source, f.Sum}, max(f.Recorded, 1)
	switch {
	case f.Failed > 0 || f.Passed < f.Recorded:
		d.finds(AskGates, Failure, "%d of %d captured cases did not pass when they were judged again", f.Recorded-f.Passed, f.Recorded)
	case f.Complete != nil && !*f.Complete:
		d.finds(AskComplete, Failure, "what was captured is not whole")
	case f.Recorded == 0:
		d.finds(AskGates, Warning, "nothing was judged again")
	}
	return nil
}

func (d *Document) readValidation(raw []byte) error {
	var f struct {
		Complete bool `json:"run_complete"`
		Cases    []struct {
			Tag    string `json:"tag"`
			Status string `json:"status"`
			Detail string `json:"detail"`
			Turns  []struct {
				Exchange exchange.ID `json:"exchange"`
			} `json:"turns"`
		} `json:"cases"`
		Own struct{ Run exchange.ID } `json:"benchproxy"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f.Own.Run != "" {
		d.Runs = []exchange.ID{f.Own.Run}
	}
	failed, why := 0, ""
	for _, c := range f.Cases {
		if c.Status != string(exchange.VerdictOK) {
			failed++
			why = orWord(why, c.Tag+": "+c.Detail)
		}
		for _, t := range c.Turns {
			if t.Exchange != "" {
				d.Exchanges = append(d.Exchanges, t.Exchange)
			}
		}
	}
	d.states = len(f.Cases)
	switch {
	case !f.Complete:
		d.finds(AskComplete, Failure, "the validation did not come to its end")
	case len(f.Cases) == 0:
		d.finds(AskComplete, Failure, "the validation has no case")
	case failed > 0:
		d.finds(AskGates, Failure, "%d of %d cases failed: %s", failed, len(f.Cases), why)
	}
	return nil
}

// statusUnsupported is of a cell that needs what the engine said that it lacks.
const statusUnsupported = "unsupported"

// cell is the result file of one cell of a matrix.
type cell struct {
	Status       string        `json:"status"`
	Detail       string        `json:"detail"`
	MTP          bool          `json:"mtp"`
	Concurrency  int           `json:"concurrency"`
	Turns        int           `json:"turns"`
	DecodeTPS    float64       `json:"decode_tps"`
	PrefillTPS   float64       `json:"prefill_tps"`
	TTFT         float64       `json:"ttft_ms"`
	DecodeSource string        `json:"decode_source"`
	Exchanges    []exchange.ID `json:"exchanges"`
	Run          exchange.ID   `json:"run"`

	Engine      string            `json:"engine"`
	Backend     string            `json:"backend"`
	Identity    exchange.Identity `json:"identity"`
	Weights     string            `json:"weights"`
	CPUFallback bool              `json:"cpu_fallback"`
}

// build is what answered in the cell.
func (c *cell) build() build {
	return build{orWord(c.Identity.Engine, c.Engine), c.Identity.Version, c.Weights}
}

func (d *Document) readCell(raw []byte) error {
	d.cell = &cell{}
	if err := json.Unmarshal(raw, d.cell); err != nil {
		return err
	}
	d.Exchanges = d.cell.Exchanges
	if d.cell.Run != "" {
		d.Runs = []exchange.ID{d.cell.Run}
	}
	switch c := d.cell; c.Status {
	case "ok":
		if c.CPUFallback {
			d.finds(AskIdentity, Failure, "the cell is one of backend %s, and the engine ran on the CPU", c.Backend)
		}
		if c.DecodeTPS > 0 || c.PrefillTPS > 0 || c.TTFT > 0 {
			d.states = 1
		}
	case "skipped", statusUnsupported: // neither measured nor a failure
	default:
		d.finds(AskComplete, Warning, "the cell is %s: %s", orWord(c.Status, "without a status"), c.Detail)
	}
	return nil
}

// readReport reads which runs a report is of: they stand among its facts.
func (d *Document) readReport(raw []byte) error {
	var f struct {
		Facts []struct{ Name, Value string } `json:"facts"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	for _, fact := range f.Facts {
		if fact.Name == "run" && exchange.ValidID(fact.Value) {
			d.Runs = append(d.Runs, exchange.ID(fact.Value))
		}
	}
	d.states = 1
	return nil
}

func (d *Document) readLimits(raw []byte) error {
	var f struct {
		BytesPerToken float64            `json:"bytes_per_token"`
		Bandwidth     float64            `json:"memory_bandwidth_gb_s"`
		Depth         float64            `json:"draft_depth"`
		Ceilings      map[string]float64 `json:"ceilings"`
		Source        string             `json:"source"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	d.Limits = &Limits{BytesPerToken: f.BytesPerToken, Bandwidth: f.Bandwidth * 1e9, DraftDepth: f.Depth, Stated: f.Ceilings, Source: orWord(f.Source, d.Source)}
	for _, name := range slices.Sorted(maps.Keys(f.Ceilings)) {
		metric, _, _ := strings.Cut(name, "@")
		switch v := f.Ceilings[name]; {
		case !Bounded(metric):
			return fmt.Errorf("%w: %s has no ceiling; there is %s", exchange.ErrUsage, name, strings.Join(bounded[:], ", "))
		case !(v > 0):
			return fmt.Errorf("%w: ceiling %s is %v, and a ceiling is above 0", exchange.ErrUsage, name, v)
		}
	}
	if f.BytesPerToken < 0 || f.Bandwidth < 0 || f.Depth < 0 {
		return fmt.Errorf("%w: bytes_per_token, memory_bandwidth_gb_s and draft_depth are above 0", exchange.ErrUsage)
	}
	return nil
}

// document asks of a file whether what it states can be followed.
func (a *auditor) document(d *Document) {
	a.report.Checks = append(a.report.Checks, d.problems...)
	var lost []exchange.ID
	for _, id := range d.Exchanges {
		if a.in.Rows[id] == nil {
			lost = append(lost, id)
		}
	}
	switch {
	case d.Kind == KindUnknown && len(d.problems) > 0:
	case d.Kind == KindUnknown:
		a.add(AskDocument, d.Source, NotApplicable, "no file that the audit knows")
	case d.Kind == KindComparison, d.Kind == KindCaptured, d.Kind == KindLimits, d.Kind == KindAudit, d.states == 0:
	case len(lost) > 0:
		a.add(AskTraceable, d.Source, Failure, "%s of %d that it names not on record", isAre(len(lost), "exchange"), len(d.Exchanges)).Exchanges = first(lost)
	case len(d.Exchanges) == 0 && !a.onRecord(d.Runs):
		a.add(AskTraceable, d.Source, Failure, "it states numbers or verdicts, and names no exchange and no run on record that they come from")
	default:
		a.add(AskTraceable, d.Source, OK, "what it states comes from %s on record", count(max(len(d.Exchanges), len(d.Runs)), map[bool]string{true: "exchange", false: "run"}[len(d.Exchanges) > 0]))
	}
	if d.cell != nil && len(lost) == 0 {
		a.cell(d)
	}
	a.remade(d)
}

// onRecord reports whether all runs are among those that were read.
func (a *auditor) onRecord(ids []exchange.ID) bool {
	for _, id := range ids {
		if !slices.ContainsFunc(a.in.Runs, func(r *Run) bool { return r.ID == id }) {
			return false
		}
	}
	return len(ids) > 0
}

// rounding is by how much a result file may differ from the record: it states one digit behind the point.
const rounding = 0.051

// cell asks whether the numbers of a cell are those of its exchanges, and whether drafting that is claimed is there.
func (a *auditor) cell(d *Document) {
	c := d.cell
	drafts := false
	for _, id := range c.Exchanges {
		if row := a.in.Rows[id]; row != nil && row.Metrics[measure.DraftAcceptance].Present() {
			drafts = true
		}
	}
	if c.MTP && c.Status == "ok" && !drafts {
		a.add(AskSpeculation, d.Source, Failure, "not speculating: the cell is one of drafting, and no exchange of it tells of a drafted token; a ratio of drafting on to off says nothing")
	}
	if len(c.Exchanges) != 1 || c.Turns > 1 || c.Concurrency > 1 {
		return
	}
	row := a.in.Rows[c.Exchanges[0]]
	for _, n := range [...]struct {
		metric string
		told   float64
	}{{measure.DecodeTPS, c.DecodeTPS}, {measure.PrefillTPS, c.PrefillTPS}, {measure.TTFTMS, c.TTFT}} {
		if n.metric == measure.DecodeTPS && c.DecodeSource != "" && c.DecodeSource != "stream_window" || n.told == 0 {
			continue
		}
		if f := row.Metrics[n.metric]; !f.Present() || math.Abs(f.Value-n.told) > rounding {
			made := &f.Value
			if !f.Present() {
				made = nil
			}
			a.add(AskComparison, d.Source, Failure, "%s is %.6g in the file, and the record gives %s", n.metric, n.told, shown(made)).Exchanges = c.Exchanges
		}
	}
}
