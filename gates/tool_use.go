package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const useGateID = "tool_use"

// useParams are the parameters of tool_use.
type useParams struct {
	Category string          `json:"category"`
	Calls    []expectedCall  `json:"calls"`  // one a turn, in order
	Answer   json.RawMessage `json:"answer"` // JSON that the last turn's content must equal; none = no such turn
	Text     *string         `json:"text"`   // text that the last turn's stripped content must equal
	answer   any
}

// expectedCall is a call that a turn must make.
type expectedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // none = any object
	arguments any
}

// useCategories are the categories of the suite.
var useCategories = []string{"selection", "arguments", "abstention", "multistep", "polish", "retrieval"}

// Validate reads the expected values.
func (p *useParams) Validate() (err error) {
	final := p.Answer != nil || p.Text != nil
	switch {
	case !slices.Contains(useCategories, p.Category):
		return fmt.Errorf("there is no category %q; there are %s", p.Category, strings.Join(useCategories, ", "))
	case p.Category == "abstention" && (len(p.Calls) > 0 || p.Text == nil):
		return errors.New("abstention wants a text and no calls")
	case !final && len(p.Calls) == 0:
		return errors.New("neither calls nor an answer are expected")
	case p.Answer != nil && p.Text != nil:
		return errors.New("answer and text are both stated")
	}
	if p.Answer != nil {
		if p.answer, err = strictJSON(p.Answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		if c.Name == "" {
			return fmt.Errorf("calls[%d] has no name", i)
		}
		if c.Arguments == nil {
			continue
		}
		if c.arguments, err = strictJSON(c.Arguments); err != nil {
			return fmt.Errorf("read calls[%d].arguments: %w", i, err)
		}
	}
	return nil
}

func useGateExplain() string {
	return `The tool_use suite: requests with tools, not streamed, in chat completions or Ollama's /api/chat. The parameters state what each
turn must do: "calls" is one call a turn, by name and arguments; then "answer" (JSON) or "text" is the content of the last turn.
"category" is selection, arguments, abstention, multistep, polish or retrieval; abstention expects a text and no call.
A calling turn makes exactly one call, of that name, whose arguments are strict JSON equal by kind and value: 1, 1.0 and true
are three things, there are no extra keys, and lists keep their order. An answering turn makes no call and equals what is
expected: JSON by kind and value, text exactly after blanks around it are taken off. An abstaining one holds no JSON either.
detail.turns tells each planned turn: ok, fail, unsupported, or not_run behind one that failed.
ok: all planned turns. fail: the reason names the turn and the fault. unsupported: the engine refused with status 400 or 422 and
said in so many words that it has no tools; other errors are failures. partial: the turns so far are right and later ones were
not sent. not_run: there is no whole answer.`
}

func toolUseGate() Gate {
	return Gate{
		ID: useGateID, Version: 1, Family: "tool",
		Summary: "the right tool with exactly the right arguments, or none when none fits",
		Explain: useGateExplain(),
		Params:  func() any { return &useParams{} },
		judge:   func(e *Evidence) (Finding, exchange.Needs) { return e.params.(*useParams).judge(e), nil },
	}
}

// useDetail is the detail of a verdict of tool_use.
type useDetail struct {
	Category string                   `json:"category"`
	Turns    []exchange.VerdictStatus `json:"turns"`
}

func (p *useParams) judge(e *Evidence) Finding {
	planned := len(p.Calls)
	if p.Answer != nil || p.Text != nil {
		planned++
	}
	d := useDetail{Category: p.Category}
	f := ok()
	for i := 0; i < min(planned, len(e.Turns)) && f.Status == exchange.VerdictOK; i++ {
		f = p.turn(e.Turns[i], i)
		d.Turns = append(d.Turns, f.Status)
		if f.Status != exchange.VerdictOK {
			f = turnFinding(i, f)
		}
	}
	if f.Status == exchange.VerdictOK && len(e.Turns) < planned {
		f = Finding{Status: exchange.VerdictPartial, Reason: fmt.Sprintf("%d/%d turns: the conversation stopped before its end", len(e.Turns), planned)}
	}
	for len(d.Turns) < planned {
		d.Turns = append(d.Turns, exchange.VerdictNotRun)
	}
	f.Detail = d
	return f
}

func (p *useParams) turn(t Turn, i int) Finding {
	if why := t.unsupported(); why != "" {
		return Finding{Status: exchange.VerdictUnsupported, Reason: "the engine has no tools: " + why}
	}
	if f, there := t.refused(); !there {
		return f
	}
	if i < len(p.Calls) {
		return p.Calls[i].judge(t)
	}
	return p.last(t)
}

// judge judges a calling turn.
func (c expectedCall) judge(t Turn) Finding {
	calls := t.calls()
	switch {
	case len(calls) != 1:
		return fail("exactly one call is expected, the answer makes %d", len(calls))
	case calls[0].Name != c.Name:
		return fail("it calls %q, not %s", calls[0].Name, c.Name)
	}
	got, err := strictJSON([]byte(calls[0].Arguments))
	if err != nil {
		return fail("the arguments of %s are no strict JSON: %s", c.Name, oneLine(err.Error()))
	}
	if _, object := got.(map[string]any); !object {
		return fail("the arguments of %s are no JSON object", c.Name)
	}
	if c.Arguments != nil && !sameTyped(got, c.arguments) {
		return fail("the arguments of %s are %s, not %s", c.Name, excerpt(calls[0].Arguments), excerpt(string(c.Arguments)))
	}
	return ok()
}

// last judges the answering turn.
func (p *useParams) last(t Turn) Finding {
	content := strip(t.Content())
	if calls := t.calls(); len(calls) > 0 {
		return fail("it calls %s where no call is expected", calls[0].Name)
	}
	if p.Text != nil {
		switch {
		case p.Category == "abstention" && holdsJSON(content):
			return fail("the content holds JSON where the model is to abstain: %s", excerpt(content))
		case content != strip(*p.Text):
			return fail("want %s, got %s", excerpt(*p.Text), excerpt(content))
		}
		return ok()
	}
	got, err := strictJSON([]byte(content))
	switch {
	case err != nil:
		return fail("the content is no strict JSON: %s", oneLine(err.Error()))
	case !sameTyped(got, p.answer):
		return fail("want %s, got %s", excerpt(string(p.Answer)), excerpt(content))
	}
	return ok()
}

// holdsJSON reports whether an object or a list of JSON stands in a text. It looks at the beginning of a long one only.
func holdsJSON(text string) bool {
	text = text[:min(len(text), 4096)]
	for i := range len(text) {
		if text[i] != '{' && text[i] != '[' {
			continue
		}
		var v any
		if json.NewDecoder(strings.NewReader(text[i:])).Decode(&v) == nil {
			return true
		}
	}
	return false
}

// noTools matches what engines say that have no tools, in lower case. A refusal of one tool, of its schema or of a
// choice among them is none of these.
var noTools = regexp.MustCompile(`(does not|doesn't|do not|don't) support (the )?(tools\b|tool[ _-](call|use)|function[ _-]?call)` +
	`|(\btools|tool[ _-]?(calling|calls|use)|function[ _-]?calling) (is|are) (not (supported|enabled|implemented|available)|unsupported)` +
	`|tool choice requires --|tools? param(eter)? requires --`)

// unsupported is what an engine said that has no tools and says so; "" for everything else.
func (t Turn) unsupported() string {
	if s := t.Response.Status; s != http.StatusBadRequest && s != http.StatusUnprocessableEntity {
		return ""
	}
	if said := t.said(); noTools.MatchString(strings.ToLower(said)) {
		return excerpt(oneLine(said))
	}
	return ""
}

// said is what an answer says that is an error: its message, or all of it.
func (t Turn) said() string {
	if t.Transcript.Error != nil && t.Transcript.Error.Message != "" {
		return t.Transcript.Error.Message
	}
	return string(t.Response.Body.Bytes())
}

// UseRate is the share of planned turns of the tool_use suite that were right.
type UseRate struct {
	Category string   `json:"category"` // "" for all of them
	Planned  int      `json:"planned"`  // turns, those of unsupported cases left out
	OK       int      `json:"ok"`
	Rate     *float64 `json:"rate"` // null when nothing was planned
}

// UseRates counts the turns in verdicts of tool_use: all of them first, then each category in the order of the suite.
// Turns that were not run behind a failure count as planned. A case that the engine has no tools for is left out, and
// so are verdicts of other gates and of cases that are not on record. Warm-ups are not to be among them.
func UseRates(verdicts []exchange.Verdict) ([]UseRate, error) {
	rates := []UseRate{{}}
	for _, category := range useCategories {
		rates = append(rates, UseRate{Category: category})
	}
	for _, v := range verdicts {
		if v.Gate != useGateID || v.Status == exchange.VerdictUnsupported || v.Detail == nil {
			continue
		}
		var d useDetail
		if err := json.Unmarshal(v.Detail, &d); err != nil {
			return nil, fmt.Errorf("read detail of case %s: %w", v.Case, err)
		}
		for i := range rates {
			if rates[i].Category != "" && rates[i].Category != d.Category {
				continue
			}
			for _, turn := range d.Turns {
				rates[i].Planned++
				if turn == exchange.VerdictOK {
					rates[i].OK++
				}
			}
		}
	}
	for i := range rates {
		if r := &rates[i]; r.Planned > 0 {
			share := float64(r.OK) / float64(r.Planned)
			r.Rate = &share
		}
	}
	return rates, nil
}
