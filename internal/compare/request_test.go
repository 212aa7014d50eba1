package compare

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func fieldsOf(path, body string) Fields {
	return readFields([]byte(body), wire.ReadRequest(path, nil, []byte(body)))
}

func TestFieldsAreReadOverDialects(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		want             Fields
	}{
		{"chat", "/v1/chat/completions", `{"stream":true,"max_completion_tokens":64,"temperature":0.0,"chat_template_kwargs":{"enable_thinking":false}}`,
			Fields{"stream": "true", fieldLimit: "64", "temperature": "0.0", "chat_template_kwargs.enable_thinking": "false"}},
		{"ollama", "/api/chat", `{"options":{"num_predict":64,"temperature":0},"think":true}`,
			Fields{"stream": "true", fieldLimit: "64", "options.temperature": "0", "think": "true"}},
		{"gemini", "/v1beta/models/m:generateContent", `{"generationConfig":{"maxOutputTokens":64,"thinkingConfig":{"thinkingBudget":0}}}`,
			Fields{"stream": "false", fieldLimit: "64", "generationConfig.thinkingConfig.thinkingBudget": "0"}},
		{"anthropic", "/v1/messages", `{"max_tokens":64,"thinking":{"type":"enabled","budget_tokens":10}}`,
			Fields{"stream": "false", fieldLimit: "64", "thinking.type": `"enabled"`, "thinking.budget_tokens": "10"}},
		{"no JSON", "/v1/chat/completions", `hello`, Fields{"stream": "false"}},
	} {
		if diff := cmp.Diff(c.want, fieldsOf(c.path, c.body)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
	a := fieldsOf("/v1/chat/completions", `{"messages":[{"role":"user","content":"a long question that is told by a digest of it, as it has no place here"}]}`)
	b := fieldsOf("/v1/chat/completions", `{ "messages": [{"content":"a long question that is told by a digest of it, as it has no place here","role":"user"}] }`)
	if a["messages"] != b["messages"] || len(a["messages"]) > longField {
		t.Errorf("%q and %q", a["messages"], b["messages"])
	}
}

func TestWhatDifferencesForbid(t *testing.T) {
	for _, c := range []struct {
		name        string
		a, b        Fields
		sameDialect bool
		want        []exchange.Reason
	}{
		{"nothing", Fields{"seed": "1", "model": "a"}, Fields{"seed": "2", "model": "b"}, true, nil},
		{"sampling and limit", Fields{"temperature": "0", fieldLimit: "1"}, Fields{"temperature": "1", fieldLimit: "2"}, true, []exchange.Reason{ReasonLimit, ReasonSampling}},
		{"sampling that another dialect spells otherwise", Fields{"top_p": "1"}, Fields{"generationConfig.topP": "1"}, false, nil},
		{"thinking in the same words", Fields{"think": "true"}, Fields{"think": "false"}, true, []exchange.Reason{ReasonThinking}},
		{"thinking in other words", Fields{"think": "true"}, Fields{"reasoning_effort": `"high"`}, true, nil},
		{"tools on one side", Fields{"tools": "x"}, Fields{}, true, []exchange.Reason{ReasonStructure}},
		{"tools of another dialect", Fields{"tools": "x"}, Fields{}, false, nil},
	} {
		if diff := cmp.Diff(c.want, forbids(differences(c.a, c.b), c.sameDialect)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestEntryOfADetail(t *testing.T) {
	figure := func(v float64) exchange.Figure { return exchange.Figure{Value: v, Basis: exchange.BasisMeasured} }
	d := exchange.Detail{Summary: exchange.Summary{ID: "x", Path: "/v1/chat/completions", Interventions: []exchange.Intervention{{}},
		Metrics: exchange.Figures{measure.TTFTMS: figure(200), measure.LastTokenMS: figure(700), measure.ReasoningTokens: figure(3), measure.HeadersMS: figure(1)}}}
	d.Timeline.Wall = time.Unix(1000, 0)
	d.Timeline.SendStart, d.Timeline.BodyEnd, d.Timeline.Clock = exchange.MarkAt(5e8), exchange.MarkAt(2e9), exchange.ClockKernel
	d.OutputText = "hi"
	e := NewEntry(&d, []byte(`{"temperature":1}`))
	if e.sent != 1000.5 || e.first != 1000.7 || e.last != 1001.2 || e.end != 1002 || !e.Reasoned || e.Request["temperature"] != "1" {
		t.Errorf("%+v", e)
	}
	if e.Answer != answerHash(Answer{Text: "hi"}) || e.Row.Interventions != nil || e.Row.Metrics[measure.HeadersMS].Present() || e.clock != exchange.ClockKernel {
		t.Errorf("%+v", e)
	}
	delete(d.Metrics, measure.TTFTMS)
	if e := NewEntry(&d, nil); e.first != 1000.5 || e.last != 1002 {
		t.Errorf("without tokens %v to %v", e.first, e.last)
	}
}
