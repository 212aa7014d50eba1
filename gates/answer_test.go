package gates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	sOK      = exchange.VerdictOK
	sFail    = exchange.VerdictFail
	sSkipped = exchange.VerdictSkipped
	sNotRun  = exchange.VerdictNotRun
	sOther   = exchange.VerdictIncomparable
)

// said is one judgment of a table: a check of an answer, and what must come of it.
type said struct {
	name    string
	check   exchange.Check
	answer  spoken
	want    exchange.VerdictStatus
	lenient exchange.VerdictStatus // "" = not looked at
	reason  string                 // in it
}

func judgeAll(t *testing.T, table []said) {
	t.Helper()
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) {
			v := judged(t, s.check, s.answer.exchange())
			if v.Status != s.want || s.lenient != "" && v.Lenient != s.lenient || !strings.Contains(v.Reason, s.reason) {
				t.Errorf("%s, lenient %q, %q; want %s, %q, %q", v.Status, v.Lenient, v.Reason, s.want, s.lenient, s.reason)
			}
		})
	}
}

func TestUsageAndFinish(t *testing.T) {
	whole := spoken{content: "hi", finish: "stop"}
	usage := func(text string) spoken { a := whole; a.usage = json.RawMessage(text); return a }
	finish := func(word any) spoken { a := whole; a.finish = word; return a }
	judgeAll(t, []said{
		{"usage", check("usage_present"), whole, sOK, "", ""},
		{"zeros are a report", check("usage_present"), usage(`{"prompt_tokens":0,"completion_tokens":0}`), sOK, "", ""},
		{"no usage", check("usage_present"), usage(`null`), sFail, "", "no usage"},
		{"empty usage", check("usage_present"), usage(`{}`), sFail, "", "no usage"},
		{"half a usage", check("usage_present"), usage(`{"prompt_tokens":4}`), sFail, "", "no completion"},
		{"the other half", check("usage_present"), usage(`{"completion_tokens":4}`), sFail, "", "no prompt"},
		{"usage of a refusal", check("usage_present"), spoken{status: 429, body: `{"error":{"message":"later"}}`}, sNotRun, "", "429"},
		{"finish", check("finish_reason"), whole, sOK, "", ""},
		{"no finish", check("finish_reason"), finish(""), sFail, "", "finish reason"},
		{"length", check("finish_reason"), finish("length"), sFail, "", `"length"`},
		{"length allowed", check("finish_reason", `{"allow":["length"]}`), finish("length"), sOK, "", ""},
		{"limit used up", check("finish_reason", `{"allow":["length"],"limit_used":true}`), limited(6), sOK, "", ""},
		{"limit not used up", check("finish_reason", `{"allow":["length"],"limit_used":true}`), limited(64), sFail, "", "5 of the 64 tokens"},
		{"no limit asked for", check("finish_reason", `{"allow":["length"],"limit_used":true}`), finish("length"), sOK, "", ""},
		{"filtered", check("finish_reason"), finish("content_filter"), sFail, "", "content_filter"},
		{"given up", check("finish_reason"), finish("error"), sFail, "", "not answered"},
		{"unknown word", check("finish_reason"), finish("because"), sFail, "", "because"},
		{"refused", check("finish_reason"), spoken{status: 400, body: `{"error":{"message":"too long"}}`}, sFail, "", "too long"},
		{"error in a 200", check("finish_reason"), spoken{body: `{"error":{"message":"boom"}}`}, sFail, "", "boom"},
		{"broken off", check("finish_reason"), spoken{body: `{"choices":[`, end: exchange.EndReset}, sFail, "", "upstream_truncated"},
		{"timed out", check("finish_reason"), spoken{body: `{"choices":[`, end: exchange.EndTimeout}, sFail, "", "timeout"},
		{"client left", check("finish_reason"), spoken{body: `{"choices":[`, end: exchange.EndClientGone}, sSkipped, "", "not waited for"},
		{"client left, usage", check("usage_present"), spoken{body: `{"choices":[`, end: exchange.EndClientGone}, sSkipped, "", "not waited for"},
		{"error as content", check("finish_reason"), spoken{target: "/api/chat", body: "data: {\"token\":\"Error: out of memory\"}\n\ndata: {\"done\":true}\n\n"}, sSkipped, "", ""},
	})
}

