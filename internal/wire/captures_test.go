package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// TestCaptures holds the transcripts of real answers against the counts of their index and the engine's own figures.
func TestCaptures(t *testing.T) {
	all := wiretest.Captures(t)
	t.Logf("%d captures", len(all))
	for _, c := range all {
		t.Run(c.ID(), func(t *testing.T) {
			x := c.Exchange()
			tr := Parse(x)
			if c.Facts.DataLines >= 0 && len(tr.Events) != c.Facts.DataLines {
				t.Errorf("%d events, want %d", len(tr.Events), c.Facts.DataLines)
			}
			if tr.ParseErrors != 0 || tr.Oversized != 0 || tr.CodingError != "" {
				t.Errorf("%d parse errors, %d oversized events, coding error %q", tr.ParseErrors, tr.Oversized, tr.CodingError)
			}
			if c.Whole && tr.TruncatedTail {
				t.Error("a whole answer has a truncated tail")
			}
			checkReads(t, x, tr)
			checkEnd(t, c, tr)
			checkOwnFigures(t, tr)
		})
	}
}

// checkReads holds that every event names the read that brought its last byte.
func checkReads(t *testing.T, x *exchange.Exchange, tr *Transcript) {
	t.Helper()
	var ends []int64
	sum := int64(0)
	for _, r := range x.Timeline.Reads {
		sum += int64(r.Size)
		ends = append(ends, sum)
	}
	for i, e := range tr.Events {
		want := slices.IndexFunc(ends, func(end int64) bool { return e.End <= end })
		if e.Read != want {
			t.Errorf("event %d ends at byte %d, which read %d brought, not %d", i, e.End, want, e.Read)
		}
		if i > 0 && e.Start < tr.Events[i-1].End || e.End <= e.Start {
			t.Errorf("event %d is [%d, %d)", i, e.Start, e.End)
		}
	}
}

// checkEnd holds that the outcome of an answer in a known dialect follows from its status and how it ended.
func checkEnd(t *testing.T, c wiretest.Capture, tr *Transcript) {
	t.Helper()
	if tr.Dialect == DialectNone || c.Method != "POST" || c.Status == 0 {
		return
	}
	switch complete := tr.DialectEnd && tr.Error == nil; {
	case c.Status != 200:
		if complete || tr.Error == nil || tr.Error.Where != whereHTTPStatus || tr.Error.Message == "" {
			t.Errorf("status %d gives %+v", c.Status, tr.Error)
		}
	case c.Name == "badbytes-stream":
		if complete || tr.Error == nil || tr.Error.Code != "500" || tr.Error.Where != whereEvent || tr.Terminator != "eof" {
			t.Errorf("the error inside a 200 is %+v, terminator %q", tr.Error, tr.Terminator)
		}
	case c.Facts.End == "client-abort":
		// What the engine had sent by then may be the whole answer.
	case !complete:
		t.Errorf("not complete: dialect end %v, error %+v, terminator %q", tr.DialectEnd, tr.Error, tr.Terminator)
	}
}

// checkOwnFigures holds usage against the engine's own timings where an answer has both.
func checkOwnFigures(t *testing.T, tr *Transcript) {
	t.Helper()
	u, tm := tr.Usage, tr.Timings
	if u == nil || tm == nil {
		return
	}
	if u.Completion == nil || tm.DecodeN == nil || *u.Completion != *tm.DecodeN {
		t.Errorf("usage says %v completion tokens, the engine's timings %v", u.Completion, tm.DecodeN)
	}
	if tm.Source == "timings" {
		if *tm.CachedN+*tm.PrefillN != *u.Prompt || u.Cached == nil || *u.Cached != *tm.CachedN {
			t.Errorf("prompt %v of which cached %v; timings say cached %d and read %d", *u.Prompt, u.Cached, *tm.CachedN, *tm.PrefillN)
		}
	} else if *tm.PrefillN != *u.Prompt {
		t.Errorf("prompt %d, durations say %d", *u.Prompt, *tm.PrefillN)
	}
	if tr.LogprobEntries > 0 && len(tr.Choices) == 1 && int64(tr.LogprobEntries) != *u.Completion {
		t.Errorf("%d log-probability entries for %d tokens", tr.LogprobEntries, *u.Completion)
	}
}

func parseCapture(t testing.TB, id string) *Transcript {
	t.Helper()
	return Parse(wiretest.LoadCapture(t, id).Exchange())
}

func TestCaptureOf200Tokens(t *testing.T) {
	tr := parseCapture(t, "llama-server/chat-stream-200")
	if n := tr.TokenEvents(); n != 200 || *tr.Usage.Completion != 200 || tr.Terminator != doneMark {
		t.Errorf("%d token events, usage %d, terminator %q", n, *tr.Usage.Completion, tr.Terminator)
	}
	if tr.Fingerprint != "b0-unknown" || tr.Model != "lab-tiny" || !strings.HasPrefix(tr.ID, "chatcmpl-") {
		t.Errorf("identity %q %q %q", tr.Fingerprint, tr.Model, tr.ID)
	}
	if !bytes.HasPrefix(tr.Extras["timings"], []byte(`{"cache_n":`)) || len(tr.Extras) != 1 {
		t.Errorf("extras %s", tr.Extras)
	}
}

