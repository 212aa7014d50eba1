package gates

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// scenarioChecks are what TensorSharp's validation asks of the last answer of its scenarios, beside usage and finish
// reason. Two of them (short_zh, json_unicode) are not published with the values that they expect.
var scenarioChecks = map[string]exchange.Check{
	"short":       {Gate: "exact", Params: json.RawMessage(`{"text":"42"}`)},
	"json":        {Gate: "json", Params: json.RawMessage(`{"value":{"name":"Mars","moons":2,"habitable":false},"duplicates":"last"}`)},
	"json_schema": {Gate: "json", Params: json.RawMessage(`{"value":{"name":"Mars","moons":2,"habitable":false},"duplicates":"last"}`)},
	"multi_turn":  {Gate: "exact", Params: json.RawMessage(`{"text":"juniper-5938"}`)},
	"long_8k":     recallCheck,
	"long_32k":    recallCheck,
	"long_64k":    recallCheck,
	"tool_round_trip": {Gate: "json",
		Params: json.RawMessage(`{"value":{"city":"Paris","temperature_c":19},"equality":"python","duplicates":"last"}`)},
	"agentic": {Gate: "json",
		Params: json.RawMessage(`{"value":{"invoice_id":"INV-472","total":68.75},"equality":"python","duplicates":"last"}`)},
	"decode":    {Gate: "sustained_decode"},
	"decode_8k": {Gate: "sustained_decode"},
}

var recallCheck = exchange.Check{Gate: "long_context_recall", Params: json.RawMessage(`{"codes":[` +
	`{"label":"ALPHA","code":"silver-4821","depth":0.1},{"label":"BETA","code":"amber-7392","depth":0.5},` +
	`{"label":"GAMMA","code":"violet-1605","depth":0.9}]}`)}

// ForScenario lists the checks of the last answer of a scenario of TensorSharp's validation, in its order: usage, finish
// reason, content. The tool turns before it are not among them. ok is false for a scenario whose expectation is not
// known.
func ForScenario(name string) (checks []exchange.Check, ok bool) {
	content, ok := scenarioChecks[name]
	if !ok {
		return nil, false
	}
	finish := exchange.Check{Gate: "finish_reason"}
	if content.Gate == "sustained_decode" {
		finish.Params = json.RawMessage(`{"allow":["stop","length"]}`)
	}
	return []exchange.Check{{Gate: "usage_present"}, finish, content}, true
}
