package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// told are the calls of an answer: name, arguments, name, arguments ...
func calling(words ...string) Answer {
	a := Answer{}
	for i := 0; i+1 < len(words); i += 2 {
		a.Calls = append(a.Calls, wire.ToolCall{ID: fmt.Sprint("c", i), Type: "function", Name: words[i], Arguments: words[i+1]})
	}
	return a
}

// TestFreeLoops holds that the results of the free loops follow from the arguments alone, one call a turn or several at
// once, and that an answer without a call ends them.
func TestFreeLoops(t *testing.T) {
	loops := map[string]Scenario{}
	for _, s := range agentLoops(true, true) {
		loops[s.ID] = s
	}
	if len(loops) != 8 || !loops["agent_weather_thinking"].Thinking || loops["agent_weather"].Thinking {
		t.Fatalf("%d loops", len(loops))
	}
	if n := len(agentLoops(true, false)); n != 5 {
		t.Errorf("%d loops of the weaker levels", n)
	}
	for name, c := range map[string]struct {
		loop    string
		answers []Answer
		results []string // that the next request ends with; nil = there is none
		err     error
	}{
		"one call":      {"agent_weather", []Answer{calling("get_weather", `{"city":"Oslo","units":"celsius"}`)}, []string{`{"city":"Oslo","temperature":6,"units":"celsius"}`}, nil},
		"three at once": {"agent_weather", []Answer{calling("get_weather", `{"city":"Oslo","units":"fahrenheit"}`, "get_weather", `{"city":"Rome"}`, "get_weather", `{`)}, []string{`{"city":"Oslo","temperature":42.8,"units":"fahrenheit"}`, `{"error":"there is no weather of this city"}`, `{"error":"there is no weather of this city"}`}, nil},
		"sums": {"agent_calculator", []Answer{calling("calculate", `{"operation":"add","a":48,"b":36}`), calling("calculate", `{"operation":"multiply","a":84,"b":25}`), calling("calculate", `{"operation":"subtract","a":2100,"b":250}`)},
			[]string{`{"result":84}`, `{"result":2100}`, `{"result":1850}`}, nil},
		"odd sums": {"agent_calculator", []Answer{calling("calculate", `{"operation":"divide","a":7,"b":2}`, "calculate", `{"operation":"divide","a":1,"b":0}`,
			"calculate", `{"operation":"power","a":1,"b":2}`, "calculate", `{"a":1}`, "calculate", `{"operation":"multiply","a":1e300,"b":1e300}`)},
			[]string{`{"result":3.5}`, `{"error":"it divides by zero"}`, `{"error":"there is no such operation"}`, `{"error":"an operation and two numbers are wanted"}`, `{"error":"the result is too large"}`}, nil},
		"another tool":  {"agent_difference", []Answer{calling("get_time", `{}`)}, []string{`{"error":"there is no such tool"}`}, nil},
		"no call":       {"agent_difference_thinking", []Answer{{Content: "27 degrees"}}, nil, ErrOver},
		"no id":         {"agent_weather", []Answer{{Calls: []wire.ToolCall{{Name: "get_weather"}}}}, nil, ErrStopped},
		"too many":      {"agent_weather", []Answer{calling(), calling(), calling(), calling(), calling()}, nil, ErrOver},
		"a strict loop": {"agent_loop", []Answer{{Content: "74.25"}}, nil, ErrStopped},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := loops[c.loop].Request(Options{Model: "m"}, c.answers)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || errors.Is(err, ErrOver) && errors.Is(err, ErrStopped) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			var body struct {
				Messages []struct {
					Role    string
					Content string
					ID      string `json:"tool_call_id"`
				}
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range body.Messages {
				if m.Role == "tool" {
					got = append(got, m.Content)
					if m.ID == "" {
						t.Error("a result names no call")
					}
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.results, "\n") {
				t.Errorf("results %q, want %q", got, c.results)
			}
			if !strings.Contains(string(r.Body), `"logprobs":true`) || r.Turn != len(c.answers) {
				t.Errorf("turn %d: %s", r.Turn, r.Body)
			}
		})
	}
}
