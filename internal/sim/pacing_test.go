package sim

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inBubble runs one request on a fake clock and gives its record.
func inBubble(t *testing.T, cfg Config, raw string) (r Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := serveOn(t, cfg, ln)
		c, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		r = only(t, s)
	})
	return r
}

// instants are the times of the writes that carry tokens, and of all others as negative numbers less one.
func instants(r Record) (out []time.Duration) {
	for _, w := range r.Writes {
		at := time.Duration(w.At)
		if w.At != w.Plan {
			at = -1 // on a fake clock nothing is late
		}
		if w.Token {
			out = append(out, at)
		}
	}
	return out
}

func TestPacing(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name, options string
		tokens        []time.Duration
		end           time.Duration
	}{
		{"at once", "ttft=0s", []time.Duration{0, 0, 0, 0}, 0},
		{"ttft and decode", "ttft=200ms; decode=50", []time.Duration{200 * ms, 220 * ms, 240 * ms, 260 * ms}, 260 * ms},
		{"prefill", "ttft=100ms; prefill=10; decode=1000", []time.Duration{400 * ms, 401 * ms, 402 * ms, 403 * ms}, 403 * ms},
		{"cached prompt", "prefill=10; cached=2; decode=1000", []time.Duration{100 * ms, 101 * ms, 102 * ms, 103 * ms}, 103 * ms},
		{"two an event", "ttft=10ms; decode=100; per_event=2", []time.Duration{10 * ms, 30 * ms}, 30 * ms},
		{"merged", "decode=100; merge=3", []time.Duration{10 * ms, 30 * ms}, 30 * ms},
		{"reasoning first", "decode=100; reasoning=2", []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}, 30 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := inBubble(t, Config{}, chat("X-Sim: "+c.options))
			if d := cmp.Diff(c.tokens, instants(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if time.Duration(r.End) != c.end {
				t.Errorf("end %v, want %v", time.Duration(r.End), c.end)
			}
		})
	}
}

func TestJitterKeepsTheGrid(t *testing.T) {
	raw := post("/v1/chat/completions", strings.Replace(chatBody, `"max_tokens":4`, `"max_tokens":50`, 1), "X-Sim: decode=100; jitter=0.5; ttft=1s")
	got := instants(inBubble(t, Config{}, raw))
	if again := instants(inBubble(t, Config{}, raw)); !cmp.Equal(got, again) {
		t.Error("equal requests are paced differently")
	}
	moved := 0
	for i, at := range got {
		late := at - time.Second - time.Duration(i)*10*time.Millisecond
		if late < 0 || late > 5*time.Millisecond {
			t.Fatalf("token %d is %v off its instant", i, late)
		}
		if late > 0 {
			moved++
		}
	}
	if len(got) != 50 || moved < 40 || got[0] != time.Second {
		t.Errorf("%d tokens, %d moved, first at %v", len(got), moved, got[0])
	}
}

func TestHeadTimes(t *testing.T) {
	const ms = time.Millisecond
	r := inBubble(t, Config{}, chat("X-Sim: ttft=100ms; head_delay=30ms; ping=40ms; early_role=1"))
	var at []time.Duration
	for _, w := range r.Writes[:4] { // head, role, two pings: a role that is due before the head waits for it
		at = append(at, time.Duration(w.At))
	}
	if d := cmp.Diff([]time.Duration{30 * ms, 30 * ms, 40 * ms, 80 * ms}, at); d != "" {
		t.Error(d)
	}
	r = inBubble(t, Config{}, chat("X-Sim: head_gap=10ms"))
	// Status line, three headers, the framing, and the blank line.
	if first, _ := r.FirstToken(); first != 50*ms || r.Writes[5].At != int64(50*ms) {
		t.Errorf("first token %v, writes %+v", first, r.Writes[:7])
	}
}

func TestPlainAnswerComesAtTheEnd(t *testing.T) {
	raw := strings.Replace(chat("X-Sim: ttft=100ms; decode=100"), `"stream":true`, `"stream":null`, 1)
	r := inBubble(t, Config{}, raw)
	if len(r.Writes) != 1 || r.Writes[0].At != int64(130*time.Millisecond) || r.Writes[0].Tokens != 4 {
		t.Errorf("%+v", r.Writes)
	}
}

// TestLateReaderDoesNotShiftThePlan holds that instants are absolute: a client that reads late is caught up with.
func TestLateReaderDoesNotShiftThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := serveOn(t, Config{}, ln)
		c, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, chat("X-Sim: ttft=100ms; decode=10; keepalive=lie")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond) // fake time: the head and the first token wait to be read
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
		const ms = time.Millisecond
		var at []time.Duration
		for _, w := range only(t, s).Writes {
			if w.Token {
				at = append(at, time.Duration(w.At))
			}
		}
		if d := cmp.Diff([]time.Duration{250 * ms, 250 * ms, 300 * ms, 400 * ms}, at); d != "" {
			t.Error(d)
		}
	})
}

// TestSlotsQueueInOrder holds that two slots serve four requests two by two, in order of arrival.
func TestSlotsQueueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := serveOn(t, Config{Slots: 2, Options: Options{TTFT: time.Second}}, ln)
		for range 4 {
			c, err := ln.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, chat()); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, c) }() // ends when the connection is closed
			synctest.Wait()
		}
		var slots, first []time.Duration
		for _, r := range await(t, s, Ended(4)).Requests {
			at, ok := r.FirstToken()
			if !ok {
				t.Errorf("request %d: no token in %+v", r.Seq, r)
			}
			slots, first = append(slots, time.Duration(r.Slot)), append(first, at)
		}
		if d := cmp.Diff([]time.Duration{0, 0, time.Second, time.Second}, slots); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]time.Duration{1e9, 1e9, 2e9, 2e9}, first); d != "" {
			t.Error(d)
		}
	})
}
