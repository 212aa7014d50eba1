package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// bytesJSON are bytes as a JSON value that gives them back exactly: a string when they are text, else an object with
// base64 in it.
type bytesJSON []byte

type base64JSON struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes the bytes.
func (b bytesJSON) MarshalJSON() ([]byte, error) {
	if !utf8.Valid(b) {
		return json.Marshal(base64JSON{b})
	}
	return appendJSON(nil, string(b))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (b *bytesJSON) UnmarshalJSON(in []byte) error {
	if len(in) > 0 && in[0] == '"' {
		var s exactText
		err := json.Unmarshal(in, &s)
		*b = bytesJSON(s)
		return err
	}
	v, ok, err := readBase64(in)
	if err == nil && !ok {
		err = fmt.Errorf("want a string or an object with base64, got %s", shown(string(in)))
	}
	*b = v
	return err
}

// readBase64 reads the object of bytes that are no text; ok is false when in is something else.
func readBase64(in []byte) (b []byte, ok bool, err error) {
	var one map[string]json.RawMessage
	if json.Unmarshal(in, &one) != nil || len(one) != 1 || one["base64"] == nil {
		return nil, false, nil
	}
	var text string
	if json.Unmarshal(one["base64"], &text) != nil {
		return nil, false, nil
	}
	b, err = base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, false, fmt.Errorf("read base64: %w", err)
	}
	return b, true, nil
}

// bodyJSON is a body as a JSON value that gives its bytes back exactly. JSON that fits on a line stands there as it is,
// so that other tools can look into it; everything else as bytesJSON.
func bodyJSON(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return []byte("null"), nil
	}
	first, last := b[0], b[len(b)-1]
	if (first == '{' && last == '}' || first == '[' && last == ']') &&
		!bytes.ContainsAny(b, "\r\n") && utf8.Valid(b) && json.Valid(b) {
		if _, mistaken, err := readBase64(b); !mistaken && err == nil {
			return b, nil
		}
	}
	return bytesJSON(b).MarshalJSON()
}

// readBody reads what bodyJSON writes: a string is text, an object with nothing but base64 is bytes, and any other
// value is the body as it stands there.
func readBody(in json.RawMessage) ([]byte, error) {
	if len(in) == 0 || string(in) == "null" {
		return nil, nil
	}
	if in[0] == '"' {
		var s exactText
		err := json.Unmarshal(in, &s)
		return []byte(s), err
	}
	b, ok, err := readBase64(in)
	if ok || err != nil {
		return b, err
	}
	return bytes.Clone(in), nil
}

// appendJSON appends v without the escapes that only HTML needs.
func appendJSON(dst []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

// headerList is a list of headers. It also reads the object of names and values that people write by hand.
type headerList []exchange.Header

// UnmarshalJSON reads a list or an object.
func (l *headerList) UnmarshalJSON(in []byte) error {
	if len(in) == 0 || in[0] != '{' {
		return json.Unmarshal(in, (*[]exchange.Header)(l))
	}
	d := json.NewDecoder(bytes.NewReader(in)) // in the order of the text
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value string
		if err := d.Decode(&value); err != nil {
			return err
		}
		*l = append(*l, exchange.Header{Name: fmt.Sprint(name), Value: value})
	}
	return nil
}

// problem is what keeps a list from being headers: a name or a value that would be read as more than one.
func (l headerList) problem() (value, why string) {
	for _, h := range l {
		if h.Name == "" || strings.ContainsAny(h.Name, "\r\n\x00: ") && h.Name[0] != ':' {
			return h.Name, "is no name of a header"
		}
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			return h.Value, "a header has no line ends in it"
		}
	}
	return "", ""
}

// millis is a time in milliseconds with whole microseconds.
type millis time.Duration

// maxOffset bounds the instants of a file: beyond it a number of milliseconds is a mistaken unit.
const maxOffset = 100 * 24 * time.Hour

// MarshalJSON writes a plain decimal number.
func (m millis) MarshalJSON() ([]byte, error) {
	us := time.Duration(m).Microseconds()
	s := fmt.Sprintf("%d.%03d", us/1000, us%1000)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".")), nil
}

// readMillis reads a number of milliseconds from 0 on.
func readMillis(n json.RawMessage) (time.Duration, string) {
	f, err := strconv.ParseFloat(string(n), 64)
	switch {
	case err != nil:
		return 0, "want a number of milliseconds"
	case f < 0:
		return 0, "want a number that is not negative"
	case f > float64(maxOffset/time.Millisecond):
		return 0, "is more than 100 days after the start; is the unit milliseconds?"
	}
	return time.Duration(f*1000+0.5) * time.Microsecond, ""
}

