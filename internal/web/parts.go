package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// message is one side of an exchange.
type message struct {
	Line    string
	Headers []exchange.Header
	Body    []segment
	Cut     int    // bytes that are not shown
	Size    int64  // of the body as it crossed
	Kept    int64  // of it recorded
	Note    string // how the body is shown
}

func requestLine(x *exchange.Exchange) string {
	return x.Request.Method + " " + x.Request.Target + " " + x.Request.Proto
}

// messageOf shows a body as text: without its coding, and JSON with line breaks.
func messageOf(line string, headers []exchange.Header, body exchange.Body, room *excerpts) message {
	m := message{Line: line, Headers: headers, Size: body.Size, Kept: body.Kept}
	plain, coding := plainBody(headers, body)
	if coding != "" {
		m.Note = "decoded from " + coding
	}
	var pretty bytes.Buffer
	if len(plain) <= 4*excerptBytes && nesting(plain) <= indentDepth && json.Indent(&pretty, plain, "", "  ") == nil {
		plain = pretty.Bytes()
		m.Note = strings.TrimPrefix(m.Note+", JSON with line breaks", ", ")
	}
	shown := plain[:min(len(plain), excerptBytes)]
	m.Body, m.Cut = room.take(string(shown), excerptBytes)
	m.Cut += len(plain) - len(shown)
	return m
}

// nesting is how deep a JSON text nests.
func nesting(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// plainBody is a body without its content coding; coding is "" for one without, or one that cannot be undone.
func plainBody(headers []exchange.Header, body exchange.Body) (plain []byte, coding string) {
	raw := body.Bytes()
	coding, _ = exchange.HeaderValue(headers, "Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") {
		return raw, ""
	}
	if plain, ok := wire.DecodeBody(coding, raw); ok {
		return plain, coding
	}
	return raw, ""
}

// factsOf are the facts on an exchange that stand beside its figures.
func factsOf(x *exchange.Exchange, d *exchange.Detail) (out [][2]string) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, value})
		}
	}
	add("id", string(x.ID))
	add("started", x.Timeline.Wall.Local().Format("2006-01-02 15:04:05.000"))
	add("request", requestLine(x))
	add("answer", d.Response.Line)
	add("model", d.Model)
	add("engine", strings.TrimSpace(x.Identity.Engine+" "+x.Identity.Version))
	add("sent to", x.UpstreamURL)
	add("end", string(x.End))
	if d.Cause != nil {
		add("cause", fmt.Sprintf("%s: %s [%s]", d.Cause.Code, d.Cause.Text, d.Cause.Side))
	}
	if d.FinishReason != nil {
		add("finish", *d.FinishReason)
	}
	if d.Error != nil {
		add("error", fmt.Sprintf("%s (%s, %s)", d.Error.Message, d.Error.Type, d.Error.Where))
	}
	add("suspect", d.Suspect)
	add("dialect", d.Dialect)
	add("clock", string(x.Timeline.Clock))
	add("key", d.Key)
	add("sent key", d.SentKey)
	if x.Origin != nil {
		add("repeats", string(x.Origin.Exchange))
	}
	if x.Item != nil {
		add("item", fmt.Sprintf("%s, turn %d of %d, repeat %d", x.Item.Item, x.Item.Turn+1, x.Item.Turns, x.Item.Repeat))
	}
	add("wave", x.Wave)
	add("flags", strings.Join(d.Flags, ", "))
	if x.State == exchange.StateTruncated {
		add("record", "truncated: a body or the reads were cut at a memory bound")
	}
	return out
}

// kindNames are the kinds of token events in the order of their lanes.
var kindNames = [...]struct {
	kind wire.Kind
	name string
}{{wire.KindReasoning, "reasoning"}, {wire.KindText, "text"}, {wire.KindTool, "tool call"}, {wire.KindRefusal, "refusal"}, {wire.KindMedia, "media"}}

