package scenario

import "github.com/benchproxy/benchproxy/internal/exchange"

// The suites of the workflows.
const (
	SuiteMatrix     = "matrix"
	SuiteValidation = "validation"
)

// step is one call of a workflow and the result that it is given.
type step struct {
	tool   string
	result string // JSON
	after  string // what the user says behind the result; "" = nothing
	last   bool   // the answer is due: calls are forbidden
}

// workflow makes the next turns of a conversation of tool calls.
func workflow(steps ...step) func(Options, int, chat, Answer) (chat, error) {
	return func(o Options, turn int, before chat, a Answer) (chat, error) {
		s := steps[turn]
		id, err := a.called(s.tool)
		if err != nil {
			return chat{}, err
		}
		before.Messages = []message{a.told(), o.result(id, s.result)}
		if s.after != "" {
			before.Messages = append(before.Messages, user(s.after))
		}
		if s.last {
			before.ToolChoice, before.Parallel = "none", nil
		}
		return before, nil
	}
}

// serial says that tools are called one at a time, where the options want it said.
func (o Options) serial() *bool {
	if !o.SerialTools {
		return nil
	}
	no := false
	return &no
}

// The fixtures of the invoice. The run matrix adds a fee that the prompt does not tell, so that arithmetic in the place
// of the result shows; the validation does not.
const (
	invoiceResult   = `{"invoice_id":"INV-472","unit_price":13.75,"quantity":5}`
	matrixTotal     = `{"total":74.25}`
	validationTotal = `{"total":68.75}`
)

const invoicePrompt = "Find out the total of invoice INV-472. First read the invoice with read_invoice. Then call calculate_total with exactly " +
	"the unit price and the quantity that the invoice states. Make one call at a time, and work nothing out yourself."

const invoiceAnswer = "Answer with a JSON object of exactly the keys invoice_id and total, with the total that calculate_total gave, and nothing else."

func invoiceTools() []tool {
	return []tool{
		declare("read_invoice", "Reads an invoice: its unit price and its quantity.",
			`{"type":"object","properties":{"invoice_id":{"type":"string"}},"required":["invoice_id"],"additionalProperties":false}`),
		declare("calculate_total", "Works out the total of an invoice.",
			`{"type":"object","properties":{"unit_price":{"type":"number"},"quantity":{"type":"integer"}},`+
				`"required":["unit_price","quantity"],"additionalProperties":false}`),
	}
}

// agentic is the workflow of two dependent calls, with one of the two totals.
func agentic(total string) (first func(Options) chat, next func(Options, int, chat, Answer) (chat, error)) {
	first = func(o Options) chat {
		return chat{Messages: []message{user(invoicePrompt)}, Tools: invoiceTools(), ToolChoice: "auto", Parallel: o.serial()}
	}
	return first, workflow(
		step{tool: "read_invoice", result: invoiceResult},
		step{tool: "calculate_total", result: total, after: invoiceAnswer, last: true},
	)
}

// workflowScenarios are the conversations of tool calls.
func workflowScenarios() []Scenario {
	matrix := Scenario{
		ID: "agentic", Suite: SuiteMatrix, Version: 1, Summary: "two dependent tool calls, and an answer from their results (74.25)", Turns: 3, maxTokens: 512,
		checks: []exchange.Check{{Gate: "agentic"}},
	}
	matrix.first, matrix.next = agentic(matrixTotal)
	validation := Scenario{
		ID: "agentic_validation", Name: "agentic", Suite: SuiteValidation, Summary: "two dependent tool calls, and an answer from their results (68.75)",
		Turns: 3, maxTokens: 256, validated: true,
		checks: []exchange.Check{{Gate: "usage_present"}, {Gate: "finish_reason"}, {Gate: "agentic_validation"}},
	}
	validation.first, validation.next = agentic(validationTotal)
	return []Scenario{matrix, roundTrip(), validation}
}

// roundTrip is one call, and an answer from its result.
func roundTrip() Scenario {
	return Scenario{
		ID: "tool_round_trip", Suite: SuiteValidation, Summary: "a tool call, and an answer from its result", Turns: 2, maxTokens: 256, validated: true,
		first: func(o Options) chat {
			return chat{Messages: []message{user(oneCity)}, Tools: []tool{weatherTool(weatherSchema)}, ToolChoice: "auto", Parallel: o.serial()}
		},
		next: workflow(step{tool: "get_weather", result: weatherResult, last: true,
			after: "Answer with a JSON object of exactly the keys city and temperature_c, from the result above, and nothing else."}),
		checks: []exchange.Check{{Gate: "usage_present"}, {Gate: "finish_reason"}, {Gate: "tool_round_trip"}},
	}
}
