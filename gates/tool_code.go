package gates

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/gates/pysource"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// codeEditParams are the parameters of code_edit. Without any they are those of the run matrix.
type codeEditParams struct {
	Function  string `json:"function"`  // "" = slugify_title
	Argument  string `json:"argument"`  // the one there was; "" = text
	Parameter string `json:"parameter"` // the one that was added; "" = max_length
	Default   *int64 `json:"default"`   // its default; null = 40
	Turns     int    `json:"turns"`     // of the conversation; 0 = 2
}

// Validate fills in what is not stated.
func (p *codeEditParams) Validate() error {
	for _, d := range []struct {
		field *string
		value string
	}{{&p.Function, "slugify_title"}, {&p.Argument, "text"}, {&p.Parameter, "max_length"}} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if p.Default == nil {
		value := int64(40)
		p.Default = &value
	}
	if p.Turns == 0 {
		p.Turns = 2
	}
	if p.Turns < 0 {
		return fmt.Errorf("turns is %d", p.Turns)
	}
	return nil
}

func codeEditGate() Gate {
	return Gate{
		ID: "code_edit", Version: 1, Family: "tool",
		Summary: "the edit that was asked for is in the code: parsed, not searched",
		Explain: `The source is what stands in the first Markdown fence of the last answer's content channel, or all of it when it has none. It
must be Python (the grammar of 3.14; nothing is run), and must define the function slugify_title with exactly the parameters
text and max_length, of which exactly one has a default, the integer literal 40. Its body must read max_length: as a name
that stands for the parameter, not one in a string or a comment, not an attribute or the name of an argument, not a variable
of a nested function, lambda or comprehension that hides it, and not after the body has given it another value on every path.
The parameters "function", "argument", "parameter", "default" and "turns" state another edit.
ok: all of it. fail: the reason names what is missing, or the line that is no Python. partial: the conversation has not reached
its last turn. incomparable: the source is nested or longer than it can be read. not_run: there is no whole answer.`,
		Params: func() any { return &codeEditParams{} },
		judge: func(e *Evidence) (Finding, exchange.Needs) {
			p := e.params.(*codeEditParams)
			for i, t := range e.Turns {
				if f, there := t.refused(); !there {
					return turnFinding(i, f), nil
				}
			}
			if len(e.Turns) < p.Turns {
				return Finding{Status: exchange.VerdictPartial, Reason: fmt.Sprintf("%d/%d turns: the edit was not asked for", len(e.Turns), p.Turns)}, nil
			}
			return p.judge(e.Last().Content()), nil
		},
	}
}

func (p *codeEditParams) judge(content string) Finding {
	if strip(content) == "" {
		return fail("the content channel is empty")
	}
	m, err := pysource.Parse(firstFence(content))
	if errors.Is(err, pysource.ErrTooDeep) || errors.Is(err, pysource.ErrTooLong) {
		return incomparable("%s", err)
	}
	if err != nil {
		return fail("the source is no Python: %s", err)
	}
	f, there := m.Function(p.Function)
	if !there {
		return fail("the source defines no function %s", p.Function)
	}
	if why := p.signatureFault(f); why != "" {
		return fail("%s: %s", p.Function, why)
	}
	if !f.Reads(p.Parameter) {
		return fail("%s: its body does not read the parameter %s", p.Function, p.Parameter)
	}
	return ok()
}

// signatureFault is what is wrong with the parameters; "" when nothing is.
func (p *codeEditParams) signatureFault(f *pysource.Function) string {
	if f.Async {
		return "it is a coroutine"
	}
	names, defaults := []string{}, 0
	for _, param := range f.Params {
		names = append(names, param.Name)
		if param.Kind != pysource.ParamPlain {
			return fmt.Sprintf("the parameter %s is not a plain one", param.Name)
		}
		if param.Default {
			defaults++
		}
	}
	switch last := len(f.Params) - 1; {
	case last != 1 || names[0] != p.Argument || names[1] != p.Parameter:
		return fmt.Sprintf("its parameters are (%s), not (%s, %s)", strings.Join(names, ", "), p.Argument, p.Parameter)
	case defaults != 1:
		return fmt.Sprintf("%d parameters have a default, not one", defaults)
	case f.Params[last].Integer == nil || *f.Params[last].Integer != *p.Default:
		return fmt.Sprintf("the default of %s is not the integer literal %d", p.Parameter, *p.Default)
	}
	return ""
}

// firstFence is what stands in the first Markdown fence of a text, or the text when it has none that is closed.
func firstFence(text string) string {
	const fence = "```"
	text = strings.ReplaceAll(text, "\r\n", "\n")
	_, behind, open := strings.Cut(text, fence)
	_, inner, line := strings.Cut(behind, "\n")
	code, _, closed := strings.Cut(inner, fence)
	if !open || !line || !closed {
		return text
	}
	return code
}
