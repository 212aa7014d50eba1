package gates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// workflow is a conversation of tool calls with fixed results, and the answer that can only be made of them.
type workflow struct {
	steps     []workflowStep
	final     string // JSON of the last answer
	hintValue string // a wrong value that says what went wrong
	hint      string // what it says
	matrix    bool   // the rules of the run matrix, not of the validation
}

// workflowStep is one call and the result that the harness gives.
type workflowStep struct{ tool, args, result string }

// The workflows. The run matrix adds a fee that the model is not told about, so that arithmetic in the place of the
// result shows; the validation does not. The two are never mixed.
var (
	roundTrip = workflow{
		steps: []workflowStep{{weatherTool, `{"city":"Paris","units":"celsius"}`, `{"city":"Paris","temperature_c":19}`}},
		final: `{"city":"Paris","temperature_c":19}`,
	}
	agenticMatrix = workflow{
		steps: []workflowStep{
			{"read_invoice", `{"invoice_id":"INV-472"}`, `{"invoice_id":"INV-472","unit_price":13.75,"quantity":5}`},
			{"calculate_total", `{"unit_price":13.75,"quantity":5}`, `{"total":74.25}`},
		},
		final: `{"invoice_id":"INV-472","total":74.25}`, matrix: true,
		hintValue: "68.75", hint: "68.75 is unit price times quantity: the answer was computed, not taken from the tool's result",
	}
	agenticValidation = workflow{
		steps: []workflowStep{
			{"read_invoice", `{"invoice_id":"INV-472"}`, `{"invoice_id":"INV-472","unit_price":13.75,"quantity":5}`},
			{"calculate_total", `{"unit_price":13.75,"quantity":5}`, `{"total":68.75}`},
		},
		final:     `{"invoice_id":"INV-472","total":68.75}`,
		hintValue: "74.25", hint: "74.25 belongs to the fixture of the run matrix",
	}
)

// workflowRule is what the explanations of the three gates share.
const workflowRule = `
The requests are those of chat completions, Anthropic Messages, OpenAI Responses or Ollama's /api/chat; what is said of chat
holds for the words of the others that say the same. Each calling turn: the finish reason is tool_calls, exactly one call, with
an id where the dialect has ids, type function, the exact name and exactly the expected arguments (numbers of equal value are
equal; of equal keys the last counts). Each later request must carry the call and its fixed result under the call's id: a
conversation that was given something else proves nothing.
The last turn makes no call, and its content channel is JSON equal to the expected value (compared as the arguments are).
The case's policy word must be what was sent: with serial_tool_workflows the turns that declare tools say parallel_tool_calls
false, without it they do not; with structured_tool_results the results are JSON objects, without it text. A run under such a
policy is a case of its own and stands in for no other.
ok: all of it. fail: the reason names turn and fault. partial: all turns so far are right and the conversation stopped before
its end. incomparable: the requests are not those of the case, or later arguments stand in the prompt. not_run: there is no
whole answer.`

func workflowGates() []Gate {
	gate := func(id, summary, explain string, w workflow) Gate {
		return Gate{
			ID: id, Version: 2, Family: "tool", Summary: summary, Explain: explain + workflowRule,
			judge: func(e *Evidence) (Finding, exchange.Needs) { return w.judge(e), nil },
		}
	}
	return []Gate{
		gate("tool_round_trip", "a tool is called, and the answer is made of its result",
			`Two turns: get_weather for Paris in celsius, whose result is 19 degrees; then exactly {"city":"Paris","temperature_c":19},
not cut by the limit. The lenient reading accepts one fence around it.`, roundTrip),
		gate("agentic", "two dependent tool calls and an answer from their results (run matrix, 74.25)",
			`Three turns, with the fixture of the run matrix: read_invoice for INV-472 gives unit price 13.75 and quantity 5, calculate_total
must be called with exactly these and gives 74.25, and the answer with tool_choice none is {"invoice_id":"INV-472","total":74.25}
(one fence is let pass). 13.75 and 5 stand nowhere in the prompt, and 74.25 holds a fee that the model is not told of: 68.75
means that it computed. Not to be mixed with agentic_validation.`, agenticMatrix),
		gate("agentic_validation", "two dependent tool calls and an answer from their results (validation, 68.75)",
			`Three turns, with the fixture of the validation: read_invoice for INV-472 gives unit price 13.75 and quantity 5, calculate_total
must be called with exactly these and gives 68.75, and the answer is {"invoice_id":"INV-472","total":68.75}, not cut by the
limit. The lenient reading accepts one fence around it. Not to be mixed with agentic.`, agenticValidation),
	}
}

