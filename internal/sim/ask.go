package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ask is what a generating request asks for, in whatever dialect.
type ask struct {
	dialect  *dialect
	chat     bool   // in the OpenAI form: chat, not completions
	id       string // of the answer
	model    string
	seed     uint64
	prompt   int    // tokens
	text     string // the prompt, where the dialect repeats it
	stream   bool
	usage    bool // stream_options.include_usage
	thinking bool // the request asks for thinking
	limit    int  // tokens that may be generated
	bounded  bool // the request set the limit
	endless  bool // ignore_eos: generate up to the limit
	n        int
	stop     []string
	tools    []tool
	toolless bool            // it has tools, and is to be refused for that
	schema   json.RawMessage // JSON schema of the output, nil = free text
	top      int             // top log-probabilities a token; -1 = no log-probabilities
	control  string          // finish reason of an answer that generates nothing; "" = generate
}

// tool is one function the model may call.
type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func newTool(name string, parameters json.RawMessage) tool {
	var t tool
	t.Function.Name, t.Function.Parameters = name, parameters
	return t
}

// parseAsk reads what a request asks for and makes it whole.
func parseAsk(d *dialect, req Request, o Options) (ask, error) {
	a, err := d.parse(req, o)
	if err != nil {
		return a, err
	}
	if a.limit < 1 || a.n < 1 || a.n > 128 {
		return a, errors.New("max_tokens and n must be at least 1, n at most 128")
	}
	a.dialect = d
	a.prompt = max(a.prompt, 1)
	if a.control != "" {
		a.prompt, a.stream = 0, false
	}
	a.seed = seedOf(req, o)
	a.id = fmt.Sprintf("%s%016x", d.prefix, a.seed)
	return a, nil
}

// newAsk is an ask for one choice of free text.
func newAsk(o Options) ask { return ask{n: 1, top: -1, limit: o.Answer} }

// readBody reads the JSON body of a request.
func readBody(req Request, into any) error {
	if err := json.Unmarshal(req.Body, into); err != nil {
		return fmt.Errorf("read request body: %w", err)
	}
	return nil
}

// bound sets the limit when the request has one.
func (a *ask) bound(limit *int) {
	if limit != nil {
		a.limit, a.bounded = *limit, true
	}
}

// boundAbove is bound for dialects that write no limit as a negative one.
func (a *ask) boundAbove(limit *int) {
	if limit != nil && *limit >= 0 {
		a.bound(limit)
	}
}

// toolWish is what a request says about the calls it wants.
type toolWish struct {
	tools    []tool
	forbid   bool
	answered bool   // the last message is the result of a call
	named    string // the one function to call; "" = any
}

// offer keeps the tools that may be called now. The result of a call is answered in words, so that an agent's loop ends.
func (a *ask) offer(w toolWish, o Options) {
	a.toolless = o.Tools == ToolsRefused && len(w.tools) > 0
	if o.Tools == ToolsOff || w.forbid || w.answered || len(w.tools) == 0 {
		return
	}
	a.tools = w.tools
	if w.named != "" {
		a.tools = slices.DeleteFunc(slices.Clone(w.tools), func(t tool) bool { return t.Function.Name != w.named })
	}
}

// anyJSON is the schema of an answer that must be JSON of whatever shape.
var anyJSON = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`)

// words is the number of tokens of a prompt's texts.
func words(texts ...string) int {
	n := 0
	for _, t := range texts {
		n += len(strings.Fields(t))
	}
	return n
}

// texts are the texts of a message content: a string, or a list of parts.
func texts(content json.RawMessage) []string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []string{s}
	}
	var parts []struct {
		Text string `json:"text"`
	}
	var out []string
	if json.Unmarshal(content, &parts) == nil {
		for _, p := range parts {
			out = append(out, p.Text)
		}
	}
	return out
}

// stringOrList reads a string or a list of strings; anything else is none.
func stringOrList(raw json.RawMessage) []string {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" {
		return []string{s}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// seedOf is the seed of an answer: path and body, without the wish for a stream, so that both forms say the same.
func seedOf(req Request, o Options) uint64 {
	h := sha256.New()
	h.Write([]byte(seedPath(req) + "\n"))
	var fields map[string]json.RawMessage
	if json.Unmarshal(req.Body, &fields) == nil {
		delete(fields, "stream")
		delete(fields, "stream_options")
		for _, k := range slices.Sorted(maps.Keys(fields)) {
			var compact bytes.Buffer
			_ = json.Compact(&compact, fields[k]) // it was parsed already
			fmt.Fprintf(h, "%q:%s\n", k, compact.Bytes())
		}
	}
	seed := binary.BigEndian.Uint64(h.Sum(nil)) ^ o.Seed*0x9E3779B97F4A7C15
	if o.Varied {
		seed += uint64(req.Seq) * 0xBF58476D1CE4E5B9
	}
	return seed
}

// seedPath is the part of a path that the text of an answer follows from: Gemini asks for a stream there.
func seedPath(req Request) string {
	path, _, _ := strings.Cut(req.Path(), ":")
	return path
}
