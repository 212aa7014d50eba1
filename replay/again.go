package replay

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// What a file states of a suite is made again of the record, for those who do not believe files: the numbers of the
// exchanges that are in the store, the verdicts as the run keeps them, and their details as the gates of today give them.
// What the record does not know (how an engine was launched, say) stays as the file says.

// RunRecord is what a store keeps of one run of a suite.
type RunRecord struct {
	Run     *exchange.Run
	Judged  *Revalidated // by the rules of today
	source  Source
	rows    []exchange.Summary     // without figures
	digests map[exchange.ID]string // of their requests
	cases   map[string]int         // of the run, by id
	again   map[string]*CaseJudged
}

// RecordOf reads which exchanges a run has, and judges its cases again.
func RecordOf(ctx context.Context, src Source, run *exchange.Run, o RevalidateOptions) (*RunRecord, error) {
	r := &RunRecord{Run: run, source: src, digests: map[exchange.ID]string{}, cases: map[string]int{}, again: map[string]*CaseJudged{}}
	var err error
	if r.Judged, err = Revalidate(ctx, src, run, o); err != nil {
		return nil, err
	}
	for row, err := range src.Summaries(run.ID) {
		if err != nil {
			return nil, err
		}
		row.Metrics = nil
		r.rows, r.digests[row.ID] = append(r.rows, row), row.Digest
	}
	for _, c := range r.Judged.Cases {
		r.again[c.Case] = c
	}
	for i, c := range r.planned() {
		r.cases[c.ID] = i
	}
	return r, nil
}

// planned are the cases of the run.
func (r *RunRecord) planned() []exchange.PlannedCase {
	if r.Run.Replay == nil {
		return nil
	}
	return r.Run.Replay.Cases
}

// Kept is a case as its run keeps it, nil when it keeps none of that id.
func (r *RunRecord) Kept(id string) *exchange.PlannedCase {
	if i, there := r.cases[id]; there {
		return &r.Run.Replay.Cases[i]
	}
	return nil
}

// Again is a case as it is judged today, nil when the run keeps none of that id.
func (r *RunRecord) Again(id string) *CaseJudged { return r.again[id] }

// Question is the digest of what a case was asked first, "" where that is not on record.
func (r *RunRecord) Question(id string) string {
	c := r.again[id]
	if c == nil || len(c.Exchanges) == 0 {
		return ""
	}
	return r.digests[c.Exchanges[0]]
}

// Rows are the exchanges of the run, without their figures.
func (r *RunRecord) Rows() []exchange.Summary { return r.rows }

// Exchange is one exchange of the store.
func (r *RunRecord) Exchange(id exchange.ID) (*exchange.Exchange, error) {
	x, _, err := r.source.Exchange(id)
	return x, err
}

// Verdicts are those of a case that is judged again, one for each check; none where its evidence is not whole.
func (c *CaseJudged) Verdicts() []exchange.Verdict { return slices.Clone(c.verdicts) }

// turns are the exchanges of a case, in the order of its turns.
func (r *RunRecord) turns(id string) (out []*exchange.Exchange, err error) {
	c := r.again[id]
	if c == nil {
		return nil, nil
	}
	for _, id := range c.Exchanges {
		x, err := r.Exchange(id)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// flag is what the command line that made the run says of a flag, and whether it names it. known is false where the run
// keeps no command line.
func (r *RunRecord) flag(name string) (value string, named, known bool) {
	args := r.Run.MadeBy
	for i, a := range args {
		word, value, joined := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		switch {
		case !strings.HasPrefix(a, "-") || word != name:
		case i > 0 && slices.Contains(engineWords, strings.TrimLeft(args[i-1], "-")):
		case joined:
			return value, true, true
		case i+1 < len(args):
			return args[i+1], true, true
		default:
			return "", true, true
		}
	}
	return "", false, len(args) > 0
}

// engineWords are the flags behind which a word of an engine's command line stands, which may look like one of ours.
var engineWords = []string{"engine-arg", "reference-arg"}

// Number is the number that the command line which made the run gives a flag, or its usual one; told where no command line
// is on record.
func (r *RunRecord) Number(flag string, usual, told float64) float64 {
	value, named, known := r.flag(flag)
	switch v, err := strconv.ParseFloat(value, 64); {
	case !known:
		return told
	case named && err == nil:
		return v
	}
	return usual
}

// switched is whether the command line that made the run sets a switch; told where it is not known.
func (r *RunRecord) switched(name string, told bool) bool {
	value, named, known := r.flag(name)
	if !known {
		return told
	}
	return named && value != "false"
}

// WallOf is how long cases took together, from the first byte of the first request to the end of the last answer; 0 when
// nothing was answered.
func WallOf(cases []*SuiteCase) time.Duration {
	wall, _ := wallOf(cases...)
	return wall
}
