package replay

import (
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Source is where recorded exchanges are read from.
type Source interface {
	// Summaries are the rows of a run in the order of acceptance. The first error ends the sequence.
	Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error]
	// Exchange is one whole exchange, credentials masked, with its row.
	Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error)
}

// Filter picks exchanges of a run. The zero value picks all of them; what is set must all hold.
type Filter struct {
	Models []string      // the model of the row is one of these
	Paths  []string      // the path is one of these; '*' stands for any text without a slash
	IDs    []exchange.ID // the id is one of these
	Since  time.Time     // recorded at that moment or later; zero = any
	Until  time.Time     // recorded before that moment; zero = any
}

// Validate holds that the patterns can be read. The error wraps exchange.ErrUsage.
func (f *Filter) Validate() error {
	for _, p := range f.Paths {
		if _, err := path.Match(p, "/"); err != nil {
			return fmt.Errorf("%w: read path pattern %q: %w", exchange.ErrUsage, p, err)
		}
	}
	for _, id := range f.IDs {
		if !exchange.ValidID(string(id)) {
			return fmt.Errorf("%w: %q is not the id of an exchange", exchange.ErrUsage, id)
		}
	}
	return nil
}

// Match reports whether the filter picks the exchange of that row.
func (f *Filter) Match(row *exchange.Summary) bool {
	matchPath := func(p string) bool {
		ok, err := path.Match(p, row.Path)
		return ok && err == nil
	}
	return (len(f.Models) == 0 || slices.Contains(f.Models, row.Model)) &&
		(len(f.Paths) == 0 || slices.ContainsFunc(f.Paths, matchPath)) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, row.ID)) &&
		(f.Since.IsZero() || !row.Started.Before(f.Since)) &&
		(f.Until.IsZero() || row.Started.Before(f.Until))
}

// String says what the filter picks, "" for all.
func (f *Filter) String() string {
	var parts []string
	for _, m := range f.Models {
		parts = append(parts, "model "+m)
	}
	for _, p := range f.Paths {
		parts = append(parts, "path "+p)
	}
	if len(f.IDs) > 0 {
		parts = append(parts, count(len(f.IDs), "id", "ids"))
	}
	if !f.Since.IsZero() {
		parts = append(parts, "since "+f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		parts = append(parts, "until "+f.Until.UTC().Format(time.RFC3339Nano))
	}
	return strings.Join(parts, ", ")
}

// FromRun is the workload of what the filter picks of a recorded run. Bodies are not held: Item.Payload reads them from
// src, which must stay open. The error wraps exchange.ErrMiss when the filter picks nothing.
func FromRun(ctx context.Context, src Source, run *exchange.Run, f Filter) (*Workload, error) {
	w := &Workload{Name: run.Name, Source: "run " + string(run.ID)}
	if w.Name == "" {
		w.Name = string(run.ID)
	}
	p, err := pick(ctx, src, run, f)
	if err != nil {
		return nil, err
	}
	cut := 0
	for rec, err := range p.records(ctx, src) {
		switch {
		case err != nil:
			return nil, err
		case rec.Item == nil:
			cut++
			continue
		}
		it := *rec.Item
		it.Body, it.payload = nil, payloadOf(src, rec.Exchange)
		w.Items = append(w.Items, it)
	}
	if cut > 0 {
		w.Notes = append(w.Notes, count(cut, "request was", "requests were")+" recorded in part and left out")
	}
	w.arrange()
	return w, nil
}

// payloadOf reads the body of a recorded request when it is asked for. Small ones stay in memory: to read them again
// would cost more than they do.
func payloadOf(src Source, x *exchange.Exchange) func() ([]byte, error) {
	const small = 1 << 10
	if x.Request.Body.Size <= small {
		body := x.Request.Body.Bytes()
		return func() ([]byte, error) { return body, nil }
	}
	id := x.ID
	return func() ([]byte, error) {
		x, _, err := src.Exchange(id)
		if err != nil {
			return nil, fmt.Errorf("read request of item: %w", err)
		}
		return x.Request.Body.Bytes(), nil
	}
}

// picked is what a filter picks of a run, as far as one pass over its rows tells.
type picked struct {
	run    *exchange.Run
	filter Filter
	start  time.Time // of the first exchange in time
	n      int
	left   int // rows the filter does not pick
}

// pick counts what the filter picks. The error wraps exchange.ErrMiss when that is nothing.
func pick(ctx context.Context, src Source, run *exchange.Run, f Filter) (*picked, error) {
	p := &picked{run: run, filter: f}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	for row, err := range src.Summaries(run.ID) {
		switch {
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !f.Match(&row):
			p.left++
			continue
		}
		if p.n == 0 || row.Started.Before(p.start) {
			p.start = row.Started
		}
		p.n++
	}
	if p.n == 0 {
		return nil, &exchange.Error{Op: "pick exchanges of run", Object: string(run.ID), Side: exchange.SideClient,
			Cause: fmt.Errorf("%w: %s", exchange.ErrMiss, nothingPicked(&f)), Hint: "store ls RUN shows what there is"}
	}
	return p, nil
}

func nothingPicked(f *Filter) string {
	if s := f.String(); s != "" {
		return "none is of " + s
	}
	return "it has none"
}

// Record is one recorded exchange of a run or of a file.
type Record struct {
	Exchange *exchange.Exchange
	Row      exchange.Summary // of the store; zero for one that a file brought
	Item     *Item            // nil for a request that was recorded in part: it cannot be sent again
}

// records reads what is picked, one exchange at a time, with its item in its conversation.
func (p *picked) records(ctx context.Context, src Source) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		found, takes := newTalks(), map[string]int{}
		for row, err := range src.Summaries(p.run.ID) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil && !p.filter.Match(&row) {
				continue
			}
			rec := Record{Row: row}
			if err == nil {
				rec.Exchange, _, err = src.Exchange(row.ID)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			rec.Item = p.item(&rec, found, takes)
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// item is the item of a record, nil when its request was cut.
func (p *picked) item(rec *Record, found *talks, takes map[string]int) *Item {
	x := rec.Exchange
	if !x.Request.Body.Whole() {
		return nil
	}
	body := x.Request.Body.Bytes()
	it := itemOf(x, body)
	it.Body = body
	it.At = atOf(x, rec.Row.Started, p.start)
	found.join(&it, body)
	it.Response = responseOf(it.Target, x)
	found.answered(&it)
	it.Origin = &exchange.Origin{Exchange: x.ID, Key: rec.Row.Key, Occurrence: takes[rec.Row.Key]}
	takes[rec.Row.Key]++
	it.PromptTokens, it.OutputTokens = tokensOf(&rec.Row)
	return &it
}

// lengthsOf are the tokens of prompt and answer of a request that a trace has a place for: the engine told both, and its
// instant is known.
func (rec *outgoing) lengthsOf() (prompt, output int64, ok bool) {
	p, o := tokensOf(&rec.Row)
	if rec.Item == nil || rec.Item.At == AtUnknown || p == nil || o == nil || *p < 1 || *o < 1 {
		return 0, 0, false
	}
	return *p, *o, true
}

// tokensOf are the counts that the engine reported for an exchange.
func tokensOf(row *exchange.Summary) (prompt, output *int64) {
	get := func(name string) *int64 {
		f, ok := row.Metrics[name]
		if !ok || !f.Present() || f.Basis == exchange.BasisEstimated {
			return nil
		}
		n := int64(f.Value)
		return &n
	}
	return get("prompt_tokens"), get("completion_tokens")
}
