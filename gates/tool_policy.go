package gates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The fixture of the policy cases.
const (
	weatherTool    = "get_weather"
	undeclaredTool = "undeclared_weather_tool"
	weatherUnits   = "celsius"
)

// policy is what one policy case asks for, and what its answer must be.
type policy struct {
	cities   []string // one call for each; none for a request that is to be refused
	wish     wish
	thinking bool
	final    string // JSON of the second turn's answer; "" for a case of one turn
	mentions string // what the message of the refusal holds; "" for a request in order
}

func allowed(b bool) *bool { return &b }

// policies are the cases of TensorSharp's tool policy script.
var policies = map[string]policy{
	"required":          {cities: []string{"Paris"}, wish: wish{Force: true}},
	"named":             {cities: []string{"Paris"}, wish: wish{Force: true, Named: weatherTool}},
	"none_history":      {cities: []string{"Paris"}, wish: wish{Force: true}, final: `{"city":"Paris","temperature_c":19}`},
	"single_call":       {cities: []string{"Paris"}, wish: wish{Force: true, Parallel: allowed(false)}},
	"two_calls":         {cities: []string{"Paris", "Oslo"}, wish: wish{Force: true, Parallel: allowed(true)}},
	"required_thinking": {cities: []string{"Paris"}, wish: wish{Force: true}, thinking: true},
	"named_thinking":    {cities: []string{"Paris"}, wish: wish{Force: true, Named: weatherTool}, thinking: true},
	"invalid_required":  {wish: wish{Force: true}, mentions: "at least one"},
	"invalid_named":     {wish: wish{Force: true, Named: undeclaredTool}, mentions: undeclaredTool},
	"invalid_schema":    {wish: wish{Force: true}, mentions: "pattern"},
}

// policyParams are the parameters of tool_policy.
type policyParams struct {
	Policy string `json:"policy"`
}

// Validate wants a known policy.
func (p *policyParams) Validate() error {
	if _, known := policies[p.Policy]; !known {
		words := make([]string, 0, len(policies))
		for word := range policies {
			words = append(words, word)
		}
		slices.Sort(words)
		return fmt.Errorf("there is no policy %q; there are %s", p.Policy, strings.Join(words, ", "))
	}
	return nil
}

func policyGate() Gate {
	return Gate{
		ID: "tool_policy", Version: 2, Family: "tool",
		Summary: "the engine keeps to tool_choice and parallel_tool_calls, and refuses requests that cannot be kept",
		Explain: `The cases of TensorSharp's tool policy script, in chat completions, Anthropic Messages or OpenAI Responses; what is said of
chat below holds for the words of the others that say the same. The parameter "policy" is one of:
required, named, single_call (one call of get_weather for Paris), two_calls (Paris and Oslo, with parallel_tool_calls true),
none_history (a call, then an answer from its result with tool_choice none), required_thinking, named_thinking, and
invalid_required (no tools declared), invalid_named (the tool undeclared_weather_tool), invalid_schema (a pattern in a declared
schema), which are to be refused.
A calling turn: usage is reported; the finish reason is tool_calls; as many calls as cities; the calls equal the fragments on
the wire, joined by index; each id is made of letters, digits, _ and -, and no other call has it; type function; name
get_weather; arguments are a string of strict JSON (no key twice, no NaN) with exactly a text city and units celsius; cities in
any order. A stream ends with [DONE].
The turn after it: finish reason stop, no call, and exactly {"city":"Paris","temperature_c":19} with an integer and no fence.
A refusal: status 400, error type invalid_request_error, and a message that holds "at least one", "undeclared_weather_tool" or
"pattern". Any other refusal fails.
ok: all of it. fail: the reason names the first fault. incomparable: the request does not ask what the policy is about, or its
dialect has no words for it: Ollama's /api/chat has no tool_choice, and Messages has no JSON mode, which none_history wants.
partial: the second turn was not sent. not_run: there is no whole answer.`,
		Params: func() any { return &policyParams{} },
		judge: func(e *Evidence) (Finding, exchange.Needs) {
			return policies[e.params.(*policyParams).Policy].judge(e), nil
		},
	}
}

func (p policy) judge(e *Evidence) Finding {
	first := e.Turns[0]
	asked := AskedOf(first.Exchange)
	if why := p.unasked(asked); why != "" {
		return incomparable("the request does not ask what the policy is about: %s", why)
	}
	if p.mentions != "" {
		return p.refusal(first)
	}
	if f := p.calling(first, asked); f.Status != exchange.VerdictOK {
		return turnFinding(0, f)
	}
	switch {
	case p.final == "":
		return ok()
	case len(e.Turns) < 2:
		return Finding{Status: exchange.VerdictPartial, Reason: "1/2 turns: the turn after the call was not sent"}
	}
	return turnFinding(1, p.answer(e.Turns[1]))
}

