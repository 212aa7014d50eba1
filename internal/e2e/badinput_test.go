package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

// bystander is a stream that runs while something else goes wrong.
type bystander struct {
	conn *client
	name string
}

const slowStream = "X-Sim: decode=50; answer=20"

// newBystander starts a stream of 400 ms.
func newBystander(t testing.TB, addr, name string) *bystander {
	t.Helper()
	return &bystander{dial(t, addr).send(chat(name, slowStream)), name}
}

// unharmed holds that the stream came whole to client and record.
func (b *bystander) unharmed(t *testing.T, r *rig) {
	t.Helper()
	a := b.conn.answer("POST", 0)
	b.conn.Close()
	x := r.stored(t, b.name, 0)
	if a.StatusCode != 200 || a.err != nil || x.row.Outcome != exchange.OutcomeComplete || x.State != exchange.StateStored {
		t.Errorf("the stream beside it: status %d, %v; record %s, %s", a.StatusCode, a.err, x.row.Outcome, x.State)
	}
	sameBytes(t, "the record of the stream beside it", x.Response.Body.Bytes(), a.body)
	if !bytes.HasSuffix(a.body, []byte("data: [DONE]\n\n")) {
		t.Errorf("the stream beside it ends with %.60q", a.body[max(0, len(a.body)-60):])
	}
}

