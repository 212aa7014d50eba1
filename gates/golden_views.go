package gates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The views of a place: the numerics that the reference itself uses for it.
const (
	viewOneBatch = "one_batch"     // everything before it read cold, in one batch
	viewMicro    = "micro_batch_8" // read in pieces of eight tokens
)

// microBatch is the number of tokens of a small batch; up to maxSteps of them are sent one by one, more need a launch with
// that batch size.
const (
	microBatch = 8
	maxSteps   = 256
)

// slot is the place of the reference that re-scores: everything of a group goes through it.
const slot = 0

// view is what the reference said of a place under one kind of numerics.
type view struct {
	Name   string               `json:"view"`
	Absent string               `json:"absent,omitempty"` // why it could not be had
	Gap    *float64             `json:"gap"`              // nats by which it prefers the golden's token; null unless it lists both
	Top    []exchange.TokenProb `json:"top,omitempty"`
}

// place is where the reference is asked to look again: behind the prompt of a golden and its first tokens.
type place struct {
	w     *wants
	g     *exchange.Golden
	a     *answer // of the subject, whose request is the golden's
	index int
}

func (p *place) id(parts ...string) string {
	return strings.Join(append([]string{"golden", string(p.g.ID), strconv.Itoa(p.index)}, parts...), "/")
}

// llamaCpp reports whether the reference can be asked the way llama.cpp is.
func llamaCpp(g *exchange.Golden) bool {
	return g.Engine.Engine == "llamacpp" || g.Engine.Engine == "" && wire.DialectOf(g.Path) == wire.DialectLlamaCpp
}

// prompt are the ids of the golden's prompt. Where the golden does not tell them, the reference renders and tokenizes the
// request again, and their number must be the golden's.
func (p *place) prompt() (ids []int64, missing string, ok bool) {
	if len(p.g.PromptIDs) > 0 {
		return p.g.PromptIDs, "", true
	}
	if !llamaCpp(p.g) {
		return nil, "the golden has no prompt ids, and its engine cannot be asked for them", false
	}
	asked := askedFor(p.a.x)
	if asked.promptDigest() != p.g.PromptDigest {
		return nil, "the golden has no prompt ids, and its request is not that of the subject", false
	}
	text, missing, ok := p.rendered(asked)
	if !ok {
		return nil, missing, false
	}
	why := "the ids of the golden's prompt"
	parts, missing, ok := p.tokenized(p.id("prompt", "tokenize"), text, true, why)
	if !ok {
		return nil, missing, false
	}
	if n := p.g.PromptTokens; n != nil && int(*n) != len(parts) {
		return nil, fmt.Sprintf("the reference makes %d tokens of a prompt that had %d", len(parts), *n), false
	}
	for _, t := range parts {
		ids = append(ids, t.id)
	}
	return ids, "", true
}

// rendered is the text of the prompt: the request's own, or its messages under the reference's template.
func (p *place) rendered(asked *asking) (text, missing string, ok bool) {
	if raw, found := asked.fields["prompt"]; found {
		if json.Unmarshal(raw, &text) != nil {
			return "", "the prompt is neither a text nor ids", false
		}
		return text, "", true
	}
	fields := map[string]any{}
	for _, name := range []string{"messages", "tools", "tool_choice", "chat_template_kwargs", "parallel_tool_calls", "reasoning_effort", "response_format"} {
		if v, found := asked.fields[name]; found {
			fields[name] = v
		}
	}
	reply, missing, ok := p.control(exchange.Need{ID: p.id("prompt", "template"), Path: "/apply-template", Body: body(fields), Why: "the golden's prompt as text"})
	if !ok {
		return "", missing, false
	}
	var rendered struct{ Prompt string }
	if json.Unmarshal(reply, &rendered) != nil || rendered.Prompt == "" {
		return "", "the reference rendered no prompt", false
	}
	return rendered.Prompt, "", true
}

// control asks the reference something that generates nothing.
func (p *place) control(n exchange.Need) (reply []byte, missing string, ok bool) {
	n.Party, n.Method = exchange.Reference, "POST"
	a, missing, ok := p.w.reply(n)
	if !ok {
		return nil, missing, false
	}
	return a.x.Response.Body.Bytes(), "", true
}

// tokenized asks the reference for the tokens of a text.
func (p *place) tokenized(id, text string, special bool, why string) (parts []part, missing string, ok bool) {
	reply, missing, ok := p.control(exchange.Need{ID: id, Path: "/tokenize", Why: why,
		Body: body(map[string]any{"content": text, "add_special": special, "parse_special": true, "with_pieces": true})})
	if !ok {
		return nil, missing, false
	}
	var answer struct {
		Tokens []struct {
			ID    int64
			Piece json.RawMessage
		}
	}
	if json.Unmarshal(reply, &answer) != nil || len(answer.Tokens) == 0 {
		return nil, "the reference made no tokens of a text", false
	}
	for _, t := range answer.Tokens {
		parts = append(parts, part{t.ID, pieceText(t.Piece)})
	}
	return parts, "", true
}

