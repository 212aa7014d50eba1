package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// spelled gives the engines of the built-in profiles, spoken to as recorded.
func spelled(t testing.TB) func(engine string) Endpoint {
	t.Helper()
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	known := SpellingsOf(catalog.Profiles())
	return func(engine string) Endpoint {
		p, ok := catalog.Lookup(engine)
		if !ok {
			t.Fatalf("there is no profile of %s", engine)
		}
		e := EndpointOf(wire.DialectNone, p)
		e.Known = known
		return e
	}
}

// respelt writes down what became of a body: edits, and then changes with a mark, ! for lost.
func respelt(r Respelled) string {
	var out []string
	for _, e := range r.Edits {
		if e.Value == nil {
			out = append(out, "-"+e.Path)
		} else {
			out = append(out, "+"+e.Path+"="+string(e.Value))
		}
	}
	for _, c := range r.Changes {
		if c.Lost {
			out = append(out, c.Path+"!")
		} else {
			out = append(out, c.Path+">"+c.To)
		}
	}
	return strings.Join(out, " ")
}

// modes are the spellings of thinking in chat by engine, written by hand: on, off, and how a request with a word for how
// much is sent, where - means that the word is lost and "" that it stays.
var modes = []struct{ engine, on, off, word string }{
	{"llamacpp", `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`, ""},
	{"vllm", `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`, ""},
	{"sglang", `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`, ""},
	{"strata", `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`, "-"},
	{"tensorfold", `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`, "-"},
	{"tensorsharp", `"think":true`, `"think":false`, "-"},
	{"ninfer", `"enable_thinking":true`, `"enable_thinking":false`, "-"},
	{"tabbyapi", `"enable_thinking":true`, `"enable_thinking":false`, ""},
	{"ollama", `"reasoning_effort":"medium"`, `"reasoning_effort":"none"`, ""},
	{"openai", `"reasoning_effort":"medium"`, `"reasoning_effort":"none"`, ""},
}

// TestThinkingBetweenEveryPairOfEngines holds that a request which turns thinking on or off does so at every engine, and
// that one which does so in the spelling of the target is not touched.
func TestThinkingBetweenEveryPairOfEngines(t *testing.T) {
	at := spelled(t)
	for _, from := range modes {
		for _, to := range modes {
			e := at(to.engine)
			for mode, pair := range map[Switch][2]string{On: {from.on, to.on}, Off: {from.off, to.off}} {
				said, wanted := pair[0], pair[1]
				got := apply(t, e, `{"model":"m",`+said+`,"messages":[]}`)
				want := `{"model":"m","messages":[],` + wanted + `}`
				lost := false
				switch {
				case said == wanted:
					want = `{"model":"m",` + said + `,"messages":[]}`
				case strings.Contains(said, "medium") && to.word == "":
					want = `{"model":"m",` + said + `,"messages":[]}`
				case strings.Contains(said, "medium"):
					lost = true
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s to %s, %s: %s", from.engine, to.engine, mode, diff)
				}
				r := e.Respell(chat, []byte(`{`+said+`}`))
				if hasLoss := slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Lost }); hasLoss != lost || (len(r.Edits) == 0) != (len(r.Changes) == 0) {
					t.Errorf("%s to %s, %s: %s", from.engine, to.engine, mode, respelt(r))
				}
			}
		}
	}
}

// apply makes the edits, for bodies whose members are all at the top or one below.
func apply(t *testing.T, e Endpoint, body string) string {
	t.Helper()
	o, ok := parseObject([]byte(body))
	if !ok {
		t.Fatalf("%s is no object", body)
	}
	for _, edit := range e.Respell(chat, []byte(body)).Edits {
		o = edited(o, edit.Path, edit)
	}
	return string(encode(o))
}

func edited(o object, path string, e Edit) object {
	name, rest, deeper := strings.Cut(path, ".")
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	switch {
	case deeper && i >= 0:
		inner, _ := parseObject(o[i].value)
		o[i].value = encode(edited(inner, rest, e))
	case e.Value == nil:
		o = slices.DeleteFunc(o, func(m member) bool { return m.name == name })
	default:
		o.merge(nested(path, e.Value))
	}
	return o
}

