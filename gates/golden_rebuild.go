package gates

import (
	"encoding/json"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// channels are the texts that an engine's parser takes a generated text apart into.
type channels struct {
	reasoning, text string
	calls           []exchange.ToolCall
}

// answer is an answer as golden gates look at it.
type answer struct {
	channels
	x      *exchange.Exchange
	finish string // normalized
	usage  *wire.Usage
	tokens *wire.TokenList
	told   *measure.Analysis
}

// answerOf reads an answer's channels and tokens.
func answerOf(t Turn) *answer {
	return &answer{channels: channelsOf(t.Transcript), x: t.Exchange, finish: t.Transcript.FinishNorm, usage: t.Transcript.Usage, tokens: wire.Tokens(t.Exchange), told: t.Analysis}
}

// hidden reports whether an engine says that it reasoned, and does not show what.
func (a *answer) hidden() bool {
	return a.reasoning == "" && a.usage != nil && a.usage.Reasoning != nil && *a.usage.Reasoning > 0
}

// replyAnswer reads the answer to a need.
func replyAnswer(x *exchange.Exchange) *answer { return answerOf(Turn{x, measure.Analyze(x)}) }

func channelsOf(t *wire.Transcript) channels {
	c := t.Choice0()
	out := channels{reasoning: c.Reasoning, text: c.Text + c.Refusal}
	for _, call := range c.ToolCalls {
		out.calls = append(out.calls, exchange.ToolCall(call))
	}
	return out
}

func channelsOfGolden(g *exchange.Golden) *channels {
	return &channels{reasoning: g.Reasoning, text: g.Text, calls: g.Calls}
}

// equal reports whether two answers say the same: ids of calls are made up by each engine, and arguments are compared as
// JSON.
func (c *channels) equal(o *channels) bool {
	if c.reasoning != o.reasoning || c.text != o.text || len(c.calls) != len(o.calls) {
		return false
	}
	for i := range c.calls {
		if c.calls[i].Name != o.calls[i].Name || !sameArguments(c.calls[i].Arguments, o.calls[i].Arguments) {
			return false
		}
	}
	return true
}

func sameArguments(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := canon.JSON([]byte(a))
	y, err2 := canon.JSON([]byte(b))
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// channelText is one text of all channels, for answers of which nothing else is known.
func channelText(c *channels) string {
	parts := []string{c.reasoning, c.text}
	for _, call := range c.calls {
		args := call.Arguments
		if b, err := canon.JSON([]byte(args)); err == nil {
			args = string(b)
		}
		parts = append(parts, call.Name, args)
	}
	return strings.Join(parts, "\n")
}

// rebuilt is the text that the model generated, put together from the channels of an answer by the example of a golden
// whose text and channels are both known: what stands before, between and after the channels there stands there here.
// An answer with nothing behind its reasoning may have ended inside it, so it is given both ways. why is not empty when
// the golden is no example.
func rebuilt(c *channels, g *exchange.Golden) (texts []string, why string) {
	if len(g.Tokens) == 0 {
		return []string{channelText(c)}, ""
	}
	if !g.Spelled {
		return nil, "the answer lists no tokens, and the golden has ids without texts"
	}
	t, why := templateOf(g)
	if why != "" {
		return nil, why
	}
	if c.reasoning != "" && t.reasoning == "" {
		return nil, "the subject reasons and the golden does not: how its reasoning was written is not on record"
	}
	if c.equal(&t.channels) {
		return []string{t.raw}, ""
	}
	return t.fill(c), ""
}

// template is a generated text cut at its channels.
type template struct {
	channels
	raw    string
	before string   // in front of the reasoning
	middle string   // between reasoning and text
	call   []string // in front of each call's name
	inside []string // between a call's name and its arguments
	tail   string   // behind the last channel
}

// templateOf finds the channels of a golden in its text, one after the other.
func templateOf(g *exchange.Golden) (t *template, why string) {
	raw := scriptOfGolden(g).text()
	t = &template{channels: *channelsOfGolden(g), raw: raw}
	find := func(what, s string) (before string) {
		i := strings.Index(raw, s)
		if i < 0 && why == "" {
			why = "the golden's text does not hold its " + what + " as it was parsed"
		}
		if i < 0 {
			return ""
		}
		before, raw = raw[:i], raw[i+len(s):]
		return before
	}
	t.before = find("reasoning", g.Reasoning)
	t.middle = find("text", g.Text)
	for _, call := range g.Calls {
		t.call = append(t.call, find("calls", call.Name))
		t.inside = append(t.inside, find("calls", call.Arguments))
	}
	t.tail = raw
	return t, why
}

// fill puts an answer's channels in the places of the golden's.
func (t *template) fill(c *channels) []string {
	open := t.before + c.reasoning
	text := open + t.middle + c.text
	if c.text == "" && len(c.calls) == 0 {
		if c.reasoning == "" {
			return []string{text}
		}
		return []string{open, text}
	}
	var b strings.Builder
	b.WriteString(text)
	for i, call := range c.calls {
		args := call.Arguments
		switch {
		case i < len(t.calls):
			if sameArguments(args, t.calls[i].Arguments) {
				args = t.calls[i].Arguments
			}
			b.WriteString(t.call[i] + call.Name + t.inside[i] + args)
		case len(t.calls) > 0: // one more than the golden has: written like its first
			b.WriteString(t.call[0] + call.Name + t.inside[0] + args)
		default:
			b.WriteString(call.Name + args)
		}
	}
	if len(c.calls) == len(t.calls) {
		b.WriteString(t.tail)
	}
	return []string{b.String()}
}

// declared are the names of the tools that a request offers.
func declared(x *exchange.Exchange) map[string]bool {
	var body struct {
		Tools []struct {
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(x.Request.Body.Bytes(), &body) // a request that is no JSON declares none
	names := map[string]bool{}
	for _, t := range body.Tools {
		names[t.Name+t.Function.Name] = true
	}
	return names
}
