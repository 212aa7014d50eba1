package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResponsesEnds holds what each way to end an answer comes to.
func TestResponsesEnds(t *testing.T) {
	const first = `output_text.delta "delta":"a"`
	for _, tc := range []struct {
		name, last, finish, norm string
		terminator               string
		end                      bool
	}{
		{"completed", `completed "response":{"status":"completed"}`, "completed", normStop, "response.completed", true},
		{"no status", `completed "response":{}`, "completed", normStop, "response.completed", true},
		{"with a call", completed(callWhole), "completed", normTools, "response.completed", true},
		{"with a call of the engine's", completed(`{"type":"web_search_call","id":"t"}`), "completed", normStop, "response.completed", true},
		{"length", `incomplete "response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`, "incomplete:max_output_tokens", normLength, "response.incomplete", true},
		{"filter", `incomplete "response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`, "incomplete:content_filter", normFiltered, "response.incomplete", true},
		{"no reason", `incomplete "response":{"status":"incomplete","incomplete_details":null}`, "incomplete", "", "response.incomplete", true},
		{"failed without an error", `failed "response":{"status":"failed","error":null}`, "failed", normError, "response.failed", false},
		{"cancelled", `cancelled "response":{"status":"cancelled"}`, "cancelled", normError, "response.cancelled", false},
		{"none", `in_progress "response":{"status":"in_progress"}`, "", "", "eof", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := respond(first, tc.last)
			finish := ""
			if tr.FinishReason != nil {
				finish = *tr.FinishReason
			}
			if finish != tc.finish || tr.FinishNorm != tc.norm || tr.Terminator != tc.terminator || tr.DialectEnd != tc.end || tr.Error != nil {
				t.Errorf("finish %q %q, terminator %q, end %v, error %v", finish, tr.FinishNorm, tr.Terminator, tr.DialectEnd, tr.Error)
			}
		})
	}
	queued := respond(`queued "response":{"status":"queued"}`, first)
	if queued.QueueEvents != 1 || queued.Events[0].Phase != PhaseQueue {
		t.Errorf("%d queue events, phase %v", queued.QueueEvents, queued.Events[0].Phase)
	}
}

// TestResponsesErrors holds the forms an error comes in, and that it wins over an end before or after it.
func TestResponsesErrors(t *testing.T) {
	const ok = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\n"
	for _, tc := range []struct {
		name, body string
		want       Error
		terminator string
	}{
		{"flat", typed(`error "code":"rate_limit","message":"slow down","param":null,"sequence_number":3`), Error{"slow down", "", "rate_limit", "event"}, "error"},
		{"nested", typed(`error "error":{"type":"t","message":"m","code":7}`), Error{"m", "t", "7", "event"}, "error"},
		{"bare", "data: {\"error\":{\"code\":500,\"message\":\"m\",\"type\":\"server_error\"}}\n\n", Error{"m", "server_error", "500", "event"}, "eof"},
		{"by name alone", "event: response.output_text.delta\ndata: {\"item_id\":\"m\",\"delta\":\"a\"}\n\nevent: error\ndata: {\"message\":\"m\"}\n\n", Error{"m", "", "", "event"}, "error"},
		{"failed", typed(`response.failed "response":{"status":"failed","error":{"code":"c","message":"m"}}`), Error{"m", "", "c", "event"}, "response.failed"},
		{"wins over the end", typed(`error "message":"m"`) + ok, Error{"m", "", "", "event"}, "response.completed"},
		{"after the end", ok + typed(`error "message":"m"`), Error{"m", "", "", "event"}, "response.completed"},
		{"the first wins", typed(`error "message":"m"`, `error "message":"n"`), Error{"m", "", "", "event"}, "error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := sayAt(Info{Path: "/v1/responses", ContentType: "text/event-stream"}, tc.body)
			if d := cmp.Diff(&tc.want, tr.Error); d != "" || tr.FinishNorm != normError || tr.DialectEnd || tr.Terminator != tc.terminator {
				t.Errorf("finish %q, end %v, terminator %q, error (-want +got):\n%s", tr.FinishNorm, tr.DialectEnd, tr.Terminator, d)
			}
		})
	}
}

