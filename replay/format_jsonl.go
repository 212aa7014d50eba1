package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// The native format is one JSON object a line: a line about the run, one line for each exchange, and a last line that
// tells how many there were, so that a file that was cut is found. The first and the last may be missing in a file that
// was written by hand; a line then needs no more than method and path.

// jsonlSchema is the name and the version of the format.
const jsonlSchema, jsonlName = "benchproxy.workload/1", "benchproxy.workload/"

// runLine is the first line.
type runLine struct {
	Schema string        `json:"schema"`
	Run    *exchange.Run `json:"run,omitempty"`
	Pick   string        `json:"pick,omitempty"` // what of the run is in the file; "" for all
	Items  int           `json:"items"`
	Whole  bool          `json:"whole"` // all that was recorded of the run is in the file
}

// endLine is the last line.
type endLine struct {
	End *endCount `json:"end"`
}

type endCount struct {
	Items int `json:"items"`
}

// itemLine is the line of one exchange. Its body is the last field, spliced in so that its bytes stay as they are.
type itemLine struct {
	ID       string      `json:"id,omitempty"`
	TMS      *millis     `json:"t_ms"`
	Session  string      `json:"session,omitempty"`
	Turn     int         `json:"turn"`
	Key      string      `json:"key,omitempty"`
	Method   string      `json:"method"`
	Path     string      `json:"path"`
	Headers  headerList  `json:"headers,omitempty"`
	Expect   *expectLine `json:"expect,omitempty"`
	Response *answerLine `json:"response,omitempty"`
	Record   *factsJSON  `json:"record,omitempty"`
}

// expectLine is what the recorded answer came to.
type expectLine struct {
	PromptTokens     *int64  `json:"prompt_tokens,omitempty"`
	CompletionTokens *int64  `json:"completion_tokens,omitempty"`
	Finish           *string `json:"finish,omitempty"`
}

// answerLine is a recorded answer.
type answerLine struct {
	Status  int        `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	Headers headerList `json:"headers,omitempty"`
	Body    bytesJSON  `json:"body"`
}

// jsonlReader reads the native format.
type jsonlReader struct {
	lines *lineReader
	info  fileInfo
	items int
	begun bool // the line about the run was there
	ended bool // the last line was there
}

func newJSONLReader(l *lineReader) *jsonlReader { return &jsonlReader{lines: l} }

func (r *jsonlReader) about() *fileInfo { return &r.info }

// anyLine reads each kind of line; unknown fields are refused, since a misspelled one would change what is sent.
type anyLine struct {
	runLine
	endLine
	ID       string          `json:"id"`
	TMS      json.RawMessage `json:"t_ms"`
	Session  string          `json:"session"`
	Turn     int             `json:"turn"`
	Key      string          `json:"key"`
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Headers  headerList      `json:"headers"`
	Body     json.RawMessage `json:"body"`
	Expect   *expectLine     `json:"expect"`
	Response *answerLine     `json:"response"`
	Record   *factsJSON      `json:"record"`
}

func (r *jsonlReader) next() (*entry, error) {
	for {
		line, err := r.lines.next()
		if err == io.EOF && r.begun && !r.ended {
			return nil, fmt.Errorf("the file was cut: its last line is missing after %d items", r.items)
		}
		if err != nil {
			return nil, err
		}
		if r.ended {
			return nil, r.lines.bad("", "", "comes after the last line of the file")
		}
		var l anyLine
		if err := r.lines.decode(line, &l); err != nil {
			return nil, err
		}
		switch {
		case l.Schema != "":
			err = r.begin(&l)
		case l.End != nil:
			err = r.end(l.End)
		default:
			r.items++
			return r.entry(&l)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *jsonlReader) begin(l *anyLine) error {
	switch {
	case l.Schema != jsonlSchema && strings.HasPrefix(l.Schema, jsonlName):
		return fmt.Errorf("%w: %w", exchange.ErrDamaged, r.lines.bad("schema", l.Schema, "this build reads "+jsonlSchema))
	case l.Schema != jsonlSchema:
		return r.lines.bad("schema", l.Schema, "want "+jsonlSchema)
	case r.begun || r.items > 0:
		return r.lines.bad("schema", l.Schema, "is not the first line")
	}
	r.begun = true
	r.info.run, r.info.pick, r.info.whole = l.Run, l.Pick, l.Whole
	return nil
}

func (r *jsonlReader) end(e *endCount) error {
	if e.Items != r.items {
		return r.lines.bad("end.items", fmt.Sprint(e.Items), fmt.Sprintf("there are %d items before it", r.items))
	}
	r.ended = true
	return nil
}

// entry makes an item, and an exchange where there is an answer, of a line.
func (r *jsonlReader) entry(l *anyLine) (*entry, error) {
	if l.Record != nil {
		l.Headers = exactHeaders(l.Headers, l.Record.RequestHead)
	}
	it, body, err := r.item(l)
	if err != nil {
		return nil, err
	}
	e := &entry{Item: *it}
	switch {
	case l.Record != nil:
		req := exchange.Request{Method: l.Method, Target: l.Path, Headers: l.Headers, Body: exchange.NewBody(body)}
		var resp exchange.Response
		if a := l.Response; a != nil {
			resp = exchange.Response{Status: a.Status, Reason: a.Reason, Headers: exactHeaders(a.Headers, l.Record.ResponseHead), Body: exchange.NewBody(a.Body)}
		}
		x, bad := l.Record.exchange(l.ID, req, resp)
		if bad != nil {
			return nil, r.lines.bad(bad.Field, bad.Value, bad.Why)
		}
		e.Exchange = x
		if !x.Request.Body.Whole() {
			return e, nil
		}
	case l.Response != nil:
		return nil, r.lines.bad("response", "", "has no record beside it that tells when it came")
	}
	if l.Key != "" && l.Key != it.Key {
		return nil, r.lines.bad("key", l.Key, "the request makes "+it.Key+": it was changed; leave the key out if that is meant")
	}
	return e, nil
}

// item reads the request of a line.
func (r *jsonlReader) item(l *anyLine) (*Item, []byte, error) {
	it := &Item{ID: l.ID, Conversation: l.Session, Turn: l.Turn, At: AtUnknown, Method: l.Method, Target: l.Path}
	if it.ID == "" {
		it.ID = fmt.Sprintf("line-%d", r.lines.n)
	}
	if field, value, why := requestProblem(l.Method, l.Path, l.Headers); why != "" {
		return nil, nil, r.lines.bad(field, value, why)
	}
	if len(l.TMS) > 0 && string(l.TMS) != "null" {
		at, why := readMillis(l.TMS)
		if why != "" {
			return nil, nil, r.lines.bad("t_ms", string(l.TMS), why)
		}
		it.At = at
	}
	if l.Turn < 0 {
		return nil, nil, r.lines.bad("turn", fmt.Sprint(l.Turn), "want a number from 0 on")
	}
	body, err := readBody(l.Body)
	if err != nil {
		return nil, nil, r.lines.bad("body", string(l.Body), err.Error())
	}
	if it.Conversation == "" {
		it.Conversation = it.ID
	}
	it.Target, it.Headers, it.Body = redact.Target(l.Path), sendable(l.Headers), body
	if x := l.Expect; x != nil {
		it.PromptTokens, it.OutputTokens = x.PromptTokens, x.CompletionTokens
	}
	it.identify(body)
	if exchange.ValidID(l.ID) && l.Record != nil {
		it.Origin = &exchange.Origin{Exchange: exchange.ID(l.ID), Key: it.Key}
	}
	return it, body, nil
}

// decode reads a line of JSON that has none but the fields of v.
func (l *lineReader) decode(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return l.bad("", string(line[min(int(d.InputOffset()), len(line)):]), "stands behind the object of the line")
	}
	return l.decodeError(err)
}

// decodeError tells what a JSON reader found wrong by field and value, as far as it says.
func (l *lineReader) decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return l.bad(wrong.Field, wrong.Value, "want "+typeWord(wrong))
	case errors.As(err, &syntax):
		return l.bad("", "", fmt.Sprintf("is no JSON: %v at byte %d", syntax, syntax.Offset))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return l.bad("", "", "is no JSON: it ends too early")
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return l.bad(strings.Trim(field, `"`), "", "is no field of this format")
	}
	return l.bad("", "", err.Error())
}