// factsJSON is what an exchange is beside its two messages.
type factsJSON struct {
	Seq           uint64                  `json:"seq"`
	Cell          string                  `json:"cell,omitempty"`
	Wave          string                  `json:"wave,omitempty"`
	Upstream      string                  `json:"upstream,omitempty"`
	UpstreamURL   string                  `json:"upstream_url,omitempty"`
	Mode          string                  `json:"mode,omitempty"`
	Dialect       string                  `json:"dialect,omitempty"`
	Identity      exchange.Identity       `json:"identity"`
	RequestProto  string                  `json:"request_proto,omitempty"`
	RequestHead   bytesJSON               `json:"request_head,omitempty"`
	RequestSize   int64                   `json:"request_size"`
	RequestSum    string                  `json:"request_digest"`
	ResponseProto string                  `json:"response_proto,omitempty"`
	ResponseHead  bytesJSON               `json:"response_head,omitempty"`
	ResponseSize  int64                   `json:"response_size"`
	ResponseSum   string                  `json:"response_digest"`
	Trailers      headerList              `json:"trailers,omitempty"`
	Informational []int                   `json:"informational,omitempty"`
	Timeline      exchange.TimelineView   `json:"timeline"`
	End           exchange.End            `json:"end"`
	Cause         *exchange.Cause         `json:"cause"`
	State         exchange.State          `json:"state"`
	Origin        *exchange.Origin        `json:"origin,omitempty"`
	Item          *exchange.PlanItem      `json:"item,omitempty"`
	Counters      *exchange.Counters      `json:"counters,omitempty"`
	Tunnel        *exchange.Tunnel        `json:"tunnel,omitempty"`
	Interventions []exchange.Intervention `json:"interventions,omitempty"`
	Harness       string                  `json:"harness,omitempty"`
	Redacted      int                     `json:"redacted,omitempty"` // secrets that were masked on export, in bodies and elsewhere
}

// factsOf are the facts of x. The digests are of the bodies as they are in x.
func factsOf(x *exchange.Exchange) *factsJSON {
	return &factsJSON{
		Seq: x.Seq, Cell: x.Cell, Wave: x.Wave, Upstream: x.Upstream, UpstreamURL: x.UpstreamURL, Mode: x.Mode,
		Dialect: x.Dialect, Identity: x.Identity,
		RequestProto: x.Request.Proto, RequestHead: x.Request.Head, RequestSize: x.Request.Body.Size, RequestSum: x.Request.Body.Sum(),
		ResponseProto: x.Response.Proto, ResponseHead: x.Response.Head, ResponseSize: x.Response.Body.Size, ResponseSum: x.Response.Body.Sum(),
		Trailers: x.Response.Trailers, Informational: x.Response.Informational,
		Timeline: x.Timeline.View(), End: x.End, Cause: x.Cause, State: x.State, Origin: x.Origin, Item: x.Item, Tunnel: x.Tunnel,
		Counters: x.Counters, Interventions: x.Interventions, Harness: x.Harness,
	}
}

// Bounds of what a record can say: beyond them a number is a mistake, and sums over it would overflow.
const (
	maxSeq    = 1 << 53
	maxStatus = 999
)

const (
	wantStatus   = "want a status of three digits, or 0 where no answer came"
	notPlausible = "is no time at which anything can have been recorded"
)

// plausible reports whether something can have been recorded then. Differences of such times fit a Duration.
func plausible(wall time.Time) bool { return wall.Year() >= 1970 && wall.Year() < 2200 }

// ends are the words for the end of an exchange that this build knows.
var ends = map[exchange.End]bool{
	exchange.EndEOF: true, exchange.EndShort: true, exchange.EndReset: true, exchange.EndClientGone: true,
	exchange.EndTimeout: true, exchange.EndConnectFailed: true, exchange.EndShutdown: true,
}