// TestUsageOfOneChoiceSaysSo holds that llama.cpp's usage of several choices, which counts one of them, is marked.
func TestUsageOfOneChoiceSaysSo(t *testing.T) {
	for id, want := range map[string]bool{
		"llama-server/chat-stream-n2":              true,
		"llama-server/chat-nonstream-n2":           true,
		"llama-server/v1-completions-multi-prompt": true,
		"llama-server/chat-stream-usage":           false,
		"ollama/v1-chat-n2":                        false, // n is ignored: there is one choice
	} {
		tr := parseCapture(t, id)
		if tr.Usage == nil || tr.Usage.PerChoice != want {
			t.Errorf("%s: usage %+v, want per choice = %v", id, tr.Usage, want)
		}
	}
	for _, v := range wiretest.Vectors(t) {
		if v.File == "openai-chat-n2.txt" {
			if tr := parseIn(v, [][]byte{v.Body}); tr.Usage.PerChoice || len(tr.Choices) != 2 {
				t.Errorf("usage over all choices is marked as one choice's: %+v", tr.Usage)
			}
		}
	}
}

func TestCaptureToolsAndReasoning(t *testing.T) {
	tr := parseCapture(t, "llama-server/tools-stream-required")
	whole := parseCapture(t, "llama-server/tools-nonstream-required")
	if len(tr.Choice0().ToolCalls) == 0 || tr.FinishNorm != normLength || tr.Choice0().ToolCalls[0].ID == "" {
		t.Errorf("streamed tool calls: %+v, finish %q", tr.Choice0().ToolCalls, tr.FinishNorm)
	}
	names := func(tr *Transcript) (out []string) {
		for _, c := range tr.Choice0().ToolCalls {
			out = append(out, c.Name)
		}
		return out
	}
	if d := cmp.Diff(names(whole), names(tr)); d != "" {
		t.Errorf("the same request streamed calls other tools (-whole +streamed):\n%s", d)
	}
	think := parseCapture(t, "llama-server/think-stream")
	plain := parseCapture(t, "llama-server/think-nonstream")
	if think.Choice0().Reasoning == "" || plain.Choice0().Reasoning == "" {
		t.Errorf("reasoning %q streamed, %q whole", think.Choice0().Reasoning, plain.Choice0().Reasoning)
	}
}

func TestCaptureOllamaNative(t *testing.T) {
	tr := parseCapture(t, "ollama/api-chat-stream")
	tm := tr.Timings
	if tm == nil || tm.Source != "durations" || tm.TotalMS == nil || tm.LoadMS == nil || tm.PrefillMS == nil || tm.DecodeMS == nil {
		t.Fatalf("timings %+v", tm)
	}
	if *tm.TotalMS < *tm.PrefillMS+*tm.DecodeMS || *tm.TotalMS > 60_000 {
		t.Errorf("total %v ms, prefill %v ms, decode %v ms", *tm.TotalMS, *tm.PrefillMS, *tm.DecodeMS)
	}
	if tr.Framing != FramingNDJSON || tr.Terminator != "done:true" || tr.TokenEvents() != 12 {
		t.Errorf("framing %q, terminator %q, %d token events", tr.Framing, tr.Terminator, tr.TokenEvents())
	}
	if whole := parseCapture(t, "ollama/api-generate-nonstream"); whole.Terminator != "json" || whole.Timings == nil || !whole.DialectEnd {
		t.Errorf("answer in one piece: terminator %q, timings %+v", whole.Terminator, whole.Timings)
	}
}

func BenchmarkParse200Events(b *testing.B) {
	x := wiretest.LoadCapture(b, "llama-server/chat-stream-200").Exchange()
	events := len(Parse(x).Events)
	b.ReportAllocs()
	b.SetBytes(x.Response.Body.Size)
	for b.Loop() {
		if n := len(Parse(x).Events); n != events {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
}

func BenchmarkFrame200Events(b *testing.B) {
	x := wiretest.LoadCapture(b, "llama-server/chat-stream-200").Exchange()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		f := NewFramer("text/event-stream", func(Frame) { n++ })
		f.Feed(x.Response.Body.Bytes(), 0)
		if n != 204 {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*204), "ns/event")
}

// BenchmarkJSONAlone is the share of the JSON reader in BenchmarkParse200Events.
func BenchmarkJSONAlone(b *testing.B) {
	x := wiretest.LoadCapture(b, "llama-server/chat-stream-200").Exchange()
	var payloads [][]byte
	f := NewFramer("text/event-stream", func(f Frame) {
		if f.Data[0] == '{' {
			payloads = append(payloads, bytes.Clone(f.Data))
		}
	})
	f.Feed(x.Response.Body.Bytes(), 0)
	var p fastjson.Parser
	for b.Loop() {
		for _, d := range payloads {
			if _, err := p.ParseBytes(d); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(payloads)), "ns/event")
}
