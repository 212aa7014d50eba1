package web

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// The bounds of one page of an exchange. What they leave out is a link away.
const (
	excerptBytes = 64 << 10 // of a text or body
	eventBytes   = 600      // of an event
	indentDepth  = 32       // of JSON that is shown with line breaks: each level is two blanks more on every line
	pageEvents   = 200
	callsShown   = 100
	takesShown   = 50
	pageText     = 384 << 10 // of all recorded texts of a page together

	// What costs more than a glance at a page is worth is done for a page that asks for it.
	judgedBytes = 512 << 10 // of request and answer
	readBytes   = 1 << 20   // of a request, whose conversation is read
	askedBytes  = 64 << 20  // of either, where it is asked for
)

// The widths of a waterfall over a whole page, over half of one, and on a phone, in CSS pixels.
const (
	wholeWidth  = 1240
	halfWidth   = 620
	narrowWidth = 340
)

// exchangeBody is everything about one exchange.
type exchangeBody struct {
	Row       exchange.Summary
	Detail    exchange.Detail
	Run       exchange.Run
	Facts     [][2]string
	Waterfall chart.SVG
	Narrow    chart.SVG // the same for a phone
	Present   []metricRow
	Missing   []metricRow
	Request   message
	Response  message
	Turns     []turn // of the conversation that was sent, nil when it is none we read
	Texts     []channel
	Calls     []callRow
	MoreCalls int
	Unread    bool // the conversation is long, and read when asked for
	Events    eventList
	Gates     []gateRow
	Unjudged  bool // the answer is long, and judged when asked for
	TraceID   string
	TraceURL  string
	Curl      string
	Replay    string
	Takes     []takeRow
	MoreTakes bool // than those
	Prev      string
	Next      string
}

// metricRow is one metric.
type metricRow struct {
	measure.Definition
	Figure exchange.Figure
}

// Text is its value.
func (m metricRow) Text() string { return figureText(m.Figure, m.Unit) }

// channel is one text of an answer.
type channel struct {
	Name     string
	Segments []segment
	Cut      int
	Link     string // to the whole of it
}

// callRow is a tool call of an answer.
type callRow struct {
	Name     string
	Segments []segment
	Cut      int
}

// excerpts hands out what a page has room for.
type excerpts struct{ left int }

// take is the beginning of a recorded text, at most limit bytes of it, and how many are not in it. A text that would be many
// times as long as markup is cut shorter.
func (e *excerpts) take(text string, limit int) (out []segment, cut int) {
	limit = min(limit, e.left)
	for most := 2 * limit; ; limit /= 2 {
		out, cut = visible(text, limit)
		if size := markupBytes(out); size <= most {
			e.left -= min(size, e.left)
			return out, cut
		}
	}
}

// markupBytes is about what segments take in a page.
func markupBytes(segments []segment) (n int) {
	const escaped, marked = 4, 30 // bytes that an escape and the element around a mark add
	for _, g := range segments {
		if n += len(g.Text); g.Mark {
			n += marked
		}
		n += escaped * (strings.Count(g.Text, "<") + strings.Count(g.Text, ">") + strings.Count(g.Text, "&") + strings.Count(g.Text, `"`) + strings.Count(g.Text, "'"))
	}
	return n
}

// exchangePage shows one exchange.
func (s *Server) exchangePage(w http.ResponseWriter, r *http.Request) error {
	began := clock.Now()
	from, err := count(r, "event")
	if err != nil {
		return err
	}
	id := exchange.ID(r.PathValue("id"))
	x, row, err := s.o.Store.Exchange(id)
	if err != nil {
		return err
	}
	a := measure.Analyze(x)
	b := &exchangeBody{Row: row, Detail: measure.DetailOf(x, a, row)}
	if b.Run, err = s.o.Store.Run(string(x.Run)); err != nil {
		b.Run = exchange.Run{ID: x.Run} // the exchange is there and can be shown without it
	}
	b.Facts = factsOf(x, &b.Detail)
	fall := waterfallOf(x, a.Transcript)
	b.Waterfall, b.Narrow = drawnAt(fall, wholeWidth), drawnAt(fall, narrowWidth)
	b.metrics()
	room := &excerpts{left: pageText}
	b.texts(room)
	b.turns(x, room, r.URL.Query().Has("messages"))
	b.Request = messageOf(requestLine(x), x.Request.Headers, x.Request.Body, room)
	b.Response = messageOf(b.Detail.Response.Line, x.Response.Headers, x.Response.Body, room)
	b.Events = eventsOf(x, a.Transcript, int(min(from, 1<<40)))
	b.judge(x, r.URL.Query().Has("judge"))
	b.TraceID, b.TraceURL = s.traceOf(x)
	b.Curl, b.Replay = curlOf(x), replayOf(x)
	if err := s.takesOf(b); err != nil {
		return err
	}
	b.Prev, b.Next = s.neighbors(x)
	return s.show(w, began, frame{Title: "exchange " + strconv.FormatUint(x.Seq, 10), Nav: "runs", Body: b}, "exchange", wholePage)
}

// Name is the model, or what stands for it.
func (b *exchangeBody) Name() string {
	return cmp.Or(b.Detail.Model, b.Detail.Method+" "+b.Detail.Path)
}

