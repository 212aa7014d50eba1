package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const (
	plainAsk  = `{"model":"m","stream":true}`
	changed   = `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`
	token     = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"
	finished  = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	usageOnly = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n"
	done      = "data: [DONE]\n\n"
)

// withUsage makes a rig that asks for usage as the flag of the command line does.
func withUsage(o *rigOptions) {
	o.server.Rewrite = func(c *Call, _ exchange.Identity) Rewrite {
		ask := wire.AddUsage(wire.DialectOf(c.Target), c.Headers, c.Body)
		if ask.Body == nil {
			return Rewrite{Notes: ask.Notes}
		}
		return Rewrite{Body: ask.Body, Notes: ask.Notes, Answer: func() Filter { return wire.NewUsageFilter() }}
	}
}

// stream is a scripted answer of these parts, each a chunk of its own; the client has the one before when the next is
// sent. step is signaled by the client.
func stream(head string, parts ...string) func(p *peer, a asked) bool {
	return func(p *peer, _ asked) bool {
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n", head)
		for i, part := range parts {
			if i > 0 {
				<-p.engine.step
			}
			if strings.HasPrefix(head, "Transfer-Encoding") {
				p.chunk(part)
			} else {
				p.send("%s", part)
			}
		}
		if strings.HasPrefix(head, "Transfer-Encoding") {
			p.send("0\r\n\r\n")
			return true
		}
		return false
	}
}

const chunkedHead = "Transfer-Encoding: chunked"

// stepAll lets the engine send n parts.
func stepAll(e *engine, n int) {
	for range n {
		e.step <- struct{}{}
	}
}

// TestUsageIsAskedForAndTakenOut holds both sides and the record, for a stream whose every event comes alone, which the
// client gets as it would have come.
func TestUsageIsAskedForAndTakenOut(t *testing.T) {
	cases := map[string]struct {
		head  string
		parts []string
		want  string
	}{
		"chunked":            {chunkedHead, []string{token, finished, usageOnly, done}, token + finished + done},
		"ends by close":      {"X-A: 1", []string{token, finished, usageOnly, done}, token + finished + done},
		"usage at the start": {chunkedHead, []string{usageOnly, token, done}, token + done},
		"usage at the end":   {chunkedHead, []string{token, done, usageOnly}, token + done},
		"nothing but usage":  {chunkedHead, []string{usageOnly}, ""},
		"cut in the middle":  {chunkedHead, []string{token + usageOnly[:9], usageOnly[9:30], usageOnly[30:] + done}, token + done},
		"never":              {chunkedHead, []string{token, finished, done}, token + finished + done},
		"no last blank line": {chunkedHead, []string{token, strings.TrimSpace(usageOnly)}, token},
		"held to the end":    {chunkedHead, []string{token, "data: x"}, token + "data: x"},
		"held, by close":     {"X-A: 1", []string{token, "data: x"}, token + "data: x"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, stream(c.head, c.parts...))
			r := newRig(t, e.url(), withUsage)
			client := r.dial()
			client.post(plainAsk)
			stepAll(e, len(c.parts)-1)
			if got := client.ok(200); got != c.want {
				t.Errorf("the client got %q, want %q", got, c.want)
			}
			x := r.sink.next(t)
			checkRecord(t, x)
			checkUsageRecord(t, x, c.want)
			if got := e.last(t); got.Body != changed || !strings.Contains(got.Head, fmt.Sprintf("Content-Length: %d\r\n", len(changed))) {
				t.Errorf("the engine got %s%s", got.Head, got.Body)
			}
			if got := string(x.Response.Body.Bytes()); got != strings.Join(c.parts, "") {
				t.Errorf("the record holds %q", got)
			}
		})
	}
}

// checkUsageRecord holds that the record leads from the client's request to what was sent, and from the engine's answer
// to what the client got.
func checkUsageRecord(t *testing.T, x *exchange.Exchange, got string) {
	t.Helper()
	if body := string(x.Request.Body.Bytes()); body != plainAsk {
		t.Errorf("the request is recorded as %q", body)
	}
	if sent, ok := exchange.SentRequest(x); !ok || string(sent.Body.Bytes()) != changed {
		t.Errorf("the record gives %q as sent", sent.Body.Bytes())
	}
	body, at, want := x.Response.Body.Bytes(), int64(0), ""
	for _, v := range x.Interventions {
		if v.Kind == "response_removed" {
			want += string(body[at:v.Offset])
			at = v.Offset + v.Length
		}
	}
	if want += string(body[at:]); want != got {
		t.Errorf("the notes give %q, the client got %q", want, got)
	}
	wrote := false
	for _, rd := range x.Timeline.Reads {
		wrote = wrote || rd.Write > 0
	}
	if wrote != (got != "") {
		t.Errorf("a read wrote: %v, the client got %q", wrote, got)
	}
}

