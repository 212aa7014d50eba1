package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const geminiPath = "/v1beta/models/gemini-3:streamGenerateContent"

// candid parses chunks of Gemini as an event stream.
func candid(chunks ...string) *Transcript {
	return sayAt(Info{Path: geminiPath + "?alt=sse", ContentType: "text/event-stream"}, stream(chunks...))
}

// parts is a chunk whose one candidate has the given parts.
func parts(p string) string {
	return `{"candidates":[{"content":{"parts":[` + p + `],"role":"model"}}]}`
}

// TestGeminiParts holds the kinds of the parts of a candidate.
func TestGeminiParts(t *testing.T) {
	call := func(i int, id, name, args string) ToolCall {
		return ToolCall{Index: i, ID: id, Name: name, Arguments: args}
	}
	for _, tc := range []struct {
		name   string
		chunks []string
		kinds  string
		want   Choice
	}{
		{"text and thought in one chunk", []string{parts(`{"text":"Hm","thought":true},{"text":"Hi","thought":false}`)}, "b", Choice{Text: "Hi", Reasoning: "Hm"}},
		{"empty text and a signature", []string{parts(`{"text":"","thoughtSignature":"Ci4="}`)}, ".", Choice{}},
		{"calls", []string{parts(`{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"id":"i","name":"f","args":{}}}`), parts(`{"functionCall":{"name":"g"}}`)}, "cc",
			Choice{ToolCalls: []ToolCall{call(0, "", "f", `{"a":1}`), call(1, "i", "f", "{}"), call(2, "", "g", "")}}},
		{"a call in pieces", []string{parts(`{"functionCall":{"id":"i","name":"f","willContinue":true}}`),
			parts(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}`),
			parts(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"y"}],"willContinue":true}}`), parts(`{"functionCall":{}}`), parts(`{"functionCall":{"name":"g","args":{}}}`)}, "ccc.c",
			Choice{ToolCalls: []ToolCall{call(0, "i", "f", `[{"jsonPath":"$.a","stringValue":"x","willContinue":true}][{"jsonPath":"$.a","stringValue":"y"}]`), call(1, "", "g", "{}")}}},
		{"media", []string{parts(`{"inlineData":{"mimeType":"image/png","data":"aGk="}}`), parts(`{"inlineData":{"data":""}}`), parts(`{"fileData":{"fileUri":"gs://x"}}`)}, "m.m", Choice{}},
		{"code that runs there", []string{parts(`{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"output":"1"}}`), parts(`{"toolCall":{"id":"i","toolType":"GOOGLE_SEARCH","args":{}}},{"toolResponse":{}}`)}, "cc",
			Choice{ToolCalls: []ToolCall{{Type: "executableCode", Name: "code_execution", Arguments: `{"language":"PYTHON","code":"1"}`}, {Index: 1, ID: "i", Type: "toolCall", Name: "GOOGLE_SEARCH", Arguments: "{}"}}}},
		{"wrapped by Code Assist", []string{`{"response":` + parts(`{"text":"Hi"}`) + `,"traceId":"x"}`}, "t", Choice{Text: "Hi"}},
		{"junk", []string{`{"candidates":{}}`, `{"candidates":[7,null,{"content":[]},{"content":{"parts":"x"}},{"index":0,"content":{"parts":[7,{"text":{}},{"functionCall":[]},{"functionCall":{}},{"executableCode":1}]}}]}`,
			`{"promptFeedback":[],"usageMetadata":[]}`, `{"promptFeedback":{"blockReason":{}},"usageMetadata":{"promptTokenCount":"x"}}`}, "....", Choice{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := candid(tc.chunks...)
			if d := cmp.Diff(tc.want, tr.Choice0()); d != "" || tr.Error != nil || tr.DialectEnd || tr.Usage != nil {
				t.Errorf("error %v, end %v, usage %v, content (-want +got):\n%s", tr.Error, tr.DialectEnd, tr.Usage, d)
			}
			if got := strings.ReplaceAll(kindsOf(tr), "tr", "b"); got != tc.kinds {
				t.Errorf("kinds %s, want %s", got, tc.kinds)
			}
		})
	}
}

