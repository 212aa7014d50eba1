package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestServeKeepsPiecesAndPace holds head, pieces and instants of an answer, at several speeds. The request was sent at
// 3 us, the head came at 4 ms, and the pieces each 10 ms after. Field report RR-14.
func TestServeKeepsPiecesAndPace(t *testing.T) {
	pieces := []string{say("a"), say("b") + "data: {\"half", "\":1}\n\n", chatEnd}
	for _, speed := range []float64{1, 2, 0.5, 0} {
		t.Run(fmt.Sprint("speed ", speed), func(t *testing.T) {
			serving(t, newShelf(answering(question, chunkedHead, pieces...)), ServeOptions{Speed: speed}, func(t *testing.T, c *counter) {
				got := c.post(question)
				if got.head != chunkedHead || got.err != nil {
					t.Errorf("head %q, error %v", got.head, got.err)
				}
				if diff := cmp.Diff(pieces, got.pieces); diff != "" {
					t.Errorf("pieces (-want +got):\n%s", diff)
				}
				var want []time.Duration
				for i := range len(pieces) + 1 {
					at := time.Duration(0)
					if speed > 0 {
						at = time.Duration(float64(4*time.Millisecond+time.Duration(i)*10*time.Millisecond-3*time.Microsecond) / speed)
					}
					want = append(want, at)
				}
				if diff := cmp.Diff(want, got.times); diff != "" {
					t.Errorf("instants (-want +got):\n%s", diff)
				}
				r := c.report()
				if r.Answered != 1 || r.Misses != 0 || r.Err() != nil || r.LateMS.N != len(pieces)+1 || *r.LateMS.Max != 0 {
					t.Errorf("report %+v", r)
				}
			})
		})
	}
}

// TestServeJoinsWhatCameTogether holds that the head leaves with the first piece, and the end with the last, where the
// record read them together.
func TestServeJoinsWhatCameTogether(t *testing.T) {
	x := answering(question, chunkedHead, say("a"), chatEnd)
	x.Timeline.HeaderRead = exchange.MarkAt(x.Timeline.Reads[0].At)
	for _, apart := range []bool{false, true} {
		y := *x
		if apart { // the end came in a read of its own
			y.Timeline.Reads = append(slices.Clone(x.Timeline.Reads), exchange.Read{At: 60_000_000})
			y.Timeline.BodyEnd = exchange.MarkAt(60_000_000)
		}
		serving(t, newShelf(&y), ServeOptions{Speed: 1}, func(t *testing.T, c *counter) {
			c.post(question)
			want := 2
			if apart {
				want = 3
			}
			if n := c.report().LateMS.N; n != want {
				t.Errorf("apart %v: %d writes, want %d", apart, n, want)
			}
		})
	}
}

// TestServeEnds holds the kind of end of each kind of record.
func TestServeEnds(t *testing.T) {
	length := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100"
	closing := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"
	for _, tc := range []struct {
		name   string
		head   string
		pieces []string
		end    exchange.End
		edit   func(x *exchange.Exchange)
		broken bool // the client sees an early end
		closed bool // the connection is over behind it
	}{
		{name: "chunked, whole", head: chunkedHead, pieces: []string{say("a"), chatEnd}, end: exchange.EndEOF},
		{name: "chunked, says close", head: chunkedHead + "\r\nConnection: Close", pieces: []string{say("a")}, end: exchange.EndEOF, closed: true},
		{name: "chunked, short", head: chunkedHead, pieces: []string{say("a")}, end: exchange.EndShort, broken: true, closed: true},
		{name: "chunked, reset", head: chunkedHead, pieces: []string{say("a")}, end: exchange.EndReset, broken: true, closed: true},
		{name: "length, short", head: length, pieces: []string{"{"}, end: exchange.EndShort, broken: true, closed: true},
		{name: "length, whole", head: strings.Replace(length, "100", "2", 1), pieces: []string{"{", "}"}, end: exchange.EndEOF},
		{name: "until close", head: closing, pieces: []string{say("a"), chatEnd}, end: exchange.EndEOF, closed: true},
		{name: "client left at once", head: chunkedHead, end: exchange.EndClientGone, broken: true, closed: true},
		{name: "client left in mid-answer", head: chunkedHead, pieces: []string{say("a")}, end: exchange.EndClientGone, broken: true, closed: true},
		{name: "client left behind the end", head: chunkedHead, pieces: []string{say("a"), chatEnd}, end: exchange.EndClientGone},
		{name: "we timed out", head: chunkedHead, pieces: []string{say("a")}, end: exchange.EndTimeout, broken: true, closed: true},
		{name: "we were stopped", head: chunkedHead, pieces: []string{say("a")}, end: exchange.EndShutdown, broken: true, closed: true},
		{name: "no head", head: chunkedHead, end: exchange.EndShort, broken: true, closed: true, edit: func(x *exchange.Exchange) {
			x.Response.Status, x.Response.Head, x.Response.Headers = 0, nil, nil
			x.Timeline.HeaderRead = exchange.Mark{}
		}},
		{name: "half a head", head: chunkedHead, end: exchange.EndReset, broken: true, closed: true, edit: func(x *exchange.Exchange) {
			x.Response.Status, x.Response.Head, x.Response.Headers = 0, []byte("HTTP/1.1 20"), nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := answering(question, tc.head, tc.pieces...)
			x.End = tc.end
			if tc.edit != nil {
				tc.edit(x)
			}
			serving(t, newShelf(x), ServeOptions{Speed: 1}, func(t *testing.T, c *counter) {
				v := c.visit()
				defer v.conn.Close()
				got := v.ask("POST", chatPost(question))
				if (got.err != nil) != tc.broken || got.body != strings.Join(tc.pieces, "") {
					t.Errorf("error %v, body %q", got.err, got.body)
				}
				if !got.closed && v.ends() != tc.closed {
					t.Errorf("closed is not %v", tc.closed)
				}
			})
		})
	}
}

