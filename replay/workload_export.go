package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// OutFormats are the formats that can be written.
func OutFormats() []Format {
	return []Format{FormatJSONL, FormatHAR, FormatBatch, FormatMooncake, FormatBurstGPT, FormatAzure, FormatParquet}
}

// ExportOptions say what leaves a store, and in which form.
type ExportOptions struct {
	Format  Format
	Filter  Filter
	Redact  *Redactor // masks secrets in bodies too; nil leaves bodies as they were recorded
	Harness string    // version of benchproxy, for formats that name their maker
}

// ExportTo is where an export goes.
type ExportTo struct {
	Main   io.Writer // the file; of Parquet the table of exchanges
	Events io.Writer // of Parquet the table of events; nil leaves it out
}

// ExportReport says what an export came to.
type ExportReport struct {
	Schema   int      `json:"schema"`
	Run      string   `json:"run"`
	Format   Format   `json:"format"`
	Items    int      `json:"items"`    // exchanges written
	Events   int64    `json:"events"`   // events written, where the format has them
	Skipped  int      `json:"skipped"`  // exchanges that the format has no place for
	Masked   int      `json:"masked"`   // secrets that were masked
	Withheld int      `json:"withheld"` // bodies that were left out because what is in them could not be masked
	Suspect  int      `json:"suspect"`  // exchanges written whose bodies hold what looks like a key, where nothing is masked
	Workload string   `json:"workload"` // hash of the workload, "" where the format does not carry it
	Notes    []string `json:"notes"`
}

// outgoing is a record on its way into a file.
type outgoing struct {
	Record
	start  time.Time // of the first exchange in time
	masked int
}

// writer writes a file of one format.
type writer interface {
	begin(p *picked) error
	add(rec *outgoing) error // errSkip for a record that the format has no place for
	end() error
}

// errSkip says that a format has no place for a record.
var errSkip = errors.New("no place in this format")

// Export writes what the filter picks of a run, one exchange at a time. Credentials were masked before they were stored;
// what the bodies hold goes out as it was recorded unless there is a Redactor. The error wraps exchange.ErrMiss when the
// filter picks nothing.
func Export(ctx context.Context, src Source, run *exchange.Run, to ExportTo, o ExportOptions) (*ExportReport, error) {
	p, err := pick(ctx, src, run, o.Filter)
	if err != nil {
		return nil, err
	}
	r := &ExportReport{Schema: 1, Run: string(run.ID), Format: o.Format, Notes: []string{}}
	w, err := newWriter(to, &o, r)
	if err != nil {
		return nil, err
	}
	if o.Redact != nil {
		p.run = o.Redact.run(run)
	}
	if err := w.begin(p); err != nil {
		return nil, exportError(run, err)
	}
	var sent Workload // without what is in the requests: the hash needs their sums
	for rec, err := range p.records(ctx, src) {
		if err != nil {
			return nil, err
		}
		out := &outgoing{Record: rec, start: p.start}
		r.guard(out, o.Redact)
		if err := r.count(w.add(out)); err != nil {
			return nil, exportError(run, err)
		}
		if it := out.Item; it != nil {
			sent.Items = append(sent.Items, Item{Conversation: it.Conversation, Turn: it.Turn, At: it.At, sum: it.sum})
		}
	}
	if err := w.end(); err != nil {
		return nil, exportError(run, err)
	}
	if o.Format == FormatJSONL || o.Format == FormatHAR {
		sent.arrange()
		r.Workload = sent.Hash()
	}
	return r, nil
}

func exportError(run *exchange.Run, err error) error {
	return &exchange.Error{Op: "export run", Object: string(run.ID), Side: exchange.SideClient, Cause: err}
}

func newWriter(to ExportTo, o *ExportOptions, r *ExportReport) (writer, error) {
	switch o.Format {
	case FormatJSONL:
		return &jsonlWriter{w: to.Main}, nil
	case FormatHAR:
		return &harWriter{w: to.Main, harness: o.Harness}, nil
	case FormatMooncake:
		return newMooncakeWriter(to.Main, r), nil
	case FormatBatch:
		return &batchWriter{w: to.Main, report: r}, nil
	case FormatBurstGPT:
		return newBurstWriter(to.Main, r), nil
	case FormatAzure:
		return newAzureWriter(to.Main, r), nil
	case FormatParquet:
		return newParquetWriter(to, r), nil
	}
	return nil, fmt.Errorf("%w: format %q cannot be written; there is %v", exchange.ErrUsage, o.Format, OutFormats())
}

// lengthsUntold notes the exchanges that a format of lengths has no place for.
func (r *ExportReport) lengthsUntold() {
	if r.Skipped > 0 {
		r.Notes = append(r.Notes, count(r.Skipped, "exchange was", "exchanges were")+" left out: the engine did not tell how many tokens they had, or nothing tells when they were asked")
	}
}

// guard masks what a record must not carry out, or notes that it may carry a secret.
func (r *ExportReport) guard(out *outgoing, redactor *Redactor) {
	if redactor == nil {
		if suspect(out.Exchange) {
			r.Suspect++
		}
		return
	}
	x, masked, withheld := redactor.exchange(out.Exchange)
	out.Exchange, out.masked = x, masked
	r.Masked += masked
	r.Withheld += withheld
	it := out.Item
	switch {
	case it == nil:
	case !x.Request.Body.Whole():
		out.Item = nil
	default:
		again := itemOf(x, x.Request.Body.Bytes())
		it.Target, it.Headers, it.Body, it.Key, it.sum = again.Target, again.Headers, x.Request.Body.Bytes(), again.Key, again.sum
		out.Row.Key = it.Key
	}
}

// count counts a record as written or skipped.
func (r *ExportReport) count(err error) error {
	switch err {
	case nil:
		r.Items++
	case errSkip:
		r.Skipped++
	default:
		return err
	}
	return nil
}

// whole reports whether all that was recorded of the run is picked, and nothing of it was lost.
func (p *picked) whole() bool {
	return p.left == 0 && p.run.State == exchange.RunComplete && p.run.Counts.Dropped == 0
}