// TestHeldReadsWroteNothing holds the reads of a stream whose parts come one by one: the client has each answer before the
// next part is sent.
func TestHeldReadsWroteNothing(t *testing.T) {
	parts := []string{token, usageOnly, finished[:10], finished[10:] + done}
	e := newEngine(t, stream(chunkedHead, parts...))
	r := newRig(t, e.url(), withUsage)
	var reads []exchange.Read
	c := r.dial()
	c.post(plainAsk)
	live := func() []exchange.Read {
		if l := r.session.Live(); len(l) == 1 {
			return l[0].Reads
		}
		return nil
	}
	for i := range parts {
		if i < len(parts)-1 {
			eventually(t, "the part is read", func() bool { return size(live()) == len(strings.Join(parts[:i+1], "")) })
			stepAll(e, 1)
		}
	}
	if got := c.ok(200); got != token+finished+done {
		t.Errorf("the client got %q", got)
	}
	x := r.sink.next(t)
	for _, rd := range x.Timeline.Reads {
		if rd.Size > 0 {
			reads = append(reads, rd)
		}
	}
	if len(reads) != len(parts) {
		t.Fatalf("%d reads with body bytes: %+v", len(reads), reads)
	}
	for i, rd := range reads {
		if wrote := rd.Write > 0; rd.Size != len(parts[i]) || wrote != (i == 0 || i == 3) {
			t.Errorf("read %d: %+v", i, rd)
		}
	}
	client, _ := x.Timeline.ClientDone.NS()
	if last, _ := x.Timeline.LastRead.NS(); client < last {
		t.Errorf("the client was done at %d, the last read is of %d", client, last)
	}
}

func size(reads []exchange.Read) (n int) {
	for _, rd := range reads {
		n += rd.Size
	}
	return n
}

// TestBrokenStreamGivesWhatWasHeld holds that an early end stays one, behind all that had come.
func TestBrokenStreamGivesWhatWasHeld(t *testing.T) {
	breaks := map[string]func(p *peer){
		"closed":    func(*peer) {},
		"reset":     func(p *peer) { p.waitStep(); p.reset() },
		"malformed": func(p *peer) { p.send("zz\r\n") },
	}
	for name, breakOff := range breaks {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(p *peer, _ asked) bool {
				p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n", chunkedHead)
				p.chunk(token + usageOnly[:12])
				breakOff(p)
				return false
			})
			r := newRig(t, e.url(), withUsage)
			c := r.dial().post(plainAsk)
			if name == "reset" {
				eventually(t, "the part is read", func() bool {
					l := r.session.Live()
					return len(l) == 1 && size(l[0].Reads) > 0
				})
				stepAll(e, 1)
			}
			_, got, err := c.answer("POST")
			if got != token+usageOnly[:12] || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the client got %q and %v", got, err)
			}
			x := r.sink.next(t)
			checkRecord(t, x)
			if x.End == exchange.EndEOF || string(x.Response.Body.Bytes()) != token+usageOnly[:12] {
				t.Errorf("sealed as %s with %q", x.End, x.Response.Body.Bytes())
			}
		})
	}
}

// waitStep waits for the test.
func (p *peer) waitStep() { <-p.engine.step }

// TestAnswersThatAreNotFiltered holds that an answer which cannot be filtered passes as it is, and the record says so.
func TestAnswersThatAreNotFiltered(t *testing.T) {
	body := token + usageOnly + done
	length := fmt.Sprintf("Content-Length: %d", len(body))
	cases := map[string]struct {
		status, head string
		why          string
	}{
		"a length":      {"200 OK", "Content-Type: text/event-stream\r\n" + length, "content_length"},
		"coded":         {"200 OK", "Content-Type: text/event-stream\r\nContent-Encoding: x-own\r\nConnection: close", "content_coding"},
		"an error":      {"400 Bad Request", "Content-Type: text/event-stream\r\n" + length, ""},
		"plain JSON":    {"200 OK", "Content-Type: Application/JSON; charset=utf-8\r\n" + length, ""},
		"JSON, chunked": {"200 OK", "Content-Type: application/json\r\nConnection: close", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(p *peer, _ asked) bool {
				p.send("HTTP/1.1 %s\r\n%s\r\n\r\n%s", c.status, c.head, body)
				return false
			})
			r := newRig(t, e.url(), withUsage)
			if _, got, err := r.dial().post(plainAsk).answer("POST"); got != body || err != nil {
				t.Errorf("the client got %q, %v", got, err)
			}
			why := ""
			for _, v := range r.sink.next(t).Interventions {
				if v.Kind == "response_kept" {
					why += v.Reason
				}
			}
			if why != c.why {
				t.Errorf("the record says %q, want %q", why, c.why)
			}
		})
	}
}

