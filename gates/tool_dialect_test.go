package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// What the dialects say of the weather tool, in requests.
const (
	weatherArgs     = `{"city":"Paris","units":"celsius"}`
	messagesTools   = `"tools":[{"name":"get_weather","input_schema":{"type":"object"}}]`
	responsesTools  = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]`
	ollamaTools     = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}}]`
	weatherGiven    = `{\"city\":\"Paris\",\"temperature_c\":19}`
	weatherQuestion = `"What is the weather in Paris?"`
)

// messagesStream is a stream of Messages that makes calls, each with its id and pieces of its input.
func messagesStream(end string, calls ...[]string) string {
	var b strings.Builder
	event := func(kind, data string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, data) }
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":90,"output_tokens":1}}`)
	for i, c := range calls {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":%q,"name":"get_weather","input":{}}`, i, c[0]))
		for _, piece := range c[1:] {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, text(piece)))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":20}`, end))
	event("message_stop", "")
	return b.String()
}

// responsesStream is a stream of Responses that makes a call; done is what its finished item says.
func responsesStream(done string, pieces ...string) string {
	var b strings.Builder
	event := func(kind, data string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, data) }
	item := func(args, status string) string {
		return fmt.Sprintf(`{"id":"fc_1","type":"function_call","status":%q,"call_id":"call_1","name":"get_weather","arguments":%s}`, status, text(args))
	}
	event("response.created", `,"response":{"id":"r","object":"response","status":"in_progress","output":[]}`)
	event("response.output_item.added", `,"output_index":0,"item":`+item("", "in_progress"))
	for _, p := range pieces {
		event("response.function_call_arguments.delta", `,"item_id":"fc_1","output_index":0,"delta":`+text(p))
	}
	event("response.function_call_arguments.done", `,"item_id":"fc_1","output_index":0,"arguments":`+text(done))
	event("response.output_item.done", `,"output_index":0,"item":`+item(done, "completed"))
	event("response.completed", `,"response":{"id":"r","object":"response","status":"completed","output":[`+item(done, "completed")+
		`],"usage":{"input_tokens":90,"output_tokens":20,"total_tokens":110}}`)
	return b.String()
}

func streamOf(target, request, body string) *exchange.Exchange {
	x := spoken{target: target, request: request, body: body}.exchange()
	x.Response.Headers[0].Value = "text/event-stream"
	return x
}