// TestServeRepeats holds the order of several answers to one request.
func TestServeRepeats(t *testing.T) {
	take := func(text string) *exchange.Exchange { return answering(question, chunkedHead, say(text), chatEnd) }
	other := answering(strings.Replace(question, "why", "what", 1), chunkedHead, say("other"), chatEnd)
	for _, strict := range []bool{false, true} {
		serving(t, newShelf(take("one"), other, take("two")), ServeOptions{Strict: strict}, func(t *testing.T, c *counter) {
			for i, want := range []string{"one", "two", "two", "two"} {
				got := c.post(question)
				if strict && i > 1 {
					if got.status != 404 || !strings.Contains(got.body, "was given once") {
						t.Errorf("asked %d times: %d %s", i+1, got.status, got.body)
					}
					continue
				}
				if !strings.Contains(got.body, want) {
					t.Errorf("answer %d is %q", i, got.body)
				}
			}
			r := c.report()
			want := ServeReport{Recorded: 3, Unserved: 1, LeftOut: map[string]int{}, Requests: 4, Answered: 4, Repeated: 2, Relax: []string{}}
			if strict {
				want.Answered, want.Repeated, want.Misses, want.Strict = 2, 0, 2, true
			}
			r.LateMS = exchange.Spread{}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if strict && c.misses[0].Why != MissExhausted {
				t.Errorf("misses %+v", c.misses)
			}
		})
	}
}

// TestServeMatchesTheRequestAndNotItsHeaders holds what may differ without a word: headers, the order of keys, white space,
// secrets, the framing of the request.
func TestServeMatchesTheRequestAndNotItsHeaders(t *testing.T) {
	x := answering(question, chunkedHead, say("a"), chatEnd)
	x.Request.Target = "/v1/chat/completions?b=2&a=1&api_key=sk-recorded-secret"
	x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "Authorization", Value: "Bearer sk-recorded-secret"})
	chunks := func(body string) string {
		return fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n", 5, body[:5], len(body)-5, body[5:])
	}
	target := "/v1/chat/completions?a=1&b=2&api_key=sk-another"
	spaced := "{ \"messages\": [ {\"content\":\"w\\u0068y\", \"role\":\"user\"} ],\n \"stream\":true, \"model\":\"m\" }"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(spaced)) // into memory
	_ = z.Close()
	for name, raw := range map[string]string{
		"as it was":      fmt.Sprintf("POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", target, len(question), question),
		"other headers":  fmt.Sprintf("POST %s HTTP/1.1\r\nAccept-Encoding: zstd, br\r\nX-Sim: status=500\r\nAuthorization: Bearer other\r\nContent-Length: %d\r\n\r\n%s", target, len(question), question),
		"other spelling": fmt.Sprintf("POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", target, len(spaced), spaced),
		"chunked":        fmt.Sprintf("POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%s", target, chunks(question)),
		"absolute form":  fmt.Sprintf("POST http://engine:1%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", target, len(question), question),
		"gzip":           fmt.Sprintf("POST %s HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", target, zipped.Len(), zipped.String()),
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, newShelf(x), ServeOptions{}, func(t *testing.T, c *counter) {
				v := c.visit()
				defer v.conn.Close()
				if got := v.ask("POST", raw); got.status != 200 || got.body != say("a")+chatEnd {
					t.Errorf("%d %s", got.status, got.body)
				}
				if v.ends() {
					t.Error("the connection ended")
				}
			})
		})
	}
}

