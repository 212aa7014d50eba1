package web

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The bounds of one page of an exchange. What they leave out is a link away.
const (
	excerptBytes = 64 << 10 // of a text or body
	eventBytes   = 600      // of an event
	indentDepth  = 32       // of JSON that is shown with line breaks: each level is two blanks more on every line
	pageEvents   = 200
	callsShown   = 100
	takesShown   = 50
	gateBytes    = 8 << 20 // of an answer that is judged for a page
)

// The widths of a waterfall over a whole page and over half of one, in CSS pixels.
const (
	wholeWidth = 1240
	halfWidth  = 620
)

// exchangeBody is everything about one exchange.
type exchangeBody struct {
	Row       exchange.Summary
	Detail    exchange.Detail
	Run       exchange.Run
	Facts     [][2]string
	Waterfall chart.SVG
	Present   []metricRow
	Missing   []metricRow
	Request   message
	Response  message
	Turns     []turn // of the conversation that was sent, nil when it is none we read
	Texts     []channel
	Calls     []exchange.ToolCall
	Events    eventList
	Gates     []gateRow
	TraceID   string
	TraceURL  string
	Curl      string
	Replay    string
	Takes     []takeRow
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

// takeRow is another recording of the same request.
type takeRow struct {
	ID   string
	Run  string
	Seq  uint64
	Self bool
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
	t := wire.Parse(x)
	b := &exchangeBody{Row: row, Detail: measure.Detail(x, row)}
	if b.Run, err = s.o.Store.Run(string(x.Run)); err != nil {
		b.Run = exchange.Run{ID: x.Run} // the exchange is there and can be shown without it
	}
	b.Facts = factsOf(x, &b.Detail)
	b.Waterfall = waterfallOf(x, t, wholeWidth)
	b.metrics()
	b.Request = messageOf(requestLine(x), x.Request.Headers, x.Request.Body)
	b.Response = messageOf(b.Detail.Response.Line, x.Response.Headers, x.Response.Body)
	b.Turns = turnsOf(x)
	b.texts()
	b.Events = eventsOf(x, t, int(min(from, 1<<40)))
	b.Gates = gatesOf(x, &b.Run)
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

func (b *exchangeBody) texts() {
	add := func(name, text string) {
		if text == "" {
			return
		}
		c := channel{Name: name, Link: "/exchanges/" + string(b.Detail.ID) + "/text/" + name}
		c.Segments, c.Cut = visible(text, excerptBytes)
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
	b.Calls = b.Detail.Calls[:min(len(b.Detail.Calls), callsShown)]
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

// takesOf finds the other recordings of the same request.
func (s *Server) takesOf(b *exchangeBody) error {
	if b.Row.Key == "" {
		return nil
	}
	takes, err := s.o.Store.Takes(b.Row.Key)
	if err != nil {
		return err
	}
	names := map[exchange.ID]string{}
	for _, t := range takes[:min(len(takes), takesShown)] {
		name, ok := names[t.Run]
		if !ok {
			name = string(t.Run)
			if run, err := s.o.Store.Run(string(t.Run)); err == nil {
				name = runName(&run)
			}
			names[t.Run] = name
		}
		b.Takes = append(b.Takes, takeRow{ID: string(t.ID), Run: name, Seq: t.Seq, Self: t.ID == b.Detail.ID})
	}
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
