package gates

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// trueAlarms are the answers among the captures that do break what their request asked for, by gate: their models have
// random weights, and several were cut on purpose.
var trueAlarms = map[string]string{
	"llama-server/chat-nonstream-tools-required tool_call_shape":     "the request wants a tool call and the answer makes none", // the model wrote into its budget
	"llama-server/chat-stream-tools-required tool_call_shape":        "the request wants a tool call and the answer makes none",
	"llama-server/chat-stream-tools-cut tool_call_shape":             "the request wants a tool call and the answer makes none", // cut by max_tokens
	"llama-server/tools-stream-cut tool_call_shape":                  "the request wants a tool call and the answer makes none",
	"llama-server/tools-stream-no-bias tool_call_shape":              "the request wants a tool call and the answer makes none",
	"llama-server/tools-stream-single tool_call_shape":               "wants one tool call at a time and the answer makes 5", // the server does not hold it
	"llama-server/tools-nonstream-required tool_call_shape":          `the finish reason is "length"`,                        // whole calls, and more of them until the budget was spent
	"llama-server/tools-stream-required tool_call_shape":             `the finish reason is "length"`,
	"llama-server/tools-nonstream-required-parallel tool_call_shape": `the finish reason is "length"`,
	"llama-server/tools-stream-required-parallel tool_call_shape":    `the finish reason is "length"`,
	"llama-server/tools-nonstream-auto tool_call_shape":              "no strict JSON", // the last call was cut
	"llama-server/tools-stream-auto tool_call_shape":                 "no strict JSON",
	"llama-server/chat-stream-eos-first degenerate":                  "the answer is empty", // a bias forces the end as the first token
	"llama-server/chat-nonstream-eos-first degenerate":               "the answer is empty",
	"llama-server/tools-and-jsonschema json":                         "it is no JSON", // tools win over the schema there
}

// alarms are what Auto says against an answer that came to its end.
func alarms(t *testing.T, name string, x *exchange.Exchange) (judged int, found map[string]string) {
	t.Helper()
	if measure.Analyze(x).Outcome != exchange.OutcomeComplete {
		return 0, nil
	}
	found = map[string]string{}
	e := Prepare(&exchange.Case{ID: name, Exchanges: []*exchange.Exchange{x}})
	for _, check := range Auto(x) {
		v, needs, err := Judge(e, check)
		if err != nil || len(needs) > 0 {
			t.Errorf("%s %s: %d needs, %v", name, check.Gate, len(needs), err)
		}
		judged++
		if v.Status == exchange.VerdictFail {
			found[name+" "+check.Gate] = v.Reason
		}
	}
	return judged, found
}

// TestNoFalseAlarmOnCaptures judges every answer of a real engine that came to its end by what its own request asked for.
// What fails is in trueAlarms, all of it.
func TestNoFalseAlarmOnCaptures(t *testing.T) {
	t.Parallel()
	judged, hit := 0, map[string]bool{}
	for _, c := range wiretest.Captures(t) {
		n, found := alarms(t, c.ID(), c.Exchange())
		judged += n
		for what, why := range found {
			hit[what] = true
			if want, known := trueAlarms[what]; !known || !strings.Contains(why, want) {
				t.Errorf("%s: %s", what, why)
			}
		}
	}
	for what := range trueAlarms {
		if !hit[what] {
			t.Errorf("%s passes", what)
		}
	}
	if judged < 300 {
		t.Errorf("only %d verdicts", judged)
	}
}