// TestMalformedRequestsHarmNoOther sends what is not HTTP, and too much of it: the client gets an error object, the session
// counts it, and no other exchange notices.
func TestMalformedRequestsHarmNoOther(t *testing.T) {
	r := newRig(t, func(o *rigOptions) { o.server.MaxRequest, o.server.MaxHead = 1<<20, 8<<10 })
	const post = "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\n"
	beside := newBystander(t, r.addr, "beside")
	malformed, large := int64(0), int64(0)
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"no request line":     {"GARBAGE\r\n\r\n", 400},
		"binary":              {"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400},
		"header without name": {post + "no colon here\r\n\r\n", 400},
		"length of letters":   {post + "Content-Length: ten\r\n\r\n", 400},
		"negative length":     {post + "Content-Length: -1\r\n\r\n", 400},
		"chunk size":          {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"head too large":      {post + "X-Long: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", 431},
		"body too large":      {post + "Content-Length: 2097152\r\n\r\n", 413},
		"chunks too large":    {post + "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("a", 2<<20), 413},
	} {
		conn := dial(t, r.addr)
		go func() { _, _ = conn.Write([]byte(c.raw)) }() // the proxy may answer and close before it took all
		a := conn.answer("POST", 0)
		conn.Close()
		var doc struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal(a.body, &doc); a.StatusCode != c.status || err != nil || doc.Error.Message == "" || doc.Error.Code == "" {
			t.Errorf("%s: status %d, want %d: %s", name, a.StatusCode, c.status, a.body)
		}
		if c.status == 413 {
			large++
		} else {
			malformed++
		}
	}
	if st := r.session.Stats(); st.RefusedMalformed != malformed || st.RefusedTooLarge != large || st.Accepted != 1 {
		t.Errorf("counted %+v, want %d malformed and %d too large", st, malformed, large)
	}
	beside.unharmed(t, r)
	r.do(t, chat("after", "X-Sim: answer=3")).whole(t, 200, r.stored(t, "after", 0).Response.Body.Bytes())
}

// TestUnknownPathsAreForwarded: any method and any target go to the engine as they are, and into the record.
func TestUnknownPathsAreForwarded(t *testing.T) {
	r := newRig(t, plain(`{"odd":true}`))
	for i, q := range []request{
		{method: "PROPFIND", target: "/strange//path/../x?a=%zz;b&&c=1#f"}, {method: "GET", target: "/"},
		{method: "DELETE", target: "/v1/models/m%2Fn"}, {method: "OPTIONS", target: "*"}, {method: "POST", target: "/v1/%F0%9F%92%A9", body: "x"},
	} {
		q.name = fmt.Sprint("path", i)
		r.do(t, q).whole(t, 200, []byte(`{"odd":true}`))
		engine, x := r.truth(t, q.name), r.stored(t, q.name, 0)
		if engine.Target != q.target || engine.Method != q.method || x.Request.Target != q.target || x.Request.Method != q.method {
			t.Errorf("sent %s %s, the engine got %s %s, recorded %s %s", q.method, q.target, engine.Method, engine.Target, x.Request.Method, x.Request.Target)
		}
		if x.row.Outcome != exchange.OutcomeComplete || x.row.Dialect != "" {
			t.Errorf("%s: outcome %s, dialect %q", q.target, x.row.Outcome, x.row.Dialect)
		}
	}
}

// faultEnd is what becomes of an exchange whose engine misbehaves after three events.
type faultEnd struct {
	status  int  // at the client
	early   bool // the client's body ends early
	end     exchange.End
	outcome exchange.Outcome
	cause   string // code of the record's cause, "" for none
	errors  int    // parse errors
}

var faultEnds = map[sim.FaultKind]faultEnd{
	sim.FaultError:         {200, false, exchange.EndEOF, exchange.OutcomeStreamError, "", 0},
	sim.FaultErrorDone:     {200, false, exchange.EndEOF, exchange.OutcomeStreamError, "", 0},
	sim.FaultCleanCut:      {200, false, exchange.EndEOF, exchange.OutcomeUpstreamTruncated, "", 0},
	sim.FaultNoLastChunk:   {200, true, exchange.EndShort, exchange.OutcomeUpstreamTruncated, "eof", 0},
	sim.FaultTruncateEvent: {200, true, exchange.EndShort, exchange.OutcomeUpstreamTruncated, "eof", 0},
	sim.FaultTruncateChunk: {200, true, exchange.EndShort, exchange.OutcomeUpstreamTruncated, "eof", 0},
	sim.FaultReset:         {200, true, exchange.EndReset, exchange.OutcomeUpstreamTruncated, "reset", 0},
	sim.FaultStall:         {200, true, exchange.EndTimeout, exchange.OutcomeTimeout, "idle_timeout", 0},
	sim.FaultGarbage:       {200, false, exchange.EndEOF, exchange.OutcomeComplete, "", 1},
	sim.FaultGarbageBody:   {200, false, exchange.EndEOF, exchange.OutcomeUpstreamTruncated, "", 0},
	sim.FaultBadChunk:      {200, true, exchange.EndShort, exchange.OutcomeUpstreamTruncated, "malformed", 0},
	sim.FaultBadHead:       {502, false, exchange.EndShort, exchange.OutcomeUpstreamError, "malformed", 0},
	sim.FaultCrashConn:     {502, false, exchange.EndShort, exchange.OutcomeUpstreamError, "eof", 0},
	sim.FaultCrash:         {502, false, exchange.EndShort, exchange.OutcomeUpstreamError, "eof", 0},
}

// TestEveryEngineFault sends each misbehaviour of the engine through: what the client sees, how the record ends and why;
// nothing hangs, the engine is asked once, and a stream beside it is unharmed.
func TestEveryEngineFault(t *testing.T) {
	t.Parallel()
	idle := proxy.UpstreamOptions{Name: "engine", IdleTimeout: 2 * time.Second}
	r := newRig(t, func(o *rigOptions) { o.upstream = idle })
	doomed, url := r.newEngine(sim.Config{})
	crashing := r.front(url, idle, proxy.ServerOptions{})
	for _, kind := range sim.FaultKinds() {
		want, ok := faultEnds[kind]
		if !ok {
			t.Errorf("nothing is known of the fault %s", kind)
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			addr, engine := r.addr, r.engine
			if kind == sim.FaultCrash { // takes all streams of its engine down
				addr, engine = crashing, doomed
			}
			beside := newBystander(t, r.addr, "beside "+string(kind))
			conn := dial(t, addr)
			a := conn.send(chat(string(kind), fmt.Sprintf("X-Sim: decode=100; answer=8; fault=%s@3", kind))).answer("POST", 0)
			conn.Close()
			checkFault(t, r.stored(t, string(kind), 0), a, want)
			asked := slices.DeleteFunc(engine.Records(), func(q sim.Record) bool { return caseOf(q.Request) != string(kind) })
			if len(asked) != 1 {
				t.Errorf("the engine was asked %d times", len(asked))
			}
			beside.unharmed(t, r)
		})
	}
}

// checkFault compares what client and record have of a misbehaviour.
func checkFault(t *testing.T, x record, a answer, want faultEnd) {
	t.Helper()
	code := ""
	if x.Cause != nil {
		code = x.Cause.Code
	}
	got := faultEnd{a.StatusCode, a.err != nil, x.End, x.row.Outcome, code, x.row.ParseErrors}
	if got.end == exchange.EndReset && want.status == 502 {
		got.end, got.cause = exchange.EndShort, "eof" // a dying server may reset
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want.status != 200 {
		if !bytes.Contains(a.body, []byte(`"error"`)) || !bytes.Contains(a.body, []byte("engine")) {
			t.Errorf("the client got %s", a.body)
		}
		return
	}
	sameBytes(t, "the recorded body", x.Response.Body.Bytes(), a.body)
	if len(a.body) == 0 {
		t.Error("nothing of the answer came")
	}
}

// TestEngineHeadsThatAreNoHTTP: a response whose head cannot be trusted becomes a 502 with a record that keeps the cause;
// bytes behind the end of a body reach nobody, and the next request is answered on a connection of its own.
func TestEngineHeadsThatAreNoHTTP(t *testing.T) {
	raw := map[string]string{
		"two lengths":      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
		"negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
		"length of words":  "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}",
		"unknown coding":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\n{}",
		"no head":          "{}",
		"endless head":     "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
		"status of a word": "HTTP/1.1 OK\r\n\r\n",
		"bytes behind":     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforeign",
	}
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = func(q sim.Request) *sim.Script {
			text, ok := raw[caseOf(q)]
			if !ok {
				return sim.BodyScript(200, "application/json", sim.FramingLength, []byte(`{"ok":1}`), 0)
			}
			end := sim.EndTruncate
			if caseOf(q) == "bytes behind" {
				end = sim.EndKeep
			}
			return &sim.Script{Framing: sim.FramingRaw, Steps: []sim.Step{{Data: []byte(text)}}, End: end}
		}
	})
	for name := range raw {
		a, x := r.do(t, chat(name)), r.stored(t, name, 0)
		outcome := exchange.OutcomeUpstreamError
		if x.Response.Status == 200 { // a head came, and the body behind it has no known end
			outcome = exchange.OutcomeUpstreamTruncated
		}
		if name == "bytes behind" {
			a.whole(t, 200, []byte("{}"))
			sameBytes(t, "the recorded body", x.Response.Body.Bytes(), []byte("{}"))
		} else if a.StatusCode != 502 || x.Cause == nil || x.Cause.Side != exchange.SideEngine || x.row.Outcome != outcome {
			t.Errorf("%s: the client got %d, the record is %s, %+v, %s", name, a.StatusCode, x.End, x.Cause, x.row.Outcome)
		}
		r.do(t, chat("after "+name)).whole(t, 200, []byte(`{"ok":1}`))
	}
}
