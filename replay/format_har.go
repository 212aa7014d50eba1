package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// HTTP archive 1.2. What the format has no place for, above all when each piece of an answer came, stands in fields
// whose names begin with an underscore, as the format wants it. An archive of another tool has no such field: its
// answers are read without the times of their pieces, and the record says that they are missing.

// harSchema is the name and the version of our extension.
const harSchema, harName = "benchproxy.har/1", "benchproxy.har/"

type harCreator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// harFile is our extension of the log. It stands before the entries, so that a reader has it first.
type harFile struct {
	Schema string        `json:"schema"`
	Run    *exchange.Run `json:"run,omitempty"`
	Pick   string        `json:"pick,omitempty"`
	Items  int           `json:"items"`
	Whole  bool          `json:"whole"`
}

type harEntry struct {
	Started  string      `json:"startedDateTime"`
	Time     float64     `json:"time"`
	Request  harRequest  `json:"request"`
	Response harResponse `json:"response"`
	Cache    struct{}    `json:"cache"`
	Timings  harTimings  `json:"timings"`
	Ours     *harOurs    `json:"_benchproxy,omitempty"`
}

// harOurs is our extension of an entry.
type harOurs struct {
	ID      string     `json:"id"`
	Session string     `json:"session,omitempty"`
	Turn    int        `json:"turn"`
	Key     string     `json:"key,omitempty"`
	Path    string     `json:"path"` // request target as sent
	Record  *factsJSON `json:"record"`
}

type harPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type harRequest struct {
	Method      string     `json:"method"`
	URL         string     `json:"url"`
	HTTPVersion string     `json:"httpVersion"`
	Cookies     []harPair  `json:"cookies"`
	Headers     headerList `json:"headers"`
	QueryString []harPair  `json:"queryString"`
	PostData    *harData   `json:"postData,omitempty"`
	HeadersSize int        `json:"headersSize"`
	BodySize    int64      `json:"bodySize"`
}

type harResponse struct {
	Status      int        `json:"status"`
	StatusText  string     `json:"statusText"`
	HTTPVersion string     `json:"httpVersion"`
	Cookies     []harPair  `json:"cookies"`
	Headers     headerList `json:"headers"`
	Content     harData    `json:"content"`
	RedirectURL string     `json:"redirectURL"`
	HeadersSize int        `json:"headersSize"`
	BodySize    int64      `json:"bodySize"`
}

// harData is a body: text, or base64 of what is no text.
type harData struct {
	Size     *int64    `json:"size,omitempty"` // of an answer
	MimeType string    `json:"mimeType"`
	Text     exactText `json:"text"`
	Encoding string    `json:"encoding,omitempty"` // base64; the format has it for answers only
	Params   []harPair `json:"params,omitempty"`   // of a form, in the place of its text
}

// harTimings are milliseconds; -1 says that the phase does not apply.
type harTimings struct {
	Blocked float64 `json:"blocked"`
	DNS     float64 `json:"dns"`
	Connect float64 `json:"connect"`
	SSL     float64 `json:"ssl"`
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}

// harReader reads an archive entry by entry.
type harReader struct {
	d       *json.Decoder
	limit   *bounded
	info    fileInfo
	ours    harFile
	found   *talks
	start   time.Time // of the first entry
	n       int       // number of the last entry
	inside  bool      // of the list of entries
	over    bool
	bare    int // answers without their body
	foreign int // addresses that are none of HTTP
}

func newHARReader(l *lineReader) *harReader {
	return &harReader{d: json.NewDecoder(l.r), limit: l.limit, found: newTalks()}
}

func (r *harReader) about() *fileInfo {
	if r.bare > 0 {
		r.info.notes = append(r.info.notes, count(r.bare, "answer was", "answers were")+" saved without the body")
		r.bare = 0
	}
	if r.foreign > 0 {
		r.info.notes = append(r.info.notes, count(r.foreign, "entry is", "entries are")+" not of HTTP and left out")
		r.foreign = 0
	}
	return &r.info
}

func (r *harReader) bad(field, value, why string) error {
	return &LineError{Unit: "entry", N: r.n, Field: field, Value: value, Why: why}
}

func (r *harReader) next() (*entry, error) {
	for {
		r.limit.reset()
		if !r.inside {
			if err := r.walk(); err != nil {
				return nil, r.decodeError(err)
			}
			if r.over {
				return nil, r.finish()
			}
		}
		if !r.d.More() {
			if _, err := r.d.Token(); err != nil {
				return nil, r.decodeError(err)
			}
			r.inside = false
			continue
		}
		r.n++
		var h harEntry
		if err := r.d.Decode(&h); err != nil {
			return nil, r.decodeError(err)
		}
		e, err := r.entry(&h)
		if e != nil || err != nil {
			return e, err
		}
	}
}

