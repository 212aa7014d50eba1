package proxy

import (
	"bytes"
	"fmt"

	"math/rand/v2"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestStreamPassesAndIsRecorded(t *testing.T) {
	e := newEngine(t, sse(3))
	r := newRig(t, e.url())
	c := r.dial()
	want := "data: {\"i\":0}\n\ndata: {\"i\":1}\n\ndata: {\"i\":2}\n\ndata: [DONE]\n\n"
	for range 3 { // on one connection on each side
		if got := c.post(`{"stream":true}`).ok(200); got != want {
			t.Fatalf("client got %q", got)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if got := string(x.Response.Body.Bytes()); got != want {
			t.Errorf("record holds %q", got)
		}
		if x.End != exchange.EndEOF || x.Cause != nil || x.State != exchange.StateStored {
			t.Errorf("sealed as %s %+v %s", x.End, x.Cause, x.State)
		}
		if got := string(x.Request.Body.Bytes()); got != `{"stream":true}` || x.Request.Target != "/v1/chat/completions" {
			t.Errorf("request recorded as %q to %s", got, x.Request.Target)
		}
		for name, m := range map[string]exchange.Mark{
			"accepted": x.Timeline.Accepted, "dialed": x.Timeline.Dialed, "header": x.Timeline.HeaderRead,
			"first": x.Timeline.FirstRead, "end": x.Timeline.BodyEnd, "client": x.Timeline.ClientDone,
		} {
			if !m.Happened() {
				t.Errorf("mark %s never happened", name)
			}
		}
	}
	if n := e.open.Load(); n != 1 {
		t.Errorf("%d connections to the engine, want 1 that is reused", n)
	}
}

// TestForwardedHead holds the request head that the engine sees, byte for byte.
func TestForwardedHead(t *testing.T) {
	cases := []struct{ name, prefix, sent, want string }{
		{"order, case and duplicates are kept", "",
			"POST /a//b/../c%2Fd?x=%20y HTTP/1.1\r\nx-lower: 1\r\nUser-Agent: u/1\r\nHost: me\r\nX-Dup: a\r\nX-Dup: b\r\ncontent-type: t/x\r\nContent-Length: 2\r\nX-END: \r\n\r\nhi",
			"POST /a//b/../c%2Fd?x=%20y HTTP/1.1\r\nx-lower: 1\r\nUser-Agent: u/1\r\nHost: ENGINE\r\nX-Dup: a\r\nX-Dup: b\r\ncontent-type: t/x\r\nContent-Length: 2\r\nX-END: \r\n\r\n"},
		{"hop by hop and nominated are dropped", "",
			"GET / HTTP/1.1\r\nHost: me\r\nConnection: x-foo, keep-alive\r\nX-Foo: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nX-Bar: 2\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: ENGINE\r\nX-Bar: 2\r\n\r\n"},
		{"chunks become a length, trailers are dropped", "",
			"POST /x HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nhi\r\n4\r\n you\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n",
			"POST /x HTTP/1.1\r\nHost: ENGINE\r\nContent-Length: 6\r\n\r\n"},
		{"absolute form and prefix", "/base/",
			"GET http://other:99/v1/models?a=b HTTP/1.1\r\nHost: other:99\r\n\r\n",
			"GET /base/v1/models?a=b HTTP/1.1\r\nHost: ENGINE\r\n\r\n"},
		{"a version that both have is there once", "/gateway/v1",
			"POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: me\r\nContent-Length: 0\r\n\r\n",
			"POST /gateway/v1/chat/completions?x=1 HTTP/1.1\r\nHost: ENGINE\r\nContent-Length: 0\r\n\r\n"},
		{"folded lines are joined", "", "GET / HTTP/1.1\r\nHost: me\r\nX-A: 1\r\n  2\r\n\r\n", "GET / HTTP/1.1\r\nHost: ENGINE\r\nX-A: 1 2\r\n\r\n"},
		{"coding is asked off where time is measured", "",
			"POST /v1/chat/completions HTTP/1.1\r\nHost: me\r\nAccept-Encoding: gzip, br\r\nContent-Length: 0\r\n\r\n",
			"POST /v1/chat/completions HTTP/1.1\r\nHost: ENGINE\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n"},
		{"and kept elsewhere", "", "GET /v1/models HTTP/1.1\r\nHost: me\r\nAccept-Encoding: gzip\r\n\r\n", "GET /v1/models HTTP/1.1\r\nHost: ENGINE\r\nAccept-Encoding: gzip\r\n\r\n"},
		{"HTTP/1.0 gets a host", "", "GET / HTTP/1.0\r\nX-A: 1\r\n\r\n", "GET / HTTP/1.1\r\nX-A: 1\r\nHost: ENGINE\r\n\r\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := newEngine(t, jsonAnswer("{}"))
			r := newRig(t, e.url()+tc.prefix)
			r.dial().send("%s", tc.sent).ok(200)
			want := strings.ReplaceAll(tc.want, "ENGINE", e.Addr().String())
			if diff := cmp.Diff(want, e.last(t).Head); diff != "" {
				t.Errorf("head at the engine (-want +got):\n%s", diff)
			}
			x := r.sink.next(t)
			sentHead := tc.sent[:strings.Index(tc.sent, "\r\n\r\n")+4]
			if got := string(x.Request.Head); got != sentHead && !strings.Contains(tc.sent, "Authorization") {
				t.Errorf("recorded head %q, sent %q", got, sentHead)
			}
			checkInterventions(t, x, want)
		})
	}
}

// checkInterventions holds that each header of the client that the engine did not get as it was is accounted for.
func checkInterventions(t *testing.T, x *exchange.Exchange, engineHead string) {
	t.Helper()
	for _, h := range x.Request.Headers {
		noted := false
		for _, v := range x.Interventions {
			noted = noted || v.Where == exchange.SideEngine && strings.EqualFold(v.Name, h.Name)
		}
		if kept := strings.Contains(engineHead, h.Name+": "+h.Value+"\r\n"); kept == noted {
			t.Errorf("header %s: kept=%v but intervention=%v in %+v", h.Name, kept, noted, x.Interventions)
		}
	}
}

func TestMultipartBodyIsUntouched(t *testing.T) {
	e := newEngine(t, jsonAnswer("{}"))
	r := newRig(t, e.url())
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "a.wav")
	audio := make([]byte, 100_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range audio {
		audio[i] = byte(rng.Uint32())
	}
	_, _ = part.Write(audio)
	_ = w.Close()
	c := r.dial()
	c.send("POST /v1/audio/transcriptions HTTP/1.1\r\nHost: me\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", w.FormDataContentType(), b.Len())
	_, _ = c.Write(b.Bytes())
	c.ok(200)
	if e.last(t).Body != b.String() {
		t.Error("the engine got another body than was sent")
	}
	if got := r.sink.next(t).Request.Body.Bytes(); !bytes.Equal(got, b.Bytes()) {
		t.Error("the record holds another body than was sent")
	}
}

// TestResponses holds what the client sees of unusual responses, byte for byte.
func TestResponses(t *testing.T) {
	cases := []struct{ name, method, engine, want string }{
		{"date, server and reason are the engine's", "GET", "HTTP/1.1 200 Fine By Me\r\nDate: then\r\nServer: mine\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 Fine By Me\r\nServer: mine\r\nContent-Length: 2\r\nDate: then\r\nX-A: 1\r\nX-A: 2\r\n\r\nok"},
		{"nothing is invented", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"no content", "GET", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"},
		{"not modified with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: x\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: x\r\n\r\n"},
		{"head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 77\r\nContent-Type: a/b\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 77\r\n\r\n"},
		{"empty body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{"informational heads are swallowed", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"hop by hop and nominated", "GET", "HTTP/1.1 200 OK\r\nConnection: X-Foo\r\nX-Foo: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"announced trailers are passed", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"},
		{"bare line feeds", "GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"coded bytes pass", "GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x00", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x00"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := newEngine(t, func(p *peer, a asked) bool { p.send("%s", tc.engine); return true })
			r := newRig(t, e.url())
			c := r.dial().send("%s / HTTP/1.1\r\nHost: me\r\n\r\n%s / HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n", tc.method, tc.method)
			got := c.rest()
			closing := strings.Replace(tc.want, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
			if got != tc.want+closing && !strings.HasPrefix(got, tc.want+tc.want[:12]) {
				t.Errorf("client got\n%q, want twice\n%q", got, tc.want)
			}
			x := r.sink.next(t)
			checkRecord(t, x)
			if x.End != exchange.EndEOF || e.open.Load() != 1 {
				t.Errorf("ended as %s over %d connections", x.End, e.open.Load())
			}
		})
	}
}

func TestInformationalAndTrailersAreRecorded(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool {
		p.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n")
		return true
	})
	r := newRig(t, e.url())
	r.dial().post("{}").ok(200)
	x := r.sink.next(t)
	if diff := cmp.Diff([]int{103}, x.Response.Informational); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]exchange.Header{{Name: "X-T", Value: "1"}, {Name: "X-U", Value: "2"}}, x.Response.Trailers); diff != "" {
		t.Error(diff)
	}
	var kinds []string
	for _, v := range x.Interventions {
		kinds = append(kinds, fmt.Sprintf("%s %s %s %s", v.Kind, v.Where, v.Name, v.Reason))
	}
	want := []string{"header_changed engine Host host", "response_removed client status informational", "header_removed client X-T trailer", "header_removed client X-U trailer"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

// TestEndsByClose holds bodies that only the connection's end delimits, for clients that know chunks and for those
// that do not.
func TestEndsByClose(t *testing.T) {
	for _, proto := range []string{"1.0", "1.1"} {
		e := newEngine(t, func(p *peer, a asked) bool {
			p.send("HTTP/%s 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", proto)
			p.send("data: 2\n\n")
			return false
		})
		r := newRig(t, e.url())
		c := r.dial()
		for range 2 {
			if got := c.post("{}").ok(200); got != "data: 1\n\ndata: 2\n\n" {
				t.Errorf("HTTP/%s engine: client got %q", proto, got)
			}
		}
		old := r.dial().send("POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
		if got := old.rest(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\ndata: 1\n\ndata: 2\n\n") {
			t.Errorf("HTTP/1.0 client got %q", got)
		}
		for range 3 {
			x := r.sink.next(t)
			checkRecord(t, x)
			if x.End != exchange.EndEOF {
				t.Errorf("ended as %s", x.End)
			}
		}
	}
}

func TestOldClients(t *testing.T) {
	e := newEngine(t, sse(2))
	r := newRig(t, e.url())
	got := r.dial().send("POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}").rest()
	_, body, _ := strings.Cut(got, "\r\n\r\n")
	if body != "data: {\"i\":0}\n\ndata: {\"i\":1}\n\ndata: [DONE]\n\n" || strings.Contains(got, "chunked") {
		t.Errorf("HTTP/1.0 client of a stream got %q", got)
	}
	e2 := newEngine(t, jsonAnswer(`{"a":1}`))
	r2 := newRig(t, e2.url())
	got = r2.dial().send("GET / HTTP/1.0\r\n\r\n").rest()
	if !strings.Contains(got, "Content-Length: 7\r\n") || !strings.HasSuffix(got, `{"a":1}`) {
		t.Errorf("HTTP/1.0 client of an answer with a length got %q", got)
	}
}

func TestExpectContinue(t *testing.T) {
	e := newEngine(t, jsonAnswer("{}"))
	r := newRig(t, e.url())
	c := r.dial().send("POST / HTTP/1.1\r\nHost: me\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if got := c.head(); got != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("got %q", got)
	}
	c.send("hi").ok(200)
	if a := e.last(t); strings.Contains(a.Head, "Expect") || a.Body != "hi" {
		t.Errorf("engine got %+v", a)
	}
}

// TestPipelinedRequests holds that several requests in one write are answered in order.
func TestPipelinedRequests(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool { return jsonAnswer(a.Body)(p, a) })
	r := newRig(t, e.url())
	c := r.dial()
	var all strings.Builder
	for i := range 5 {
		fmt.Fprintf(&all, "POST / HTTP/1.1\r\nHost: me\r\nContent-Length: 1\r\n\r\n%d", i)
	}
	c.send("%s", all.String())
	for i := range 5 {
		if got := c.ok(200); got != fmt.Sprint(i) {
			t.Errorf("answer %d is %q", i, got)
		}
	}
}
