package replay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// batchWriter writes recorded requests as an OpenAI batch file: what was asked, without instants and without answers.
type batchWriter struct {
	w       io.Writer
	report  *ExportReport
	streams bool // a request asks for a stream, which no batch has
}

func (w *batchWriter) begin(*picked) error { return nil }

// add writes a line for a POST with a JSON object; other requests have no place here.
func (w *batchWriter) add(rec *outgoing) error {
	it := rec.Item
	if it == nil || it.Method != http.MethodPost || !json.Valid(it.Body) || bytes.TrimLeft(it.Body, " \t\r\n")[0] != '{' {
		return errSkip
	}
	w.streams = w.streams || rec.Row.Stream
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(batchLine{ID: it.ID, Method: it.Method, URL: it.Target, Body: it.Body}); err != nil {
		return err
	}
	_, err := w.w.Write(line.Bytes())
	return err
}

func (w *batchWriter) end() error {
	if w.streams {
		w.report.Notes = append(w.report.Notes, "some requests ask for a stream, which the batch API does not have")
	}
	if w.report.Skipped > 0 {
		w.report.Notes = append(w.report.Notes, count(w.report.Skipped, "request was", "requests were")+" left out: no POST of a JSON object")
	}
	if w.report.Items > 0 {
		w.report.Notes = slices.Insert(w.report.Notes, 0, "a batch file has no instants and no answers")
	}
	return nil
}