// waterfallOf is where the time of an exchange went, from its acceptance on.
func waterfallOf(x *exchange.Exchange, t *wire.Transcript) chart.Waterfall {
	w := chart.Waterfall{Title: "where the time went"}
	var first, last exchange.Mark
	lanes := map[string][]float64{}
	for _, e := range t.Events {
		if e.Kinds == 0 || e.Read < 0 || e.Read >= len(x.Timeline.Reads) {
			continue
		}
		at := x.Timeline.Reads[e.Read].At
		if last = exchange.MarkAt(at); !first.Happened() {
			first = last
		}
		for _, k := range kindNames {
			if e.Kinds&k.kind != 0 {
				lanes[k.name] = append(lanes[k.name], float64(at)/1e6)
			}
		}
	}
	for _, k := range kindNames {
		if times := lanes[k.name]; times != nil {
			w.Lanes = append(w.Lanes, chart.Lane{Name: k.name, Times: times})
		}
	}
	m := &x.Timeline
	add := func(name string, from, to exchange.Mark, waiting bool) {
		a, okA := from.NS()
		b, okB := to.NS()
		if okA && okB {
			b = max(a, b) // an answer may be here before the call that sent the request returns
			w.Spans = append(w.Spans, chart.Span{Name: name, From: float64(a) / 1e6, To: float64(b) / 1e6, Waiting: waiting})
			w.End = math.Max(w.End, float64(b)/1e6)
		}
	}
	add("request in", m.Accepted, m.RequestRead, true)
	add("proxy", m.RequestRead, m.SendStart, false)
	if !m.SendStart.Happened() {
		add("not sent", m.RequestRead, m.ClientDone, true)
	}
	add("send", m.SendStart, m.SendDone, false)
	add("head", m.SendStart, m.HeaderRead, true)
	if first.Happened() {
		add("first token", m.HeaderRead, first, true)
		add("decode", first, last, false)
		add("tail", last, m.BodyEnd, true)
	} else {
		add("body", m.HeaderRead, m.BodyEnd, false)
	}
	add("client", m.BodyEnd, m.ClientDone, false)
	return w
}

// drawnAt is a waterfall of some width.
func drawnAt(w chart.Waterfall, width float64) chart.SVG {
	w.Width = width
	return w.SVG()
}

// eventRow is one event of an answer.
type eventRow struct {
	N     int
	At    string // from t0
	Gap   string // since the event before
	Added string // until it was with the client
	Read  int
	Kinds string
	Raw   []segment
	Cut   int
}

// eventList is a page of the events.
type eventList struct {
	Rows    []eventRow
	From    int
	All     int
	Framing string
}

// Prev and Next are the numbers of the first events of other pages, -1 where there are none.
func (l eventList) Prev() int {
	if l.From == 0 {
		return -1
	}
	return max(0, l.From-pageEvents)
}

// Next is the number of the first event of the page behind.
func (l eventList) Next() int {
	if l.From+len(l.Rows) >= l.All {
		return -1
	}
	return l.From + pageEvents
}

// First and Last are the numbers of the first and last event shown, counted from 1.
func (l eventList) First() int { return l.From + 1 }

// Last is the number of the last one.
func (l eventList) Last() int { return l.From + len(l.Rows) }