func (w workflow) judge(e *Evidence) Finding {
	if why := w.prompted(e.Turns[0]); why != "" {
		return incomparable("%s", why)
	}
	for i, t := range e.Turns[:min(len(e.Turns), len(w.steps)+1)] {
		if why := w.asked(e, i); why != "" {
			return turnFinding(i, incomparable("the request is not that of the case: %s", why))
		}
		f := Finding{}
		if i < len(w.steps) {
			f = w.steps[i].judge(t)
		} else {
			f = w.answer(t)
		}
		if f.Status != exchange.VerdictOK {
			return turnFinding(i, f)
		}
		if i == len(w.steps) {
			return f
		}
	}
	planned := len(w.steps) + 1
	return Finding{Status: exchange.VerdictPartial, Reason: fmt.Sprintf("%d/%d turns: the conversation stopped before its end", len(e.Turns), planned)}
}

var numberText = regexp.MustCompile(`[\p{L}\d_.-]*\d[\p{L}\d_.-]*`)

// prompted says which numbers of later steps stand in the first request, from where they could be read without a tool.
func (w workflow) prompted(first Turn) string {
	a := AskedOf(first.Exchange)
	d, known := toolDialectOf(a)
	switch {
	case !known:
		return notTools(a)
	case a.Fields == nil:
		return "the request of turn 1 cannot be read"
	}
	later := ""
	for _, s := range w.steps {
		later += " " + s.result
	}
	secret := map[string]bool{}
	for _, n := range numberText.FindAllString(later, -1) {
		secret[n] = !strings.Contains(w.steps[0].args, n)
	}
	for _, text := range d.asks(a) {
		for _, n := range numberText.FindAllString(text, -1) {
			if n = strings.Trim(n, ".-"); secret[n] {
				return fmt.Sprintf("%s stands in the prompt: the case does not prove that later calls depend on results", n)
			}
		}
	}
	return ""
}

// The words of Case.Policy that a workflow knows.
const (
	policySerial     = "serial_tool_workflows"
	policyStructured = "structured_tool_results"
)

// asked says how the request of a turn differs from that of the case; "" when it does not.
func (w workflow) asked(e *Evidence, turn int) string {
	a := AskedOf(e.Turns[turn].Exchange)
	d, known := toolDialectOf(a)
	if !known {
		return notTools(a)
	}
	words := strings.Split(e.Case.Policy, "+")
	wished := toolWish(a)
	serial := wished.Parallel != nil && !*wished.Parallel
	switch {
	case len(declaredTools(a)) == 0 || wished.Forbid:
	case !d.parallel && slices.Contains(words, policySerial):
		return d.name + " cannot say that calls are made one at a time"
	case serial != slices.Contains(words, policySerial):
		return fmt.Sprintf("%s and the case's policy %q", d.parallelSaid(a), e.Case.Policy)
	}
	if w.matrix && turn == len(w.steps) && !wished.Forbid && (d.choice || len(declaredTools(a)) > 0) {
		return "the last turn does not forbid calls"
	}
	for i := range turn {
		if why := w.steps[i].given(a, e.Turns[i], i, slices.Contains(words, policyStructured)); why != "" {
			return why
		}
	}
	return ""
}