// exchange makes the exchange of the facts, with the messages that req and resp have already. The problems are what
// keeps it from being stored: field, value and why.
func (f *factsJSON) exchange(id string, req exchange.Request, resp exchange.Response) (*exchange.Exchange, *LineError) {
	x := &exchange.Exchange{
		Seq: f.Seq, Cell: f.Cell, Wave: f.Wave, Upstream: f.Upstream, UpstreamURL: f.UpstreamURL, Mode: f.Mode,
		Dialect: f.Dialect, Identity: f.Identity, Request: req, Response: resp, Timeline: f.Timeline.Timeline,
		End: f.End, Cause: f.Cause, State: f.State, Origin: f.Origin, Item: f.Item, Tunnel: f.Tunnel,
		Counters: f.Counters, Interventions: f.Interventions, Harness: f.Harness,
	}
	if exchange.ValidID(id) {
		x.ID = exchange.ID(id)
	}
	x.Request.Proto, x.Request.Head = f.RequestProto, f.RequestHead
	x.Response.Proto, x.Response.Head = f.ResponseProto, f.ResponseHead
	x.Response.Trailers, x.Response.Informational = f.Trailers, f.Informational
	for i, r := range f.Timeline.Reads {
		if r[1] < 0 || r[1] > f.ResponseSize {
			return nil, &LineError{Field: fmt.Sprintf("timeline.reads[%d]", i), Value: fmt.Sprint(r), Why: "its size does not fit the body"}
		}
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: r[0], Size: int(r[1]), Write: r[2]})
	}
	switch {
	case !ends[x.End]:
		return nil, &LineError{Field: "end", Value: string(x.End), Why: "is no end that this build knows"}
	case x.State != exchange.StateStored && x.State != exchange.StateTruncated:
		return nil, &LineError{Field: "state", Value: string(x.State), Why: "want stored or truncated"}
	case x.Timeline.Wall.IsZero():
		return nil, &LineError{Field: "timeline.wall", Why: "is missing"}
	case !plausible(x.Timeline.Wall):
		return nil, &LineError{Field: "timeline.wall", Value: x.Timeline.Wall.Format(time.RFC3339), Why: notPlausible}
	case x.Seq > maxSeq:
		return nil, &LineError{Field: "seq", Value: fmt.Sprint(x.Seq), Why: fmt.Sprintf("want a number up to %d", int64(maxSeq))}
	case resp.Status < 0 || resp.Status > maxStatus:
		return nil, &LineError{Field: "response.status", Value: fmt.Sprint(resp.Status), Why: wantStatus}
	}
	if bad := seal(&x.Request.Body, f.RequestSize, f.RequestSum, "request_digest"); bad != nil {
		return nil, bad
	}
	if bad := seal(&x.Response.Body, f.ResponseSize, f.ResponseSum, "response_digest"); bad != nil {
		return nil, bad
	}
	if problems := exchange.Problems(x); len(problems) > 0 {
		return nil, &LineError{Field: "record", Why: strings.Join(problems, "; ")}
	}
	return x, nil
}

// seal gives a body, which holds what was kept, the size and the digest of what crossed the wire. A whole body must
// have that digest.
func seal(b *exchange.Body, size int64, sum, field string) *LineError {
	b.Size = size
	if !b.Whole() {
		b.Digest = sum
		if !strings.HasPrefix(sum, exchange.DigestPrefix) || size < b.Kept {
			return &LineError{Field: field, Value: sum, Why: fmt.Sprintf("a body of which %d of %d bytes were kept needs its digest", b.Kept, size)}
		}
		return nil
	}
	b.Digest = b.Sum()
	if sum != "" && sum != b.Digest {
		return &LineError{Field: field, Value: sum, Why: "the body has " + b.Digest + ": it was changed"}
	}
	return nil
}

// head is a head in the form of the wire, for a message whose source does not keep it.
func head(line string, hs []exchange.Header) []byte {
	var b bytes.Buffer
	b.WriteString(line + "\r\n")
	for _, h := range hs {
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// record is the recorded exchange of an entry: the one it holds, or one that was not sent.
func (e *entry) record() (Record, error) {
	it := &e.Item
	if e.Exchange != nil {
		x := e.Exchange
		if !x.Request.Body.Whole() {
			it = nil
		}
		return Record{Exchange: x, Item: it}, nil
	}
	body, err := it.Payload()
	if err != nil {
		return Record{}, err
	}
	req := exchange.Request{Method: it.Method, Target: it.Target, Proto: "HTTP/1.1", Headers: it.Headers, Body: exchange.NewBody(body)}
	req.Body.Digest = req.Body.Sum()
	req.Head = head(it.Method+" "+it.Target+" "+req.Proto, it.Headers)
	x := &exchange.Exchange{
		Request: req, Response: exchange.Response{Body: exchange.Body{Digest: exchange.Body{}.Sum()}},
		Timeline: exchange.Timeline{Wall: traceStart.Add(max(it.At, 0))}, End: exchange.EndConnectFailed, State: exchange.StateStored,
		Cause: &exchange.Cause{Side: exchange.SideProxy, Code: causeUnsent, Text: "it was imported as a request and never sent"},
	}
	if it.At >= 0 {
		x.Timeline.Intended = exchange.MarkAt(0)
	}
	if exchange.ValidID(it.ID) {
		x.ID = exchange.ID(it.ID)
	}
	return Record{Exchange: x, Item: it}, nil
}

// atOf is the instant of a recorded request in a workload that begins at start: unknown for one that was imported
// without.
func atOf(x *exchange.Exchange, wall, start time.Time) time.Duration {
	if x.Cause != nil && x.Cause.Code == causeUnsent && !x.Timeline.Intended.Happened() {
		return AtUnknown
	}
	return at(wall, start)
}

// causeUnsent is the cause of an exchange that stands for a request which a file brought without an answer. Its timeline has
// the mark Intended where the file says when it is to be sent.
const causeUnsent = "not_sent"

// traceStart is the wall clock of the start of a workload that has none of its own.
var traceStart = time.Unix(0, 0).UTC()
