package replay

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// answerForm says for whom, and how fast, a recorded answer is made.
type answerForm struct {
	sent    bool    // for the request as the engine got it, whose answer is all of what the engine sent
	speed   float64 // of the recorded pace; 0 is at once
	request sim.Request
}

// answerScript is a recorded answer as it was: status, head, body in the pieces in which it was read, trailers, kind of
// end, each at its instant. Instants count from when the engine had the request, as far as the record tells.
//
// What the engine did not end, because the client left or we stopped it, ends early at the instant at which the record
// does; but an answer that had said all it had to say ends properly.
func answerScript(x *exchange.Exchange, outcome exchange.Outcome, f answerForm) (*sim.Script, error) {
	p := pacer{speed: f.speed, zero: servedFrom(&x.Timeline)}
	s := &sim.Script{FromRead: true, Status: x.Response.Status, EndAt: p.at(endOf(&x.Timeline))}
	s.End = endingOf(x, outcome)
	if x.Response.Status == 0 {
		s.Framing = sim.FramingRaw // not a head, or what of it came
		if h := x.Response.Head; len(h) > 0 {
			s.Steps = []sim.Step{{At: s.EndAt, Data: h}}
		}
		if s.End == sim.EndKeep {
			s.End = sim.EndTruncate
		}
		return s, nil
	}
	for _, code := range x.Response.Informational {
		if code != 100 && code != 101 { // the player's own, for a client that waits for it
			s.Informational = append(s.Informational, code)
		}
	}
	head, _ := x.Timeline.HeaderRead.NS()
	s.HeadAt = p.at(head)
	if err := addPieces(s, x, f, p); err != nil {
		return nil, err
	}
	dress(s, x, f)
	return s, nil
}

// pacer places recorded instants in the time of the answer.
type pacer struct {
	speed float64
	zero  int64 // recorded instant that becomes 0
}

func (p pacer) at(ns int64) time.Duration {
	if p.speed == 0 || ns <= p.zero {
		return 0
	}
	return time.Duration(min(float64(ns-p.zero)/p.speed, float64(longestWait)))
}

// longestWait bounds the instants of an answer, which a file may state and a small speed may stretch without end.
const longestWait = 10 * 365 * 24 * time.Hour

// servedFrom is the instant at which the engine had the request: when its last byte was sent, or its first one where the
// answer began before.
func servedFrom(t *exchange.Timeline) int64 {
	start, _ := t.SendStart.NS()
	done, ok := t.SendDone.NS()
	if head, came := t.HeaderRead.NS(); !ok || came && head < done {
		return start
	}
	return done
}

// endOf is the instant at which the record of an answer ends.
func endOf(t *exchange.Timeline) int64 {
	last := int64(0)
	for _, m := range []exchange.Mark{t.HeaderRead, t.LastRead, t.BodyEnd} {
		ns, _ := m.NS()
		last = max(last, ns)
	}
	if _, ok := t.BodyEnd.NS(); !ok {
		ns, _ := t.ClientDone.NS()
		last = max(last, ns)
	}
	return last
}

func endingOf(x *exchange.Exchange, outcome exchange.Outcome) sim.Ending {
	switch x.End {
	case exchange.EndEOF:
		return sim.EndKeep
	case exchange.EndReset:
		return sim.EndReset
	case exchange.EndClientGone, exchange.EndTimeout, exchange.EndShutdown:
		if outcome == exchange.OutcomeComplete {
			return sim.EndKeep
		}
	}
	return sim.EndTruncate
}

// addPieces adds the body in the pieces in which it was read. What no read tells of comes in one piece at the end of the
// record.
func addPieces(s *sim.Script, x *exchange.Exchange, f answerForm, p pacer) error {
	body, removed := x.Response.Body.Bytes(), []stretch(nil)
	if !f.sent {
		removed = removedFrom(x)
	}
	from := 0
	add := func(at int64, size int) {
		if data := outside(body, stretch{from, from + size}, removed); len(data) > 0 {
			s.Steps = append(s.Steps, sim.Step{At: p.at(at), Data: data})
		}
		from += size
	}
	last := int64(-1)
	for _, r := range x.Timeline.Reads {
		if r.Size > len(body)-from {
			return fmt.Errorf("%w: exchange %s: its reads are longer than its body", exchange.ErrDamaged, x.ID)
		}
		if r.Size > 0 {
			last = r.At
			add(r.At, r.Size)
		}
	}
	if from < len(body) {
		last = endOf(&x.Timeline)
		add(last, len(body)-from)
	}
	// What came in one read leaves in one write: the head with the first piece, the end of the framing with the last.
	if len(s.Steps) > 0 {
		head, _ := x.Timeline.HeaderRead.NS()
		s.JoinHead = len(x.Timeline.Reads) > 0 && x.Timeline.Reads[0].At == head && x.Timeline.Reads[0].Size > 0
		s.JoinEnd = last == endOf(&x.Timeline) && !framedAfter(x.Timeline.Reads)
	}
	return nil
}

// framedAfter reports whether reads end with one that brought no body, but the end of its framing.
func framedAfter(reads []exchange.Read) bool {
	return len(reads) > 0 && reads[len(reads)-1].Size == 0
}

// removedFrom are the stretches of the answer that the proxy kept from the client.
func removedFrom(x *exchange.Exchange) (out []stretch) {
	for _, v := range x.Interventions {
		if v.Kind == "response_removed" && v.Where == exchange.SideClient && v.Length > 0 {
			out = append(out, stretch{int(v.Offset), int(v.Offset + v.Length)})
		}
	}
	return out
}