// walk goes to the list of entries, or to the end of the archive when that is behind it.
func (r *harReader) walk() error {
	if r.n == 0 && r.d.InputOffset() == 0 {
		for _, want := range []any{json.Delim('{'), "log", json.Delim('{')} {
			t, err := r.d.Token()
			if err != nil {
				return err
			}
			if t != want {
				return fmt.Errorf("want %v, got %v: this is no HTTP archive", want, t)
			}
		}
	}
	for r.d.More() {
		name, err := r.d.Token()
		if err != nil {
			return err
		}
		switch name {
		case "entries":
			return r.enter()
		case "_benchproxy":
			if err = r.d.Decode(&r.ours); err == nil {
				err = r.begin()
			}
		default:
			err = r.d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	for range 2 { // the ends of the log and of the file
		if t, err := r.d.Token(); err != nil || t != json.Delim('}') {
			return errors.Join(err, errors.New("the archive does not end with its log"))
		}
	}
	if _, err := r.d.Token(); err != io.EOF {
		return errors.New("something stands behind the archive")
	}
	r.over = true
	return nil
}

func (r *harReader) enter() error {
	t, err := r.d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') || r.n > 0 {
		return errors.New("want one list of entries")
	}
	r.inside = true
	return nil
}

func (r *harReader) begin() error {
	switch s := r.ours.Schema; {
	case s != harSchema && strings.HasPrefix(s, harName):
		return fmt.Errorf("%w: schema %q: this build reads %s", exchange.ErrDamaged, s, harSchema)
	case s != harSchema:
		return fmt.Errorf("schema %q: want %s", s, harSchema)
	}
	r.info = fileInfo{run: r.ours.Run, pick: r.ours.Pick, whole: r.ours.Whole}
	return nil
}

// finish ends the reading.
func (r *harReader) finish() error {
	if r.ours.Schema != "" && r.ours.Items != r.n {
		return fmt.Errorf("the archive was changed: it was written with %d entries and has %d", r.ours.Items, r.n)
	}
	return io.EOF
}

// decodeError tells what the JSON reader found wrong.
func (r *harReader) decodeError(err error) error {
	l := lineReader{n: r.n}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	var told *LineError
	if errors.As(l.decodeError(err), &told) && !errors.Is(err, exchange.ErrDamaged) {
		told.Unit = "entry"
		return told
	}
	return err
}

// entry makes an item and an exchange of an entry; nil for one that is not of HTTP.
func (r *harReader) entry(h *harEntry) (*entry, error) {
	wall, err := time.Parse(time.RFC3339Nano, h.Started)
	if err != nil {
		return nil, r.bad("startedDateTime", h.Started, "want a time as in 2026-01-02T15:04:05.678Z")
	}
	if r.n == 1 {
		r.start = wall
	}
	if !plausible(wall) {
		return nil, r.bad("startedDateTime", h.Started, notPlausible)
	}
	if h.Response.Status > maxStatus {
		return nil, r.bad("response.status", fmt.Sprint(h.Response.Status), wantStatus)
	}
	target, ok, err := r.target(h)
	if !ok || err != nil {
		return nil, err
	}
	if h.Ours != nil && h.Ours.Record != nil {
		h.Request.Headers = exactHeaders(h.Request.Headers, h.Ours.Record.RequestHead)
		h.Response.Headers = exactHeaders(h.Response.Headers, h.Ours.Record.ResponseHead)
	}
	if field, value, why := requestProblem(h.Request.Method, target, h.Request.Headers); why != "" {
		return nil, r.bad("request."+field, value, why)
	}
	var body, answer []byte
	missing := h.Request.BodySize > 0 && h.Ours == nil
	if p := h.Request.PostData; p != nil {
		if body, missing, err = p.sent(missing); err != nil {
			return nil, r.bad("request.postData.text", string(p.Text), err.Error())
		}
	}
	if answer, err = h.Response.Content.bytes(); err != nil {
		return nil, r.bad("response.content.text", string(h.Response.Content.Text), err.Error())
	}
	req := exchange.Request{Method: h.Request.Method, Target: target, Headers: h.Request.Headers, Body: exchange.NewBody(body)}
	if missing {
		req.Body.Size = max(h.Request.BodySize, 1)
	}
	resp := exchange.Response{Status: h.Response.Status, Reason: h.Response.StatusText, Headers: h.Response.Headers, Body: exchange.NewBody(answer)}
	x, err := r.exchange(h, req, resp, wall)
	if err != nil {
		return nil, err
	}
	return r.itemOf(h, x, body)
}

// exchange makes the recorded exchange of an entry: with our extension as it was, else as far as the archive tells.
func (r *harReader) exchange(h *harEntry, req exchange.Request, resp exchange.Response, wall time.Time) (*exchange.Exchange, error) {
	if o := h.Ours; o != nil && o.Record != nil {
		x, bad := o.Record.exchange(o.ID, req, resp)
		if bad != nil {
			return nil, r.bad("_benchproxy."+bad.Field, bad.Value, bad.Why)
		}
		return x, nil
	}
	x := foreignExchange(h, req, resp)
	x.Timeline.Wall = wall.UTC()
	if x.Response.Body.Size == 0 && h.Response.Content.Size != nil && *h.Response.Content.Size > 0 {
		r.bare++
	}
	if problems := exchange.Problems(x); len(problems) > 0 {
		return nil, r.bad("timings", "", strings.Join(problems, "; "))
	}
	return x, nil
}

// foreignExchange is an exchange of another tool's archive. The times of the pieces of its answer are not known, so
// that the record is in part.
func foreignExchange(h *harEntry, req exchange.Request, resp exchange.Response) *exchange.Exchange {
	req.Proto, resp.Proto = h.Request.HTTPVersion, h.Response.HTTPVersion
	resp.Headers = asDecoded(resp.Headers)
	req.Body.Digest, resp.Body.Digest = exchange.NewBody(req.Body.Bytes()).Sum(), resp.Body.Sum()
	req.Head = head(req.Method+" "+req.Target+" "+req.Proto, req.Headers)
	x := &exchange.Exchange{Request: req, Response: resp, State: exchange.StateTruncated, End: exchange.EndEOF}
	t, ms := h.Timings, func(v float64) int64 { return int64(min(max(v, 0), 1e12) * 1e6) }
	sent := ms(t.Blocked) + ms(t.DNS) + ms(t.Connect)
	first := sent + ms(t.Send) + ms(t.Wait)
	x.Timeline.SendStart, x.Timeline.SendDone = exchange.MarkAt(sent), exchange.MarkAt(sent+ms(t.Send))
	if resp.Status <= 0 {
		x.Response.Status = 0
		x.End, x.Cause = exchange.EndConnectFailed, &exchange.Cause{Side: exchange.SideEngine, Code: "no_answer", Text: "the archive has no answer"}
		return x
	}
	x.Response.Head = head(fmt.Sprintf("%s %d %s", resp.Proto, resp.Status, resp.Reason), resp.Headers)
	x.Timeline.HeaderRead, x.Timeline.BodyEnd = exchange.MarkAt(first), exchange.MarkAt(first+ms(t.Receive))
	return x
}

// asDecoded are the headers of an answer whose body an archive has without its content coding. Browsers save a header
// that came several times as one whose values stand on lines of their own.
func asDecoded(hs []exchange.Header) []exchange.Header {
	var out []exchange.Header
	for _, h := range hs {
		if strings.EqualFold(h.Name, "Content-Encoding") || strings.HasPrefix(h.Name, ":") {
			continue
		}
		for value := range strings.SplitSeq(h.Value, "\n") {
			out = append(out, exchange.Header{Name: h.Name, Value: strings.TrimSpace(value)})
		}
	}
	return out
}

// itemOf makes the item of an entry.
func (r *harReader) itemOf(h *harEntry, x *exchange.Exchange, body []byte) (*entry, error) {
	it := itemOf(x, body)
	it.Body, it.At = body, atOf(x, x.Timeline.Wall, r.start)
	if it.ID == "" {
		it.ID = fmt.Sprintf("entry-%d", r.n)
		it.Conversation = it.ID
	}
	o := h.Ours
	if o == nil {
		r.found.join(&it, body)
		it.Response = responseOf(it.Target, x)
		r.found.answered(&it)
		return &entry{Item: it, Exchange: x}, nil
	}
	it.Turn = o.Turn
	if o.Session != "" {
		it.Conversation = o.Session
	}
	switch {
	case o.Turn < 0:
		return nil, r.bad("_benchproxy.turn", fmt.Sprint(o.Turn), "want a number from 0 on")
	case o.Key != "" && o.Key != it.Key:
		return nil, r.bad("_benchproxy.key", o.Key, "the request makes "+it.Key+": it was changed; leave the key out if that is meant")
	}
	it.Origin = &exchange.Origin{Exchange: x.ID, Key: it.Key}
	return &entry{Item: it, Exchange: x}, nil
}

// target is the request target of an entry. ok is false for an address that no request of HTTP goes to.
func (r *harReader) target(h *harEntry) (target string, ok bool, err error) {
	if h.Ours != nil && h.Ours.Path != "" {
		return redact.Target(h.Ours.Path), true, nil
	}
	u, err := url.Parse(h.Request.URL)
	if err != nil {
		return "", false, r.bad("request.url", h.Request.URL, "is no URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		r.foreign++
		return "", false, nil
	}
	return redact.Target(u.RequestURI()), true, nil
}