func TestHalfBudget(t *testing.T) {
	a := func(limit, tokens string) spoken {
		return spoken{content: "x", finish: "stop", request: `{"max_tokens":` + limit + `}`, usage: json.RawMessage(`{"prompt_tokens":1,"completion_tokens":` + tokens + `}`)}
	}
	none := a("64", "32")
	none.request = `{}`
	judgeAll(t, []said{
		{"half", check("half_budget"), a("64", "32"), sOK, "", ""},
		{"less", check("half_budget"), a("64", "31"), sSkipped, "", "31 of 64"},
		{"less, and it must", check("half_budget", `{"must":true}`), a("64", "31"), sFail, "", "31 of 64"},
		{"odd limit", check("half_budget"), a("63", "31"), sSkipped, "", ""},
		{"no limit", check("half_budget", `{"must":true}`), none, sSkipped, "", "no output limit"},
		{"no count", check("half_budget"), a("64", "null"), sSkipped, "", "reports no"},
		{"no count, and it must", check("half_budget", `{"must":true}`), a("64", "null"), sFail, "", "reports no"},
	})
}

func TestExactAndRecall(t *testing.T) {
	a := func(s string) spoken { return spoken{content: s, finish: "stop", thought: "42 silver-4821"} }
	codes := `{"codes":[{"label":"ALPHA","code":"silver-4821","depth":0.1},{"label":"BETA","code":"amber-7392","depth":0.5}]}`
	judgeAll(t, []said{
		{"exact", check("exact", `{"text":"42"}`), a("\u00a0\x1f 42\r\n"), sOK, "", ""},
		{"more than exact", check("exact", `{"text":"42"}`), a("42."), sFail, "", `"42."`},
		{"only thought", check("exact", `{"text":"42"}`), spoken{finish: "stop", thought: "42"}, sFail, "", ""},
		{"case", check("exact", `{"text":"OK"}`), a("ok"), sFail, "", ""},
		{"recall", check("long_context_recall", codes), a("ALPHA: silver-4821\nBETA: amber-7392"), sOK, "", ""},
		{"recall as JSON", check("long_context_recall", codes), a(`{"BETA":"amber-7392","ALPHA":"silver-4821"}`), sOK, "", ""},
		{"recall, codes first", check("long_context_recall", codes), a("silver-4821 is ALPHA and amber-7392 is BETA"), sOK, "", ""},
		{"recall without labels", check("long_context_recall", codes), a("amber-7392, silver-4821"), sOK, "", ""},
		{"recall without blanks", check("long_context_recall", codes), a("代码是silver-4821和amber-7392。"), sOK, "", ""},
		{"recall, swapped", check("long_context_recall", codes), a("ALPHA: amber-7392, BETA: silver-4821."), sFail, "", "ALPHA"},
		{"recall, labels first", check("long_context_recall", codes), a("BETA and ALPHA are amber-7392 and silver-4821"), sOK, "", ""},
		{"recall, table", check("long_context_recall", codes), a("| ALPHA | BETA |\n|---|---|\n| silver-4821 | amber-7392 |"), sOK, "", ""},
		{"recall, table swapped", check("long_context_recall", codes), a("| ALPHA | BETA |\n|---|---|\n| amber-7392 | silver-4821 |"), sFail, "", "ALPHA, BETA"},
		{"recall, one missing", check("long_context_recall", codes), a("ALPHA: silver-4821"), sFail, "", "1 of 2 codes are missing: amber-7392"},
		{"recall, longer word", check("long_context_recall", codes), a("silver-48210 amber-7392"), sFail, "", "silver-4821"},
		{"recall, other case", check("long_context_recall", codes), a("Silver-4821 amber-7392"), sFail, "", ""},
	})
}

