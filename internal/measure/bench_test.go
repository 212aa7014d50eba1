package measure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// BenchmarkAnalyze is what deriving everything from one exchange takes, for each kind of answer.
func BenchmarkAnalyze(b *testing.B) {
	for _, c := range []struct {
		name string
		x    *exchange.Exchange
	}{
		{"json", capture(b, "chat-nonstream-stream-false")},
		{"chat48", capture(b, "conc4-0")},
		{"chat200", capture(b, "chat-stream-200")},
		{"messages48", streamOf("/v1/messages", messagesStream(48))},
		{"responses48", streamOf("/v1/responses", responsesStream(48))},
		{"ollama31", wiretest.LoadCapture(b, "ollama/api-chat-stream-format").Exchange()},
	} {
		b.Run(c.name, func(b *testing.B) {
			if a := Analyze(c.x); a.Outcome != exchange.OutcomeComplete {
				b.Fatalf("outcome %s: %v", a.Outcome, a.Cause)
			}
			b.SetBytes(c.x.Response.Body.Size)
			b.ReportAllocs()
			for b.Loop() {
				Analyze(c.x)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
		})
	}
}

// BenchmarkDerive leaves the reading of the bodies out.
func BenchmarkDerive(b *testing.B) {
	for _, name := range []string{"chat-nonstream-stream-false", "chat-stream-200"} {
		b.Run(name, func(b *testing.B) {
			x := capture(b, name)
			a := Analyze(x)
			b.ReportAllocs()
			for b.Loop() {
				Derive(x, a.Transcript, a.Request)
			}
		})
	}
}

// streamOf is a streamed answer whose events came one a read and 10 ms apart.
func streamOf(path string, events []string) *exchange.Exchange {
	x := &exchange.Exchange{
		Request: exchange.Request{Method: "POST", Target: path, Body: exchange.NewBody([]byte(`{"model":"m","stream":true,"max_tokens":64}`))},
		Response: exchange.Response{
			Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}},
			Body: exchange.NewBody([]byte(strings.Join(events, ""))),
		},
		End: exchange.EndEOF, State: exchange.StateStored,
	}
	tl := &x.Timeline
	tl.RequestRead, tl.SendStart = exchange.MarkAt(t0NS-1_000), exchange.MarkAt(t0NS)
	for i, e := range events {
		tl.Reads = append(tl.Reads, exchange.Read{At: t0NS + int64(i+1)*10_000_000, Size: len(e), Write: 20_000})
	}
	last := exchange.MarkAt(tl.Reads[len(tl.Reads)-1].At)
	tl.HeaderRead, tl.FirstRead = exchange.MarkAt(tl.Reads[0].At), exchange.MarkAt(tl.Reads[0].At)
	tl.LastRead, tl.BodyEnd, tl.ClientDone = last, last, last
	return x
}

func sse(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// messagesStream is an answer of /v1/messages with n tokens of text.
func messagesStream(n int) []string {
	out := []string{
		sse("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}`),
		sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	}
	for i := range n {
		out = append(out, sse("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word%d"}}`, i)))
	}
	return append(out,
		sse("content_block_stop", `{"type":"content_block_stop","index":0}`),
		sse("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, n)),
		sse("message_stop", `{"type":"message_stop"}`))
}

// responsesStream is an answer of /v1/responses with n tokens of text.
func responsesStream(n int) []string {
	var text strings.Builder
	out := []string{
		sse("response.created", `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]},"sequence_number":0}`),
		sse("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]},"sequence_number":1}`),
		sse("response.content_part.added", `{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]},"sequence_number":2}`),
	}
	for i := range n {
		word := fmt.Sprintf(" word%d", i)
		text.WriteString(word)
		out = append(out, sse("response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":%q,"logprobs":[],"sequence_number":%d}`, word, i+3)))
	}
	item := fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text.String())
	return append(out,
		sse("response.output_text.done", fmt.Sprintf(`{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":%q}`, text.String())),
		sse("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`),
		sse("response.completed", fmt.Sprintf(`{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[%s],"usage":{"input_tokens":25,"output_tokens":%d,"total_tokens":%d}}}`, item, n, n+25)))
}
