package replay

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Tables for analysis: one row an exchange, with every metric in a column of its own name, and one row an event.

// rowsPerGroup bounds what a table holds in memory before it writes.
const rowsPerGroup = 20000

// column is one column of a table of T. A null value is an absent one, which a required column has none of.
type column[T any] struct {
	name  string
	node  parquet.Node
	value func(*T) parquet.Value
}

func textColumn[T any](name string, value func(*T) string) column[T] {
	return column[T]{name, parquet.String(), func(r *T) parquet.Value { return parquet.ValueOf(value(r)) }}
}

// maybeText is a column that is null for the empty text.
func maybeText[T any](name string, value func(*T) string) column[T] {
	return column[T]{name, parquet.Optional(parquet.String()), func(r *T) parquet.Value {
		if s := value(r); s != "" {
			return parquet.ValueOf(s)
		}
		return parquet.NullValue()
	}}
}

func intColumn[T any](name string, value func(*T) int64) column[T] {
	return column[T]{name, parquet.Leaf(parquet.Int64Type), func(r *T) parquet.Value { return parquet.ValueOf(value(r)) }}
}

// maybeInt is a column that is null for a negative number.
func maybeInt[T any](name string, value func(*T) int64) column[T] {
	return column[T]{name, parquet.Optional(parquet.Leaf(parquet.Int64Type)), func(r *T) parquet.Value {
		if n := value(r); n >= 0 {
			return parquet.ValueOf(n)
		}
		return parquet.NullValue()
	}}
}

func boolColumn[T any](name string, value func(*T) bool) column[T] {
	return column[T]{name, parquet.Leaf(parquet.BooleanType), func(r *T) parquet.Value { return parquet.ValueOf(value(r)) }}
}

func maybeNumber[T any](name string, value func(*T) (float64, bool)) column[T] {
	return column[T]{name, parquet.Optional(parquet.Leaf(parquet.DoubleType)), func(r *T) parquet.Value {
		if v, ok := value(r); ok {
			return parquet.ValueOf(v)
		}
		return parquet.NullValue()
	}}
}

// table writes rows of T.
type table[T any] struct {
	columns []column[T]
	w       *parquet.GenericWriter[any]
	row     parquet.Row
}

func newTable[T any](w io.Writer, name string, columns []column[T]) *table[T] {
	slices.SortFunc(columns, func(a, b column[T]) int { return strings.Compare(a.name, b.name) }) // as a group orders them
	group := parquet.Group{}
	for _, c := range columns {
		group[c.name] = c.node
	}
	return &table[T]{columns: columns, row: make(parquet.Row, len(columns)), w: parquet.NewGenericWriter[any](w,
		parquet.NewSchema(name, group), parquet.Compression(&zstd.Codec{}), parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.CreatedBy("benchproxy", "", ""), parquet.KeyValueMetadata("schema", parquetSchema))}
}

// parquetSchema is the name and the version of the tables.
const parquetSchema = "benchproxy.parquet/1"

func (t *table[T]) add(r *T) error {
	for i, c := range t.columns {
		v, defined := c.value(r), 0
		if c.node.Optional() && !v.IsNull() {
			defined = 1
		}
		t.row[i] = v.Level(0, defined, i)
	}
	_, err := t.w.WriteRows([]parquet.Row{t.row})
	return err
}

// exchangeRow is what the columns of the first table are taken from.
type exchangeRow struct {
	outgoing
	row  exchange.Summary
	read *wire.Transcript
}

// eventRow is what the columns of the second table are taken from.
type eventRow struct {
	run, id string
	n       int
	event   *wire.Event
	at      int64 // ns from t0
	timed   bool
}

// parquetWriter writes the two tables.
type parquetWriter struct {
	exchanges *table[exchangeRow]
	events    *table[eventRow] // nil when they are not wanted
	rows      *Rows
	report    *ExportReport
}

