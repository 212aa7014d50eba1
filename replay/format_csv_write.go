package replay

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// csvWriter writes the lengths and arrivals of recorded requests as a table, and nothing of what they say.
type csvWriter struct {
	w      *csv.Writer
	report *ExportReport
	header []string
	note   string
	row    func(rec *outgoing, prompt, output int64) []string
}

// newBurstWriter writes BurstGPT, with the columns of its newer files.
func newBurstWriter(w io.Writer, r *ExportReport) *csvWriter {
	return &csvWriter{w: csv.NewWriter(w), report: r,
		header: []string{"Timestamp", "Session ID", "Elapsed time", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"},
		note:   "timestamps are seconds since the first request, elapsed times seconds from sending to the end of the answer",
		row: func(rec *outgoing, prompt, output int64) []string {
			elapsed := ""
			if f := rec.Row.Metrics["total_wall_ms"]; f.Present() {
				elapsed = seconds(f.Value / 1e3)
			}
			whole := func(n int64) string { return strconv.FormatInt(n, 10) }
			return []string{seconds(rec.Item.At.Seconds()), rec.Item.Conversation, elapsed, rec.Row.Model,
				whole(prompt), whole(output), whole(prompt + output), "API log"}
		}}
}

// newAzureWriter writes the form of Azure's traces of 2023.
func newAzureWriter(w io.Writer, r *ExportReport) *csvWriter {
	return &csvWriter{w: csv.NewWriter(w), report: r,
		header: []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
		note:   "times are UTC",
		row: func(rec *outgoing, prompt, output int64) []string {
			at := rec.start.Add(rec.Item.At).UTC().Format("2006-01-02 15:04:05.0000000")
			return []string{at, strconv.FormatInt(prompt, 10), strconv.FormatInt(output, 10)}
		}}
}

// seconds is a number of seconds to the microsecond.
func seconds(s float64) string {
	return strconv.FormatFloat(float64(time.Duration(s*1e9).Round(time.Microsecond))/1e9, 'f', -1, 64)
}

func (w *csvWriter) begin(*picked) error { return w.w.Write(w.header) }

// add writes a line for an exchange with an instant whose engine told the lengths; others have no place here.
func (w *csvWriter) add(rec *outgoing) error {
	prompt, output, ok := rec.lengthsOf()
	if !ok {
		return errSkip
	}
	return w.w.Write(w.row(rec, prompt, output))
}

func (w *csvWriter) end() error {
	w.w.Flush()
	w.report.Notes = append(w.report.Notes, w.note)
	w.report.lengthsUntold()
	return w.w.Error()
}
