package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// GateReportVersion is the version of the document below; readers refuse newer ones.
const GateReportVersion = 1

// GateReport is what a gate suite came to: the document gates.json.
type GateReport struct {
	Schema  int         `json:"schema"`
	Harness string      `json:"harness"`
	Run     exchange.ID `json:"run"` // that keeps the exchanges and cases
	Level   string      `json:"level"`
	Started time.Time   `json:"started"`
	Seconds float64     `json:"seconds"` // from the first request to the last verdict

	Target    GateSubject  `json:"target"`
	Reference *GateSubject `json:"reference"` // null for none
	Package   string       `json:"package"`   // sha256:<hex> of the gates: ids, versions and parameters
	Prompts   string       `json:"prompts"`   // sha256:<hex> of what the level asks and by what it is judged

	Complete bool                           `json:"complete"` // every planned case was sent and judged
	Why      string                         `json:"why,omitempty"`
	Statuses map[exchange.VerdictStatus]int `json:"statuses"`
	Asked    GateAsked                      `json:"asked"`
	Goldens  []GateGoldens                  `json:"goldens"` // recordings that answers were held against, by their build
	Notes    []string                       `json:"notes"`   // what is to be told with the verdicts
	Verdicts []GateEntry                    `json:"verdicts"`
	Deferred []GateDeferred                 `json:"deferred"`
}

// GateSubject is one of the engines of a gate suite.
type GateSubject struct {
	exchange.Identity
	Model   string `json:"model"`
	Weights string `json:"weights"`          // "" when unknown
	URL     string `json:"url,omitempty"`    // of one that somebody else runs
	Told    string `json:"told,omitempty"`   // digest of what that one said of itself: context, slots, devices ...
	Launch  string `json:"launch,omitempty"` // command line of one that was started for the suite
	Build   string `json:"build,omitempty"`  // digest of what was started: program, what belongs to it, environment
}

// GateGoldens are recordings of one build.
type GateGoldens struct {
	exchange.Identity
	Weights    string    `json:"weights"`
	Launch     string    `json:"launch,omitempty"` // command line of an engine that was started to make them
	Recordings int       `json:"recordings"`
	Oldest     time.Time `json:"oldest"`
	Newest     time.Time `json:"newest"`
	Own        bool      `json:"own_build"` // the build that is judged made them
}

// GateAsked counts the requests beside those of the cases.
type GateAsked struct {
	Candidate int `json:"candidate"`
	Reference int `json:"reference"`
	Kept      int `json:"kept"` // answers of the reference that were on record
}

// GateEntry is one verdict of a gate suite.
type GateEntry struct {
	Family   string `json:"family"`
	Scenario string `json:"scenario"`
	exchange.Verdict
	Level    string      `json:"level"`    // at which it was judged
	Question string      `json:"question"` // sha256:<hex> of what was asked and by what it is judged
	Run      exchange.ID `json:"run"`      // in which it was
	Reused   bool        `json:"reused,omitempty"`
	Seconds  float64     `json:"seconds"` // that engines spent on the case, answers on record left out
	// Of the divergence of a golden gate, where there was one.
	Compared int      `json:"compared_tokens"` // of recordings of the reference
	Gap      *float64 `json:"gap"`             // nats
	Position *int     `json:"position"`        // token of the golden, from 0
	Token    *string  `json:"token"`           // the subject's; "" for the end of the answer
	Golden   *string  `json:"golden_token"`
	Rule     string   `json:"rule,omitempty"` // what settled it
	// Lacks says that there was no usable reference of an answer that came in full.
	Lacks bool `json:"lacks_reference,omitempty"`
}

// GateDeferred is a case that was put off.
type GateDeferred struct {
	Case   string `json:"case"`
	Family string `json:"family"`
	Reason string `json:"reason"`
}

// gateDigest is the digest of a list of texts.
type gateDigest struct{ h hash.Hash }

func newGateDigest() *gateDigest { return &gateDigest{sha256.New()} }

// add takes texts in, each with its length before it.
func (d *gateDigest) add(texts ...string) {
	for _, t := range texts {
		_ = binary.Write(d.h, binary.BigEndian, uint64(len(t))) // a hash takes every write
		d.h.Write([]byte(t))
	}
}

func (d *gateDigest) sum() string { return exchange.DigestPrefix + hex.EncodeToString(d.h.Sum(nil)) }

// GatePackage is the digest of all gates of this build: their ids, versions and parameters. Verdicts of another package
// are verdicts by other rules.
func GatePackage() string {
	d := newGateDigest()
	for _, g := range gates.All() {
		d.add(g.ID, fmt.Sprint(g.Version), string(g.Defaults()))
	}
	return d.sum()
}