// TestRequestsThatAreNotChanged holds that the engine gets the client's bytes, and the client the engine's.
func TestRequestsThatAreNotChanged(t *testing.T) {
	body := token + usageOnly + done
	for ask, notes := range map[string][]exchange.Intervention{
		`{"stream":true,"stream_options":{"include_usage":true}}`: nil,
		`{"stream":false}`:             nil,
		`not JSON`:                     nil,
		`{"stream":true,`:              {wire.UsageNotAsked("not_a_json_object")},
		`{"stream":true,"stream":"x"}`: {wire.UsageNotAsked("repeated_field")},
	} {
		e := newEngine(t, stream(chunkedHead, body))
		r := newRig(t, e.url(), withUsage)
		if got := r.dial().post(ask).ok(200); got != body {
			t.Errorf("%s: the client got %q", ask, got)
		}
		if got := e.last(t).Body; got != ask {
			t.Errorf("the engine got %q, want %q", got, ask)
		}
		var kept []exchange.Intervention
		for _, v := range r.sink.next(t).Interventions {
			if v.Kind == "body_kept" || v.Kind == exchange.KindBodyChanged {
				kept = append(kept, v)
			}
		}
		if d := cmp.Diff(notes, kept); d != "" {
			t.Errorf("%s: %s", ask, d)
		}
	}
}

// TestRewriteOfAChunkedRequest holds that a body without a length gets that of what is sent, and that memory is accounted.
func TestRewriteOfAChunkedRequest(t *testing.T) {
	e := newEngine(t, stream(chunkedHead, done))
	r := newRig(t, e.url(), withUsage)
	c := r.dial().send("POST /v1/chat/completions HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(plainAsk), plainAsk)
	if got := c.ok(200); got != done {
		t.Errorf("the client got %q", got)
	}
	if got := e.last(t); got.Body != changed || !strings.Contains(got.Head, fmt.Sprintf("Content-Length: %d\r\n", len(changed))) {
		t.Errorf("the engine got %+v", got)
	}
	checkUsageRecord(t, r.sink.next(t), done)
}

// TestFilterOfAnOldClient holds a filtered answer to a client of HTTP/1.0, which gets no chunks.
func TestFilterOfAnOldClient(t *testing.T) {
	e := newEngine(t, stream(chunkedHead, token, usageOnly, done))
	r := newRig(t, e.url(), withUsage)
	c := r.dial().send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(plainAsk), plainAsk)
	stepAll(e, 2)
	if got := c.rest(); !strings.HasSuffix(got, "\r\n\r\n"+token+done) {
		t.Errorf("the client got %q", got)
	}
}

// TestClientGoneWhileHeld holds that a client that leaves while an event is held back ends the exchange, whose record still
// tells what was removed.
func TestClientGoneWhileHeld(t *testing.T) {
	e := newEngine(t, func(p *peer, _ asked) bool {
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n", chunkedHead)
		p.chunk(token + usageOnly + "data: he")
		p.waitClosed()
		return false
	})
	r := newRig(t, e.url(), withUsage)
	c := r.dial().post(plainAsk)
	got := make([]byte, 0, 512)
	for !bytes.Contains(got, []byte(token)) {
		b := make([]byte, 64)
		n, err := c.br.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	c.Close()
	<-e.closed
	x := r.sink.next(t)
	removed := 0
	for _, v := range x.Interventions {
		if v.Kind == "response_removed" {
			removed++
		}
	}
	if x.End != exchange.EndClientGone || removed != 1 {
		t.Errorf("sealed as %s with %d removals", x.End, removed)
	}
}

// TestPanicOfAFilter holds that a filter that fails ends its exchange, not the proxy.
func TestPanicOfAFilter(t *testing.T) {
	e := newEngine(t, sse(1))
	r := newRig(t, e.url(), func(o *rigOptions) {
		o.server.Rewrite = func(*Call, exchange.Identity) Rewrite { return Rewrite{Answer: func() Filter { return broken{} }} }
	})
	if _, _, err := r.dial().post(`{}`).answer("POST"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client got %v", err)
	}
	if x := r.sink.next(t); x.Cause == nil || x.Cause.Code != "panic" {
		t.Errorf("sealed as %s %+v", x.End, x.Cause)
	}
}

// broken is a filter that panics.
type broken struct{}

func (broken) Feed([]byte) []byte             { panic("filter") }
func (broken) End(bool) []byte                { return nil }
func (broken) Notes() []exchange.Intervention { return nil }

// TestWhatWasHeldIsNotLostSilently holds that a client that does not take the end of a filtered body is told of, so that
// nothing passes for a proper end.
func TestWhatWasHeldIsNotLostSilently(t *testing.T) {
	f := &flight{filter: &hoarder{all: []byte("held")}}
	refuses := writerFunc(func([]byte) (int, error) { return 2, net.ErrClosed })
	if n, err := f.flush(refuses, true); n != 2 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("flushed %d, %v", n, err)
	}
	if n, err := f.flush(refuses, true); n != 0 || err != nil {
		t.Errorf("flushed %d again, %v", n, err)
	}
}
