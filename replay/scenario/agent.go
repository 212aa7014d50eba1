package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The loops of the agent family. That of the invoice is strict: one call of one tool a turn. In the others the model calls
// what it likes, as often and as many at once as it likes, and what a call gives depends on its arguments alone: the same
// calls have the same results at every engine, so that every turn can be held against the reference's.

// freeLoop is a loop of the second kind.
type freeLoop struct {
	id, summary, prompt string
	tools               []tool
	needs               []string // tools without which it cannot be done
}

// freeTurns bounds a free loop: three calls one after the other, the answer, and one turn to spare.
const freeTurns = 5

// freeLoops are the free loops.
func freeLoops() []freeLoop {
	const weather, calculator = "get_weather", "calculate"
	return []freeLoop{
		{"agent_weather", "a loop of look-ups, every turn compared",
			"Which of Lisbon, Oslo and Cairo is the warmest right now, in celsius? Look each city up with the weather tool. Then name the city and its temperature.",
			[]tool{weatherTool(weatherSchema)}, []string{weather}},
		{"agent_calculator", "a loop of sums that rest on each other, every turn compared",
			"What is (48 + 36) times 25, less 250? Have the calculator do each operation, one a call, and work nothing out yourself. Then state the result.",
			[]tool{calculatorTool()}, []string{calculator}},
		{"agent_difference", "a loop of look-ups and a sum of their results, every turn compared",
			"By how many degrees is Cairo warmer than Oslo right now, in celsius? Look both cities up with the weather tool and let the calculator subtract. Then state the difference.",
			[]tool{weatherTool(weatherSchema), calculatorTool()}, []string{weather, calculator}},
	}
}

func calculatorTool() tool {
	return declare("calculate", "Does one operation on two numbers.",
		`{"type":"object","properties":{"operation":{"type":"string","enum":["add","subtract","multiply","divide"]},`+
			`"a":{"type":"number"},"b":{"type":"number"}},"required":["operation","a","b"],"additionalProperties":false}`)
}

// agentLoops are the loops of a level: all of them, and behind thinking the strict one or all.
func agentLoops(thinking, whole bool) []Scenario {
	loops := []Scenario{agentLoop()}
	for _, l := range freeLoops() {
		loops = append(loops, l.scenario())
	}
	if !thinking {
		return loops
	}
	n := 1
	if whole {
		n = len(loops)
	}
	for _, s := range loops[:n] {
		s.ID, s.Summary, s.Thinking = s.ID+"_thinking", s.Summary+", behind thinking", true
		loops = append(loops, s)
	}
	return loops
}

// agentLoop is the workflow of the run matrix, whose turns are compared.
func agentLoop() Scenario {
	first, next := agentic(matrixTotal)
	s := Scenario{ID: "agent_loop", Summary: "a tool loop, every turn compared", Turns: 3, first: first, next: next}
	return s.looped(map[string]any{"calls": []string{"read_invoice", "calculate_total"}})
}

func (l freeLoop) scenario() Scenario {
	first := func(Options) chat {
		return chat{Messages: []message{user(l.prompt)}, Tools: l.tools, ToolChoice: "auto"}
	}
	s := Scenario{ID: l.id, Summary: l.summary, Turns: freeTurns, first: first, next: l.next}
	return s.looped(map[string]any{"calls": l.needs, "free": true})
}

// looped makes a conversation a loop whose turns are compared, by these parameters.
func (s Scenario) looped(params map[string]any) Scenario {
	b, err := json.Marshal(params)
	if err != nil {
		panic("scenario: the tools of a loop are JSON")
	}
	first := s.first
	s.Suite, s.maxTokens, s.checks = SuiteLevels, 512, []exchange.Check{{Gate: "agent_turns", Params: b}}
	s.first = func(o Options) chat {
		c := first(o)
		c.Logprobs, c.TopLogprobs = true, levelTop
		return c
	}
	return s
}

// next gives the results of all calls of an answer. One without calls is the last.
func (l freeLoop) next(o Options, _ int, before chat, a Answer) (chat, error) {
	if len(a.Calls) == 0 {
		return chat{}, ErrOver
	}
	before.Messages = []message{a.told()}
	for _, c := range a.Calls {
		if c.ID == "" {
			return chat{}, fmt.Errorf("the call of %s has no id to answer to", c.Name)
		}
		before.Messages = append(before.Messages, o.result(c.ID, resultOf(c.Name, c.Arguments)))
	}
	return before, nil
}

// temperatures are those of the cities, in degrees celsius.
var temperatures = map[string]float64{"Lisbon": 21, "Oslo": 6, "Cairo": 33}

// resultOf is what a tool gives for arguments: an object with an error where it can make nothing of them.
func resultOf(name, arguments string) string {
	switch name {
	case "get_weather":
		var q struct{ City, Units string }
		degrees, known := 0.0, false
		if json.Unmarshal([]byte(arguments), &q) == nil {
			degrees, known = temperatures[q.City]
		}
		if !known {
			return `{"error":"there is no weather of this city"}`
		}
		if q.Units == "fahrenheit" {
			degrees = degrees*9/5 + 32
		}
		return resultJSON(map[string]any{"city": q.City, "temperature": degrees, "units": q.Units})
	case "calculate":
		return calculated(arguments)
	}
	return `{"error":"there is no such tool"}`
}

// calculated is what the calculator gives.
func calculated(arguments string) string {
	var q struct {
		Operation string
		A, B      *float64
	}
	if json.Unmarshal([]byte(arguments), &q) != nil || q.A == nil || q.B == nil {
		return `{"error":"an operation and two numbers are wanted"}`
	}
	a, b := *q.A, *q.B
	switch q.Operation {
	case "add":
		a += b
	case "subtract":
		a -= b
	case "multiply":
		a *= b
	case "divide":
		if b == 0 {
			return `{"error":"it divides by zero"}`
		}
		a /= b
	default:
		return `{"error":"there is no such operation"}`
	}
	return resultJSON(map[string]any{"result": a})
}

// resultJSON writes a result; a number that JSON cannot hold is an error of the calculator's.
func resultJSON(result map[string]any) string {
	b, err := json.Marshal(result)
	if err != nil {
		return `{"error":"the result is too large"}`
	}
	return string(b)
}