// eventsOf is the page of events that begins with number from.
func eventsOf(x *exchange.Exchange, t *wire.Transcript, from int) eventList {
	l := eventList{From: min(from, max(0, len(t.Events)-1)), All: len(t.Events), Framing: string(t.Framing)}
	body, _ := plainBody(x.Response.Headers, x.Response.Body)
	sent, _ := x.Timeline.SendStart.NS()
	for i := l.From; i < min(l.From+pageEvents, len(t.Events)); i++ {
		e := &t.Events[i]
		row := eventRow{N: i + 1, Read: e.Read + 1, Kinds: kindsText(e), At: absentText, Gap: absentText, Added: absentText}
		if at, ok := stampOf(x, e); ok {
			row.At = chart.Milliseconds(float64(at-sent) / 1e6)
			row.Added = chart.Milliseconds(float64(x.Timeline.Reads[e.Read].Write) / 1e6)
			if i > 0 {
				if before, ok := stampOf(x, &t.Events[i-1]); ok {
					row.Gap = chart.Milliseconds(float64(at-before) / 1e6)
				}
			}
		}
		if lo, hi := max(e.Start, 0), min(e.End, int64(len(body))); lo < hi {
			raw := bytes.TrimRight(body[lo:hi], "\r\n") // what parts it from the next one would be an empty line in each row
			row.Raw, row.Cut = visible(string(raw[:min(len(raw), eventBytes)]), eventBytes)
			row.Cut += len(raw) - min(len(raw), eventBytes)
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

func stampOf(x *exchange.Exchange, e *wire.Event) (ns int64, ok bool) {
	if e.Read < 0 || e.Read >= len(x.Timeline.Reads) {
		return 0, false
	}
	return x.Timeline.Reads[e.Read].At, true
}

func kindsText(e *wire.Event) string {
	if e.Done {
		return "done"
	}
	var out []string
	for _, k := range kindNames {
		if e.Kinds&k.kind != 0 {
			out = append(out, k.name)
		}
	}
	return strings.Join(out, ", ")
}

// gateRow is a verdict, as the run keeps it or as today's gates give it.
type gateRow struct {
	Gate    string
	Version int
	Status  exchange.VerdictStatus
	Lenient exchange.VerdictStatus
	Reason  string
	When    string // recorded, or now
}

// gatesOf are the verdicts that the run keeps of the case of an exchange, and what today's gates make of it alone where the
// bodies have at most limit bytes.
func gatesOf(x *exchange.Exchange, run *exchange.Run, limit int64) (out []gateRow) {
	if x.Item != nil && run.Replay != nil {
		at := slices.IndexFunc(run.Replay.Cases, func(c exchange.PlannedCase) bool { return c.ID == x.Item.CaseID() })
		if at >= 0 {
			c := &run.Replay.Cases[at]
			for _, v := range c.Verdicts {
				out = append(out, gateRow{v.Gate, v.Version, v.Status, v.Lenient, c.Reason, "recorded"})
			}
		}
	}
	if judgedOf(x) > limit {
		return out
	}
	checks := gates.Auto(x)
	e := gates.Prepare(&exchange.Case{ID: string(x.ID), Exchanges: []*exchange.Exchange{x}, Checks: checks})
	for _, c := range checks {
		v, _, err := gates.Judge(e, c)
		if err != nil {
			out = append(out, gateRow{Gate: c.Gate, Status: exchange.VerdictNotRun, Reason: err.Error(), When: "now"})
			continue
		}
		out = append(out, gateRow{v.Gate, v.Version, v.Status, v.Lenient, v.Reason, "now"})
	}
	return out
}

// judgedOf is how much gates read of an exchange, in bytes.
func judgedOf(x *exchange.Exchange) int64 { return x.Request.Body.Kept + x.Response.Body.Kept }

// turn is one message of the conversation that a request carries.
type turn struct {
	Role string
	Text []segment
	Cut  int
}

// turnsShown bounds the messages shown one by one.
const turnsShown = 200

// turnsOf reads the messages of a request in the forms that most dialects share; nil for any other.
func turnsOf(x *exchange.Exchange, room *excerpts) (out []turn) {
	body, _ := plainBody(x.Request.Headers, x.Request.Body)
	var in struct {
		System   json.RawMessage `json:"system"`
		Prompt   json.RawMessage `json:"prompt"`
		Input    json.RawMessage `json:"input"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Calls   json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
	}
	if len(body) > askedBytes || json.Unmarshal(body, &in) != nil {
		return nil
	}
	add := func(role, text string) {
		if text != "" && text != "null" && len(out) < turnsShown {
			t := turn{Role: role}
			t.Text, t.Cut = room.take(text, excerptBytes/8)
			out = append(out, t)
		}
	}
	add("system", contentText(in.System))
	for _, m := range in.Messages {
		add(m.Role, contentText(m.Content))
		add(m.Role+" calls", string(m.Calls))
	}
	add("prompt", contentText(in.Prompt))
	add("input", contentText(in.Input))
	return out
}

// sizeNote tells of a part that is not shown how long it is, where that is much.
func sizeNote(n int) string {
	if n < 1024 {
		return ""
	}
	return ", " + bytesText(int64(n))
}

// contentText is the text of a message: a string, the texts of its parts, or else its JSON.
func contentText(content json.RawMessage) string {
	if len(content) == 0 || string(content) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var out []string
	for i, part := range parts {
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(part, &p) != nil {
			return string(content)
		}
		if p.Text == "" {
			p.Text = "[part " + strconv.Itoa(i+1) + ": " + p.Type + sizeNote(len(part)) + "]"
		}
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}