func TestJSONAnswers(t *testing.T) {
	a := func(s string) spoken { return spoken{content: s, finish: "stop"} }
	two := check("json", `{"value":{"a":2}}`)
	calls := spoken{message: `{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, finish: "tool_calls",
		request: `{"tools":[{"type":"function","function":{"name":"f"}}]}`}
	undeclared := calls
	undeclared.request = `{}`
	cut := a("```\n{\"a\":2}\n```")
	cut.finish = "length"
	second := spoken{body: `{"choices":[{"index":0,"message":{"content":"{\"a\":2}"},"finish_reason":"stop"},{"index":1,"message":{"content":"no"},"finish_reason":"stop"}]}`}
	judgeAll(t, []said{
		{"value", two, a(" {\"a\":2}\n"), sOK, sOK, ""},
		{"escapes are one text", check("json", `{"value":"é"}`), a(`"\u00e9"`), sOK, sOK, ""},
		{"other kind of number", two, a(`{"a":2.0}`), sFail, sFail, "want"},
		{"equal in Python", check("json", `{"value":{"a":2},"equality":"python"}`), a(`{"a":2.0}`), sOK, sOK, ""},
		{"duplicate key", two, a(`{"a":1,"a":2}`), sFail, sFail, "duplicate"},
		{"last of duplicates", check("json", `{"value":{"a":2},"duplicates":"last"}`), a(`{"a":1,"a":2}`), sOK, sOK, ""},
		{"something behind, last", check("json", `{"value":{"a":2},"duplicates":"last"}`), a(`{"a":2} x`), sFail, sFail, ""},
		{"NaN", check("json"), a(`{"a":NaN}`), sFail, sFail, "no JSON"},
		{"too large", check("json"), a(`1e999`), sFail, sFail, "overflows"},
		{"words around", check("json"), a("Here: {}"), sFail, sFail, "no JSON"},
		{"no object", check("json", `{"object":true}`), a("[1]"), sFail, sFail, "no object"},
		{"fence", two, a("```json\n{\"a\":2}\n```"), sFail, sOK, ""},
		{"fence of one line", two, a("```{\"a\":2}```"), sFail, sFail, ""},
		{"two fences", two, a("```\n{\"a\":2}\n```\n```\n```"), sFail, sFail, ""},
		{"fence, cut", two, cut, sFail, sFail, ""},
		{"fence with words", two, a("Here:\n```\n{\"a\":2}\n```"), sFail, sFail, ""},
		{"empty", check("json"), a(""), sFail, sFail, "empty"},
		{"in the reasoning", check("json"), spoken{thought: `{}`, finish: "stop"}, sFail, sFail, "reasoning"},
		{"refusal", check("json"), spoken{message: `{"content":null,"refusal":"I cannot"}`, finish: "stop"}, sFail, sFail, "refuses"},
		{"a call instead", check("json", `{"object":true}`), calls, sSkipped, "", "calls a tool"},
		{"a call where a value is due", two, calls, sFail, sFail, ""},
		{"a call nobody declared", check("json", `{"object":true}`), undeclared, sFail, sFail, ""},
		{"second choice", check("json"), second, sFail, sFail, "choice 1"},
		{"no choice", check("json"), spoken{body: `{"choices":[],"usage":{"prompt_tokens":1}}`}, sNotRun, "", ""},
		{"unicode", check("json_unicode", `{"value":{"city":"Zürich 東京 🗼"}}`), a(`{"city":"Z\u00fcrich 東京 🗼"}`), sOK, sOK, ""},
		{"unicode decomposed", check("json_unicode", `{"value":"é"}`), a(`"e\u0301"`), sFail, sFail, ""},
		{"unicode read as Latin-1", check("json_unicode", `{"value":"é"}`), a(`"Ã©"`), sFail, sFail, "Latin-1"},
		{"unicode in pieces", check("json_unicode", `{"value":"é"}`), a("\"\ufffd\""), sFail, sFail, "replacement"},
	})
}

const citySchema = `{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"integer"}},"required":["city"],"additionalProperties":false}`

func TestSchemaAnswers(t *testing.T) {
	a := func(s string) spoken {
		return spoken{content: s, finish: "stop", request: `{"response_format":{"type":"json_schema","json_schema":{"name":"c","schema":` + citySchema + `}}}`}
	}
	none := a(`{}`)
	none.request = `{}`
	judgeAll(t, []said{
		{"valid", check("json_schema"), a(`{"city":"Oslo","n":2}`), sOK, sOK, ""},
		{"missing", check("json_schema"), a(`{"n":2}`), sFail, sFail, "city"},
		{"other type", check("json_schema"), a(`{"city":"Oslo","n":2.5}`), sFail, sFail, "n"},
		{"extra", check("json_schema"), a(`{"city":"Oslo","x":2}`), sFail, sFail, "x"},
		{"no JSON", check("json_schema"), a(`Oslo`), sFail, sFail, "no JSON"},
		{"fence", check("json_schema"), a("```json\n{\"city\":\"Oslo\"}\n```"), sFail, sOK, ""},
		{"own schema", check("json_schema", `{"schema":{"const":1}}`), a(`1`), sOK, sOK, ""},
		{"no schema", check("json_schema"), none, sSkipped, "", "states a schema"},
		{"no such type", check("json_schema", `{"schema":{"type":"thing"}}`), a(`1`), sOther, "", "schema"},
		{"refers outside", check("json_schema", `{"schema":{"$ref":"http://example.com/a.json"}}`), a(`1`), sOther, "", "example.com"},
		{"refers to a file", check("json_schema", `{"schema":{"$ref":"file:///etc/passwd"}}`), a(`1`), sOther, "", "not part of the request"},
	})
}

func TestSustainedDecode(t *testing.T) {
	good := strictVectors(t).Input.Texts["@good"]
	a := func(content, tokens string) spoken {
		return spoken{content: content, finish: "length", request: `{"max_tokens":512}`, usage: json.RawMessage(`{"prompt_tokens":1,"completion_tokens":` + tokens + `}`)}
	}
	stated := a(good, "512")
	stated.finish = "tool_calls"
	none := a(good, "512")
	none.request = `{}`
	loop := "Hash keys and values. Array. Collision by chaining. " + strings.Repeat("Let me explain the hash table in a moment. ", 9)
	judgeAll(t, []said{
		{"good", check("sustained_decode"), a(good, "512"), sOK, "", ""},
		{"budget of the check", check("sustained_decode", `{"budget":513}`), a(good, "512"), sFail, "", "512 of 513"},
		{"float", check("sustained_decode"), a(good, "512.0"), sFail, "", "no integer"},
		{"exponent", check("sustained_decode"), a(good, "5.12e2"), sFail, "", "no integer"},
		{"text", check("sustained_decode"), a(good, `"512"`), sFail, "", "no completion"},
		{"none", check("sustained_decode"), a(good, `null`), sFail, "", "no completion"},
		{"other end", check("sustained_decode"), stated, sFail, "", "neither length nor stop"},
		{"no budget", check("sustained_decode"), none, sOther, "", "budget"},
		{"refusal", check("sustained_decode"), a("I’m sorry, but "+good, "512"), sFail, "", "refuses"},
		{"other subject", check("sustained_decode"), a(strings.Repeat("The sea is deep and blue, and ships go over it. ", 10), "512"), sFail, "", "hash"},
		{"promises", check("sustained_decode"), a(loop, "512"), sFail, "", "announce"},
		{"own subject", check("sustained_decode", `{"coverage":[["ship"],["sea"]],"min_chars":20}`), a("The sea is deep, and ships go over it.", "512"), sOK, "", ""},
		{"not in a word", check("sustained_decode", `{"coverage":[["sea"]],"min_chars":20}`), a("The chelsea flower show is open today.", "512"), sFail, "", "sea"},
	})
}

func TestDegenerate(t *testing.T) {
	a := func(s string) spoken { return spoken{content: s, finish: "length"} }
	prose := strictVectors(t).Input.Texts["@good"]
	var rows strings.Builder
	for i := range 60 {
		rows.WriteString("| row " + strings.Repeat("x", i%7) + " | " + string(rune('a'+i%26)) + text(i*i) + " | 0 | 0 |\n")
	}
	call := spoken{message: `{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, finish: "tool_calls"}
	judgeAll(t, []said{
		{"prose", check("degenerate"), a(prose), sOK, "", ""},
		{"table", check("degenerate"), a(rows.String()), sOK, "", ""},
		{"short refrain", check("degenerate"), a("no no no no no no"), sOK, "", ""},
		{"ruler", check("degenerate"), a(prose + prose[:200] + "\n" + strings.Repeat("-", 250)), sOK, "", ""},
		{"loop", check("degenerate"), a(strings.Repeat("I will now explain. ", 15)), sFail, "", "14 times"},
		{"loop behind prose", check("degenerate"), a(prose + strings.Repeat(" and so on", 30)), sFail, "", "30 times"},
		{"loop cut inside a copy", check("degenerate"), a(prose + strings.Repeat(" and so on", 30) + " and"), sFail, "", "and"},
		{"one character", check("degenerate"), a(strings.Repeat("!", 300)), sFail, "", "!"},
		{"one character of another script", check("degenerate"), a(strings.Repeat("的", 300)), sFail, "", "的"},
		{"few words in no order", check("degenerate"), a(fewWords(240, "the ", "cat ", "sat ", "mat ")), sFail, "", "distinct"},
		{"few characters in no order", check("degenerate"), a(fewWords(400, "0", "1")), sFail, "", "distinct"},
		{"empty", check("degenerate"), spoken{content: "", finish: "stop"}, sFail, "", "empty"},
		{"thought to the end", check("degenerate"), spoken{thought: "hm", finish: "length"}, sSkipped, "", "no text"},
		{"call", check("degenerate"), call, sSkipped, "", "no text"},
	})
}

// limited is an answer of 5 tokens that its limit is said to have cut, and of which so many were asked for.
func limited(limit int) spoken {
	return spoken{content: "the sea", finish: "length", request: fmt.Sprintf(`{"model":"m","messages":[],"max_tokens":%d}`, limit)}
}

// fewWords is a text of n words in an order that does not repeat.
func fewWords(n int, words ...string) string {
	var b strings.Builder
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		b.WriteString(words[int(x>>16)%len(words)])
	}
	return b.String()
}

// TestAutoReadsEachDialect holds which gates an exchange asks for by itself.
func TestAutoReadsEachDialect(t *testing.T) {
	base := []string{"degenerate", "finish_reason", "usage_present"}
	with := func(more ...string) []string { return append(more, base...) }
	for _, c := range []struct {
		name, target, body string
		want               []string
	}{
		{"plain", "/v1/chat/completions", `{}`, base},
		{"stream without usage", "/v1/chat/completions", `{"stream":true}`, []string{"degenerate", "finish_reason"}},
		{"stream with usage", "/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true}}`, base},
		{"limit", "/v1/chat/completions", `{"max_tokens":3}`, with("half_budget")},
		{"forced", "/v1/completions", `{"ignore_eos":true}`, []string{"finish_reason", "usage_present"}},
		{"object", "/v1/chat/completions", `{"response_format":{"type":"json_object"}}`, with("json")},
		{"text", "/v1/chat/completions", `{"response_format":{"type":"text"}}`, base},
		{"schema", "/v1/chat/completions", `{"response_format":{"type":"json_schema","json_schema":{"schema":` + citySchema + `}}}`, with("json_schema")},
		{"llama.cpp's short form", "/v1/chat/completions", `{"response_format":{"type":"json_object","schema":` + citySchema + `}}`, with("json_schema")},
		{"vLLM", "/v1/chat/completions", `{"guided_json":` + citySchema + `}`, with("json_schema")},
		{"vLLM as text", "/v1/chat/completions", `{"structured_outputs":{"json":` + text(citySchema) + `}}`, with("json_schema")},
		{"Responses", "/v1/responses", `{"text":{"format":{"type":"json_schema","schema":` + citySchema + `}}}`, with("json_schema")},
		{"Responses object", "/v1/responses", `{"text":{"format":{"type":"json_object"}}}`, with("json")},
		{"Ollama", "/api/chat", `{"format":` + citySchema + `}`, with("json_schema")},
		{"Ollama object", "/api/chat", `{"format":"json"}`, with("json")},
		{"Gemini", "/v1beta/models/m:generateContent", `{"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}}`, with("json_schema")},
		{"Gemini without schema", "/v1beta/models/m:generateContent", `{"generationConfig":{"responseMimeType":"application/json"}}`, with("json")},
		{"Anthropic", "/v1/messages", `{"max_tokens":9,"output_format":{"type":"json_schema","schema":` + citySchema + `}}`, with("half_budget", "json_schema")},
		{"llama.cpp", "/completion", `{"json_schema":` + citySchema + `}`, with("json_schema")},
		{"SGLang", "/generate", `{"text":"x","sampling_params":{"json_schema":` + text(citySchema) + `}}`, with("json_schema")},
		{"embeddings", "/v1/embeddings", `{"input":"x"}`, nil},
		{"no dialect", "/v1/models", ``, nil},
		{"no JSON", "/v1/chat/completions", `{`, base},
	} {
		x := spoken{target: c.target, request: c.body}.exchange()
		var got []string
		for _, k := range Auto(x) {
			if err := Validate(k); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if g, _ := Lookup(k.Gate); g.Family == "answer" {
				got = append(got, k.Gate)
			}
		}
		if diff := cmp.Diff(set(c.want), set(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
	get := spoken{}.exchange()
	get.Request.Method = "GET"
	if got := Auto(get); got != nil {
		t.Errorf("a GET asks for %v", got)
	}
}

func set(words []string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[w] = true
	}
	return m
}

func TestGeminiSchemaBecomesPlain(t *testing.T) {
	own := `{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"enum":["a"]},"list":{"type":"ARRAY","items":{"type":"INTEGER"}}},"propertyOrdering":["type"]}`
	for content, want := range map[string]exchange.VerdictStatus{
		`{"type":"a","list":[1]}`: sOK, `{"type":null}`: sOK, `{"type":"b"}`: sFail, `{"list":["x"]}`: sFail, `[]`: sFail,
	} {
		body := `{"candidates":[{"content":{"parts":[{"text":` + text(content) + `}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`
		a := spoken{target: "/v1beta/models/m:generateContent", body: body,
			request: `{"generationConfig":{"responseMimeType":"application/json","responseSchema":` + own + `}}`}
		if v := judged(t, check("json_schema"), a.exchange()); v.Status != want {
			t.Errorf("%s: %s (%s), want %s", content, v.Status, v.Reason, want)
		}
	}
}
