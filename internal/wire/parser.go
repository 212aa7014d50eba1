package wire

import (
	"errors"
	"maps"
	"slices"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Info is what a parser must know about an exchange before the first body byte.
type Info struct {
	Path            string  // request target: path, with or without query
	Dialect         Dialect // pinned by the user whatever the path; "" = by path
	Status          int     // HTTP status of the response; 0 counts as 200
	ContentType     string  // of the response, parameters and all
	ContentEncoding string  // of the response; "" for none
}

// InfoOf takes the facts from a sealed exchange.
func InfoOf(x *exchange.Exchange) Info {
	ct, _ := exchange.HeaderValue(x.Response.Headers, "Content-Type")
	ce, _ := exchange.HeaderValue(x.Response.Headers, "Content-Encoding")
	return Info{Path: x.Request.Target, Dialect: Dialect(x.Dialect), Status: x.Response.Status, ContentType: ct, ContentEncoding: ce}
}

// Parse reads the response body of a sealed exchange, cut as its reads were. Without reads the body is one read 0; a
// body that was cut at a memory bound is read as far as it was kept.
func Parse(x *exchange.Exchange) *Transcript {
	p := NewParser(InfoOf(x))
	body, read, left := x.Response.Body, 0, 0
	reads := x.Timeline.Reads
	if body.Kept > 0 {
		n := len(reads) + len(reads)/4 // some reads bring two
		p.events = make([]Event, 0, 1+min(int64(n), body.Kept/bytesPerEvent))
	}
	if len(reads) > 0 {
		left = reads[0].Size
	}
	for _, chunk := range body.Chunks {
		for len(chunk) > 0 {
			for left == 0 && read < len(reads)-1 {
				read++
				left = reads[read].Size
			}
			n := len(chunk) // bytes that no read accounts for belong to the last one
			if left > 0 {
				n = min(n, left)
				left -= n
			}
			p.Feed(chunk[:n], read)
			chunk = chunk[n:]
		}
	}
	return p.Finish(x.End == exchange.EndEOF && body.Whole())
}

// bytesPerEvent is what an event takes at least, but for a few odd ones.
const bytesPerEvent = 32

// The bounds of what a dialect reads. Above the first a value is checked to be JSON before it is taken apart, since
// taking apart garbage is dear; above the second it is not taken apart at all, since that takes many times its size.
const (
	maxUnchecked = 1 << 20
	maxValue     = 16 << 20
)

// jsonParsers are JSON readers with their buffers grown; one that a large event blew up does not come back.
var jsonParsers fastjson.ParserPool

const maxPooled = 64 << 10

// giveBack returns a reader whose values are no longer needed and the largest of which had so many bytes.
func giveBack(p *fastjson.Parser, largest int) {
	if largest <= maxPooled {
		jsonParsers.Put(p)
	}
}

// Parser reads one response body as it comes. It belongs to one goroutine.
type Parser struct {
	info   Info
	lang   *language // nil for a path without dialect
	framer *Framer
	coded  *codedBody       // nil for a body without content coding
	json   *fastjson.Parser // nil until the first event
	answer answer
	last   pattern
	tokens *tokenReader // gathers tokens too; nil but for Tokens

	speaker *language // who speaks at the path in the framing of the body; see language
	spoken  Framing   // the framing speaker was found for
	claimed bool      // the first object settled whether the body is in the dialect of a path that is shared
	foreign bool      // it is not
	done    bool      // [DONE] was seen

	events      []Event
	progress    []Progress
	clock       []int64 // as Transcript.EngineClock; nil until an event has a moment
	afterDone   int
	parseErrors int
	oversized   int
	largest     int // bytes of the largest event that was taken apart

	finished     bool
	tail         tail
	unterminated bool // the undispatched last block was read
	codingError  string
	undecoded    bool // by our limits, not for a fault of the body
}

// NewParser makes the parser of one response.
func NewParser(info Info) *Parser {
	p := &Parser{info: info, lang: languageFor(info), coded: newCodedBody(info.ContentEncoding)}
	p.framer = NewFramer(info.ContentType, p.takeFrame)
	return p
}

// Feed takes the next body bytes, which the read with the given index brought. It keeps nothing of b. A coded body is
// gathered and decoded when it is finished: its snapshots show no events.
func (p *Parser) Feed(b []byte, read int) {
	if p.coded != nil {
		p.coded.add(b, read)
		return
	}
	p.framer.Feed(b, read)
}

// Finish ends the body and gives its transcript; whole says that it came to its proper end and that no byte of it is
// missing. The parser must not be fed after.
func (p *Parser) Finish(whole bool) *Transcript {
	if p.coded != nil {
		if err := p.coded.decode(p.framer.Feed); err != nil {
			p.codingError, p.undecoded = err.Error(), errors.Is(err, errOurLimit)
			whole = false
		}
	}
	p.tail = p.framer.finish(whole)
	if rest := p.tail.pieces; rest != nil && whole {
		p.takeUndispatched(rest)
	}
	p.finished = true
	if p.json != nil { // nothing of a Transcript points into it
		giveBack(p.json, p.largest)
		p.json = nil
	}
	return p.Snapshot()
}

// takeFrame reads one event.
func (p *Parser) takeFrame(f Frame) {
	ev := Event{Read: f.Read, Start: f.Start, End: f.End, Tokens: -1, Running: -1}
	if p.isDone(f.Data) {
		ev.Done, p.done = true, true
		p.answer.finish = doneMark
	} else {
		p.readEvent(f, &ev)
	}
	p.events = append(p.events, ev)
	if p.clock != nil && len(p.clock) < len(p.events) {
		p.clock = append(p.clock, 0)
	}
}

// readEvent reads the payload of an event and completes what is told of it. Behind [DONE] every client has stopped
// reading: what comes there is no content of the answer, but an error stays an error.
func (p *Parser) readEvent(f Frame, ev *Event) {
	a := &p.answer
	if p.done {
		p.afterDone++
	}
	a.quiet = p.done
	p.readValue(f.Name, f.Data)
	a.quiet = false
	ev.Kinds, ev.Tokens, ev.Running, ev.Phase = a.event.kinds, a.event.tokens(), a.running(), a.event.phase
	if pr := a.event.progress; pr != nil {
		pr.Event = len(p.events)
		p.progress = append(p.progress, *pr)
	}
	if a.event.moment != 0 {
		if p.clock == nil {
			p.clock = make([]int64, len(p.events), len(p.events)+16)
		}
		p.clock = append(p.clock, a.event.moment)
	}
}

// doneMark ends the streams of the OpenAI family.
const doneMark = "[DONE]"

func (p *Parser) isDone(data []byte) bool {
	return len(data) >= len(doneMark) && data[0] == '[' && string(trim(data)) == doneMark && p.framer.Framing() == FramingSSE
}

// readValue lets the dialect read the payload of one event. What is not JSON is counted and skipped.
func (p *Parser) readValue(name, data []byte) {
	a := &p.answer
	a.event = eventFacts{name: name}
	a.where, a.framing = p.where(), p.framer.Framing()
	named := string(name) == errorName
	if p.tokens == nil && p.readAlike(name, data) {
		return
	}
	p.last.forget()
	lang := p.language()
	if lang == nil || len(data) > maxUnchecked {
		if !valid(data) {
			p.garbage(named, data)
			return
		}
	}
	switch {
	case lang == nil:
		a.readPlain(data, named)
		return
	case len(data) > maxValue:
		p.oversized++
		return
	}
	if p.json == nil {
		p.json = jsonParsers.Get()
	}
	p.largest = max(p.largest, len(data))
	v, err := p.json.ParseBytes(data)
	if err != nil {
		p.garbage(named, data)
		return
	}
	if !named && !p.claims(lang, v) {
		a.readPlain(data, named)
		return
	}
	lang.read(a, v, data)
	if p.tokens != nil {
		p.tokens.take(a, lang, v)
	}
	if named || a.event.kinds == 0 && !a.event.hasUsage {
		a.readFlatError(v, named)
	}
	if a.framing == FramingSSE || a.framing == FramingNDJSON {
		p.last.keep(data, a)
	}
}

// garbage counts an event that is not JSON. Under the name of an error its text is the message.
func (p *Parser) garbage(named bool, data []byte) {
	p.parseErrors++
	if named {
		p.answer.fail(Error{Message: clip(data)}, "")
	}
}

// where is the place that an error found now stands in.
func (p *Parser) where() string {
	switch {
	case p.info.Status != 0 && p.info.Status/100 != 2:
		return whereHTTPStatus
	case p.framer.Framing() == FramingJSON:
		return whereBody
	}
	return whereEvent
}

// language is the dialect of the path, unless the framing or the first value shows that something else is spoken there.
func (p *Parser) language() *language {
	f := p.framer.Framing()
	if p.lang == nil || f == FramingNone || f == FramingOpaque {
		return p.lang
	}
	if p.foreign {
		return nil
	}
	if p.spoken != f {
		p.spoken, p.speaker = f, p.lang
		fits := func(l *language) bool { return slices.Contains(l.framings, f) }
		if !fits(p.lang) {
			p.speaker = nil
			if p.info.Dialect == DialectNone {
				p.speaker = languageIn(p.info.Path, fits)
			}
		}
	}
	return p.speaker
}

// claims reports whether a value is in the language. On a path that others use for formats of their own, the first
// object that is no error tells.
func (p *Parser) claims(lang *language, v *fastjson.Value) bool {
	if lang.own == nil || p.claimed || v.Type() != fastjson.TypeObject {
		return true
	}
	if lang.own(v) {
		p.claimed = true
		return true
	}
	if present(v.Get("error")) {
		return true
	}
	p.claimed, p.foreign = true, true
	return false
}

// takeUndispatched reads the block that a clean end left without its blank line, when it is whole: its usage, finish
// reason and error count, but it is no event and adds no content.
func (p *Parser) takeUndispatched(rest *leftover) {
	data := trim(rest.data)
	switch {
	case p.isDone(data):
		p.answer.finish = doneMark
	case valid(data):
		p.answer.quiet = true
		p.readValue(rest.name, data)
		p.answer.quiet = false
	default:
		return
	}
	p.unterminated = true
}

// Snapshot is the transcript of what was fed so far. It costs a few allocations, whatever the length of the body, and
// stays as it is while the parser goes on. Its terminator is empty until the body is finished.
func (p *Parser) Snapshot() *Transcript {
	t := &Transcript{
		Version:          Version,
		Framing:          p.framer.Framing(),
		Events:           p.events[:len(p.events):len(p.events)],
		Comments:         p.framer.Comments(),
		ParseErrors:      p.parseErrors,
		Oversized:        p.oversized,
		UnterminatedLast: p.unterminated,
		AfterDone:        p.afterDone,
		Progress:         p.progress[:len(p.progress):len(p.progress)],
		ProgressEvents:   len(p.progress),
		EngineClock:      p.clock[:len(p.clock):len(p.clock)],
		TruncatedTail:    p.tail.cut && !p.unterminated,
		CodingError:      p.codingError,
		Undecoded:        p.undecoded,
	}
	if l := p.language(); l != nil {
		t.Dialect = l.name
	}
	if p.coded != nil {
		t.Coding = p.coded.name
	}
	p.answer.fill(t)
	if !p.finished {
		t.Extras = maps.Clone(t.Extras)
	}
	if l := p.language(); l != nil && l.closes && t.Framing == FramingJSONArray && !p.tail.closed {
		t.DialectEnd = false
	}
	if p.finished {
		t.Terminator = p.terminator()
		t.Suspect = p.suspect(t)
	}
	return t
}

// suspect looks at a finished answer that reports no error for signs that it hides one.
func (p *Parser) suspect(t *Transcript) Suspect {
	switch {
	case t.Error != nil || p.lang == nil || p.info.Status != 0 && p.info.Status/100 != 2:
		return ""
	case t.Framing == FramingOpaque:
		return SuspectNoAPI
	case p.answer.nameless && !t.DialectEnd && t.Terminator == "eof":
		return SuspectSwallowed
	case p.answer.saysError():
		return SuspectErrorAsContent
	}
	return ""
}

// terminator names what ended the body.
func (p *Parser) terminator() string {
	switch f := p.framer.Framing(); {
	case f == FramingJSON && len(p.events) > 0 && !p.tail.cut:
		return "json"
	case f == FramingJSONArray && p.tail.closed:
		return "json_array_end"
	case f != FramingJSON && p.answer.finish != "":
		return p.answer.finish
	}
	return "eof"
}
