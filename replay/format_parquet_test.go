package replay

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// tableOf reads a table back: one map a row, without the columns that are null.
func tableOf(t *testing.T, b []byte) (rows []map[string]parquet.Value, f *parquet.File) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	columns := f.Schema().Columns()
	for _, g := range f.RowGroups() {
		r := g.Rows()
		defer r.Close()
		buf := make([]parquet.Row, 10)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				m := map[string]parquet.Value{}
				for _, v := range row {
					if !v.IsNull() {
						m[columns[v.Column()][0]] = v.Clone()
					}
				}
				rows = append(rows, m)
			}
			if err != nil {
				break
			}
		}
	}
	return rows, f
}

func tables(t *testing.T, s *shelf, o ExportOptions) (exchanges, events []byte, r *ExportReport) {
	t.Helper()
	o.Format = FormatParquet
	var a, b bytes.Buffer
	r, err := Export(context.Background(), s, &s.run, ExportTo{Main: &a, Events: &b}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a.Bytes(), b.Bytes(), r
}

func TestTablesHaveARowForEveryExchangeAndEvent(t *testing.T) {
	s := oddRun()
	a, b, report := tables(t, s, ExportOptions{})
	rows, file := tableOf(t, a)
	if len(rows) != len(s.rows) || report.Items != len(s.rows) {
		t.Fatalf("%d rows, report says %d, want %d", len(rows), report.Items, len(s.rows))
	}
	if v, _ := file.Lookup("schema"); v != "benchproxy.parquet/1" {
		t.Errorf("schema %q", v)
	}
	for i, row := range rows {
		want := s.rows[i]
		if row["id"].String() != string(want.ID) || row["outcome"].String() != string(want.Outcome) || row["key"].String() != want.Key {
			t.Errorf("row %d: %v, want %s %s", i, row["id"], want.ID, want.Outcome)
		}
		for _, m := range measure.Metrics() {
			f, v := want.Metrics[m.Name], row[m.Name]
			if f.Present() != !v.IsNull() || f.Present() && v.Double() != f.Value {
				t.Errorf("row %d: %s is %v, want %v", i, m.Name, v, f)
			}
			if why := string(f.Reason); !f.Present() && !strings.Contains(row["absent"].String(), `"`+m.Name+`":"`+why+`"`) {
				t.Errorf("row %d: %s is absent without its reason %s", i, m.Name, why)
			}
		}
	}
	if at := time.UnixMicro(rows[0]["started"].Int64()).UTC(); !at.Equal(traceDay.Truncate(time.Microsecond)) {
		t.Errorf("started %v", at)
	}
	if rows[1]["conversation"].String() != string(s.rows[0].ID) || rows[1]["turn"].Int64() != 1 {
		t.Errorf("second turn is %v of %v", rows[1]["turn"], rows[1]["conversation"])
	}
	eventsFit(t, s, b, report)
}

// eventsFit holds that the table of events has what the exchanges have.
func eventsFit(t *testing.T, s *shelf, b []byte, report *ExportReport) {
	t.Helper()
	events, _ := tableOf(t, b)
	n := 0
	for _, row := range s.rows {
		x := s.xs[row.ID]
		sent, _ := x.Timeline.SendStart.NS()
		for i, e := range measure.Analyze(x).Transcript.Events {
			got := events[n]
			if got["exchange"].String() != string(row.ID) || got["n"].Int64() != int64(i) || got["token_event"].Boolean() != (e.Kinds != 0) || got["end_byte"].Int64() != e.End {
				t.Errorf("event %d of %s: %v, want %+v", i, row.ID, got, e)
			}
			if got["at_ns"].Int64() != x.Timeline.Reads[e.Read].At-sent {
				t.Errorf("event %d of %s came at %v", i, row.ID, got["at_ns"])
			}
			n++
		}
	}
	if n == 0 || n != len(events) || report.Events != int64(n) {
		t.Errorf("%d events, %d rows, report says %d", n, len(events), report.Events)
	}
}

// TestRowsKeepWhatTheRunSaysOfTheirModels holds that a row that is derived again, in a table or in a judgment, has the
// flags that it had when the answer came: here of a model that the engine does not list.
func TestRowsKeepWhatTheRunSaysOfTheirModels(t *testing.T) {
	asked := strings.Replace(morning, `"model":"m"`, `"model":"served"`, 1)
	named := func(model string) string { return `{"model":"` + model + `",` }
	of := func(after time.Duration, model string) *exchange.Exchange {
		return recorded(after, asked, eventStream, strings.Replace(say("Good morning to you"), "{", named(model), 1), chatEnd)
	}
	s := newShelf(of(0, "served"), of(time.Second, "other"))
	for _, x := range s.xs {
		x.Upstream = "default"
	}
	s.run.Models = []exchange.ModelNamed{{Upstream: "default", Asked: "served", Named: "served"}}
	s.run.Deployments = []exchange.Deployment{{Upstream: "default", Identity: exchange.Identity{Engine: "llamacpp"}, ReadAt: traceDay.Add(-time.Hour), Models: []string{"served"}}}
	want := engines.FlagModelChanged + "," + engines.FlagModelDiffers
	a, _, _ := tables(t, s, ExportOptions{})
	rows, _ := tableOf(t, a)
	if first, second := rows[0]["flags"].String(), rows[1]["flags"].String(); strings.Contains(first, "model_") || !strings.Contains(second, want) {
		t.Errorf("tables: flags %q and %q, want the second with %s", first, second, want)
	}
	_, judged := judgedRun(t, s, RevalidateOptions{})
	if first, second := strings.Join(judged[0].Flags, ","), strings.Join(judged[1].Flags, ","); strings.Contains(first, "model_") || !strings.Contains(second, want) {
		t.Errorf("judged: flags %q and %q, want the second with %s", first, second, want)
	}
}

func TestTablesOfManyRows(t *testing.T) {
	xs := make([]*exchange.Exchange, 0, 300)
	for i := range 300 {
		xs = append(xs, recorded(time.Duration(i)*time.Second, `{}`, eventStream, strings.Repeat(say("x"), 100), chatEnd))
	}
	a, b, report := tables(t, newShelf(xs...), ExportOptions{})
	rows, _ := tableOf(t, a)
	events, f := tableOf(t, b)
	if len(rows) != 300 || len(events) != 300*103 || report.Events != 300*103 || len(f.RowGroups()) != 2 {
		t.Errorf("%d exchanges, %d events in %d groups", len(rows), len(events), len(f.RowGroups()))
	}
}

func TestTablesAreRedacted(t *testing.T) {
	x := recorded(0, `{}`, eventStream, say("sk-test-"), say("0123456789"), chatEnd)
	a, _, _ := tables(t, newShelf(x), ExportOptions{Redact: masker(t, RedactOptions{Texts: []string{secret}})})
	rows, _ := tableOf(t, a)
	if got := rows[0]["output_text"].String(); got != strings.Repeat("*", len(secret)) {
		t.Errorf("the text is %q", got)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestExportErrors(t *testing.T) {
	s := oddRun()
	for _, format := range OutFormats() {
		if _, err := Export(context.Background(), s, &s.run, ExportTo{Main: full{}, Events: full{}}, ExportOptions{Format: format}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%s: %v", format, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		o    ExportOptions
		want error
	}{
		{ctx, ExportOptions{Format: FormatJSONL}, context.Canceled},
		{context.Background(), ExportOptions{Format: "csv"}, exchange.ErrUsage},
		{context.Background(), ExportOptions{Format: FormatJSONL, Filter: Filter{Models: []string{"absent"}}}, exchange.ErrMiss},
		{context.Background(), ExportOptions{Format: FormatJSONL, Filter: Filter{Paths: []string{"["}}}, exchange.ErrUsage},
		{context.Background(), ExportOptions{Format: FormatJSONL, Filter: Filter{IDs: []exchange.ID{"x"}}}, exchange.ErrUsage},
	} {
		if _, err := Export(tt.ctx, s, &s.run, ExportTo{Main: &bytes.Buffer{}}, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.o, err, tt.want)
		}
	}
	lost := newShelf(recorded(0, `{}`, "application/json", `{}`))
	clear(lost.xs)
	if _, err := Export(context.Background(), lost, &lost.run, ExportTo{Main: &bytes.Buffer{}}, ExportOptions{Format: FormatJSONL}); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("a record that is gone: %v", err)
	}
}