// TestPoliciesInOtherDialects holds that the policies are read in the words of each dialect, and that incomparable is left
// to what it has no words for.
func TestPoliciesInOtherDialects(t *testing.T) {
	messages := func(choice, more string) string {
		return `{"model":"m","max_tokens":512,"stream":true,"messages":[{"role":"user","content":` + weatherQuestion + `}],` + messagesTools + `,"tool_choice":` + choice + more + `}`
	}
	responses := func(choice, more string) string {
		return `{"model":"m","stream":true,"input":` + weatherQuestion + `,` + responsesTools + `,"tool_choice":` + choice + more + `}`
	}
	const serialAny, serialTool = `{"type":"any","disable_parallel_tool_use":true}`, `{"type":"tool","name":"get_weather","disable_parallel_tool_use":true}`
	paris, oslo := []string{"toolu_1", `{"city":`, `"Paris","units":"celsius"}`}, []string{"toolu_2", `{"city":"Oslo","units":"celsius"}`}
	for name, c := range map[string]struct {
		policy string
		x      *exchange.Exchange
		status exchange.VerdictStatus
		why    string
	}{
		"Messages, any":              {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("tool_use", paris)), exchange.VerdictOK, ""},
		"Messages, named":            {"named", streamOf("/v1/messages", messages(serialTool, ""), messagesStream("tool_use", paris)), exchange.VerdictOK, ""},
		"Messages, two calls":        {"two_calls", streamOf("/v1/messages", messages(`{"type":"any"}`, ""), messagesStream("tool_use", oslo, paris)), exchange.VerdictOK, ""},
		"Messages, one of two":       {"two_calls", streamOf("/v1/messages", messages(`{"type":"any"}`, ""), messagesStream("tool_use", paris)), exchange.VerdictFail, "2 calls are expected, the answer makes 1"},
		"Messages, not forbidden":    {"single_call", streamOf("/v1/messages", messages(`{"type":"any"}`, ""), messagesStream("tool_use", paris)), exchange.VerdictIncomparable, `tool_choice.disable_parallel_tool_use is ""`},
		"Messages, auto":             {"required", streamOf("/v1/messages", messages(`{"type":"auto"}`, ""), messagesStream("tool_use", paris)), exchange.VerdictIncomparable, "tool_choice is"},
		"Messages, end of turn":      {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("max_tokens", paris)), exchange.VerdictFail, `the finish reason is "max_tokens", which is not that of tool_calls`},
		"Messages, no call":          {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("end_turn")), exchange.VerdictFail, "which is not that of tool_calls"},
		"Messages, odd id":           {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("tool_use", []string{"a:b", weatherArgs})), exchange.VerdictFail, `the id "a:b"`},
		"Messages, input cut":        {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("tool_use", []string{"toolu_1", `{"city":"Par`})), exchange.VerdictFail, "the arguments are no strict JSON"},
		"Messages, another city":     {"required", streamOf("/v1/messages", messages(serialAny, ""), messagesStream("tool_use", oslo)), exchange.VerdictFail, "the calls are about Oslo, not Paris"},
		"Messages, stream unended":   {"required", streamOf("/v1/messages", messages(serialAny, ""), strings.Split(messagesStream("tool_use", paris), "event: message_stop")[0]), exchange.VerdictFail, "the stream does not end with message_stop"},
		"Messages, whole for stream": {"required", spoken{target: "/v1/messages", request: messages(serialAny, ""), body: `{"type":"message","content":[{"type":"tool_use","id":"a","name":"get_weather","input":` + weatherArgs + `}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}`}.exchange(), exchange.VerdictFail, "a stream was asked for and the answer is none"},
		"Messages, refused": {"invalid_named", spoken{target: "/v1/messages", request: strings.Replace(messages(`{"type":"tool","name":"undeclared_weather_tool","disable_parallel_tool_use":true}`, ""), "true,", "false,", 1), status: 400,
			body: `{"type":"error","error":{"type":"invalid_request_error","message":"tool undeclared_weather_tool is not declared"}}`}.exchange(), exchange.VerdictOK, ""},
		"Responses, required":       {"required", streamOf("/v1/responses", responses(`"required"`, `,"parallel_tool_calls":false`), responsesStream(weatherArgs, weatherArgs[:9], weatherArgs[9:])), exchange.VerdictOK, ""},
		"Responses, named":          {"named", streamOf("/v1/responses", responses(`{"type":"function","name":"get_weather"}`, `,"parallel_tool_calls":false`), responsesStream(weatherArgs, weatherArgs)), exchange.VerdictOK, ""},
		"Responses, done otherwise": {"required", streamOf("/v1/responses", responses(`"required"`, `,"parallel_tool_calls":false`), responsesStream(`{"city":"Oslo","units":"celsius"}`, weatherArgs)), exchange.VerdictFail, "the fragments on the wire join to the arguments"},
		"Ollama": {"required", spoken{target: "/api/chat", request: `{"model":"m","stream":false,"tool_choice":"required","messages":[{"role":"user","content":"?"}],` + ollamaTools + `}`,
			body: `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":` + weatherArgs + `}}]},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}`}.exchange(),
			exchange.VerdictIncomparable, "Ollama's /api/chat has no tool_choice"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judged(t, exchange.Check{Gate: "tool_policy", Params: []byte(fmt.Sprintf(`{"policy":%q}`, c.policy))}, c.x)
			wantVerdict(t, v, c.status, c.why)
		})
	}
}

// talk is a conversation of one call in a dialect: its requests and answers.
type talk struct {
	target    string
	requests  [2]string
	responses [2]string
}

