package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The traces that come as tables: BurstGPT and those of Azure. Columns are found by their names in the first line.

// csvTable reads a table line by line.
type csvTable struct {
	*tracer
	columns map[string]int
}

// sniffCSV finds the trace that a first line is the header of.
func sniffCSV(line string) Format {
	names := strings.Split(strings.ToLower(strings.TrimSpace(line)), ",")
	for i := range names {
		names[i] = strings.Trim(strings.TrimSpace(names[i]), `"`)
	}
	has := func(n string) bool { return slices.Contains(names, n) }
	switch {
	case has("contexttokens") && has("generatedtokens"):
		return FormatAzure
	case has("request tokens") && has("response tokens"):
		return FormatBurstGPT
	}
	return ""
}

// newCSV reads the header of a table, which must have the wanted columns.
func newCSV(l *lineReader, o *TraceOptions, want ...string) (*csvTable, error) {
	tr, err := newTracer(l, o)
	if err != nil {
		return nil, err
	}
	t := &csvTable{tracer: tr, columns: map[string]int{}}
	fields, err := t.fields()
	if err != nil {
		return nil, err
	}
	for i, f := range fields {
		name := strings.ToLower(strings.TrimSpace(f))
		if _, twice := t.columns[name]; twice {
			return nil, l.bad(f, "", "there are two columns of this name")
		}
		t.columns[name] = i
	}
	for _, w := range want {
		if _, ok := t.columns[w]; !ok {
			return nil, l.bad("", strings.Join(fields, ","), fmt.Sprintf("there is no column %q", w))
		}
	}
	return t, nil
}

// fields are those of the next line.
func (t *csvTable) fields() ([]string, error) {
	line, err := t.lines.next()
	if err != nil {
		return nil, err
	}
	c := csv.NewReader(strings.NewReader(string(line)))
	c.FieldsPerRecord = -1
	fields, err := c.Read()
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return nil, t.lines.bad("", string(line), fmt.Sprintf("is no line of a table: %v", parse.Err))
	case err != nil && err != io.EOF:
		return nil, t.lines.bad("", string(line), err.Error())
	}
	if len(t.columns) > 0 && len(fields) != len(t.columns) {
		return nil, t.lines.bad("", string(line), fmt.Sprintf("has %d fields, the header has %d", len(fields), len(t.columns)))
	}
	return fields, nil
}

// get is the field of a column, "" for a column that is not there.
func (t *csvTable) get(fields []string, column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(fields[i])
}

// tokens is a number of tokens.
func (t *csvTable) tokens(fields []string, column string) (int64, error) {
	text := t.get(fields, column)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, t.lines.bad(column, text, "want a whole number")
	}
	return n, nil
}

func (t *csvTable) line() string { return fmt.Sprintf("line-%d", t.lines.n) }

// burstReader reads BurstGPT: seconds since the start, model, tokens, and in newer files the session.
type burstReader struct{ *csvTable }

func newBurstReader(l *lineReader, o *TraceOptions) (reader, error) {
	t, err := newCSV(l, o, "timestamp", "request tokens", "response tokens")
	return &burstReader{t}, err
}

func (r *burstReader) next() (*entry, error) {
	for {
		fields, err := r.fields()
		if err != nil {
			return nil, err
		}
		l := traced{id: r.line(), session: r.get(fields, "session id")}
		if l.at, err = r.instant("timestamp", r.get(fields, "timestamp"), time.Second); err != nil {
			return nil, err
		}
		if l.prompt, err = r.tokens(fields, "request tokens"); err != nil {
			return nil, err
		}
		if l.output, err = r.tokens(fields, "response tokens"); err != nil {
			return nil, err
		}
		if l.output == 0 { // a request that failed
			r.failed++
			continue
		}
		if err := r.lengths("request tokens", "response tokens", l.prompt, l.output); err != nil {
			return nil, err
		}
		return r.entry(&l)
	}
}

// azureReader reads the traces of Azure's LLM services: a date, and the tokens of prompt and answer.
type azureReader struct {
	*csvTable
	start time.Time // of the first line
	begun bool
}

func newAzureReader(l *lineReader, o *TraceOptions) (reader, error) {
	t, err := newCSV(l, o, "timestamp", "contexttokens", "generatedtokens")
	return &azureReader{csvTable: t}, err
}

// azureTimes are the spellings of instants in the traces of 2023 and 2024; fractions are read whatever their length.
var azureTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339}

func (r *azureReader) next() (*entry, error) {
	for {
		fields, err := r.fields()
		if err != nil {
			return nil, err
		}
		l := traced{id: r.line()}
		if l.at, err = r.when(r.get(fields, "timestamp")); err != nil {
			return nil, err
		}
		if l.prompt, err = r.tokens(fields, "contexttokens"); err != nil {
			return nil, err
		}
		if l.output, err = r.tokens(fields, "generatedtokens"); err != nil {
			return nil, err
		}
		if l.output == 0 {
			r.failed++
			continue
		}
		if err := r.lengths("contexttokens", "generatedtokens", l.prompt, l.output); err != nil {
			return nil, err
		}
		return r.entry(&l)
	}
}

// when is the distance of an instant from that of the first line. One before it is in order: lines are sorted later.
func (r *azureReader) when(text string) (time.Duration, error) {
	for _, form := range azureTimes {
		at, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		if !r.begun {
			r.start, r.begun = at, true
		}
		d := at.Sub(r.start)
		if d > maxTraceSpan || d < -maxTraceSpan {
			return 0, r.lines.bad("timestamp", text, "is more than a year away from the first")
		}
		return d.Truncate(time.Microsecond), nil
	}
	return 0, r.lines.bad("timestamp", text, "want a time as in 2023-11-16 18:17:03.9799600")
}