// TestGeminiUsage holds that thoughts are added to the completion once, whichever way the counts are made.
func TestGeminiUsage(t *testing.T) {
	none := int64(-1)
	for _, tc := range []struct {
		name, usage                           string
		prompt, completion, cached, reasoning int64
	}{
		{"thoughts beside candidates", `"promptTokenCount":50,"candidatesTokenCount":5,"thoughtsTokenCount":12,"totalTokenCount":67,"cachedContentTokenCount":32`, 50, 17, 32, 12},
		{"thoughts among candidates", `"promptTokenCount":50,"candidatesTokenCount":17,"thoughtsTokenCount":12,"totalTokenCount":67`, 50, 17, none, 12},
		{"no total", `"promptTokenCount":50,"candidatesTokenCount":5,"thoughtsTokenCount":12`, 50, 17, none, 12},
		{"thoughts alone", `"promptTokenCount":50,"thoughtsTokenCount":12,"totalTokenCount":62`, 50, 12, none, 12},
		{"the total alone", `"promptTokenCount":50,"totalTokenCount":53`, 50, 3, none, none},
		{"prompts of tools", `"promptTokenCount":50,"toolUsePromptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":68`, 50, 8, none, 3},
		{"the prompt alone", `"promptTokenCount":50`, 50, none, none, none},
		{"a total below the prompt", `"promptTokenCount":50,"totalTokenCount":3`, 50, none, none, none},
	} {
		u := candid(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{` + tc.usage + `}}`).Usage
		for name, f := range map[string]struct {
			got  *int64
			want int64
		}{"prompt": {u.Prompt, tc.prompt}, "completion": {u.Completion, tc.completion}, "cached": {u.Cached, tc.cached}, "reasoning": {u.Reasoning, tc.reasoning}} {
			if (f.got == nil) != (f.want == none) || f.got != nil && *f.got != f.want {
				t.Errorf("%s: %s is %v, want %d", tc.name, name, f.got, f.want)
			}
		}
	}
	total := `"usageMetadata":{"promptTokenCount":50,"totalTokenCount":50}}`
	said := strings.TrimSuffix(parts(`{"text":"a"}`), "}") + "," + total
	for name, chunks := range map[string][]string{
		"with content": {said}, "behind content": {said, said, `{"candidates":[{"finishReason":"STOP"}],` + total},
	} {
		if u := candid(chunks...).Usage; u.Completion != nil || *u.Prompt != 50 {
			t.Errorf("a total of the prompt alone, %s: %+v", name, u)
		}
	}
	if u := candid(`{"candidates":[{"finishReason":"STOP"}],` + total).Usage; *u.Completion != 0 || u.Partial {
		t.Errorf("a total of the prompt alone, without content: %+v", u)
	}
	if u := candid(`{"candidates":[{"content":{}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`).Usage; !u.Partial {
		t.Error("the counts of an answer that was cut are not marked as running ones")
	}
}

// TestGeminiEnds holds the finish reasons, a refused prompt, and errors.
func TestGeminiEnds(t *testing.T) {
	for reason, norm := range map[string]string{
		"STOP": normStop, "MAX_TOKENS": normLength, "SAFETY": normFiltered, "RECITATION": normFiltered, "LANGUAGE": normFiltered, "BLOCKLIST": normFiltered,
		"PROHIBITED_CONTENT": normFiltered, "SPII": normFiltered, "IMAGE_SAFETY": normFiltered, "OTHER": "",
		"MALFORMED_FUNCTION_CALL": normError, "UNEXPECTED_TOOL_CALL": normError, "TOO_MANY_TOOL_CALLS": normError,
	} {
		tr := candid(`{"candidates":[{"finishReason":"` + reason + `"}]}`)
		if tr.FinishNorm != norm || *tr.FinishReason != reason || tr.DialectEnd != (norm != normError) || tr.Error != nil {
			t.Errorf("%s is %q, end %v, error %v", reason, tr.FinishNorm, tr.DialectEnd, tr.Error)
		}
	}
	if tr := candid(`{"promptFeedback":{"blockReason":"JAILBREAK"}}`); *tr.FinishReason != "blocked:JAILBREAK" || tr.FinishNorm != normFiltered || !tr.DialectEnd {
		t.Errorf("a refused prompt: %v, %q, end %v", tr.FinishReason, tr.FinishNorm, tr.DialectEnd)
	}
	server := candid(`{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}},{"text":"a"}]},"finishReason":"STOP"}]}`)
	if server.FinishNorm != normStop {
		t.Errorf("code that ran there makes the stop %q", server.FinishNorm)
	}
	const failure = `{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`
	for _, tc := range []struct {
		info  Info
		body  string
		where string
	}{
		{Info{Path: geminiPath, ContentType: "text/event-stream"}, stream(parts(`{"text":"a"}`), failure, `{"candidates":[{"finishReason":"STOP"}]}`), whereEvent},
		{Info{Path: geminiPath, ContentType: "application/json"}, "[" + parts(`{"text":"a"}`) + ",\r\n" + failure + "]", whereEvent},
		{Info{Path: geminiPath, ContentType: "application/json", Status: 503}, "[" + failure + "]", whereHTTPStatus},
		{Info{Path: geminiPath, ContentType: "application/json"}, failure, whereBody},
	} {
		tr := sayAt(tc.info, tc.body)
		if d := cmp.Diff(&Error{"m", "UNAVAILABLE", "503", tc.where}, tr.Error); d != "" || tr.DialectEnd || tr.FinishNorm != normError {
			t.Errorf("end %v, finish %q, error (-want +got):\n%s", tr.DialectEnd, tr.FinishNorm, d)
		}
	}
	two := candid(`{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]}}]}`)
	if two.DialectEnd || len(two.Choices) != 2 || two.Choices[1].Text != "b" {
		t.Errorf("one of two candidates ended: end %v, %+v", two.DialectEnd, two.Choices)
	}
}

// FuzzGeminiFramings holds that the chunks of an answer say the same as an event stream, as an array and as lines, in any
// cut, and the same as the answer in one piece.
func FuzzGeminiFramings(f *testing.F) {
	for seed := range uint64(16) {
		f.Add("Hello|wörld||!", seed)
	}
	f.Fuzz(func(t *testing.T, joined string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		var chunks, all []string
		for _, text := range strings.Split(strings.ToValidUTF8(joined, "?"), "|") {
			p := [...]string{`{"text":%s}`, `{"text":%s,"thought":true}`, `{"functionCall":{"name":"f","args":{"a":%s}}}`}[r.IntN(3)]
			p = fmt.Sprintf(p, quote(text))
			chunks, all = append(chunks, parts(p)), append(all, p)
		}
		const last = `"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`
		chunks = append(chunks, `{"candidates":[{`+last)
		whole := sayAt(Info{Path: geminiPath, ContentType: "application/json"}, `{"candidates":[{"content":{"parts":[`+strings.Join(all, ",")+`]},`+last)
		for contentType, body := range map[string]string{
			"text/event-stream": stream(chunks...), "application/json": "[" + strings.Join(chunks, ",\r\n") + "]\n", "application/x-ndjson": strings.Join(chunks, "\n"),
		} {
			p := NewParser(Info{Path: geminiPath, ContentType: contentType})
			for i, piece := range cutAt([]byte(body), seed) {
				p.Feed(piece, i)
			}
			told := p.Finish(true)
			if d := cmp.Diff(whole.Choices, told.Choices); d != "" || len(told.Events) != len(chunks) || !told.DialectEnd || told.FinishNorm != whole.FinishNorm {
				t.Fatalf("%s: %d events, end %v, (-whole +told):\n%s", contentType, len(told.Events), told.DialectEnd, d)
			}
			if d := cmp.Diff(whole.Usage, told.Usage); d != "" {
				t.Fatalf("%s: usage (-whole +told):\n%s", contentType, d)
			}
		}
	})
}