// roundTrips are tool_round_trip in each dialect but chat.
func roundTrips() map[string]talk {
	return map[string]talk{
		"Messages": {"/v1/messages", [2]string{
			`{"model":"m","max_tokens":256,"messages":[{"role":"user","content":[{"type":"text","text":` + weatherQuestion + `}]}],` + messagesTools + `}`,
			`{"model":"m","max_tokens":256,"messages":[{"role":"user","content":` + weatherQuestion + `},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":` + weatherArgs +
				`}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"` + weatherGiven + `"}]},{"type":"text","text":"Answer."}]}],` + messagesTools + `,"tool_choice":{"type":"none"}}`,
		}, [2]string{
			`{"type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":` + weatherArgs + `}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}`,
			`{"type":"message","content":[{"type":"text","text":"` + weatherGiven + `"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`,
		}},
		"Responses": {"/v1/responses", [2]string{
			`{"model":"m","input":` + weatherQuestion + `,` + responsesTools + `}`,
			`{"model":"m","input":[{"role":"user","content":` + weatherQuestion + `},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Paris\",\"units\":\"celsius\"}"},` +
				`{"type":"function_call_output","call_id":"call_1","output":"` + weatherGiven + `"},{"role":"user","content":"Answer."}],` + responsesTools + `,"tool_choice":"none"}`,
		}, [2]string{
			`{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Paris\",\"units\":\"celsius\"}"}],"usage":{"input_tokens":9,"output_tokens":2}}`,
			`{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + weatherGiven + `"}]}],"usage":{"input_tokens":9,"output_tokens":2}}`,
		}},
		"Ollama": {"/api/chat", [2]string{
			`{"model":"m","stream":false,"messages":[{"role":"user","content":` + weatherQuestion + `}],` + ollamaTools + `}`,
			`{"model":"m","stream":false,"messages":[{"role":"user","content":` + weatherQuestion + `},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":` + weatherArgs +
				`}}]},{"role":"tool","tool_name":"get_weather","content":"` + weatherGiven + `"},{"role":"user","content":"Answer."}]}`,
		}, [2]string{
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":` + weatherArgs + `}}]},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}`,
			`{"model":"m","message":{"role":"assistant","content":"` + weatherGiven + `"},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}`,
		}},
	}
}

func (k talk) judge(t *testing.T, policy string) exchange.Verdict {
	t.Helper()
	c := &exchange.Case{ID: "c", Policy: policy}
	for i := range k.requests {
		c.Exchanges = append(c.Exchanges, spoken{target: k.target, request: k.requests[i], body: k.responses[i]}.exchange())
	}
	return judgedCase(t, c, exchange.Check{Gate: "tool_round_trip"})
}

// TestWorkflowsInOtherDialects holds that a workflow of tools is judged in each dialect, by what its requests give back.
func TestWorkflowsInOtherDialects(t *testing.T) {
	for name, k := range roundTrips() {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, k.judge(t, ""), exchange.VerdictOK, "")
			for what, c := range map[string]struct {
				at       int
				old, new string
				answers  bool
				policy   string
				status   exchange.VerdictStatus
				why      string
			}{
				"another result":  {1, `\"temperature_c\":19`, `\"temperature_c\":20`, false, "", exchange.VerdictIncomparable, "not the fixture's"},
				"a wrong answer":  {1, `\"temperature_c\":19`, `\"temperature_c\":20`, true, "", exchange.VerdictFail, "turn 2: "},
				"wrong arguments": {0, `Paris`, `Rome`, true, "", exchange.VerdictFail, "turn 1: the arguments of get_weather are"},
				"another tool":    {0, `"name":"get_weather"`, `"name":"get_time"`, true, "", exchange.VerdictFail, `turn 1: it calls "get_time"`},
				"told in advance": {0, `What is`, `It is 19. What is`, false, "", exchange.VerdictIncomparable, "19 stands in the prompt"},
				"serial, unsaid":  {0, `Paris`, `Paris`, true, "serial_tool_workflows", exchange.VerdictIncomparable, ""},
				"objects, unsent": {0, `Paris`, `Paris`, true, "structured_tool_results", exchange.VerdictIncomparable, "not in the form of the case's policy"},
			} {
				other := k
				of := &other.requests
				if c.answers {
					of = &other.responses
				}
				if !strings.Contains(of[c.at], c.old) {
					t.Fatalf("%s: nothing to change in %s", what, of[c.at])
				}
				of[c.at] = strings.ReplaceAll(of[c.at], c.old, c.new)
				v := other.judge(t, c.policy)
				if v.Status != c.status || !strings.Contains(v.Reason, c.why) {
					t.Errorf("%s: %s: %s", what, v.Status, v.Reason)
				}
			}
		})
	}
	ids := roundTrips()["Responses"]
	ids.requests[1] = strings.Replace(ids.requests[1], `"type":"function_call_output","call_id":"call_1"`, `"type":"function_call_output","call_id":"call_2"`, 1)
	wantVerdict(t, ids.judge(t, ""), exchange.VerdictIncomparable, `it gives no result for the call "call_1"`)
	none := roundTrips()["Messages"]
	none.requests[1] = strings.Replace(none.requests[1], `"messages":[`, `"messages":[3,`, 1)
	wantVerdict(t, none.judge(t, ""), exchange.VerdictIncomparable, "what it gives back cannot be read")
}