// TestResponsesInOnePiece holds the answer that was not streamed.
func TestResponsesInOnePiece(t *testing.T) {
	info := Info{Path: "/v1/responses", ContentType: "application/json"}
	tr := sayAt(info, `{"id":"r1","object":"response","status":"completed","model":"m","error":null,"temperature":1,"tools":[],"timings":{"cache_n":1,"prompt_n":2},
		"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]},`+msgWhole+`,`+callWhole+`],
		"usage":{"input_tokens":5,"output_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":2}}}`)
	c := tr.Choice0()
	if c.Text != "Hello" || c.Reasoning != "Hm" || len(c.ToolCalls) != 1 || !tr.DialectEnd || tr.Terminator != "json" || tr.FinishNorm != normTools {
		t.Errorf("%+v, end %v, terminator %q, finish %q", c, tr.DialectEnd, tr.Terminator, tr.FinishNorm)
	}
	if u := tr.Usage; u == nil || *u.Prompt != 5 || *u.Completion != 3 || *u.Cached != 1 || *u.Reasoning != 2 || u.Partial || tr.ID != "r1" || tr.Model != "m" {
		t.Errorf("usage %+v, id %q, model %q", u, tr.ID, tr.Model)
	}
	if len(tr.Extras) != 1 || tr.Timings == nil {
		t.Errorf("extras %s, timings %+v", tr.Extras, tr.Timings)
	}
}

// TestResponsesWithoutAnAnswer holds that a response sent to the background is no failure, that a failed one is, and that
// somebody else's object is neither.
func TestResponsesWithoutAnAnswer(t *testing.T) {
	info := Info{Path: "/v1/responses", ContentType: "application/json"}
	later := sayAt(info, `{"id":"r1","object":"response","status":"queued","output":[],"usage":null}`)
	if !later.DialectEnd || *later.FinishReason != "queued" || later.FinishNorm != "" || later.Usage != nil {
		t.Errorf("in the background: end %v, finish %v", later.DialectEnd, later.FinishReason)
	}
	if failed := sayAt(info, `{"object":"response","status":"failed","error":{"message":"m","code":"c"}}`); failed.DialectEnd || failed.Error == nil || failed.Error.Where != whereBody {
		t.Errorf("failed: %+v", failed.Error)
	}
	if other := sayAt(info, `{"survey":1}`); other.Dialect != DialectNone {
		t.Errorf("somebody else's answer is in the dialect %q", other.Dialect)
	}
}

// TestResponsesJunk holds that what no engine should send neither panics nor stops the reader.
func TestResponsesJunk(t *testing.T) {
	events := []string{
		`output_item.added `, `output_item.added "item":7`, `output_item.done "item":{"type":"function_call","name":3,"arguments":[1]}`,
		`output_item.added "output_index":"x","item":{"type":9,"id":{}}`, `content_part.added "part":[]`, `content_part.done "part":{"type":"output_text","text":{}}`,
		`output_text.delta "output_index":-1,"item_id":4,"delta":["x"]`, `output_text.done "text":9`, `custom_tool_call_input.done "input":null`,
		`completed "response":"x"`, `completed "response":{"output":{"a":1},"usage":[],"status":{},"incomplete_details":"x"}`, ` `, `. `, `_call.delta `,
	}
	tr := respond(append(events, `output_text.delta "delta":"ok"`)...)
	if tr.Choice0().Text != "ok" || tr.ParseErrors != 0 || tr.Error != nil || len(tr.Events) != len(events)+1 {
		t.Errorf("text %q, %d parse errors, error %v, %d events", tr.Choice0().Text, tr.ParseErrors, tr.Error, len(tr.Events))
	}
}

