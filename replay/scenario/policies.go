package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// SuitePolicies is the suite of tool policies: 30 cases and 35 requests at the degrees 1 and 4.
const SuitePolicies = "tool-policies"

// Schemas of the tools' arguments.
const (
	weatherSchema = `{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"},` +
		`"units":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city","units"],"additionalProperties":false}`
	patternSchema = `{"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z][a-z]+$"},` +
		`"units":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city","units"],"additionalProperties":false}`
	clockSchema = `{"type":"object","properties":{"timezone":{"type":"string","description":"IANA name of the time zone"}},` +
		`"required":["timezone"],"additionalProperties":false}`
)

func weatherTool(schema string) tool {
	return declare("get_weather", "Gives the present weather of a city.", schema)
}

func clockTool() tool {
	return declare("get_local_time", "Gives the present time of a time zone.", clockSchema)
}

const (
	parisFirst = "What is the weather in Paris and in Oslo right now, in celsius? Look up one city at a time with the weather tool: Paris first."
	oneCity    = "What is the weather in Paris right now? Look it up with the weather tool, in celsius."
	twoCities  = "What is the weather in Paris and in Oslo right now? Look up both cities with the weather tool, each in a call of its own, in celsius."
)

// policyScenarios are the cases of tool_choice and parallel_tool_calls.
func policyScenarios() []Scenario {
	yes := true
	named := func(c *chat) { c.ToolChoice = namedTool("get_weather") }
	return []Scenario{
		policyScenario("required", "some tool must be called", oneCity, func(*chat) {}),
		policyScenario("named", "the weather tool must be called, one of two declared", oneCity, named),
		historyScenario(),
		policyScenario("single_call", "one call where two would answer, since calls at once are forbidden", parisFirst, func(*chat) {}),
		policyScenario("two_calls", "two calls at once, which are allowed", twoCities, func(c *chat) { c.Parallel = &yes }),
		thinks(policyScenario("required_thinking", "some tool must be called, behind thinking", oneCity, func(*chat) {})),
		thinks(policyScenario("named_thinking", "the weather tool must be called, behind thinking", oneCity, named)),
		refused(policyScenario("invalid_required", "a call is required and no tool declared", oneCity, func(c *chat) { c.Tools, c.Parallel = nil, nil })),
		refused(policyScenario("invalid_named", "a tool is named that is not declared", oneCity,
			func(c *chat) { c.ToolChoice = namedTool("undeclared_weather_tool") })),
		refused(policyScenario("invalid_schema", "a schema says more than can be kept", oneCity,
			func(c *chat) { c.Tools[0] = weatherTool(patternSchema) })),
	}
}

func policyScenario(policy, summary, prompt string, change func(*chat)) Scenario {
	params, err := json.Marshal(map[string]string{"policy": policy})
	if err != nil {
		panic("scenario: a word is always JSON")
	}
	return Scenario{
		ID: "policy_" + policy, Name: policy, Suite: SuitePolicies, Summary: summary, Turns: 1,
		maxTokens: 512, validated: true,
		first: func(Options) chat {
			no := false
			c := chat{Messages: []message{user(prompt)}, Tools: []tool{weatherTool(weatherSchema), clockTool()}, ToolChoice: "required", Parallel: &no}
			change(&c)
			return c
		},
		checks: []exchange.Check{{Gate: "tool_policy", Params: params}},
	}
}

// thinks makes a scenario one of thinking, at concurrency 1.
func thinks(s Scenario) Scenario {
	s.Thinking, s.Alone = true, true
	return s
}

// refused makes a scenario one whose request the engine must refuse.
func refused(s Scenario) Scenario {
	s.Blocking, s.Alone = true, true
	return s
}

// historyScenario is the case of an answer from a result, with calls forbidden.
func historyScenario() Scenario {
	s := policyScenario("none_history", "an answer from the result of a call, with further calls forbidden", oneCity, func(*chat) {})
	s.Turns = 2
	s.next = func(o Options, _ int, before chat, a Answer) (chat, error) {
		id, err := a.called("get_weather")
		if err != nil {
			return chat{}, err
		}
		before.ToolChoice = "none"
		before.ResponseFormat = map[string]string{"type": "json_object"}
		before.Messages = []message{a.told(), o.result(id, weatherResult),
			user("Answer with a JSON object of exactly the keys city and temperature_c, from the result above, and nothing else.")}
		return before, nil
	}
	return s
}

// weatherResult is the fixture of the weather tool.
const weatherResult = `{"city":"Paris","temperature_c":19}`

// called is the id of the answer's one call, or why the conversation cannot rest on it.
func (a Answer) called(name string) (id string, err error) {
	switch {
	case len(a.Calls) == 0:
		return "", fmt.Errorf("the answer makes no structured call, %s is expected", name)
	case len(a.Calls) > 1:
		return "", fmt.Errorf("the answer makes %d calls, one of %s is expected", len(a.Calls), name)
	case a.Calls[0].Name != name:
		return "", fmt.Errorf("the answer calls %q, %s is expected", a.Calls[0].Name, name)
	case a.Calls[0].ID == "":
		return "", fmt.Errorf("the call of %s has no id to answer to", name)
	}
	return a.Calls[0].ID, nil
}
