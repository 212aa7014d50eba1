package measure

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func TestDetailOfACapture(t *testing.T) {
	x := capture(t, "chat-stream-200")
	d := Detail(x, exchange.Summary{Key: "h1:0123456789abcdef", SentKey: "h1:1", Digest: "sha256:00"})
	if d.Key != "h1:0123456789abcdef" || d.SentKey != "h1:1" || d.Digest != "sha256:00" || d.Outcome != exchange.OutcomeComplete {
		t.Errorf("row: %+v", d.Summary)
	}
	if d.OutputText == "" || d.Response.Line != "HTTP/1.1 200 OK" || d.Response.BodyBytes != x.Response.Body.Size || len(d.Timeline.Reads) != len(x.Timeline.Reads) {
		t.Errorf("texts %q, response %+v, %d reads", d.OutputText, d.Response, len(d.Timeline.Reads))
	}
	var timings map[string]any
	if err := json.Unmarshal(d.Timings, &timings); err != nil || timings["decode_n"] != 200.0 {
		t.Errorf("timings %s: %v", d.Timings, err)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}

func TestDetailParts(t *testing.T) {
	if got := choiceTexts(&wire.Transcript{Choices: []wire.Choice{{Text: "a"}}}); got != nil {
		t.Errorf("one choice is listed: %v", got)
	}
	two := choiceTexts(&wire.Transcript{Choices: []wire.Choice{{Text: "a"}, {Index: 1, Reasoning: "r", ToolCalls: []wire.ToolCall{{Name: "f", Arguments: "{}"}}}}})
	want := []exchange.ChoiceText{
		{OutputText: "a", Calls: []exchange.ToolCall{}},
		{Index: 1, Reasoning: "r", Calls: []exchange.ToolCall{{Name: "f", Arguments: "{}"}}},
	}
	if diff := cmp.Diff(want, two); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
	if answerError(nil) != nil || answerError(&wire.Error{Message: "m", Where: "event"}).Message != "m" {
		t.Error("error of an answer")
	}
	if timings(nil) != nil || timings(&wire.Timings{DecodeMS: ref(math.NaN())}) != nil {
		t.Error("timings that are absent or have no JSON form are not left out")
	}
	if got := requestView(&exchange.Request{Head: []byte("GET / HTTP/1.1\r\nA: b\r\n\r\n")}); got.Line != "GET / HTTP/1.1" || got.Headers == nil {
		t.Errorf("head %+v", got)
	}
}