// typeWord is what a field wants, in words of JSON.
func typeWord(e *json.UnmarshalTypeError) string {
	switch name := e.Type.Kind().String(); {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	case name == "bool":
		return "true or false"
	case name == "slice":
		return "a list"
	case name == "string":
		return "a string"
	}
	return "an object"
}

// requestProblem is what keeps a request from being sent: a part that would be read as something else.
func requestProblem(method, target string, hs headerList) (field, value, why string) {
	switch {
	case method == "" || strings.ContainsFunc(method, notToken):
		return "method", method, "want the name of a method"
	case !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, notTarget):
		return "path", target, "want a path that begins with a slash, with its query"
	}
	value, why = hs.problem()
	return "headers", value, why
}

func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
}
func notTarget(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }

// jsonlWriter writes the native format.
type jsonlWriter struct {
	w     io.Writer
	items int
	line  []byte
}

// begin writes the line about the run.
func (w *jsonlWriter) begin(p *picked) error {
	return w.put(runLine{Schema: jsonlSchema, Run: p.run, Pick: p.filter.String(), Items: p.n, Whole: p.whole()})
}

func (w *jsonlWriter) put(v any) (err error) {
	if w.line, err = appendJSON(w.line[:0], v); err != nil {
		return err
	}
	_, err = w.w.Write(append(w.line, '\n'))
	return err
}

// add writes the line of one exchange.
func (w *jsonlWriter) add(rec *outgoing) error {
	x := rec.Exchange
	l := itemLine{
		ID: string(x.ID), Method: x.Request.Method, Path: x.Request.Target, Headers: x.Request.Headers, Record: factsOf(x),
		Expect:   &expectLine{Finish: rec.Row.FinishReason},
		Response: &answerLine{Status: x.Response.Status, Reason: x.Response.Reason, Headers: x.Response.Headers, Body: x.Response.Body.Bytes()},
	}
	l.Record.Redacted = rec.masked
	l.Expect.PromptTokens, l.Expect.CompletionTokens = tokensOf(&rec.Row)
	if at := atOf(x, rec.Row.Started, rec.start); at != AtUnknown {
		l.TMS = (*millis)(&at)
	}
	if it := rec.Item; it != nil {
		l.Session, l.Turn, l.Key = it.Conversation, it.Turn, it.Key
	}
	if x.Response.Status == 0 && x.Response.Body.Size == 0 {
		l.Response = nil
	}
	body, err := bodyJSON(x.Request.Body.Bytes())
	if err != nil {
		return err
	}
	if w.line, err = appendJSON(w.line[:0], l); err != nil {
		return err
	}
	w.line = append(w.line[:len(w.line)-1], `,"body":`...)
	w.line = append(append(w.line, body...), "}\n"...)
	w.items++
	_, err = w.w.Write(w.line)
	return err
}

// end writes the last line.
func (w *jsonlWriter) end() error { return w.put(endLine{&endCount{w.items}}) }