// pieceText is a piece of a vocabulary: a string, or bytes where they are no whole characters.
func pieceText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var codes []uint8 // as numbers; a []byte would be read as base64
	var numbers []int
	if json.Unmarshal(raw, &numbers) == nil {
		for _, n := range numbers {
			codes = append(codes, uint8(n))
		}
	}
	return string(codes)
}

// before are the ids of everything in front of the place.
func (p *place) before() (ids []int64, missing string, ok bool) {
	prompt, missing, ok := p.prompt()
	if !ok {
		return nil, missing, false
	}
	ids = slices.Clone(prompt)
	for i := range min(p.index, len(p.g.Tokens)) {
		if p.g.Tokens[i].ID < 0 {
			return nil, "the golden has no token ids", false
		}
		ids = append(ids, p.g.Tokens[i].ID)
	}
	return ids, "", true
}

// scoring is the request that gives the list of one place.
func (p *place) scoring(ids []int64, predict int, cached bool) json.RawMessage {
	return body(map[string]any{"prompt": ids, "n_predict": predict, "temperature": 0, "n_probs": topPlaces, "return_tokens": true,
		"post_sampling_probs": false, "cache_prompt": cached, "id_slot": slot, "stream": false})
}

// views asks the reference for the place under its own numerics. More answers may be needed first: then done is false.
func (p *place) views() (views []view, done bool) {
	views = []view{{Name: viewOneBatch}, {Name: viewMicro}}
	absent := func(why string) ([]view, bool) {
		views[0].Absent, views[1].Absent = why, why
		return views, why != ""
	}
	if !llamaCpp(p.g) {
		return absent("the reference is no llama.cpp, whose batches could be chosen")
	}
	ids, missing, ok := p.before()
	if !ok {
		return absent(missing)
	}
	group := p.id("views")
	need := exchange.Need{Party: exchange.Reference, Group: group, Method: "POST", Path: "/completion"}
	need.ID, need.Body, need.Why = p.id(viewOneBatch), p.scoring(ids, 1, false), "the reference's view of a divergence, cold and in one batch"
	a, missing, ok := p.w.reply(need)
	views[0].take(a, missing, ok, 0)
	p.micro(&views[1], ids, need)
	return views, len(p.w.needs) == 0
}

// micro asks for the view of small batches: the slot's cache grows by eight tokens a request, from empty, so that every
// one is read in a batch of its own. A long prompt needs a launch with small batches instead.
func (p *place) micro(v *view, ids []int64, need exchange.Need) {
	need.Why = "the reference's view of a divergence, in batches of eight"
	last := (len(ids) - 1) / microBatch * microBatch // what the cache holds before the last request
	if last/microBatch > maxSteps {
		need.ID, need.Group, need.Variant, need.Body = p.id(viewMicro, "launch"), "", "-ub "+strconv.Itoa(microBatch), p.scoring(ids, 1, false)
		a, missing, ok := p.w.reply(need)
		v.take(a, missing, ok, 0)
		return
	}
	for n := microBatch; n <= last; n += microBatch {
		need.ID, need.Body = p.id(viewMicro, fmt.Sprintf("%04d", n)), p.scoring(ids[:n], 0, n > microBatch)
		a, missing, ok := p.w.reply(need)
		if ok {
			missing = uncached(a, int64(n-microBatch))
		}
		if missing != "" {
			v.Absent = missing
			return
		}
	}
	need.ID, need.Body = p.id(viewMicro, "last"), p.scoring(ids, 1, last > 0)
	a, missing, ok := p.w.reply(need)
	v.take(a, missing, ok, int64(last))
}

// take reads the list of a view, if it was made as it should: from a cache of so many tokens.
func (v *view) take(a *answer, missing string, ok bool, cached int64) {
	if !ok {
		v.Absent = missing
		return
	}
	v.Top, v.Absent = viewList(a, cached)
}

// viewList is the list of the first token of an answer, or why it is none.
func viewList(a *answer, cached int64) (top []exchange.TokenProb, absent string) {
	l := a.tokens
	switch {
	case len(l.Generated) == 0 || l.Generated[0].Top == nil:
		return nil, "the reference listed no tokens"
	case l.Scale == wire.ScalePostSampling:
		return nil, "its probabilities are those after sampling"
	case drafted(a.told):
		return nil, "the reference drafted"
	}
	if why := uncached(a, cached); why != "" {
		return nil, why
	}
	return l.Generated[0].Top, ""
}

// uncached says why an answer was not made from a cache of so many tokens; "" when it was.
func uncached(a *answer, want int64) string {
	switch {
	case a.usage == nil || a.usage.Cached == nil:
		return "the reference does not tell what it took from its cache"
	case *a.usage.Cached > want:
		return fmt.Sprintf("%d tokens came from a cache, and %d should have", *a.usage.Cached, want)
	case *a.usage.Cached < want-1: // the last one may be read again
		return fmt.Sprintf("the reference does not extend its cache in small steps: %d of %d tokens were in it", *a.usage.Cached, want)
	}
	return ""
}