func newParquetWriter(to ExportTo, r *ExportReport) *parquetWriter {
	w := &parquetWriter{exchanges: newTable(to.Main, "exchanges", exchangeColumns()), report: r}
	if to.Events != nil {
		w.events = newTable(to.Events, "events", eventColumns())
	}
	return w
}

func (w *parquetWriter) begin(p *picked) (err error) {
	w.rows, err = RowsOf(p.run)
	return err
}

// add derives everything from the exchange as it leaves, so that no column has what was masked in another.
func (w *parquetWriter) add(rec *outgoing) error {
	x := rec.Exchange
	a := measure.Analyze(x)
	r := exchangeRow{outgoing: *rec, row: w.rows.Of(x, a), read: a.Transcript}
	if err := w.exchanges.add(&r); err != nil {
		return err
	}
	if w.events == nil {
		return nil
	}
	sent, ok := x.Timeline.SendStart.NS()
	for n := range a.Transcript.Events {
		e := eventRow{run: string(x.Run), id: string(x.ID), n: n, event: &a.Transcript.Events[n]}
		if i := e.event.Read; ok && i >= 0 && i < len(x.Timeline.Reads) {
			e.at, e.timed = x.Timeline.Reads[i].At-sent, true
		}
		if err := w.events.add(&e); err != nil {
			return err
		}
		w.report.Events++
	}
	return nil
}

func (w *parquetWriter) end() error {
	err := w.exchanges.w.Close()
	if w.events != nil {
		err = errors.Join(err, w.events.w.Close())
	}
	return err
}

// exchangeColumns are the facts, the texts, and every metric.
func exchangeColumns() []column[exchangeRow] {
	type row = exchangeRow
	columns := []column[row]{
		textColumn("run", func(r *row) string { return string(r.Exchange.Run) }),
		textColumn("id", func(r *row) string { return string(r.Exchange.ID) }),
		intColumn("seq", func(r *row) int64 { return int64(r.Exchange.Seq) }),
		{"started", parquet.Timestamp(parquet.Microsecond), func(r *row) parquet.Value {
			return parquet.ValueOf(r.Exchange.Timeline.Wall.UnixMicro())
		}},
		textColumn("key", func(r *row) string { return r.Row.Key }),
		maybeText("conversation", func(r *row) string { return r.item().Conversation }),
		intColumn("turn", func(r *row) int64 { return int64(r.item().Turn) }),
		maybeText("upstream", func(r *row) string { return r.row.Upstream }),
		maybeText("cell", func(r *row) string { return r.Exchange.Cell }),
		maybeText("wave", func(r *row) string { return r.Exchange.Wave }),
		textColumn("method", func(r *row) string { return r.row.Method }),
		textColumn("path", func(r *row) string { return r.row.Path }),
		maybeText("model", func(r *row) string { return r.row.Model }),
		maybeText("engine", func(r *row) string { return r.Row.Engine }),
		maybeText("dialect", func(r *row) string { return r.row.Dialect }),
		intColumn("status", func(r *row) int64 { return int64(r.row.Status) }),
		textColumn("end", func(r *row) string { return string(r.row.End) }),
		textColumn("outcome", func(r *row) string { return string(r.row.Outcome) }),
		maybeText("cause_side", func(r *row) string { return string(r.cause().Side) }),
		maybeText("cause_code", func(r *row) string { return r.cause().Code }),
		maybeText("cause_text", func(r *row) string { return r.cause().Text }),
		boolColumn("stream", func(r *row) bool { return r.row.Stream }),
		maybeText("finish_reason", func(r *row) string { return deref(r.row.FinishReason) }),
		intColumn("n_tool_calls", func(r *row) int64 { return int64(r.row.ToolCalls) }),
		boolColumn("usage_estimated", func(r *row) bool { return r.row.UsageEstimate }),
		intColumn("parse_errors", func(r *row) int64 { return int64(r.row.ParseErrors) }),
		textColumn("flags", func(r *row) string { return strings.Join(r.row.Flags, ",") }),
		textColumn("state", func(r *row) string { return string(r.row.State) }),
		intColumn("request_bytes", func(r *row) int64 { return r.Exchange.Request.Body.Size }),
		intColumn("response_bytes", func(r *row) int64 { return r.Exchange.Response.Body.Size }),
		textColumn("request_body_digest", func(r *row) string { return r.Exchange.Request.Body.Sum() }),
		textColumn("response_body_digest", func(r *row) string { return r.Exchange.Response.Body.Sum() }),
		maybeText("stamp_clock", func(r *row) string { return string(r.Exchange.Timeline.Clock) }),
		intColumn("reads", func(r *row) int64 { return int64(len(r.Exchange.Timeline.Reads)) }),
		intColumn("events", func(r *row) int64 { return int64(len(r.read.Events)) }),
		intColumn("interventions", func(r *row) int64 { return int64(len(r.Exchange.Interventions)) }),
		maybeText("output_text", func(r *row) string { return r.read.Choice0().Text }),
		maybeText("reasoning_text", func(r *row) string { return r.read.Choice0().Reasoning }),
		{"basis", parquet.JSON(), func(r *row) parquet.Value { return r.sources(true) }},
		{"absent", parquet.JSON(), func(r *row) parquet.Value { return r.sources(false) }},
	}
	for _, m := range measure.Metrics() {
		columns = append(columns, maybeNumber(m.Name, func(r *row) (float64, bool) {
			f := r.row.Metrics[m.Name]
			return f.Value, f.Present()
		}))
	}
	return columns
}

