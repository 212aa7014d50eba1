package gates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// jsonGates are the gates of answers that must be JSON.
func jsonGates() []Gate {
	return []Gate{jsonGate(), unicodeGate(), schemaGate()}
}

// fenced is what the gates of JSON say of their lenient reading.
const fenced = `
lenient_status: the same question asked of what stands inside one Markdown fence, where the whole answer is that fence: three
backquotes at its beginning, with nothing or json behind them, three at its end, none in between, and the answer was not cut
by its limit. It never changes status, exit code, counts of passes or the request's key.`

// jsonParams are the parameters of json.
type jsonParams struct {
	Value      json.RawMessage `json:"value"`      // what the answer must equal; none = any
	Object     bool            `json:"object"`     // it must be an object
	Equality   string          `json:"equality"`   // typed, or python
	Duplicates string          `json:"duplicates"` // of keys: refused, or last
	want       any
}

// The words of jsonParams.
const (
	equalityTyped     = "typed"
	equalityPython    = "python"
	duplicatesRefused = "refused"
	duplicatesLast    = "last"
)

// Validate reads the value and the words.
func (p *jsonParams) Validate() (err error) {
	if p.Equality == "" {
		p.Equality = equalityTyped
	}
	if p.Duplicates == "" {
		p.Duplicates = duplicatesRefused
	}
	switch {
	case p.Equality != equalityTyped && p.Equality != equalityPython:
		return fmt.Errorf("equality is %s or %s, not %q", equalityTyped, equalityPython, p.Equality)
	case p.Duplicates != duplicatesRefused && p.Duplicates != duplicatesLast:
		return fmt.Errorf("duplicates are %s or %s, not %q", duplicatesRefused, duplicatesLast, p.Duplicates)
	}
	if len(p.Value) > 0 {
		if p.want, err = strictJSON(p.Value); err != nil {
			return fmt.Errorf("read value: %w", err)
		}
	}
	return nil
}

// fault is what is wrong with a text, "" when nothing is.
func (p *jsonParams) fault(text string) string {
	read := strictJSON
	if p.Duplicates == duplicatesLast {
		read = lastJSON
	}
	got, err := read([]byte(text))
	if err != nil {
		return "it is no JSON: " + oneLine(err.Error())
	}
	if _, object := got.(map[string]any); p.Object && !object {
		return "it is JSON and no object"
	}
	same := sameTyped
	if p.Equality == equalityPython {
		same = sameInPython
	}
	if len(p.Value) > 0 && !same(got, p.want) {
		return fmt.Sprintf("want %s, got %s", excerpt(string(p.Value)), excerpt(text))
	}
	return ""
}

// lastJSON reads a JSON text of which the last of equal keys counts.
func lastJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something stands behind the value")
	}
	return v, finite(v)
}

func jsonGate() Gate {
	return Gate{
		ID: "json", Version: 1, Family: "answer",
		Summary: "the answer is JSON and nothing else, with the expected value",
		Explain: `The content channel must be one JSON text and nothing else: white space of JSON around it is allowed, a fence or a word before
it is not. NaN and Infinity are no JSON, a number must fit a double, and an object may not have a key twice ("duplicates":
"last" lets the last one count). With "object" it must be an object. With "value" it must equal that: the same keys and no
others, lists in the same order, strings code point by code point, and numbers of the same kind, so that 2.0 is not 2
("equality": "python" lets numbers of equal value be equal).
ok: all of it. fail: something else. not_run, skipped: there is no whole answer; or there is no "value", the request declares
tools, and the answer calls one.` + fenced + `
Judged by itself: requests for a JSON object (response_format json_object, format json, responseMimeType application/json).`,
		Params: func() any { return &jsonParams{} },
		auto: func(a *Asked) (json.RawMessage, bool) {
			switch {
			case schemaOf(a) != nil:
				return nil, false // json_schema judges more
			case a.asksForObject():
				return json.RawMessage(`{"object":true}`), true
			case a.Word("generationConfig", "responseMimeType") == jsonType || a.Word("request", "generationConfig", "responseMimeType") == jsonType:
				return nil, true
			}
			return nil, false
		},
		judge: answered(func(e *Evidence, t Turn) Finding {
			p := e.params.(*jsonParams)
			if len(p.Value) == 0 && t.callsInstead() {
				return skipped("the answer calls a tool")
			}
			return eachChoice(t, p.fault)
		}),
	}
}