// TestRespelling is about the fields by themselves. No want is no edit.
func TestRespelling(t *testing.T) {
	at := spelled(t)
	for _, tc := range []struct{ name, to, body, want string }{
		{"a word it takes", "vllm", `{"reasoning_effort":"high"}`, ""},
		{"a word for templates", "ollama", `{"chat_template_kwargs":{"reasoning_effort":"high"}}`,
			`-chat_template_kwargs +reasoning_effort="high" chat_template_kwargs.reasoning_effort>{"reasoning_effort":"high"}`},
		{"a word it does not take", "ninfer", `{"reasoning_effort":"high"}`, `-reasoning_effort +enable_thinking=true reasoning_effort!`},
		{"a word and a switch", "tabbyapi", `{"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"low"}}`,
			`-chat_template_kwargs +enable_thinking=true +reasoning_effort="low" chat_template_kwargs.enable_thinking>{"enable_thinking":true,"reasoning_effort":"low"} chat_template_kwargs.reasoning_effort>{"enable_thinking":true,"reasoning_effort":"low"}`},
		{"a word and a switch, where the word is the switch", "openai", `{"think":true,"chat_template_kwargs":{"reasoning_effort":"low"}}`,
			`-think -chat_template_kwargs +reasoning_effort="low" think>{"reasoning_effort":"low"} chat_template_kwargs.reasoning_effort>{"reasoning_effort":"low"}`},
		{"the word none", "llamacpp", `{"reasoning_effort":"none"}`, `-reasoning_effort +chat_template_kwargs.enable_thinking=false reasoning_effort>{"chat_template_kwargs":{"enable_thinking":false}}`},
		{"other variables stay", "tensorsharp", `{"chat_template_kwargs":{"enable_thinking":false,"x":1}}`, `-chat_template_kwargs.enable_thinking +think=false chat_template_kwargs.enable_thinking>{"think":false}`},
		{"another variable of templates", "sglang", `{"chat_template_kwargs":{"thinking":true}}`, ""},
		{"null is nothing", "vllm", `{"think":null,"n_predict":null}`, ""},
		{"into what is null", "vllm", `{"chat_template_kwargs":null,"think":true}`, `-think +chat_template_kwargs={"enable_thinking":true} think>{"chat_template_kwargs":{"enable_thinking":true}}`},
		{"into what is no object", "vllm", `{"chat_template_kwargs":[],"think":true}`, `-think think!`},
		{"its own beside others that agree", "tensorsharp", `{"think":false,"chat_template_kwargs":{"enable_thinking":false}}`, ""},
		{"the same at a vendor's", "openai", `{"reasoning_effort":"none","think":false}`, `-think think>{}`},
		{"its own beside others that do not", "tensorsharp", `{"think":false,"chat_template_kwargs":{"enable_thinking":true}}`, `-chat_template_kwargs chat_template_kwargs.enable_thinking!`},
		{"others that do not agree", "ninfer", `{"think":false,"chat_template_kwargs":{"enable_thinking":true}}`, `-chat_template_kwargs -think chat_template_kwargs.enable_thinking! think!`},
		{"two words", "ollama", `{"chat_template_kwargs":{"reasoning_effort":"low"},"reasoning_effort":"high"}`, `-chat_template_kwargs chat_template_kwargs.reasoning_effort!`},
		{"twice", "ninfer", `{"think":false,"think":true}`, `-think think!`},
		{"a value nobody knows", "ninfer", `{"think":"false","reasoning_effort":7}`, ""},
		{"an engine that says nothing of thinking", "prism", `{"think":false,"reasoning_effort":"high"}`, ""},

		{"a limit it takes", "vllm", `{"max_completion_tokens":5}`, ""},
		{"a limit it takes, not its first", "openai", `{"max_tokens":5}`, ""},
		{"a limit it does not take", "tensorsharp", `{"max_completion_tokens":5.0}`, `-max_completion_tokens +max_tokens=5.0 max_completion_tokens>{"max_tokens":5.0}`},
		{"a limit of llama.cpp", "openai", `{"n_predict":5}`, `-n_predict +max_completion_tokens=5 n_predict>{"max_completion_tokens":5}`},
		{"two limits that agree", "tensorsharp", `{"n_predict":5,"max_completion_tokens":5}`, `-max_completion_tokens -n_predict +max_tokens=5 max_completion_tokens>{"max_tokens":5} n_predict>{"max_tokens":5}`},
		{"two limits that do not", "tensorsharp", `{"n_predict":5,"max_tokens":6}`, `-n_predict n_predict!`},
		{"beside its own", "tensorsharp", `{"n_predict":5,"max_tokens":5}`, ""},
		{"a limit of nobody", "vllm", `{"maximum":5}`, ""},

		{"a penalty", "llamacpp", `{"repetition_penalty":1.10}`, `-repetition_penalty +repeat_penalty=1.10 repetition_penalty>{"repeat_penalty":1.10}`},
		{"a penalty", "vllm", `{"repeat_penalty":1.1}`, `-repeat_penalty +repetition_penalty=1.1 repeat_penalty>{"repetition_penalty":1.1}`},
		{"a penalty it has not", "ollama", `{"repeat_penalty":1.1}`, `-repeat_penalty repeat_penalty!`},
		{"a penalty, and nothing is known", "prism", `{"repeat_penalty":1.1}`, ""},
		{"not a vendor's", "openai", `{"repetition_penalty":1.1,"top_k":3,"min_p":0.1,"thinking_budget":5}`, `-repetition_penalty -top_k -min_p -thinking_budget repetition_penalty! top_k! min_p! thinking_budget!`},
		{"a budget", "vllm", `{"thinking_budget":64}`, `-thinking_budget +thinking_token_budget=64 thinking_budget>{"thinking_token_budget":64}`},
		{"a budget, and nothing is known", "llamacpp", `{"thinking_budget":64}`, ""},
		{"no object", "vllm", `[{"think":true}]`, ""},
		{"no JSON", "vllm", `{"think":true`, ""},
	} {
		t.Run(tc.name+" to "+tc.to, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, respelt(at(tc.to).Respell(chat, []byte(tc.body)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRespellingIsOfChatAlone holds that other dialects stay, and that completions have the one limit of their own.
func TestRespellingIsOfChatAlone(t *testing.T) {
	e := spelled(t)("tensorsharp")
	for d, want := range map[wire.Dialect]string{
		wire.DialectCompletions: `-n_predict +max_tokens=5 n_predict>{"max_tokens":5}`, wire.DialectAnthropic: "", wire.DialectOllama: "", wire.DialectResponses: "", wire.DialectNone: "",
	} {
		if got := respelt(e.Respell(d, []byte(`{"n_predict":5,"chat_template_kwargs":{"enable_thinking":false}}`))); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
	e.Dialect = wire.DialectAnthropic
	if e.Respells(chat) {
		t.Error("what is translated is respelled too")
	}
	if (Endpoint{}).Respells(chat) {
		t.Error("an engine of which nothing is known is respelled for")
	}
}

// FuzzRespelling holds that what was respelled has nothing left to respell, and that no edit is without a reason.
func FuzzRespelling(f *testing.F) {
	for _, m := range modes {
		f.Add(`{` + m.on + `,"n_predict":3}`)
	}
	f.Add(`{"think":true,"think":false,"chat_template_kwargs":null,"max_tokens":1e400,"repeat_penalty":-0}`)
	at := spelled(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, m := range modes {
			e := at(m.engine)
			r := e.Respell(chat, []byte(body))
			if (len(r.Edits) == 0) != (len(r.Changes) == 0) {
				t.Fatalf("%s: %s", m.engine, respelt(r))
			}
			if len(r.Edits) == 0 {
				continue
			}
			again := apply(t, e, body)
			if next := e.Respell(chat, []byte(again)); len(next.Edits) > 0 {
				t.Fatalf("%s: %s became %s, and then %s", m.engine, body, again, respelt(next))
			}
		}
	})
}
