package scenario

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const ownFile = `
# questions of ours
{"id":"mine","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is <b>?"}]}
{"id":"talk","summary":"two turns","version":3,"messages":[{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"then":["And now?"],"max_tokens":40,"modality":"image","body":{"top_p":0.90,"temperature":0.7,"tools":[{"type":"function","function":{"name":"f","strict":true}}]},"checks":[{"gate":"degenerate"}],"streams":2,"repeats":3,"half_budget":true,"blocking":true}
`

func TestReadOwn(t *testing.T) {
	own, err := ReadOwn(strings.NewReader(ownFile), gates.Validate)
	if err != nil {
		t.Fatal(err)
	}
	m := Materials{Own: own}
	mine := named(t, "mine", m)
	want := `{"model":"m","messages":[{"role":"system","content":"[n]\n[validation t]\nBe brief."},{"role":"user","content":"What is <b>?"}],` +
		`"max_tokens":128,"temperature":0,"stream":false}`
	if got := string(opening(t, mine, Options{Nonce: "n", Tag: "t", Model: "m"}).Body); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	talk := named(t, "talk", m)
	if talk.Turns != 2 || talk.Version != 3 || talk.Streams != 2 || talk.Repeats != 3 || !talk.HalfBudget || !talk.Blocking || talk.Modality != "image" || talk.Suite != SuiteOwn {
		t.Errorf("%+v", talk)
	}
	r, err := talk.Request(Options{Nonce: "n", Stream: true}, []Answer{{Content: "A picture."}})
	if err != nil {
		t.Fatal(err)
	}
	want = `{"messages":[{"role":"user","content":[{"type":"text","text":"[n]\nLook."},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},` +
		`{"role":"assistant","content":"A picture."},{"role":"user","content":"And now?"}],"max_tokens":40,"temperature":0.7,"stream":false,` +
		`"tools":[{"type":"function","function":{"name":"f","strict":true}}],"top_p":0.90}`
	if diff := cmp.Diff(want, string(r.Body)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c := talk.Case("c", Options{}); c.ScenarioVersion != 3 || c.Checks[len(c.Checks)-1].Gate != "degenerate" {
		t.Errorf("%+v", c)
	}
	a, _ := talk.Digest(Options{})
	plain := own[1]
	plain.first = func(o Options) chat { c := talk.first(o); c.more = nil; return c }
	if b, _ := plain.Digest(Options{}); a == b {
		t.Error("further fields are no part of the digest")
	}
	for _, answer := range []Answer{{}, {Calls: []wire.ToolCall{{ID: "a", Name: "f"}}}} {
		if _, err := talk.Request(Options{}, []Answer{answer}); !errors.Is(err, ErrStopped) {
			t.Errorf("%+v: %v", answer, err)
		}
	}
}

func TestReadOwnRefuses(t *testing.T) {
	message := `"messages":[{"role":"user","content":"x"}]`
	for line, why := range map[string]string{
		"":              "there is none",
		"{":             "line 1",
		"# a list\n[1]": "line 2: it is no JSON object", `"text"`: "no JSON object",
		`{"id":"a","what":1}`:                 "what",
		`{"id":"A b",` + message + `}`:        "lower case",
		`{"id":"../a",` + message + `}`:       "lower case",
		`{"id":"text_short",` + message + `}`: "built-in", `{"id":"prefill_2x",` + message + `}`: "built-in", `{"id":"short",` + message + `}`: "built-in",
		`{"id":"a"}`: "messages",
		`{"id":"a","messages":[{"role":"robot","content":"x"}]}`:                        "role",
		`{"id":"a","messages":[{"role":"user","content":7}]}`:                           "message 1: content",
		`{"id":"a","messages":[{"role":"user","content":[{"type":"text","txt":"x"}]}]}`: "txt",
		`{"id":"a","messages":[{"role":"user","content":"x","name":"n"}]}`:              "name",
		`{"id":"a","max_tokens":-1,` + message + `}`:                                    "below 0",
		`{"id":"a","modality":"smell",` + message + `}`:                                 "modality",
		`{"id":"a","checks":[{"gate":"none"}],` + message + `}`:                         "checks",
		`{"id":"a","body":[],` + message + `}`:                                          "body",
		`{"id":"a","body":{"stream":true},` + message + `}`:                             "stream is not stated there",
		`{"id":"a","body":{"temperature":"hot"},` + message + `}`:                       "temperature",
		`{"id":"a",` + message + "}\n" + `{"id":"a",` + message + "}":                   "line 2",
	} {
		if _, err := ReadOwn(strings.NewReader(line), gates.Validate); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", line, err, why)
		}
	}
	if _, err := ReadOwn(iotest.ErrReader(errors.New("gone")), gates.Validate); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a file that breaks off: %v", err)
	}
}

// FuzzReadOwn holds that what is read makes whole requests of JSON.
func FuzzReadOwn(f *testing.F) {
	for line := range strings.Lines(ownFile) {
		f.Add(line)
	}
	f.Add(`{"id":"a","messages":[{"role":"user","content":null}],"body":{"a":{"b":[1.0,"<"]}}}`)
	f.Fuzz(func(t *testing.T, file string) {
		own, err := ReadOwn(strings.NewReader(file), gates.Validate)
		if err != nil {
			return
		}
		for _, s := range own {
			r, err := s.Request(Options{Nonce: "n", Tag: "t", Stream: true}, nil)
			if err != nil || !json.Valid(r.Body) {
				t.Errorf("%v: %s", err, r.Body)
			}
			if again, _ := s.Request(Options{Nonce: "n", Tag: "t", Stream: true}, nil); string(again.Body) != string(r.Body) {
				t.Errorf("%s, then %s", r.Body, again.Body)
			}
		}
	})
}

// TestLimitsThatAreStated holds that a limit which the user states holds, also where it is the usual one, and that a line
// which changed is told.
func TestLimitsThatAreStated(t *testing.T) {
	read := func(limit string) Scenario {
		out, err := ReadOwn(strings.NewReader(`{"id":"mine","messages":[{"role":"user","content":"Hello"}]`+limit+`}`), func(exchange.Check) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	if marked, err := ReadOwn(strings.NewReader("\xef\xbb\xbf"+ownFile), gates.Validate); err != nil || len(marked) == 0 {
		t.Errorf("a file that begins with a mark of its encoding: %v", err)
	}
	none, usual, more := read(``), read(`,"max_tokens":128`), read(`,"max_tokens":200`)
	if none.Limit() != 0 || usual.Limit() != UnstatedTokens || more.Limit() != 200 {
		t.Errorf("limits %d, %d, %d", none.Limit(), usual.Limit(), more.Limit())
	}
	if none.Line == usual.Line || none.Line != read(``).Line || !strings.HasPrefix(none.Line, exchange.DigestPrefix) {
		t.Errorf("lines %s, %s", none.Line, usual.Line)
	}
	for name, want := range map[string]int{"text_short": 0, "agentic": 512, "prefill_1k": 8, "loom_decode": 300, "function_call": 0} {
		if s := named(t, name, Materials{}); s.Limit() != want || s.Line != "" || s.Fixed() != (name == "prefill_1k" || name == "loom_decode") {
			t.Errorf("%s: limit %d, fixed %t, line %q", name, s.Limit(), s.Fixed(), s.Line)
		}
	}
}