const jsonType = "application/json"

// asksForObject reports whether the request wants a JSON object of any shape.
func (a *Asked) asksForObject() bool {
	return a.Word("response_format", "type") == "json_object" || a.Word("text", "format", "type") == "json_object" || a.Word("format") == "json"
}

// callsInstead reports whether the answer calls a tool in the place of text, as the request allows.
func (t Turn) callsInstead() bool {
	return len(t.Transcript.Choice0().ToolCalls) > 0 && AskedOf(t.Exchange).Field("tools") != nil
}

// eachChoice asks for the fault of every choice's text, strictly and inside of a fence.
func eachChoice(t Turn, fault func(text string) string) Finding {
	f := ok()
	f.Lenient = exchange.VerdictOK
	choices := t.Transcript.Choices
	if len(choices) == 0 {
		f = fail("the answer is empty")
		f.Lenient = exchange.VerdictFail
		return f
	}
	for _, c := range choices {
		why := fault(c.Text)
		if why == "" {
			continue
		}
		switch {
		case c.Text == "" && c.Refusal != "":
			why = "it refuses: " + excerpt(c.Refusal)
		case strip(c.Text) == "" && c.Reasoning != "":
			why = "the content channel is empty; what stands in the reasoning does not count"
		case strip(c.Text) == "":
			why = "the content channel is empty"
		}
		if len(choices) > 1 {
			why = fmt.Sprintf("choice %d: %s", c.Index, why)
		}
		if f.Status == exchange.VerdictOK {
			f.Status, f.Reason = exchange.VerdictFail, why
		}
		inner, whole := unfence(c.Text)
		if !whole || t.Transcript.FinishNorm == finishLength || fault(inner) != "" {
			f.Lenient = exchange.VerdictFail
		}
	}
	return f
}

// unfence is what stands inside a text that is one Markdown fence without a tag or tagged json.
func unfence(text string) (inner string, ok bool) {
	const fence = "```"
	s := strip(text)
	if strings.Count(s, fence) != 2 || !strings.HasPrefix(s, fence) || !strings.HasSuffix(s, fence) || len(s) < 2*len(fence) {
		return "", false
	}
	tag, inner, ok := strings.Cut(s[len(fence):len(s)-len(fence)], "\n")
	tag = strings.TrimSpace(tag)
	return inner, ok && (tag == "" || tag == "json")
}

// unicodeParams are the parameters of json_unicode.
type unicodeParams struct {
	Value json.RawMessage `json:"value"`
	json  jsonParams
}

// Validate wants a value.
func (p *unicodeParams) Validate() error {
	if len(p.Value) == 0 {
		return errors.New("value is missing: what the answer must equal")
	}
	p.json = jsonParams{Value: p.Value}
	return p.json.Validate()
}

func unicodeGate() Gate {
	return Gate{
		ID: "json_unicode", Version: 1, Family: "answer",
		Summary: "text of other scripts comes through JSON unharmed",
		Explain: `The content channel must be one JSON text that equals the parameter "value", as the gate json has it: strings are compared code
point by code point, without normalization, so that a composed letter and a letter with a combining mark differ. Characters may
be escaped (\u00e9) or stand as they are. A reason names what usually went wrong: replacement characters, where bytes of a
token were decoded apart, and text of one coding that was read as another.
ok: equal. fail: anything else. not_run, skipped: there is no whole answer.` + fenced,
		Params: func() any { return &unicodeParams{} },
		judge: answered(func(e *Evidence, t Turn) Finding {
			f := eachChoice(t, e.params.(*unicodeParams).json.fault)
			if f.Status == exchange.VerdictFail {
				f.Reason += harm(t.Content())
			}
			return f
		}),
	}
}

// harm names the damage that a text shows, "" when it shows none.
func harm(text string) string {
	latin := make([]byte, 0, len(text)) // as if each character were a byte of Latin-1
	for _, r := range text {
		if r == utf8.RuneError {
			return "; it holds replacement characters"
		}
		if r > 0xff {
			return ""
		}
		latin = append(latin, byte(r))
	}
	if len(latin) != len(text) && utf8.Valid(latin) {
		return "; it is UTF-8 that was read as Latin-1"
	}
	return ""
}
