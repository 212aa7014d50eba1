package replay

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// bytes are the body.
func (d *harData) bytes() ([]byte, error) {
	switch d.Encoding {
	case "":
		return []byte(d.Text), nil
	case "base64":
		return base64.StdEncoding.DecodeString(string(d.Text))
	}
	return nil, errors.New("its encoding is not base64")
}

// sent are the body of a request. missing says that the archive tells of a body it does not hold; a form whose fields
// stand in the place of its text is put together again, but for one of several parts: nobody knows their bytes.
func (d *harData) sent(sized bool) (body []byte, missing bool, err error) {
	kind, _, _ := strings.Cut(d.MimeType, ";")
	switch {
	case d.Text != "":
		body, err = d.bytes()
		return body, false, err
	case len(d.Params) == 0:
		return nil, sized, nil
	case !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded"):
		return nil, true, nil
	}
	fields := make([]string, len(d.Params))
	for i, p := range d.Params {
		fields[i] = url.QueryEscape(unescaped(p.Name)) + "=" + url.QueryEscape(unescaped(p.Value))
	}
	return []byte(strings.Join(fields, "&")), false, nil
}

// dataOf is a body in the form of an archive.
func dataOf(b []byte, contentType string) harData {
	if utf8.Valid(b) {
		return harData{MimeType: contentType, Text: exactText(b)}
	}
	return harData{MimeType: contentType, Text: exactText(base64.StdEncoding.EncodeToString(b)), Encoding: "base64"}
}

// harWriter writes an archive entry by entry.
type harWriter struct {
	w       io.Writer
	harness string
	items   int
}

func (w *harWriter) begin(p *picked) error {
	ours := harFile{Schema: harSchema, Run: p.run, Pick: p.filter.String(), Items: p.n, Whole: p.whole()}
	b := []byte(`{"log":{"version":"1.2","creator":`)
	b, err := appendJSON(b, harCreator{"benchproxy", w.harness})
	if err != nil {
		return err
	}
	if b, err = appendJSON(append(b, `,"_benchproxy":`...), ours); err != nil {
		return err
	}
	_, err = w.w.Write(append(b, `,"pages":[],"entries":[`...))
	return err
}

func (w *harWriter) add(rec *outgoing) error {
	lead := ",\n"
	if w.items == 0 {
		lead = "\n"
	}
	w.items++
	b, err := appendJSON([]byte(lead), harEntryOf(rec))
	if err != nil {
		return err
	}
	_, err = w.w.Write(b)
	return err
}

func (w *harWriter) end() error {
	_, err := io.WriteString(w.w, "\n]}}\n")
	return err
}

func harEntryOf(rec *outgoing) *harEntry {
	x := rec.Exchange
	body, answer := x.Request.Body.Bytes(), x.Response.Body.Bytes()
	contentType := func(hs []exchange.Header) string {
		v, _ := exchange.HeaderValue(hs, "Content-Type")
		return v
	}
	h := &harEntry{
		Started: x.Timeline.Wall.Format(time.RFC3339Nano),
		Request: harRequest{
			Method: x.Request.Method, URL: strings.TrimSuffix(x.UpstreamURL, "/") + x.Request.Target, HTTPVersion: x.Request.Proto,
			Cookies: []harPair{}, Headers: listed(x.Request.Headers), QueryString: queryOf(x.Request.Target),
			HeadersSize: len(x.Request.Head), BodySize: x.Request.Body.Size,
		},
		Response: harResponse{
			Status: x.Response.Status, StatusText: x.Response.Reason, HTTPVersion: x.Response.Proto,
			Cookies: []harPair{}, Headers: listed(x.Response.Headers), Content: dataOf(answer, contentType(x.Response.Headers)),
			HeadersSize: len(x.Response.Head), BodySize: x.Response.Body.Size,
		},
		Ours: &harOurs{ID: string(x.ID), Path: x.Request.Target, Record: factsOf(x)},
	}
	h.Response.Content.Size = &x.Response.Body.Size
	if len(body) > 0 {
		data := dataOf(body, contentType(x.Request.Headers))
		h.Request.PostData = &data
	}
	h.Ours.Record.Redacted = rec.masked
	if it := rec.Item; it != nil {
		h.Ours.Session, h.Ours.Turn, h.Ours.Key = it.Conversation, it.Turn, it.Key
	}
	h.Timings = timingsOf(&x.Timeline)
	for _, v := range []float64{h.Timings.Blocked, h.Timings.Send, h.Timings.Wait, h.Timings.Receive} {
		h.Time += max(v, 0)
	}
	return h
}

// listed is hs, never null: the format wants a list.
func listed(hs []exchange.Header) headerList {
	if hs == nil {
		return headerList{}
	}
	return hs
}

func queryOf(target string) []harPair {
	pairs := []harPair{}
	_, query, _ := strings.Cut(target, "?")
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, harPair{unescaped(name), unescaped(value)})
	}
	return pairs
}

func unescaped(s string) string {
	if v, err := url.QueryUnescape(s); err == nil {
		return v
	}
	return s
}

// timingsOf are the phases that an archive has; one that did not end has no length.
func timingsOf(t *exchange.Timeline) harTimings {
	span := func(from, to exchange.Mark) float64 {
		a, okA := from.NS()
		b, okB := to.NS()
		if !okA || !okB || b < a {
			return 0
		}
		return float64(b-a) / 1e6
	}
	first := t.FirstRead
	if !first.Happened() {
		first = t.HeaderRead
	}
	return harTimings{
		Blocked: span(exchange.MarkAt(0), t.SendStart), DNS: -1, Connect: -1, SSL: -1,
		Send: span(t.SendStart, t.SendDone), Wait: span(t.SendDone, first), Receive: span(first, t.BodyEnd),
	}
}
