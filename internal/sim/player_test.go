package sim

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
	"github.com/google/go-cmp/cmp"
)

// scriptOf plays a capture in its own pieces.
func scriptOf(t *testing.T, c wiretest.Capture, speed float64) *Script {
	t.Helper()
	ends := map[string]Ending{"complete": EndKeep, "eof": EndTruncate, "client-abort": EndHang}
	end, ok := ends[c.Facts.End]
	if !ok {
		t.Fatalf("%s ended %q", c.ID(), c.Facts.End)
	}
	var recvs []Recv
	for _, r := range c.Recvs {
		recvs = append(recvs, Recv{At: time.Duration(r.At), Size: r.Size})
	}
	s, err := RawScript(c.Raw, recvs, end, speed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryCapturePlaysItsBytes holds the bytes, the pieces and the times of every capture.
func TestEveryCapturePlaysItsBytes(t *testing.T) {
	for _, c := range wiretest.Captures(t) {
		t.Run(c.ID(), func(t *testing.T) {
			script := scriptOf(t, c, 1)
			var got []byte
			var r Record
			synctest.Test(t, func(t *testing.T) {
				ln := NewPipeListener()
				s := serveOn(t, Config{Handler: Always(script)}, ln)
				conn, err := ln.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, c.Method+" "+c.Path+" HTTP/1.1\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				got = make([]byte, len(c.Raw))
				if _, err := io.ReadFull(conn, got); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				conn.Close()
				r = only(t, s)
			})
			if !bytes.Equal(got, c.Raw) || !bytes.Equal(r.Sent, c.Raw) {
				t.Errorf("played %q", got)
			}
			if len(r.Writes) != len(c.Recvs) {
				t.Fatalf("%d writes, want %d", len(r.Writes), len(c.Recvs))
			}
			body := 0
			for i, w := range r.Writes {
				if w.At != c.Recvs[i].At || w.Size != c.Recvs[i].Size {
					t.Errorf("write %d: %+v, want %+v", i, w, c.Recvs[i])
				}
				body = w.Body
			}
			if body != len(c.Body) && c.Method != "HEAD" {
				t.Errorf("%d body bytes counted, want %d", body, len(c.Body))
			}
		})
	}
}

func TestCaptureLog(t *testing.T) {
	const raw = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab"
	const log = "# index, microseconds; end=complete total_us=9\n0\t10\t38\t0\n1\t30\t2\t38\n"
	s, err := CaptureScript([]byte(raw), []byte(log), 2)
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{Framing: FramingRaw, End: EndClose, Steps: []Step{
		{At: 5 * time.Microsecond, Data: []byte(raw[:38])}, {At: 15 * time.Microsecond, Data: []byte("ab")},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	if s, err := CaptureScript([]byte(raw), []byte(log), 0); err != nil || s.Steps[1].At != 0 {
		t.Errorf("speed 0: %+v %v", s, err)
	}
	for name, bad := range map[string]string{
		"no end":      strings.Replace(log, "end=complete", "", 1),
		"too long":    strings.Replace(log, "\t2\t", "\t3\t", 1),
		"too short":   strings.Replace(log, "\t2\t", "\t1\t", 1),
		"negative":    strings.Replace(log, "\t2\t", "\t-2\t", 1),
		"offset":      strings.Replace(log, "\t38\n", "\t37\n", 1),
		"fields":      strings.Replace(log, "0\t10\t", "0\t", 1),
		"not numbers": strings.Replace(log, "0\t10", "0\tx", 1),
	} {
		if _, err := CaptureScript([]byte(raw), []byte(bad), 1); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for end, want := range map[string]Ending{"eof": EndTruncate, "client-abort": EndHang} {
		if s, err := CaptureScript(nil, []byte("# end="+end), 1); err != nil || s.End != want {
			t.Errorf("%s: %+v %v", end, s, err)
		}
	}
}

func TestBodyScriptIsByteExact(t *testing.T) {
	for _, v := range wiretest.Vectors(t) {
		for _, framing := range []Framing{FramingChunked, FramingLength, FramingClose} {
			_, addr := start(t, Config{Handler: Always(BodyScript(v.Status, v.ContentType, framing, v.Body, 7))})
			resp, body := fetch(t, addr, post(v.Path(), "{}"))
			if resp.StatusCode != v.Status || body != string(v.Body) || resp.Header.Get("Content-Type") != v.ContentType {
				t.Errorf("%s as %s: %d %q", v.File, framing, resp.StatusCode, body)
			}
		}
	}
}

// frames.json holds answers from reports from the field: frames with the instants at which they leave.
//
//go:embed testdata/frames.json
var framesJSON []byte

func TestFieldReportsArePlayable(t *testing.T) {
	var lists []json.RawMessage
	if err := json.Unmarshal(framesJSON, &lists); err != nil || len(lists) == 0 {
		t.Fatalf("%d lists, %v", len(lists), err)
	}
	for _, raw := range lists {
		var named struct{ ID string }
		if err := json.Unmarshal(raw, &named); err != nil {
			t.Fatal(err)
		}
		t.Run(named.ID, func(t *testing.T) { playFrames(t, raw) })
	}
}

// playFrames plays one list on a fake clock, twice on one connection, and holds bytes and instants.
func playFrames(t *testing.T, raw []byte) {
	l, err := ParseFrames(raw)
	if err != nil {
		t.Fatal(err)
	}
	handler := func(r Request) *Script {
		s, err := l.Script(r.Seq)
		if err != nil {
			t.Error(err)
		}
		return s
	}
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := serveOn(t, Config{Handler: handler}, ln)
		c, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		br := bufio.NewReader(c)
		for n := range 2 {
			resp, body := answerOf(t, c, br, chat())
			want, at := wantFrames(l, n+1)
			if resp.StatusCode != l.Response.Status || body != want {
				t.Fatalf("status %d, body %q, want %q", resp.StatusCode, body, want)
			}
			r := await(t, s, Ended(n+1)).Requests[n]
			var got []float64
			for _, w := range r.Writes[1 : len(at)+1] { // the first write is the head
				got = append(got, float64(w.At)/1e6)
			}
			if d := cmp.Diff(at, got); d != "" {
				t.Error(d)
			}
			if end := float64(r.End) / 1e6; end != max(l.End.TMS, at[len(at)-1]) {
				t.Errorf("end at %v", end)
			}
		}
	})
}

// wantFrames expands a list by hand: the body and the instant of each frame.
func wantFrames(l FrameList, request int) (body string, at []float64) {
	for _, f := range l.Frames {
		for i := range max(f.N, 1) {
			data := strings.ReplaceAll(f.Data, "{i}", strconv.Itoa(i))
			body += strings.ReplaceAll(data, "{request}", strconv.Itoa(request))
			at = append(at, f.TMS+float64(i)*f.EveryMS)
		}
	}
	return body, at
}

func TestFrameErrorsAndEnds(t *testing.T) {
	if _, err := ParseFrames([]byte("[")); err == nil {
		t.Error("accepted what is no JSON")
	}
	for _, bad := range []string{`{"end":{"how":"explode"}}`, `{"response":{"framing":"raw"}}`} {
		l, err := ParseFrames([]byte(bad))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Script(1); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
	for how, want := range map[string]Ending{"": EndKeep, "close": EndClose, "truncate": EndTruncate, "reset": EndReset, "hang": EndHang} {
		l := FrameList{Frames: []Frame{{Data: "x", Token: true}}, End: FrameEnd{How: how}}
		s, err := l.Script(1)
		if err != nil || s.End != want || s.Framing != FramingChunked || s.Steps[0].Tokens != 1 {
			t.Errorf("%q: %+v %v", how, s, err)
		}
	}
}

// TestPlayedScriptTakesFault holds that the options of a request reach a played answer too.
func TestPlayedScriptTakesFault(t *testing.T) {
	script := BodyScript(200, "text/event-stream", FramingChunked, []byte("data: 1\n\ndata: 2\n\n"), 9)
	_, addr := start(t, Config{Handler: func(r Request) *Script {
		if r.Path() == "/health" {
			return nil // the engine answers
		}
		return script
	}})
	got, err := roundTrip(t, addr, chat("X-Sim: fault=no_last_chunk@1; split=5; merge=2"))
	if err != nil || !strings.HasSuffix(got, "\r\n\r\n9\r\ndata: 1\n\n\r\n") {
		t.Errorf("%q %v", got, err)
	}
	if _, whole := fetch(t, addr, chat()); whole != "data: 1\n\ndata: 2\n\n" {
		t.Errorf("the fault stuck: %q", whole)
	}
	if resp, _ := fetch(t, addr, "GET /health HTTP/1.1\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("health: %d", resp.StatusCode)
	}
}

func TestAnswersWithoutBody(t *testing.T) {
	_, addr := start(t, Config{Handler: func(r Request) *Script {
		if r.Method == "HEAD" {
			return nil
		}
		status, err := strconv.Atoi(r.Path()[1:])
		if err != nil {
			return nil
		}
		return &Script{Status: status, Reason: "Odd", RawHead: nil, Steps: []Step{{Data: []byte("never sent")}}}
	}})
	for raw, head := range map[string]string{
		"HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n": "HTTP/1.1 200 OK\r\nServer: benchproxy-sim\r\nContent-Type: application/json\r\nContent-Length: 15\r\nConnection: close\r\n\r\n",
		"GET /204 HTTP/1.1\r\nConnection: close\r\n\r\n":     "HTTP/1.1 204 Odd\r\nConnection: close\r\n\r\n",
		"GET /304 HTTP/1.1\r\nConnection: close\r\n\r\n":     "HTTP/1.1 304 Odd\r\nConnection: close\r\n\r\n",
	} {
		if got, err := roundTrip(t, addr, raw); err != nil || got != head {
			t.Errorf("%q: %q %v", raw, got, err)
		}
	}
	s := &Script{RawHead: []byte("HTTP/1.1 200 \r\n\r\n"), Framing: FramingClose, Steps: []Step{{Data: []byte("x")}}}
	_, addr = start(t, Config{Handler: Always(s)})
	if got, err := roundTrip(t, addr, chat()); err != nil || got != "HTTP/1.1 200 \r\n\r\nx" {
		t.Errorf("raw head: %q %v", got, err)
	}
	for _, status := range []int{100, 102, 200, 304, 404, 429, 500, 503} {
		if text := reason(status); text == "" || text == http.StatusText(0) {
			t.Error(fmt.Sprint("no phrase for ", status))
		}
	}
}
