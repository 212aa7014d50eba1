package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// kind is the channel a token belongs to.
type kind uint8

const (
	kindText kind = iota
	kindReasoning
	kindCall // opens a tool call: text is the name
	kindArgs // a piece of its arguments
)

// token is one generated token.
type token struct {
	text string
	kind kind
	call int // index of the tool call
}

// vocabulary is what free text is made of.
var vocabulary = strings.Fields(`a across after all amber and answer around at autumn bay before below bird blue boat
	bread bridge bright by calm city clear cloud cold cool copper corner dark day deep door down dry each early east
	engine evening every far field fire first fish flat fog for forest found from full garden gate gold grain grass
	green grey half harbor heavy hill hollow house in into iron island just keep kind lake lamp late leaf left light
	line long low machine many market meadow middle mild mill moon more morning moss narrow near new night no north
	of old on open orange other out over paper path pine plain pond quiet rain red reed ridge river road rock roof
	room round salt sand sea seed shade shore short silver slow small snow so soft song south spring stair star steel
	still stone storm street summer sun table tall tea that the then thin this three through tide timber to tower
	town train tree two under up valley violet wall warm water wave west wheel white wide wind window winter with
	wood word yard year yellow`)

// choice is the whole output of one choice.
type choice struct {
	tokens  []token
	finish  string // stop, length or tool_calls, or the control of the ask
	stopped string // the stop string that ended it; "" = none
}

// speak makes the output of one choice: thinking, then calls, JSON or words, cut at the limit.
func (a ask) speak(index int, o Options) choice {
	if a.control != "" {
		return choice{finish: a.control}
	}
	rng := rand.New(rand.NewPCG(a.seed, uint64(index)))
	var out []token
	out = appendWords(out, rng, o.Reasoning, kindReasoning)
	c := choice{finish: "stop"}
	switch {
	case len(a.tools) > 0:
		out = appendCalls(out, rng, a.tools, o.ToolCalls)
		c.finish = "tool_calls"
	case a.schema != nil:
		out = appendPieces(out, string(fill(rng, a.schema, 0)), token{kind: kindText})
	default:
		n := o.Answer
		if a.endless {
			n = max(a.limit-o.Reasoning, 0)
			c.finish = "length"
		}
		out = appendWords(out, rng, n, kindText)
		out, c.stopped = stopAt(out, a.stop)
	}
	if a.bounded && len(out) > a.limit {
		out, c.finish, c.stopped = out[:a.limit], "length", ""
	}
	c.tokens = out
	return c
}

// appendWords adds n words, each but the first with the blank before it.
func appendWords(out []token, rng *rand.Rand, n int, k kind) []token {
	for i := range n {
		word := vocabulary[rng.IntN(len(vocabulary))]
		if i > 0 {
			word = " " + word
		}
		out = append(out, token{text: word, kind: k})
	}
	return out
}

// appendPieces adds text in pieces of at most four bytes that keep characters whole.
func appendPieces(out []token, text string, like token) []token {
	start := 0
	for i := range text {
		if i-start >= 4 {
			like.text = text[start:i]
			out = append(out, like)
			start = i
		}
	}
	if start < len(text) {
		like.text = text[start:]
		out = append(out, like)
	}
	return out
}

// appendCalls adds n calls, of the tools in turn.
func appendCalls(out []token, rng *rand.Rand, tools []tool, n int) []token {
	for i := range n {
		f := tools[i%len(tools)].Function
		out = append(out, token{text: f.Name, kind: kindCall, call: i})
		args := fill(rng, f.Parameters, 0)
		out = appendPieces(out, string(args), token{kind: kindArgs, call: i})
	}
	return out
}

// stopAt ends text before the first stop string and tells which one that was.
func stopAt(tokens []token, stops []string) (out []token, stopped string) {
	var text strings.Builder
	for _, t := range tokens {
		if t.kind == kindText {
			text.WriteString(t.text)
		}
	}
	end := text.Len()
	for _, s := range stops {
		if i := strings.Index(text.String(), s); i >= 0 && i < end {
			end, stopped = i, s
		}
	}
	for _, t := range tokens {
		if t.kind == kindText {
			if end == 0 {
				break
			}
			t.text = t.text[:min(len(t.text), end)]
			end -= len(t.text)
		}
		out = append(out, t)
	}
	return out, stopped
}

// schema is the part of a JSON schema that fill understands.
type schema struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	Minimum    *float64                   `json:"minimum"`
	Maximum    *float64                   `json:"maximum"`
	MinItems   *int                       `json:"minItems"`
}

const maxDepth = 8 // of a value that is made for a schema

// fill makes a small value that a JSON schema allows: every property of an object in the order of their names, two
// items of an array. References are not followed: their place is null.
func fill(rng *rand.Rand, raw json.RawMessage, depth int) []byte {
	var s schema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || depth > maxDepth {
		return []byte("{}")
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[rng.IntN(len(s.Enum))]
	case len(s.AnyOf) > 0:
		return fill(rng, s.AnyOf[0], depth+1)
	}
	switch s.firstType() {
	case "string":
		return appendString(nil, vocabulary[rng.IntN(len(vocabulary))]+" "+vocabulary[rng.IntN(len(vocabulary))])
	case "integer", "number":
		return fmt.Appendf(nil, "%d", s.number(rng))
	case "boolean":
		return fmt.Appendf(nil, "%t", rng.IntN(2) == 1)
	case "array":
		return s.array(rng, depth)
	case "object":
		return s.object(rng, depth)
	}
	return []byte("null")
}

// firstType is the type, the first of several, or what the other keywords tell.
func (s schema) firstType() string {
	var one string
	var many []string
	switch {
	case json.Unmarshal(s.Type, &one) == nil:
		return strings.ToLower(one) // Gemini shouts
	case json.Unmarshal(s.Type, &many) == nil && len(many) > 0:
		return strings.ToLower(many[0])
	case s.Properties != nil:
		return "object"
	case s.Items != nil:
		return "array"
	}
	return ""
}

func (s schema) number(rng *rand.Rand) int64 {
	lo := int64(0)
	if s.Minimum != nil {
		lo = int64(math.Ceil(*s.Minimum))
	}
	hi := lo + 99
	if s.Maximum != nil {
		hi = int64(*s.Maximum)
	}
	return lo + rng.Int64N(max(hi-lo, 0)+1)
}

func (s schema) array(rng *rand.Rand, depth int) []byte {
	n := 2
	if s.MinItems != nil {
		n = min(max(n, *s.MinItems), 1000)
	}
	b := []byte("[")
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, fill(rng, s.Items, depth+1)...)
	}
	return append(b, ']')
}

func (s schema) object(rng *rand.Rand, depth int) []byte {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	b := []byte("{")
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		b = append(b, fill(rng, s.Properties[name], depth+1)...)
	}
	return append(b, '}')
}