// vectorAsk is the least that a client asks at a path: for a stream where the vector holds one, and with a limit in every
// spelling where the answer ended by it. The vector of a load has no prompt.
func vectorAsk(v wiretest.Vector) string {
	ask := map[string]any{"model": "m", "stream": strings.HasPrefix(v.ContentType, "text/event-stream") || strings.Contains(v.ContentType, "ndjson")}
	switch whole := strings.Contains(v.Path(), "completion") || strings.Contains(v.Path(), "generate"); {
	case v.Name() == "ollama-load-empty-prompt":
	case whole && !strings.Contains(v.Path(), "chat"):
		ask["prompt"] = "hello"
	default:
		ask["messages"] = []map[string]any{{"role": "user", "content": "hello"}}
	}
	if n := v.Expected.FinishNorm; n != nil && *n == "length" {
		const limit = 4
		for _, name := range []string{"max_tokens", "max_output_tokens", "n_predict"} {
			ask[name] = limit
		}
		ask["options"], ask["sampling_params"] = map[string]any{"num_predict": limit}, map[string]any{"max_new_tokens": limit}
	}
	b, err := json.Marshal(ask)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestNoFalseAlarmOnVectors does the same with the written answers of all engines.
func TestNoFalseAlarmOnVectors(t *testing.T) {
	t.Parallel()
	judged, hit := 0, 0
	for _, v := range wiretest.Vectors(t) {
		x := &exchange.Exchange{ID: exchange.NewID(time.Unix(1_800_000_000, 0)), Request: exchange.Request{Method: http.MethodPost, Target: v.Path(), Body: exchange.NewBody([]byte(vectorAsk(v)))},
			Response: exchange.Response{Status: v.Status, Headers: []exchange.Header{{Name: "Content-Type", Value: v.ContentType}}, Body: exchange.NewBody(v.Body)},
			End:      exchange.EndEOF, State: exchange.StateStored}
		x.Timeline.SendStart, x.Timeline.BodyEnd = exchange.MarkAt(0), exchange.MarkAt(2000)
		x.Timeline.Reads = []exchange.Read{{At: 1000, Size: len(v.Body)}}
		n, found := alarms(t, v.Name(), x)
		judged += n
		for what, why := range found {
			hit++
			if want, known := trueVectorAlarms[what]; !known || !strings.Contains(why, want) {
				t.Errorf("%s: %s", what, why)
			}
		}
	}
	if judged < 100 || hit != len(trueVectorAlarms) {
		t.Errorf("%d verdicts, %d of %d alarms", judged, hit, len(trueVectorAlarms))
	}
}

// trueVectorAlarms are the written answers that break what was asked.
var trueVectorAlarms = map[string]string{
	"tensorsharp-chat-error-as-content finish_reason": "is an error message", // which the engine sends as text
	"gemini-blocked-prompt finish_reason":             "blocked:SAFETY",
	"generic-empty-completion degenerate":             "the answer is empty",
}

// TestLoadingAModelIsNoQuestion: Ollama loads and unloads a model on a request without a prompt.
func TestLoadingAModelIsNoQuestion(t *testing.T) {
	t.Parallel()
	for body, asks := range map[string]bool{
		`{"model":"m"}`:                                           false,
		`{"model":"m","keep_alive":0}`:                            false,
		`{"model":"m","prompt":""}`:                               false,
		`{"model":"m","messages":[]}`:                             false,
		`{"model":"m","prompt":null,"messages":null}`:             false,
		`{"model":"m","prompt":"hi"}`:                             true,
		`{"model":"m","images":["aaaa"]}`:                         true,
		`{"model":"m","messages":[{"role":"user","content":""}]}`: true,
		`{"model":"m","messages":"text"}`:                         true,
		`not JSON`:                                                true,
	} {
		x := &exchange.Exchange{Request: exchange.Request{Method: http.MethodPost, Target: "/api/generate", Body: exchange.NewBody([]byte(body))}}
		if got := Auto(x) != nil; got != asks {
			t.Errorf("%s: judged %v", body, got)
		}
	}
	x := &exchange.Exchange{Request: exchange.Request{Method: http.MethodPost, Target: "/v1/completions", Body: exchange.NewBody([]byte(`{"model":"m"}`))}}
	if Auto(x) == nil {
		t.Error("at another path an answer is asked for")
	}
}
