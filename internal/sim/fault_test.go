package sim

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaults holds what a client sees of every misbehavior, as raw bytes after the head. A chunked answer of the
// request is: role, four tokens, finish, [DONE].
func TestFaults(t *testing.T) {
	_, addr := start(t, Config{})
	_, whole := fetch(t, addr, chat())
	var pieces []string
	for _, e := range events(whole) {
		pieces = append(pieces, "data: "+e+"\n\n")
	}
	framed := func(n int) (s string) {
		for _, p := range pieces[:n] {
			s += string(chunk([]byte(p)))
		}
		return s
	}
	framedText := func(s string) string { return string(chunk([]byte(s))) }
	errorText := "data: " + string(errorObject(500, "server_error", "the scripted engine lost its model")) + "\n\n"
	const last = "0\r\n\r\n"
	third := framedText(pieces[2])
	for kind, want := range map[FaultKind]string{
		FaultError:         framed(2) + framedText(errorText) + last,
		FaultErrorDone:     framed(2) + framedText(errorText) + framedText("data: [DONE]\n\n") + last,
		FaultCleanCut:      framed(2) + last,
		FaultNoLastChunk:   framed(2),
		FaultTruncateEvent: framed(2) + framedText(pieces[2][:len(pieces[2])/2]),
		FaultTruncateChunk: framed(2) + third[:len(third)/2],
		FaultReset:         framed(2),
		FaultGarbage:       framed(2) + framedText("data: {\"not\": json,,\n\n") + strings.TrimPrefix(framed(7), framed(2)) + last,
		FaultGarbageBody:   framedText("\x00\xff\xfe{\"\x80<html>\r\n\r\ndata") + last,
		FaultBadChunk:      framed(2) + "zz\r\n" + pieces[2] + "\r\n",
		FaultCrashConn:     "",
	} {
		t.Run(string(kind), func(t *testing.T) {
			got, err := roundTrip(t, addr, chat("Connection: close", fmt.Sprintf("X-Sim: fault=%s@2", kind)))
			if kind == FaultReset {
				if !isReset(err) {
					t.Errorf("read ended with %v, want a reset", err)
				}
				return // a reset may overtake the bytes before it
			}
			if err != nil {
				t.Errorf("read ended with %v, want a plain end", err)
			}
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			if d := cmp.Diff(want, body); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestBadHead(t *testing.T) {
	_, addr := start(t, Config{})
	got, err := roundTrip(t, addr, chat("X-Sim: fault=bad_head"))
	if err != nil || got != "HTTP/1.1 abc Nonsense\r\nno colon here\r\n\r\n" {
		t.Errorf("%q %v", got, err)
	}
}

func TestFaultOnLengthAndPlain(t *testing.T) {
	_, addr := start(t, Config{})
	resp, whole := fetch(t, addr, chat("X-Sim: framing=length"))
	if resp.ContentLength != int64(len(whole)) {
		t.Errorf("length %d for %d bytes", resp.ContentLength, len(whole))
	}
	// A cut answer announces all of it and sends less.
	got, err := roundTrip(t, addr, chat("X-Sim: framing=length; fault=truncate_chunk@3"))
	_, body, _ := strings.Cut(got, "\r\n\r\n")
	if err != nil || !strings.Contains(got, fmt.Sprintf("Content-Length: %d\r\n", len(whole))) || len(body) >= len(whole) || !strings.HasPrefix(whole, body) {
		t.Errorf("%q %v", got, err)
	}
	plain := post("/v1/chat/completions", strings.Replace(chatBody, "true", "false", 1), "X-Sim: fault=error")
	if resp, body := fetch(t, addr, plain); resp.StatusCode != 200 || decode(t, body).Error == nil {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

// TestFaultPastTheEnd holds that a fault behind the last step strikes at the end.
func TestFaultPastTheEnd(t *testing.T) {
	_, addr := start(t, Config{})
	_, whole := fetch(t, addr, chat())
	for _, kind := range []FaultKind{FaultNoLastChunk, FaultTruncateEvent, FaultGarbage} {
		got, err := roundTrip(t, addr, chat("Connection: close", fmt.Sprintf("X-Sim: fault=%s@99", kind)))
		if n := strings.Count(got, "data: "); err != nil || n < len(events(whole)) {
			t.Errorf("%s: %d events, %v", kind, n, err)
		}
	}
}

func TestStallEndsWithClient(t *testing.T) {
	s, addr := start(t, Config{})
	c := dial(t, addr)
	if _, err := c.Write([]byte(chat("X-Sim: fault=stall@2"))); err != nil {
		t.Fatal(err)
	}
	truth := await(t, s, func(t Truth) bool { return len(t.Requests) == 1 && len(t.Requests[0].Writes) == 3 })
	if truth.Requests[0].Ended != "" {
		t.Errorf("ended while the client waits: %+v", truth.Requests[0])
	}
	c.Close()
	r := only(t, s)
	if r.Gone == 0 || r.Ended != EndedGone || len(r.Writes) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestCrashTakesTheServerDown(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	other := dial(t, ln.Addr().String())
	if _, err := other.Write([]byte(chat("X-Sim: fault=stall"))); err != nil {
		t.Fatal(err)
	}
	await(t, s, func(t Truth) bool { return t.Total == 1 })
	got, err := roundTrip(t, ln.Addr().String(), chat("X-Sim: fault=crash"))
	if got != "" || err != nil && !isReset(err) {
		t.Errorf("%q %v", got, err)
	}
	if err := <-done; err != ErrCrashed {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the port still answers")
	}
	shut(t, s)
	if err := s.Serve(ln); err != ErrCrashed {
		t.Errorf("Serve after the crash: %v", err)
	}
	if n := s.Truth().Count("POST", "/v1/chat/completions"); n != 2 {
		t.Errorf("%d requests", n)
	}
}