// ReadGateReport reads gates.json. The error wraps exchange.ErrMiss for a file that is none, and exchange.ErrDamaged for
// one of a newer version.
func ReadGateReport(path string) (*GateReport, error) {
	fail := func(cause error) (*GateReport, error) {
		return nil, &exchange.Error{Op: "read gate report", Object: path, Side: exchange.SideStore, Cause: cause}
	}
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return fail(fmt.Errorf("%w: %w", exchange.ErrMiss, err))
	}
	var head struct{ Schema int }
	r := &GateReport{}
	if err := json.Unmarshal(raw, &head); err == nil && head.Schema > GateReportVersion {
		return fail(fmt.Errorf("%w: it has version %d and this build knows up to %d", exchange.ErrDamaged, head.Schema, GateReportVersion))
	}
	if err := strict.Decode(raw, r, ""); err != nil {
		return fail(fmt.Errorf("%w: %w", exchange.ErrMiss, err))
	}
	if r.Schema < 1 || r.Package == "" || r.Verdicts == nil {
		return fail(fmt.Errorf("%w: it is no report of gates", exchange.ErrMiss))
	}
	return r, nil
}

// passed are the verdicts of an earlier suite on a case when all of them passed and still stand: by the same gates, on the
// same question, of the same engines under the same flags, at this level or a stronger one, and what they rest on is still
// on record. nil otherwise. What is not known is not the same.
func (r *GateReport) passed(o *GateOptions, c scenario.LevelCase, question string) (out []GateEntry) {
	if r == nil || r.Package != GatePackage() || !r.Target.still(subjectOf(&o.Candidate)) {
		return nil
	}
	for _, e := range r.Verdicts {
		if e.Scenario != c.ID || e.Question != question {
			continue
		}
		level, err := gates.ParseLevel(e.Level)
		if err != nil || level < o.Level || e.Status != exchange.VerdictOK || !r.sameReference(o, &e) || !o.recorded(&e) {
			return nil
		}
		e.Reused = true
		out = append(out, e)
	}
	if !judgedBy(out, c.Case(c.ID, scenario.Options{}).Checks) {
		return nil
	}
	return out
}

// judgedBy reports whether verdicts are those of the checks: one of each.
func judgedBy(entries []GateEntry, checks []exchange.Check) bool {
	return len(entries) == len(checks) && !slices.ContainsFunc(checks, func(c exchange.Check) bool {
		return !slices.ContainsFunc(entries, func(e GateEntry) bool { return e.Gate == c.Gate })
	})
}

// recorded reports whether what a verdict rests on is still on record. A verdict that rests on nothing is none.
func (o *GateOptions) recorded(e *GateEntry) bool {
	return len(e.Evidence) > 0 && (o.OnRecord == nil || o.OnRecord(e.Evidence))
}

// sameReference reports whether a verdict rests on the reference of today, or on none. One that is started here and was not
// met yet is that of its bytes.
func (r *GateReport) sameReference(o *GateOptions, e *GateEntry) bool {
	if !slices.ContainsFunc(e.Evidence, func(s exchange.EvidenceSum) bool { return s.Kind == "golden" }) {
		return true
	}
	if r.Reference == nil || o.Reference == nil {
		return false
	}
	was, is := r.Reference, subjectOf(o.Reference)
	if was.Launch != is.Launch {
		return false
	}
	if o.Reference.Meet != nil && is.Build != "" {
		return was.Build == is.Build && is.Weights != "" && was.Weights == is.Weights
	}
	return was.Build == is.Build && was.same(is)
}

func subjectOf(p *GateParty) GateSubject {
	return GateSubject{Identity: p.Identity, Model: p.Model, Weights: p.Weights, URL: p.URL, Told: p.Told, Launch: p.Launch, Build: p.Build}
}

// same reports whether two subjects are known to be one build with one set of weights.
func (s GateSubject) same(o GateSubject) bool {
	known := s.Engine != "" && s.Version != "" && s.Weights != ""
	return known && s.Engine == o.Engine && s.Version == o.Version && s.Weights == o.Weights
}

// still reports whether a subject is the one of before, as it was: of one that is started here, the bytes and the flags, too;
// of one that somebody else runs, its place and what it says of itself.
func (s GateSubject) still(o GateSubject) bool {
	return s.same(o) && s.Model == o.Model && s.URL == o.URL && s.Told == o.Told && s.Launch == o.Launch && s.Build == o.Build && (s.Launch == "" || s.Build != "")
}

