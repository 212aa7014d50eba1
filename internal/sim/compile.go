package sim

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// planned is one write of a plan.
type planned struct {
	at     time.Duration // since the slot
	data   []byte        // wire bytes
	body   int           // body bytes sent when it is done
	token  bool
	tokens int
}

// plan is a Script made exact: every write, and the ending.
type plan struct {
	writes []planned
	end    Ending
	endAt  time.Duration
	closes bool // a proper end closes the connection
	untold bool // and nothing but that tells of it
}

// piece is a step on its way into a plan.
type piece struct {
	Step
	bare bool // goes on the wire without chunk framing
}

// compile turns a Script into the plan for one request.
func compile(s *Script, req Request, o Options) plan {
	pieces, cut := applyFault(s)
	p := plan{end: cut.end, endAt: max(cut.at, s.EndAt)}
	if p.end == "" {
		p.end = EndKeep
	}
	framing := s.Framing
	if framing == "" {
		framing = FramingChunked
	}
	bodiless := framing != FramingRaw && (req.Method == "HEAD" || s.Status == 204 || s.Status == 304)
	p.closes = req.wantsClose() || framing == FramingClose || o.KeepAlive != KeepAlive || (framing != FramingRaw && s.Proto == "HTTP/1.0")
	p.untold = framing == FramingClose || framing == FramingRaw
	if !cut.headless && framing != FramingRaw {
		length := 0
		for _, st := range s.Steps {
			length += len(st.Data)
		}
		if cut.proper {
			length = sizeOf(pieces)
		}
		p.addHead(s, headFraming{framing, length, o.KeepAlive == KeepAliveNo || req.wantsClose(), bodiless})
	}
	if !bodiless {
		p.addBody(pieces, framing, cut.proper && p.end != EndCrash, s)
	}
	p.finishWrites(s)
	return p
}

func sizeOf(pieces []piece) int {
	n := 0
	for _, pc := range pieces {
		n += len(pc.Data)
	}
	return n
}

// headFraming is what a head says about the body and the connection.
type headFraming struct {
	framing  Framing
	length   int
	close    bool
	bodiless bool
}

// addHead plans the 1xx heads and the final one.
func (p *plan) addHead(s *Script, f headFraming) {
	for _, status := range s.Informational {
		head := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n\r\n", status, reason(status))
		p.writes = append(p.writes, planned{at: s.HeadAt, data: head})
	}
	head := s.RawHead
	if head == nil {
		head = renderHead(s, f)
	}
	if s.HeadGap <= 0 {
		p.writes = append(p.writes, planned{at: s.HeadAt, data: head})
		return
	}
	at := s.HeadAt
	for line := range bytes.SplitAfterSeq(head, []byte("\n")) {
		if len(line) > 0 {
			p.writes = append(p.writes, planned{at: at, data: line})
			at += s.HeadGap
		}
	}
}

// renderHead writes status line, headers, and the headers of the framing last.
func renderHead(s *Script, f headFraming) []byte {
	status, proto, phrase := s.Status, s.Proto, s.Reason
	if status == 0 {
		status = 200
	}
	if proto == "" {
		proto = "HTTP/1.1"
	}
	if phrase == "" {
		phrase = reason(status)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d %s\r\n", proto, status, phrase)
	for _, h := range s.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	switch {
	case f.bodiless && (status == 204 || status == 304):
	case f.framing == FramingLength:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", f.length)
	case f.framing == FramingChunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		for _, t := range s.Trailers {
			fmt.Fprintf(&b, "Trailer: %s\r\n", t.Name)
		}
	}
	if f.close || f.framing == FramingClose {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// addBody plans one write a piece, and the end of a chunked body when there is to be one.
func (p *plan) addBody(pieces []piece, framing Framing, proper bool, s *Script) {
	for _, pc := range pieces {
		data := pc.Data
		if framing == FramingChunked && !pc.bare {
			if len(data) == 0 {
				continue // an empty chunk would end the body
			}
			data = chunk(data)
		}
		p.writes = append(p.writes, planned{at: pc.At, data: data, token: pc.Token, tokens: pc.Tokens})
	}
	if framing == FramingChunked && proper {
		var b bytes.Buffer
		b.WriteString("0\r\n")
		for _, t := range s.Trailers {
			fmt.Fprintf(&b, "%s: %s\r\n", t.Name, t.Value)
		}
		b.WriteString("\r\n")
		if last := len(p.writes) - 1; s.JoinEnd && len(pieces) > 0 && last >= 0 {
			w := &p.writes[last]
			w.data = append(w.data[:len(w.data):len(w.data)], b.Bytes()...)
			return
		}
		p.writes = append(p.writes, planned{at: p.endAt, data: b.Bytes()})
	}
}

// chunk frames data as one chunk.
func chunk(data []byte) []byte {
	b := fmt.Appendf(make([]byte, 0, len(data)+16), "%x\r\n", len(data))
	b = append(b, data...)
	return append(b, '\r', '\n')
}

// finishWrites joins and splits writes as the Script says, puts the instants in order and counts the body bytes.
func (p *plan) finishWrites(s *Script) {
	heads := len(s.Informational)
	if s.JoinHead && s.HeadGap <= 0 && len(p.writes) > heads+1 {
		p.join(heads, heads+2)
	}
	if s.Merge > 1 {
		for i := heads + 1; i < len(p.writes); i++ {
			p.join(i, min(i+s.Merge, len(p.writes)))
		}
	}
	if s.Split > 0 {
		p.split(s.Split)
	}
	var last time.Duration
	count := bodyCounter{}
	for i := range p.writes {
		w := &p.writes[i]
		last = max(last, w.at)
		w.at = last
		w.body = count.feed(w.data)
	}
	p.endAt = max(p.endAt, last)
}

// join makes one write of writes [from, to), at the instant of the last.
func (p *plan) join(from, to int) {
	if to-from < 2 {
		return
	}
	w := p.writes[to-1]
	w.data, w.tokens, w.token = nil, 0, false
	for _, o := range p.writes[from:to] {
		w.data = append(w.data, o.data...)
		w.tokens += o.tokens
		w.token = w.token || o.token
	}
	p.writes = append(append(p.writes[:from:from], w), p.writes[to:]...)
}

// split cuts every write into pieces of at most n bytes. The last piece completes the event.
func (p *plan) split(n int) {
	var out []planned
	for _, w := range p.writes {
		for len(w.data) > n {
			out = append(out, planned{at: w.at, data: w.data[:n]})
			w.data = w.data[n:]
		}
		out = append(out, w)
	}
	p.writes = out
}

// reason is the usual phrase of a status.
func reason(status int) string {
	switch status {
	case 100:
		return "Continue"
	case 102:
		return "Processing"
	case 103:
		return "Early Hints"
	case 200:
		return "OK"
	case 204:
		return "No Content"
	case 304:
		return "Not Modified"
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 404:
		return "Not Found"
	case 405:
		return "Method Not Allowed"
	case 429:
		return "Too Many Requests"
	case 500:
		return "Internal Server Error"
	case 503:
		return "Service Unavailable"
	case 529:
		return "Site Overloaded"
	}
	return "Status " + fmt.Sprint(status)
}

// hasType reports whether a Script says that its body is of a media type.
func (s *Script) hasType(mime string) bool {
	v, _ := exchange.HeaderValue(s.Headers, "Content-Type")
	return strings.HasPrefix(v, mime)
}