// TestServeCodedRequest holds that a request that was recorded under a content coding is found by its bytes, and by what
// they say.
func TestServeCodedRequest(t *testing.T) {
	zip := func(level int) string {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write([]byte(question)) // into memory
		_ = z.Close()
		return b.String()
	}
	x := answering(zip(9), chunkedHead, say("a"), chatEnd)
	x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "Content-Encoding", Value: "gzip"})
	serving(t, newShelf(x), ServeOptions{}, func(t *testing.T, c *counter) {
		for i, got := range []gotten{c.post(zip(9), "Content-Encoding: gzip"), c.post(zip(1), "Content-Encoding: gzip"), c.post(question)} {
			if got.status != 200 {
				t.Errorf("%d: %d %s", i, got.status, got.body)
			}
		}
	})
}

// TestServeCodedAnswer holds that an answer under a content coding stays as it was.
func TestServeCodedAnswer(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(say("a") + chatEnd)) // into memory
	_ = z.Close()
	body := b.String()
	for coding, pieces := range map[string][]string{"gzip": {body[:20], body[20:]}, "br": {"\x8b\x00", "\x80x\x03"}, "zstd": {"\x28\xb5\x2f", "\xfd\x00"}} {
		serving(t, newShelf(answering(question, chunkedHead+"\r\nContent-Encoding: "+coding, pieces...)), ServeOptions{}, func(t *testing.T, c *counter) {
			if got := c.post(question, "Accept-Encoding: identity"); got.body != strings.Join(pieces, "") || got.header.Get("Content-Encoding") != coding {
				t.Errorf("%s: %q", coding, got.body)
			}
		})
	}
}

// TestServeMethodsAndVersions holds HEAD, answers that have no body, a client of HTTP/1.0, and one that waits to be told to
// send its body.
func TestServeMethodsAndVersions(t *testing.T) {
	get := answering("", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11", `{"data":[]}`)
	get.Request.Method, get.Request.Target = "GET", "/v1/models"
	head := answering("", "HTTP/1.1 200 OK\r\nContent-Length: 77")
	head.Request.Method, head.Request.Target = "HEAD", "/"
	bare := answering("", "HTTP/1.1 204 No Content\r\nX-A: 1")
	bare.Request.Method, bare.Request.Target = "DELETE", "/v1/files/1"
	early := answering(strings.Replace(question, "why", "early", 1), chunkedHead, "x")
	early.Response.Informational = []int{100, 103}
	early.Response.Trailers = []exchange.Header{{Name: "X-Check", Value: "1"}}
	stream := answering(question, chunkedHead, say("a"), chatEnd)
	serving(t, newShelf(get, head, bare, early, stream), ServeOptions{Speed: 1}, func(t *testing.T, c *counter) {
		v := c.visit()
		defer v.conn.Close()
		if got := v.ask("HEAD", "HEAD /v1/models HTTP/1.1\r\n\r\n"); got.status != 200 || got.header.Get("Content-Length") != "11" || got.body != "" {
			t.Errorf("HEAD of what was got: %+v", got)
		}
		if got := v.ask("GET", "GET /v1/models HTTP/1.1\r\n\r\n"); got.body != `{"data":[]}` {
			t.Errorf("GET: %+v", got)
		}
		if got := v.ask("HEAD", "HEAD / HTTP/1.1\r\n\r\n"); got.header.Get("Content-Length") != "77" {
			t.Errorf("recorded HEAD: %+v", got)
		}
		if got := v.ask("DELETE", "DELETE /v1/files/1 HTTP/1.1\r\n\r\n"); got.status != 204 || got.header.Get("X-A") != "1" {
			t.Errorf("DELETE: %+v", got)
		}
		if got := v.ask("POST", chatPost(question, "Expect: 100-continue")); got.status != 200 && got.status != 100 {
			t.Errorf("expects 100: %+v", got)
		}
		old := c.visit()
		defer old.conn.Close()
		got := old.ask("POST", strings.Replace(chatPost(question), "HTTP/1.1", "HTTP/1.0", 1))
		if got.body != say("a")+chatEnd || strings.Contains(got.head, "chunked") || !old.ends() {
			t.Errorf("HTTP/1.0: %+v", got)
		}
		next := c.visit()
		defer next.conn.Close()
		if got := next.ask("POST", chatPost(strings.Replace(question, "why", "early", 1))); got.status != 103 {
			t.Errorf("early hints: %+v", got)
		}
		if r := c.report(); r.Misses != 0 {
			t.Errorf("%+v", r)
		}
	})
}