// script is an answer in the Responses dialect: the items of its final response, and the events that tell them before.
type script struct {
	r      *rand.Rand
	body   string
	events []string
	items  []string
	naming int // 0 ids and places, 1 ids, 2 places, 3 ids that change with every event, and places
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// names are the fields by which an event names its item.
func (s *script) names(i int) string {
	switch s.naming {
	case 1:
		return fmt.Sprintf(`"item_id":"i%d"`, i)
	case 2:
		return fmt.Sprintf(`"output_index":%d`, i)
	case 3:
		return fmt.Sprintf(`"item_id":"x%d","output_index":%d`, s.r.Uint64(), i)
	}
	return fmt.Sprintf(`"item_id":"i%d","output_index":%d`, i, i)
}

// id is the id field of an item that is shown.
func (s *script) id(i int) string {
	switch s.naming {
	case 2:
		return ""
	case 3:
		return fmt.Sprintf(`"id":"y%d",`, s.r.Uint64())
	}
	return fmt.Sprintf(`"id":"i%d",`, i)
}

func (s *script) place(i int) string {
	if s.naming == 1 {
		return ""
	}
	return fmt.Sprintf(`"output_index":%d,`, i)
}

// pieces are one to three parts of a text, none of them empty but for a text that is.
func (s *script) pieces(text string) []string {
	runes := []rune(text)
	var out []string
	for len(runes) > 1 && len(out) < 2 {
		n := 1 + s.r.IntN(len(runes)-1)
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return append(out, string(runes))
}

// add adds an item with one text: a message, a refusal, a reasoning or a call. Some are streamed, some shown at their end
// first, and some in the final response alone.
func (s *script) add(text string) {
	i := len(s.items)
	kind := s.r.IntN(4)
	stream := [...]string{"output_text", "refusal", "reasoning_text", "function_call_arguments"}[kind]
	whole := func(text string) string {
		return [...]string{
			`{"type":"message",` + s.id(i) + `"content":[{"type":"output_text","text":` + text + `}]}`,
			`{"type":"message",` + s.id(i) + `"content":[{"type":"refusal","refusal":` + text + `}]}`,
			`{"type":"reasoning",` + s.id(i) + `"summary":[],"content":[{"type":"reasoning_text","text":` + text + `}]}`,
			`{"type":"function_call",` + s.id(i) + `"call_id":"c` + fmt.Sprint(i) + `","name":"f","arguments":` + text + `}`,
		}[kind]
	}
	field := [...]string{"text", "refusal", "text", "arguments"}[kind]
	how := s.r.IntN(3)
	if how == 0 {
		s.events = append(s.events, `response.output_item.added `+s.place(i)+`"item":`+whole(`""`))
		for _, p := range s.pieces(text) {
			s.events = append(s.events, `response.`+stream+`.delta `+s.names(i)+`,"content_index":0,"delta":`+quote(p))
		}
		s.events = append(s.events, `response.`+stream+`.done `+s.names(i)+`,"content_index":0,"`+field+`":`+quote(text))
	}
	if how < 2 {
		s.events = append(s.events, `response.output_item.done `+s.place(i)+`"item":`+whole(quote(text)))
	}
	s.items = append(s.items, whole(quote(text)))
}

func newScript(seed uint64, texts []string) *script {
	s := &script{r: rand.New(rand.NewPCG(seed, 7)), naming: int(seed % 4)}
	for _, text := range texts {
		s.add(text)
	}
	last := `"status":"completed","output":[` + strings.Join(s.items, ",") + `],"usage":{"input_tokens":3,"output_tokens":9}}`
	s.body = `{"object":"response","id":"r",` + last
	s.events = append(s.events, `response.completed "response":{"id":"r",`+last)
	return s
}

// FuzzResponsesTellTwice holds that the events of an answer come to the same as the response that ends them, whichever
// of them are there, whatever they go by, and however the reads cut them.
func FuzzResponsesTellTwice(f *testing.F) {
	for seed := range uint64(64) {
		f.Add("Hello|wörld|{\"a\":1}|!", seed)
	}
	f.Fuzz(func(t *testing.T, joined string, seed uint64) {
		var texts []string
		for text := range strings.SplitSeq(strings.ToValidUTF8(joined, "?"), "|") {
			if len(texts) < 12 { // each text once: of two that are equal nobody can tell which is repeated, when ids change
				texts = append(texts, fmt.Sprint(len(texts))+text)
			}
		}
		s := newScript(seed, texts)
		whole := sayAt(Info{Path: "/v1/responses", ContentType: "application/json"}, s.body)
		body := typed(s.events...)
		told := sayAt(Info{Path: "/v1/responses", ContentType: "text/event-stream"}, body)
		if !whole.DialectEnd || !told.DialectEnd || told.ParseErrors != 0 {
			t.Fatalf("ends %v %v, %d parse errors in\n%s", whole.DialectEnd, told.DialectEnd, told.ParseErrors, body)
		}
		if d := cmp.Diff(counted(whole.Choice0()), counted(told.Choice0())); d != "" {
			t.Fatalf("(-whole +told) by\n%s\n%s", body, d)
		}
		p := NewParser(Info{Path: "/v1/responses", ContentType: "text/event-stream"})
		for i, piece := range cutAt([]byte(body), seed) {
			p.Feed(piece, i)
		}
		if d := cmp.Diff(withoutReads(told), withoutReads(p.Finish(true))); d != "" {
			t.Fatalf("the split changes the transcript (-whole +split):\n%s", d)
		}
	})
}

// counted is a choice as counts: items that only the final response shows stand behind those that were streamed, so the
// texts of two tellings are the same but for the order of their items.
func counted(c Choice) map[string]int {
	out := map[string]int{}
	for name, text := range map[string]string{"text": c.Text, "reasoning": c.Reasoning, "refusal": c.Refusal} {
		for _, r := range text {
			out[name+string(r)]++
		}
	}
	for _, call := range c.ToolCalls {
		out[call.Name+"("+call.Arguments+")"+call.ID]++
	}
	return out
}