// given says what is wrong with the result that a later request gives for the call of a turn; "" when nothing is. It is
// looked for behind the answer that made the call: engines that number calls by answer give every one the same id. Where
// calls may have no id, the tool's name does.
func (s workflowStep) given(a *Asked, calling Turn, turn int, structured bool) string {
	d, _ := toolDialectOf(a)
	results, err := d.results(a)
	if err != nil {
		return "what it gives back cannot be read"
	}
	id := calling.callsToAnswer(a)[0].ID
	at := slices.IndexFunc(results, func(r toolResult) bool {
		named := !hasCallIDs(a.Dialect) && (r.name == s.tool || r.name == "" && r.id == "")
		return r.answers > turn && (r.id == id && id != "" || named)
	})
	if at < 0 {
		return fmt.Sprintf("it gives no result for the call %q", id)
	}
	text := ""
	asText := json.Unmarshal(results[at].content, &text) == nil
	if asText == structured {
		return fmt.Sprintf("the result of %s is not in the form of the case's policy", s.tool)
	}
	if structured {
		text = string(results[at].content)
	}
	got, err := strictJSON([]byte(text))
	want, _ := strictJSON([]byte(s.result)) // a fixture
	if err != nil || !sameInPython(got, want) {
		return fmt.Sprintf("the result of %s is %s, not the fixture's", s.tool, excerpt(text))
	}
	return ""
}

// judge judges a calling turn.
func (s workflowStep) judge(t Turn) Finding {
	if f, there := t.refused(); !there {
		return f
	}
	a := AskedOf(t.Exchange)
	d, _ := toolDialectOf(a)
	calls := t.callsToAnswer(a)
	if why := t.stopped(a, finishTools); why != "" {
		return fail("%s", why)
	}
	switch {
	case len(calls) != 1:
		return fail("one call is expected, the answer makes %d", len(calls))
	case calls[0].ID == "" && hasCallIDs(a.Dialect):
		return fail("the call has no id")
	case d.callType != "" && calls[0].Type != d.callType:
		return fail("the type of the call is %q, not %s", calls[0].Type, d.callType)
	case calls[0].Name != s.tool:
		return fail("it calls %q, not %s", calls[0].Name, s.tool)
	}
	got, err := lastJSON([]byte(calls[0].Arguments))
	if err != nil {
		return fail("the arguments of %s are no JSON: %s", s.tool, oneLine(err.Error()))
	}
	if want, _ := strictJSON([]byte(s.args)); !sameInPython(got, want) {
		return fail("the arguments of %s are %s, not %s", s.tool, excerpt(calls[0].Arguments), s.args)
	}
	return ok()
}

// answer judges the last turn.
func (w workflow) answer(t Turn) Finding {
	if f, there := t.refused(); !there {
		return f
	}
	if calls := t.callsToAnswer(AskedOf(t.Exchange)); len(calls) > 0 {
		return fail("it calls %s where the answer is expected", calls[0].Name)
	}
	want := jsonParams{Value: json.RawMessage(w.final), Equality: equalityPython, Duplicates: duplicatesLast}
	if err := want.Validate(); err != nil {
		return incomparable("%s", err)
	}
	if w.matrix {
		text := t.Content()
		if inner, fenced := unfence(text); fenced {
			text = inner
		}
		if why := want.fault(text); why != "" {
			return fail("%s", w.explained(why, text))
		}
		return ok()
	}
	f := eachChoice(t, want.fault)
	switch {
	case f.Status != exchange.VerdictOK:
		f.Reason = w.explained(f.Reason, t.Content())
	case t.rawFinish() == "":
		f = fail("there is no finish reason")
		f.Lenient = exchange.VerdictFail
	case t.Transcript.FinishNorm == finishLength:
		f = fail("the answer was cut by its limit")
		f.Lenient = exchange.VerdictFail
	}
	return f
}

// explained adds what a well-known wrong value means.
func (w workflow) explained(why, text string) string {
	if w.hint != "" && strings.Contains(text, w.hintValue) {
		return why + "; " + w.hint
	}
	return why
}
