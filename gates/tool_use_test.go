package gates

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

func use(name string, args any) replyCall { return replyCall{"c1", "function", name, args} }

const (
	useOne   = `{"category":"arguments","calls":[{"name":"f","arguments":{"n":1,"x":1.0,"on":true,"list":[1,2],"in":{"a":null}}}]}`
	useTwo   = `{"category":"multistep","calls":[{"name":"f","arguments":{"n":1}},{"name":"g","arguments":{}}],"answer":{"total":3}}`
	useNone  = `{"category":"abstention","text":"No tool fits."}`
	useAny   = `{"category":"selection","calls":[{"name":"f"}]}`
	useFetch = `{"category":"retrieval","calls":[{"name":"f","arguments":{"n":1}}],"text":"19"}`
)

func useVerdict(t *testing.T, params string, answers ...reply) exchange.Verdict {
	t.Helper()
	var xs []*exchange.Exchange
	for _, a := range answers {
		xs = append(xs, a.exchange(withTools(""), false))
	}
	return judged(t, check("tool_use", params), xs...)
}

func TestToolUse(t *testing.T) {
	one := func(args any) []reply { return []reply{withCalls(use("f", args))} }
	first, second := withCalls(use("f", `{"n":1}`)), withCalls(use("g", `{}`))
	const good = `{"n":1,"x":1.0,"on":true,"list":[1,2],"in":{"a":null}}`
	replaced := func(old, new string) []reply { return one(strings.Replace(good, old, new, 1)) }
	for name, c := range map[string]struct {
		params  string
		answers []reply
		status  exchange.VerdictStatus
		why     string
		turns   string
	}{
		"good":                {useOne, one(good), exchange.VerdictOK, "", `["ok"]`},
		"other order of keys": {useOne, one(`{"in":{"a":null},"list":[1,2],"on":true,"x":1.00,"n":1}`), exchange.VerdictOK, "", `["ok"]`},
		"integer as float":    {useOne, replaced(`"n":1`, `"n":1.0`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"float as integer":    {useOne, replaced(`"x":1.0`, `"x":1`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"true as 1":           {useOne, replaced(`"on":true`, `"on":1`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"1 as true":           {useOne, replaced(`"n":1`, `"n":true`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"1 as text":           {useOne, replaced(`"n":1`, `"n":"1"`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"list in other order": {useOne, replaced(`[1,2]`, `[2,1]`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"list longer":         {useOne, replaced(`[1,2]`, `[1,2,3]`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"null missing":        {useOne, replaced(`{"a":null}`, `{}`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"key more":            {useOne, replaced(`"n":1`, `"n":1,"m":1`), exchange.VerdictFail, "the arguments of f", `["fail"]`},
		"key twice":           {useOne, replaced(`"n":1`, `"n":2,"n":1`), exchange.VerdictFail, "duplicate key", `["fail"]`},
		"overflow":            {useOne, replaced(`"n":1`, `"n":1e999`), exchange.VerdictFail, "overflows", `["fail"]`},
		"a list":              {useOne, one(`[1]`), exchange.VerdictFail, "no JSON object", `["fail"]`},
		"two calls":           {useOne, []reply{withCalls(use("f", good), use("f", good))}, exchange.VerdictFail, "exactly one call", `["fail"]`},
		"no call":             {useOne, []reply{{content: good}}, exchange.VerdictFail, "exactly one call", `["fail"]`},
		"other tool":          {useOne, []reply{withCalls(use("g", good))}, exchange.VerdictFail, `it calls "g", not f`, `["fail"]`},
		"any arguments":       {useAny, one(`{"x":1}`), exchange.VerdictOK, "", `["ok"]`},
		"steps":               {useTwo, []reply{first, second, {content: " {\"total\":3}\n"}}, exchange.VerdictOK, "", `["ok","ok","ok"]`},
		"second step wrong":   {useTwo, []reply{first, first, {content: `{"total":3}`}}, exchange.VerdictFail, "turn 2: ", `["ok","fail","not_run"]`},
		"first step wrong":    {useTwo, []reply{second}, exchange.VerdictFail, "turn 1: ", `["fail","not_run","not_run"]`},
		"stopped":             {useTwo, []reply{first}, exchange.VerdictPartial, "1/3 turns", `["ok","not_run","not_run"]`},
		"wrong total":         {useTwo, []reply{first, second, {content: `{"total":3.0}`}}, exchange.VerdictFail, "turn 3: want", `["ok","ok","fail"]`},
		"total in prose":      {useTwo, []reply{first, second, {content: `It is {"total":3}`}}, exchange.VerdictFail, "turn 3: the content is no strict JSON", `["ok","ok","fail"]`},
		"call at the end":     {useTwo, []reply{first, second, second}, exchange.VerdictFail, "turn 3: it calls g", `["ok","ok","fail"]`},
		"retrieved":           {useFetch, []reply{first, {content: "19\n"}}, exchange.VerdictOK, "", `["ok","ok"]`},
		"retrieved other":     {useFetch, []reply{first, {content: "19 degrees"}}, exchange.VerdictFail, "turn 2: want", `["ok","fail"]`},
		"abstained":           {useNone, []reply{{content: "  No tool fits.\n"}}, exchange.VerdictOK, "", `["ok"]`},
		"abstained otherwise": {useNone, []reply{{content: "No tool fits"}}, exchange.VerdictFail, "want", `["fail"]`},
		"abstained by a call": {useNone, one(`{}`), exchange.VerdictFail, "no call is expected", `["fail"]`},
		"abstained with JSON": {useNone, []reply{{content: `No tool fits. {"name":"f","arguments":{}}`}}, exchange.VerdictFail, "holds JSON", `["fail"]`},
		"an error":            {useOne, []reply{{status: 400, body: `{"error":{"message":"context too long"}}`}}, exchange.VerdictFail, "refused", `["fail"]`},
		"engine down":         {useOne, []reply{{status: 500, body: `{"error":{"message":"tools are not supported"}}`}}, exchange.VerdictNotRun, "no whole answer", `["not_run"]`},
	} {
		t.Run(name, func(t *testing.T) {
			v := useVerdict(t, c.params, c.answers...)
			wantVerdict(t, v, c.status, c.why)
			if !strings.Contains(string(v.Detail), `"turns":`+c.turns) {
				t.Errorf("detail is %s, want the turns %s", v.Detail, c.turns)
			}
		})
	}
}

// TestToolUseUnsupported holds that only an engine which says that it has no tools is taken to have none.
func TestToolUseUnsupported(t *testing.T) {
	for message, want := range map[string]exchange.VerdictStatus{
		"registry.ollama.ai/library/gemma:2b does not support tools":                                   exchange.VerdictUnsupported,
		"This model doesn't support tool calling":                                                      exchange.VerdictUnsupported,
		"Tool use is not supported by this model":                                                      exchange.VerdictUnsupported,
		"function calling is not enabled":                                                              exchange.VerdictUnsupported,
		"\\\"auto\\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set": exchange.VerdictUnsupported,
		"tools param requires --jinja flag":                                                            exchange.VerdictUnsupported,
		"Tools are not supported":                                                                      exchange.VerdictUnsupported,
		"the keyword pattern in the schema of the tool is not supported":                               exchange.VerdictFail,
		"unsupported tool_choice":                                                                      exchange.VerdictFail,
		"tool 'f' is not available":                                                                    exchange.VerdictFail,
		"the context is too long for this model, which does not support more than 2048 tokens":         exchange.VerdictFail,
		"tool call ids must be unique":                                                                 exchange.VerdictFail,
		"streaming is not supported":                                                                   exchange.VerdictFail,
	} {
		for _, status := range []int{400, 422} {
			v := useVerdict(t, useOne, reply{status: status, body: `{"error":{"message":"` + message + `"}}`})
			if v.Status != want {
				t.Errorf("%d %s: %s (%s), want %s", status, message, v.Status, v.Reason, want)
			}
		}
		v := useVerdict(t, useOne, reply{status: 404, body: `{"error":{"message":"` + message + `"}}`})
		wantVerdict(t, v, exchange.VerdictFail, "refused")
	}
	wantVerdict(t, useVerdict(t, useOne, reply{status: 400, body: "this model does not support tools"}), exchange.VerdictUnsupported, "does not support tools")
	x := wiretest.LoadCapture(t, "ollama/api-chat-tools").Exchange()
	wantVerdict(t, judged(t, check("tool_use", useOne), x), exchange.VerdictUnsupported, "lab-tiny:latest does not support tools")
}

func TestToolUseParams(t *testing.T) {
	for name, params := range map[string]string{
		"category":         `{"category":"other","text":"x"}`,
		"nothing":          `{"category":"selection"}`,
		"abstention calls": `{"category":"abstention","calls":[{"name":"f"}],"text":"x"}`,
		"abstention JSON":  `{"category":"abstention","answer":{}}`,
		"two answers":      `{"category":"retrieval","answer":{},"text":"x"}`,
		"bad answer":       `{"category":"retrieval","answer":{"a":1,"a":2}}`,
		"nameless":         `{"category":"selection","calls":[{"arguments":{}}]}`,
		"bad arguments":    `{"category":"selection","calls":[{"name":"f","arguments":{"a":1e999}}]}`,
		"unknown":          `{"category":"selection","calls":[{"name":"f","strict":true}]}`,
	} {
		if err := Validate(check("tool_use", params)); err == nil {
			t.Errorf("%s: parameters are taken", name)
		}
	}
}

func TestHoldsJSON(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "no": false, "{": false, "f(x)[": false, "a {b} c": false, "see [1]": true, `so {"a":1}.`: true, "{}": true,
		strings.Repeat("[", 1<<20): false,
	} {
		if got := holdsJSON(text); got != want {
			t.Errorf("%.20q: %v", text, got)
		}
	}
}

// TestToolUseScenarios leads each case of the suite to its end with the calls that it expects, and breaks each in turn.
func TestToolUseScenarios(t *testing.T) {
	categories := map[string]bool{}
	for _, s := range scenario.Suite(scenario.SuiteToolUse) {
		var p useParams
		if err := json.Unmarshal(s.Case("c", scenario.Options{}).Checks[0].Params, &p); err != nil {
			t.Fatal(err)
		}
		categories[p.Category] = true
		var answers []reply
		for _, c := range p.Calls {
			answers = append(answers, withCalls(use(c.Name, string(c.Arguments))))
		}
		switch {
		case p.Text != nil:
			answers = append(answers, reply{content: *p.Text + "\n"})
		case p.Answer != nil:
			answers = append(answers, reply{content: string(p.Answer)})
		}
		d := dialog{scenario: s.ID}
		wantVerdict(t, d.verdict(t, answers...), exchange.VerdictOK, "")
		c := d.converse(t, answers...)
		if v := judgedCase(t, c, check("tool_call_shape")); v.Status != exchange.VerdictOK && p.Category != "abstention" {
			t.Errorf("%s: what the suite expects is not what its tools allow: %s", s.ID, v.Reason)
		}
		for i := range answers {
			broken := slices.Clone(answers)
			broken[i] = withCalls(use("get_local_time", `{"timezone":"UTC"}`))
			wantVerdict(t, d.verdict(t, broken...), exchange.VerdictFail, "turn ")
		}
	}
	for _, want := range []string{"selection", "arguments", "abstention", "multistep", "retrieval"} {
		if !categories[want] {
			t.Errorf("no case of %s", want)
		}
	}
}

func TestUseRates(t *testing.T) {
	first := withCalls(use("f", `{"n":1}`))
	verdicts := []exchange.Verdict{
		useVerdict(t, useTwo, first), useVerdict(t, useTwo, first, first),
		useVerdict(t, useFetch, first, reply{content: "19"}),
		useVerdict(t, useOne, reply{status: 400, body: `{"error":{"message":"this model does not support tools"}}`}),
		{Gate: "json", Detail: []byte(`"x"`)}, judged(t, check("tool_use", useOne)),
	}
	rates, err := UseRates(verdicts)
	if err != nil {
		t.Fatal(err)
	}
	half, third, whole := 4.0/8, 2.0/6, 1.0
	want := []UseRate{
		{"", 8, 4, &half}, {"selection", 0, 0, nil}, {"arguments", 0, 0, nil}, {"abstention", 0, 0, nil},
		{"multistep", 6, 2, &third}, {"polish", 0, 0, nil}, {"retrieval", 2, 2, &whole},
	}
	if diff := cmp.Diff(want, rates); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	if _, err := UseRates([]exchange.Verdict{{Gate: "tool_use", Detail: []byte(`{`)}}); err == nil {
		t.Error("a broken detail is read")
	}
}