func (r *exchangeRow) item() Item {
	if r.Item == nil {
		return Item{}
	}
	return *r.Item
}

func (r *exchangeRow) cause() exchange.Cause {
	if r.row.Cause == nil {
		return exchange.Cause{}
	}
	return *r.row.Cause
}

// sources are, as JSON, the basis of every metric that is there, or the reason of every one that is not.
func (r *exchangeRow) sources(present bool) parquet.Value {
	out := map[string]string{}
	for name, f := range r.row.Metrics {
		switch {
		case f.Present() != present:
		case present:
			out[name] = string(f.Basis)
		default:
			out[name] = string(f.Reason)
		}
	}
	b, err := json.Marshal(out)
	if err != nil { // a map of strings has a form
		return parquet.ValueOf("{}")
	}
	return parquet.ValueOf(b)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// kindNames are the kinds of content that an event can add.
var kindNames = []struct {
	kind wire.Kind
	name string
}{
	{wire.KindText, "text"}, {wire.KindReasoning, "reasoning"}, {wire.KindRefusal, "refusal"}, {wire.KindTool, "tool"}, {wire.KindMedia, "media"},
}

func kindsOf(k wire.Kind) string {
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// eventColumns are where an event is, when it came, and what it brought.
func eventColumns() []column[eventRow] {
	type row = eventRow
	return []column[row]{
		textColumn("run", func(r *row) string { return r.run }),
		textColumn("exchange", func(r *row) string { return r.id }),
		intColumn("n", func(r *row) int64 { return int64(r.n) }),
		intColumn("read", func(r *row) int64 { return int64(r.event.Read) }),
		{"at_ns", parquet.Optional(parquet.Leaf(parquet.Int64Type)), func(r *row) parquet.Value {
			if !r.timed {
				return parquet.NullValue()
			}
			return parquet.ValueOf(r.at)
		}},
		intColumn("first_byte", func(r *row) int64 { return r.event.Start }),
		intColumn("end_byte", func(r *row) int64 { return r.event.End }),
		boolColumn("token_event", func(r *row) bool { return r.event.Kinds != 0 }),
		maybeText("kinds", func(r *row) string { return kindsOf(r.event.Kinds) }),
		boolColumn("done", func(r *row) bool { return r.event.Done }),
		maybeInt("tokens", func(r *row) int64 { return int64(r.event.Tokens) }),
		maybeInt("running_tokens", func(r *row) int64 { return r.event.Running }),
	}
}