// outside is what of body lies in the stretch s and in none of removed, which are in order.
func outside(body []byte, s stretch, removed []stretch) []byte {
	var out []byte
	cut := false
	for _, r := range removed {
		if r.to <= s.from || r.from >= s.to {
			continue
		}
		cut = true
		if r.from > s.from {
			out = append(out, body[s.from:r.from]...)
		}
		s.from = min(r.to, s.to)
	}
	if !cut {
		return body[s.from:s.to:s.to]
	}
	return append(out, body[s.from:s.to]...)
}

// dress gives a script its head: the recorded one, byte for byte, but for a line that is not true of this answer or that
// this client cannot read.
func dress(s *sim.Script, x *exchange.Exchange, f answerForm) {
	head := x.Response.Head
	if !singleHead(head) {
		s.Framing, s.Reason, s.Headers = sim.FramingChunked, x.Response.Reason, ownHeaders(x.Response.Headers)
		if f.request.Proto == "HTTP/1.0" {
			s.Framing = sim.FramingClose
		}
		return
	}
	s.Framing, s.Trailers = framingOf(x.Response.Headers), cleanHeaders(x.Response.Trailers)
	if s.Framing == sim.FramingChunked && f.request.Proto == "HTTP/1.0" {
		head, s.Framing = withoutLines(head, "Transfer-Encoding", "Trailer"), sim.FramingClose
	}
	if stated, ok := statedLength(x.Response.Headers); ok && s.Framing == sim.FramingLength && s.End == sim.EndKeep && hasBody(x) {
		size := 0
		for _, st := range s.Steps {
			size += len(st.Data)
		}
		if size != stated {
			head = withLine(withoutLines(head, "Content-Length"), "Content-Length", strconv.Itoa(size))
		}
	}
	if s.Framing == sim.FramingClose && !hasBody(x) {
		s.Framing = sim.FramingLength // nothing follows whose end were to be told
	}
	s.RawHead = head
	if s.End == sim.EndKeep && endsConnection(x, s.Framing) {
		s.End = sim.EndClose
	}
}

// singleHead reports whether head is one of HTTP/1 and ends where it ends. One that was read from a connection is; one that
// was made of what another tool or a person says of an answer may hold a second.
func singleHead(head []byte) bool {
	lines := bytes.SplitAfter(head, []byte("\n"))
	if !bytes.HasPrefix(head, []byte("HTTP/1.")) || len(lines) < 3 || len(lines[len(lines)-1]) > 0 {
		return false
	}
	for i, line := range lines[:len(lines)-1] {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if last := i == len(lines)-2; (len(line) == 0) != last || bytes.IndexByte(line, '\r') >= 0 {
			return false
		}
		if header := i > 0 && len(line) > 0 && line[0] != ' ' && line[0] != '\t'; header && bytes.IndexByte(line, ':') < 1 {
			return false
		}
	}
	return true
}

// hasBody reports whether the answer is of a kind that carries one.
func hasBody(x *exchange.Exchange) bool {
	return x.Request.Method != "HEAD" && x.Response.Status != 204 && x.Response.Status != 304
}

// framingOf is how a head says that the body ends.
func framingOf(hs []exchange.Header) sim.Framing {
	if v, ok := exchange.HeaderValue(hs, "Transfer-Encoding"); ok && strings.Contains(strings.ToLower(v), "chunked") {
		return sim.FramingChunked
	}
	if _, ok := statedLength(hs); ok {
		return sim.FramingLength
	}
	return sim.FramingClose
}

func statedLength(hs []exchange.Header) (int, bool) {
	v, ok := exchange.HeaderValue(hs, "Content-Length")
	n, err := strconv.Atoi(v)
	return n, ok && err == nil && n >= 0
}

// endsConnection reports whether the engine closed the connection behind the answer. An answer that cannot have a body
// needs no end of the connection for its own.
func endsConnection(x *exchange.Exchange, framing sim.Framing) bool {
	if framing == sim.FramingClose && hasBody(x) {
		return true
	}
	for _, h := range x.Response.Headers {
		if strings.EqualFold(h.Name, "Connection") && strings.Contains(strings.ToLower(h.Value), "close") {
			return true
		}
	}
	return bytes.HasPrefix(x.Response.Head, []byte("HTTP/1.0"))
}

// ownHeaders are the headers of an answer of another version of HTTP, without those that the framing of this one sets.
func ownHeaders(hs []exchange.Header) (out []exchange.Header) {
	for _, h := range hs {
		switch strings.ToLower(h.Name) {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "upgrade", "trailer":
			continue
		}
		out = append(out, h)
	}
	return cleanHeaders(out)
}

// cleanHeaders are those headers that have a name, each on one line.
func cleanHeaders(hs []exchange.Header) (out []exchange.Header) {
	for _, h := range hs {
		if h.Name == "" || strings.ContainsFunc(h.Name, notToken) {
			continue
		}
		h.Value = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x7f {
				return ' '
			}
			return r
		}, h.Value)
		out = append(out, h)
	}
	return out
}

// withoutLines is a head without the lines of these headers.
func withoutLines(head []byte, names ...string) []byte {
	var out []byte
	for line := range bytes.SplitAfterSeq(head, []byte("\n")) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		drop := false
		for _, n := range names {
			drop = drop || strings.EqualFold(string(bytes.TrimSpace(name)), n)
		}
		if !drop {
			out = append(out, line...)
		}
	}
	return out
}

// withLine is a head with one more header, the last.
func withLine(head []byte, name, value string) []byte {
	blank := bytes.LastIndex(head, []byte("\n\r\n"))
	if blank < 0 {
		blank = bytes.LastIndex(head, []byte("\n\n"))
	}
	if blank < 0 {
		return head
	}
	out := append([]byte(nil), head[:blank+1]...)
	out = append(out, name+": "+value+"\r\n"...)
	return append(out, head[blank+1:]...)
}