// Good reports whether the exchange came to its end.
func (b *exchangeBody) Good() bool { return b.Detail.Outcome == exchange.OutcomeComplete }

// Verdict is the outcome with what makes it special.
func (b *exchangeBody) Verdict() string { return outcomeText(&b.Detail.Summary) }

// Trouble is what an exchange without an answer came to, "" for one that came to its end.
func (b *exchangeBody) Trouble() string {
	switch c := b.Detail.Cause; {
	case b.Good():
		return ""
	case c != nil:
		return c.Code + ": " + c.Text
	}
	return b.Verdict()
}

// RunName is the name of the run, or its id.
func (b *exchangeBody) RunName() string { return runName(&b.Run) }

// Headline are the figures that stand at the top.
func (b *exchangeBody) Headline() (out []metricRow) {
	for _, name := range []string{measure.TTFTMS, measure.DecodeTPS, measure.PrefillTPS, measure.CompletionTokens, measure.PromptTokens, measure.TotalWallMS} {
		for _, m := range measure.Metrics() {
			if m.Name == name {
				out = append(out, metricRow{m, b.Detail.Metrics[name]})
			}
		}
	}
	return out
}

// metrics parts the metrics in those that are there and those that are not, in the order of their table.
func (b *exchangeBody) metrics() {
	for _, m := range measure.Metrics() {
		f, ok := b.Detail.Metrics[m.Name]
		switch {
		case ok && f.Present():
			b.Present = append(b.Present, metricRow{m, f})
		case ok:
			b.Missing = append(b.Missing, metricRow{m, f})
		}
	}
}

// turns reads the conversation of the request, a long one when it is asked for.
func (b *exchangeBody) turns(x *exchange.Exchange, room *excerpts, asked bool) {
	if b.Unread = !asked && x.Request.Body.Kept > readBytes; !b.Unread {
		b.Turns = turnsOf(x, room)
	}
}

// judge takes the verdicts of the run, and today's of an answer that is short or asked for.
func (b *exchangeBody) judge(x *exchange.Exchange, asked bool) {
	limit := int64(judgedBytes)
	if asked {
		limit = askedBytes
	}
	b.Gates = gatesOf(x, &b.Run, limit)
	b.Unjudged = !asked && judgedOf(x) > judgedBytes
}

func (b *exchangeBody) texts(room *excerpts) {
	add := func(name, text string) {
		if text == "" {
			return
		}
		c := channel{Name: name, Link: "/exchanges/" + string(b.Detail.ID) + "/text/" + name}
		c.Segments, c.Cut = room.take(text, excerptBytes)
		b.Texts = append(b.Texts, c)
	}
	add("reasoning", b.Detail.ReasoningText)
	add("refusal", b.Detail.RefusalText)
	add("answer", b.Detail.OutputText)
	for _, c := range b.Detail.Choices {
		if c.Index != 0 {
			add("answer-"+strconv.Itoa(c.Index), c.OutputText)
		}
	}
	if b.Detail.Error != nil {
		add("error", b.Detail.Error.Message)
	}
	for _, c := range b.Detail.Calls[:min(len(b.Detail.Calls), callsShown)] {
		row := callRow{Name: c.Name}
		row.Segments, row.Cut = room.take(c.Arguments, excerptBytes)
		b.Calls = append(b.Calls, row)
	}
	b.MoreCalls = len(b.Detail.Calls) - len(b.Calls)
}

// text is one channel of an answer as plain text, whole.
func (s *Server) text(w http.ResponseWriter, r *http.Request) error {
	x, row, err := s.o.Store.Exchange(exchange.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	d := measure.Detail(x, row)
	texts := map[string]string{"reasoning": d.ReasoningText, "refusal": d.RefusalText, "answer": d.OutputText}
	for _, c := range d.Choices {
		texts["answer-"+strconv.Itoa(c.Index)] = c.OutputText
	}
	if d.Error != nil {
		texts["error"] = d.Error.Message
	}
	text, ok := texts[r.PathValue("channel")]
	if !ok {
		return fmt.Errorf("%w: the answer has no %q", exchange.ErrMiss, oneLine(r.PathValue("channel"), 40))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := bufio.NewWriterSize(w, 32<<10)
	for part := range parts(text) {
		if _, err := out.WriteString(part); err != nil {
			return nil // the reader is gone
		}
	}
	_ = out.Flush() // as in fail
	return nil
}

// neighbors are the addresses of the exchanges before and behind, where the index of the run is there anyway.
func (s *Server) neighbors(x *exchange.Exchange) (prev, next string) {
	i := s.indexes.have(x.Run)
	if i == nil {
		return "", ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sort()
	at, found := slices.BinarySearchFunc(i.entries, x.Seq, func(e entry, seq uint64) int { return cmp.Compare(e.seq, seq) })
	if !found {
		return "", ""
	}
	if at > 0 {
		prev = "/exchanges/" + string(i.entries[at-1].id[:])
	}
	if at+1 < len(i.entries) {
		next = "/exchanges/" + string(i.entries[at+1].id[:])
	}
	return prev, next
}