// unasked says what the policy needs of the request and the request lacks; "" when nothing.
func (p policy) unasked(a *Asked) string {
	d, known := toolDialectOf(a)
	w := toolWish(a)
	declared := declaredTools(a)
	pattern := slices.ContainsFunc(declared, func(d declaredTool) bool { return strings.Contains(string(d.Schema), `"pattern"`) })
	several := p.wish.Parallel != nil && *p.wish.Parallel
	switch {
	case !known:
		return notTools(a)
	case !d.choice:
		return d.name + " has no tool_choice"
	case a.Fields == nil:
		return "it cannot be read"
	case w.Force != p.wish.Force || w.Named != p.wish.Named || w.Forbid:
		return fmt.Sprintf("tool_choice is %s", excerpt(string(a.Field("tool_choice"))))
	case d.allows(w) != several:
		return d.parallelSaid(a)
	case p.mentions == "at least one" && len(declared) > 0:
		return "it declares tools"
	case p.mentions != "at least one" && !slices.ContainsFunc(declared, func(d declaredTool) bool { return d.Name == weatherTool }):
		return "it does not declare " + weatherTool
	case (p.mentions == "pattern") != pattern:
		return "a pattern in a declared schema belongs to invalid_schema alone"
	case p.mentions != "" && a.Facts.Stream:
		return "a request that is to be refused is not streamed"
	}
	return ""
}

// refusal judges the answer to a request that cannot be kept.
func (p policy) refusal(t Turn) Finding {
	switch e := t.Transcript.Error; {
	case t.Response.Status == 0:
		f, _ := t.missing()
		return f
	case t.Response.Status != http.StatusBadRequest:
		return fail("the status is %d, not 400", t.Response.Status)
	case e == nil:
		return fail("the refusal holds no error")
	case e.Type != "invalid_request_error":
		return fail("the type of the error is %q, not invalid_request_error", e.Type)
	case !strings.Contains(e.Message, p.mentions):
		return fail("the message of the error does not hold %q: %s", p.mentions, excerpt(e.Message))
	}
	return ok()
}

// calling judges a turn that calls.
func (p policy) calling(t Turn, a *Asked) Finding {
	if f, there := t.refused(); !there {
		return f
	}
	d, _ := toolDialectOf(a)
	if why := t.flows(d); why != "" {
		return fail("%s", why)
	}
	calls := t.callsToAnswer(a)
	if t.Transcript.Usage == nil {
		return fail("it carries no usage")
	}
	if why := t.stopped(a, finishTools); why != "" {
		return fail("%s", why)
	}
	if len(calls) != len(p.cities) {
		return fail("%d calls are expected, the answer makes %d", len(p.cities), len(calls))
	}
	raw, err := callsOnWire(t, a, calls)
	if err != nil {
		return incomparable("%s", err)
	}
	for i, c := range raw {
		if c.notText {
			return fail("call %d: the arguments are not a string", i+1)
		}
	}
	if why := fragmentFault(raw, calls); why != "" {
		return fail("%s", why)
	}
	ids, cities := map[string]bool{}, []string{}
	for i, c := range raw {
		city, why := c.weatherFault(d)
		if why == "" && ids[c.id] {
			why = fmt.Sprintf("the id %q is that of another call", c.id)
		}
		if why != "" {
			return fail("call %d: %s", i+1, why)
		}
		ids[c.id] = true
		cities = append(cities, city)
	}
	want := slices.Sorted(slices.Values(p.cities))
	if slices.Sort(cities); !slices.Equal(cities, want) {
		return fail("the calls are about %s, not %s", strings.Join(cities, ", "), strings.Join(want, ", "))
	}
	return ok()
}

var callID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// weatherFault is what is wrong with a call of the weather, or the city that it asks about.
func (c rawCall) weatherFault(d toolDialect) (city, why string) {
	switch {
	case !callID.MatchString(c.id):
		return "", fmt.Sprintf("the id %q is not made of letters, digits, _ and -", c.id)
	case c.kind != d.callType:
		return "", fmt.Sprintf("the type is %q, not %s", c.kind, d.callType)
	case c.name != weatherTool:
		return "", fmt.Sprintf("it calls %q, not %s", c.name, weatherTool)
	}
	v, err := strictJSON([]byte(c.args))
	if err != nil {
		return "", "the arguments are no strict JSON: " + oneLine(err.Error())
	}
	args, _ := v.(map[string]any)
	city, text := args["city"].(string)
	switch {
	case !text || len(args) != 2:
		return "", "the arguments are not exactly a text city and units: " + excerpt(c.args)
	case args["units"] != weatherUnits:
		return "", "the units are not celsius: " + excerpt(c.args)
	}
	return city, ""
}

// answer judges the turn behind the call.
func (p policy) answer(t Turn) Finding {
	a := AskedOf(t.Exchange)
	d, known := toolDialectOf(a)
	switch {
	case known && !d.json:
		return incomparable("%s cannot ask for a JSON object, which the policy is about", d.name)
	case !known || !toolWish(a).Forbid || !wantsJSON(a):
		return incomparable("the request does not ask what the policy is about: tool_choice none with a JSON object")
	}
	if f, there := t.refused(); !there {
		return f
	}
	if why := t.flows(d); why != "" {
		return fail("%s", why)
	}
	want := jsonParams{Value: json.RawMessage(p.final)}
	if err := want.Validate(); err != nil {
		return incomparable("%s", err)
	}
	if calls := t.callsToAnswer(a); len(calls) > 0 {
		return fail("it calls %s where calls are forbidden", calls[0].Name)
	}
	if why := t.stopped(a, finishStop); why != "" {
		return fail("%s", why)
	}
	if t.Transcript.Usage == nil {
		return fail("it carries no usage")
	}
	if why := want.fault(t.Content()); why != "" {
		return fail("%s", why)
	}
	return ok()
}
