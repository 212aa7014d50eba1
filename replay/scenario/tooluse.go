package scenario

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// SuiteToolUse is the suite of choosing tools and filling in their arguments. It is opt-in, and not streamed.
const SuiteToolUse = "tool_use"

// useCase is one case of the suite: what is asked, and what each turn must do.
type useCase struct {
	id, summary, category, prompt string
	calls                         []useCall
	answer                        string // JSON that the last turn must equal; "" = none
	text                          string // text that it must equal; "" = none
}

// useCall is the call of a turn and the result that it is given.
type useCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	result    string          // "" for the last turn of a case without an answer
}

func useCallOf(name, arguments, result string) useCall {
	return useCall{name, json.RawMessage(arguments), result}
}

// useCases are the cases, by category. Expected values keep their kinds: 2 is an integer, 2.5 is not.
func useCases() []useCase {
	return []useCase{
		{id: "selection_weather", summary: "the weather tool among five", category: "selection",
			prompt: "What is the weather in Lisbon in celsius?",
			calls:  []useCall{useCallOf("get_weather", `{"city":"Lisbon","units":"celsius"}`, "")}},
		{id: "selection_stock", summary: "the stock tool among five", category: "selection",
			prompt: "How many pieces of the article LAMP-7 are in stock?",
			calls:  []useCall{useCallOf("get_stock", `{"article":"LAMP-7"}`, "")}},
		{id: "arguments_order", summary: "integers, booleans and a nested list", category: "arguments",
			prompt: "Order 2 pieces of LAMP-7 and 10 pieces of BULB-3, in this order, as an express delivery.",
			calls: []useCall{useCallOf("place_order",
				`{"items":[{"article":"LAMP-7","quantity":2},{"article":"BULB-3","quantity":10}],"express":true}`, "")}},
		{id: "arguments_transfer", summary: "a fraction and a text that looks like a number", category: "arguments",
			prompt: "Book a transfer of 12.5 euros to the account 00420042.",
			calls:  []useCall{useCallOf("transfer", `{"account":"00420042","amount":12.5}`, "")}},
		{id: "abstention_no_tool", summary: "no tool fits", category: "abstention",
			prompt: "Turn off the light in the kitchen. If no tool can do that, answer exactly: No tool can do that.",
			text:   "No tool can do that."},
		{id: "abstention_known", summary: "no tool is needed", category: "abstention",
			prompt: "What is the capital of France? Answer with its name alone, and use no tool.",
			text:   "Paris"},
		{id: "multistep_reorder", summary: "what is found decides what is ordered", category: "multistep",
			prompt: "Look up the stock of BULB-3. Then order, in one order and not express, exactly as many pieces of it as the field missing says. " +
				"In the end answer with a JSON object of exactly the key order, holding the number of the order.",
			calls: []useCall{
				useCallOf("get_stock", `{"article":"BULB-3"}`, `{"article":"BULB-3","stock":4,"missing":36}`),
				useCallOf("place_order", `{"items":[{"article":"BULB-3","quantity":36}],"express":false}`, `{"order":"A-9117"}`),
			},
			answer: `{"order":"A-9117"}`},
		{id: "retrieval_stock", summary: "a value out of a result with many", category: "retrieval",
			prompt: "Look up the stock of LAMP-7. Answer with a JSON object of exactly the keys stock (an integer) and price, from the result.",
			calls: []useCall{useCallOf("get_stock", `{"article":"LAMP-7"}`,
				`{"article":"LAMP-7","stock":17,"missing":0,"reserved":71,"price":24.95,"list_price":29.9,"shelf":"17-B"}`)},
			answer: `{"stock":17,"price":24.95}`},
	}
}

// useTools are the tools that every case declares.
func useTools() []tool {
	return []tool{
		weatherTool(weatherSchema),
		clockTool(),
		declare("get_stock", "Looks up how many pieces of an article are in stock.",
			`{"type":"object","properties":{"article":{"type":"string"}},"required":["article"],"additionalProperties":false}`),
		declare("place_order", "Places an order of one or several articles.",
			`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"article":{"type":"string"},`+
				`"quantity":{"type":"integer"}},"required":["article","quantity"],"additionalProperties":false}},"express":{"type":"boolean"}},`+
				`"required":["items","express"],"additionalProperties":false}`),
		declare("transfer", "Books a transfer of money in euros.",
			`{"type":"object","properties":{"account":{"type":"string"},"amount":{"type":"number"}},"required":["account","amount"],"additionalProperties":false}`),
	}
}

// toolUseScenarios are the cases as scenarios.
func toolUseScenarios() []Scenario {
	var out []Scenario
	for _, c := range useCases() {
		out = append(out, c.scenario())
	}
	return out
}

func (c useCase) scenario() Scenario {
	s := Scenario{
		ID: "tool_use_" + c.id, Name: c.id, Suite: SuiteToolUse, Summary: c.summary, Turns: len(c.calls), Blocking: true, maxTokens: 512,
		first: func(Options) chat {
			return chat{Messages: []message{user(c.prompt)}, Tools: useTools(), ToolChoice: "auto"}
		},
		checks: []exchange.Check{{Gate: "tool_use", Params: c.params()}},
	}
	if c.answer != "" || c.text != "" {
		s.Turns++
	}
	if s.Turns > 1 {
		s.next = c.next
	}
	return s
}

// next gives the result of a turn's call.
func (c useCase) next(o Options, turn int, before chat, a Answer) (chat, error) {
	call := c.calls[turn]
	id, err := a.called(call.Name)
	if err != nil {
		return chat{}, err
	}
	before.Messages = []message{a.told(), o.result(id, call.result)}
	return before, nil
}

// params are the parameters of the gate.
func (c useCase) params() json.RawMessage {
	p := struct {
		Category string          `json:"category"`
		Calls    []useCall       `json:"calls,omitempty"`
		Answer   json.RawMessage `json:"answer,omitempty"`
		Text     string          `json:"text,omitempty"`
	}{c.category, c.calls, json.RawMessage(c.answer), c.text}
	b, err := json.Marshal(p)
	if err != nil {
		panic("scenario: the expectations of a case are JSON: " + err.Error())
	}
	return b
}