// entryOf is a verdict with what people look for in its detail.
func (c *gateCase) entryOf(v exchange.Verdict, level string) GateEntry {
	e := GateEntry{Family: c.plan.Family, Scenario: c.plan.ID, Verdict: v, Level: level, Question: c.question, Seconds: c.spent.Seconds()}
	if c.refused != nil {
		e.Run = c.refused.x.Run
	}
	if len(c.Case.Exchanges) > 0 {
		e.Run = c.Case.Exchanges[0].Run
		e.Lacks = v.Status == exchange.VerdictIncomparable && comparesGoldens(v.Gate) && c.answered() && (len(c.Case.Goldens) == 0 || withoutGolden(v.Detail))
	}
	for _, t := range divergences(v.Detail) {
		e.Compared += t.Compared
		if t.Position == nil || e.Position != nil && t.Status == string(exchange.VerdictOK) {
			continue
		}
		e.Gap, e.Position, e.Rule = t.Gap, t.Position, t.Rule
		e.Token, e.Golden = t.Token.text(), t.GoldenToken.text()
	}
	return e
}

// divergenceDetail is what the details of golden gates have in common.
type divergenceDetail struct {
	Status      string    `json:"status"`
	Recording   string    `json:"golden"` // "" where none was usable
	Compared    int       `json:"compared_tokens"`
	Gap         *float64  `json:"gap"`
	Position    *int      `json:"position"`
	Rule        string    `json:"rule"`
	Token       *gateWord `json:"token"`
	GoldenToken *gateWord `json:"golden_token"`
}

type gateWord struct {
	Text string `json:"text"`
}

func (w *gateWord) text() *string {
	if w == nil {
		return nil
	}
	return &w.Text
}

// divergences are those that the detail of a golden gate tells: one a turn.
func divergences(detail json.RawMessage) (out []divergenceDetail) {
	var d struct {
		Turns []struct {
			divergenceDetail
			Golden json.RawMessage `json:"golden"` // an object of an agent's turn, an id of others
		} `json:"turns"`
		Divergence *divergenceDetail `json:"divergence"`
	}
	if json.Unmarshal(detail, &d) != nil {
		return nil
	}
	for _, t := range d.Turns {
		if json.Unmarshal(t.Golden, &t.Recording) != nil {
			_ = json.Unmarshal(t.Golden, &t.divergenceDetail) // one that is neither tells nothing
		}
		out = append(out, t.divergenceDetail)
	}
	if d.Divergence != nil {
		out = append(out, *d.Divergence)
	}
	return out
}

// withoutGolden reports whether a golden gate found no usable recording of some turn.
func withoutGolden(detail json.RawMessage) bool {
	of := divergences(detail)
	return len(of) == 0 || slices.ContainsFunc(of, func(d divergenceDetail) bool { return d.Recording == "" })
}

// Verdict is what the report comes to: nil when everything passed or does not apply. The error wraps exchange.ErrGate when
// a gate failed, exchange.ErrIncomplete when the suite or a judgment did not come to its end, and exchange.ErrMiss when
// there was no usable reference.
func (r *GateReport) Verdict() error {
	told := func(kind error, format string, args ...any) error {
		return &exchange.Error{Op: "judge engine", Object: "level " + r.Level, Side: exchange.SideEngine, Cause: kind, Hint: fmt.Sprintf(format, args...)}
	}
	var failed, open, lacking int
	for _, e := range r.Verdicts {
		switch e.Status {
		case exchange.VerdictFail:
			failed++
		case exchange.VerdictOK, exchange.VerdictSkipped, exchange.VerdictUnsupported:
		default:
			if open++; e.Lacks {
				lacking++
			}
		}
	}
	switch {
	case failed > 0 && !r.Complete:
		return told(exchange.ErrGate, "%d of %d verdicts fail, and it did not come to its end: %s", failed, len(r.Verdicts), r.Why)
	case failed > 0:
		return told(exchange.ErrGate, "%d of %d verdicts fail", failed, len(r.Verdicts))
	case !r.Complete:
		return told(exchange.ErrIncomplete, "%s", r.Why)
	case lacking > 0:
		return told(exchange.ErrMiss, "%d of %d verdicts have no usable reference", lacking, len(r.Verdicts))
	case open > 0:
		return told(exchange.ErrIncomplete, "%d of %d cases could not be judged", open, len(r.Verdicts))
	case r.Statuses[exchange.VerdictOK] == 0:
		return told(exchange.ErrMiss, "nothing could be judged")
	}
	return nil
}

// Save writes the report in the place of what was there, whole or not at all.
func (r *GateReport) Save(path string) error {
	fail := func(err error) error {
		return &exchange.Error{Op: "write gate report", Object: path, Side: exchange.SideStore, Cause: err}
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fail(err)
	}
	if err := ReplaceFile(path, append(b, '\n')); err != nil {
		return fail(err)
	}
	return nil
}

// arrange puts the verdicts in the order of the plan, whatever order they came in.
func (r *GateReport) arrange(plan []scenario.LevelCase) {
	at := map[string]int{}
	for i, c := range plan {
		at[c.ID] = i
	}
	place := func(e *GateEntry) int {
		if i, found := at[e.Scenario]; found {
			return i
		}
		return len(plan)
	}
	slices.SortStableFunc(r.Verdicts, func(a, b GateEntry) int { return place(&a) - place(&b) })
}
