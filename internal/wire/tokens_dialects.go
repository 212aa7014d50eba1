package wire

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// tokenIDPrefix is how vLLM spells tokens when it is asked for ids in their place.
const tokenIDPrefix = "token_id:"

// takeOpenAI reads a chunk or body of chat or legacy completions.
func (r *tokenReader) takeOpenAI(v *fastjson.Value) {
	r.takePrompt(v)
	for i, c := range v.GetArray("choices") {
		if index, ok := indexOf(c.Get("index")); ok && index != 0 || !ok && i != 0 || c.Type() != fastjson.TypeObject {
			continue
		}
		r.takePrompt(c)
		ids := firstOf(c, "token_ids", "tokens")
		if ids == nil {
			if ids = v.Get("tokens"); ids == nil {
				ids = v.Get("__verbose", "tokens")
			}
		}
		lp := c.Get("logprobs")
		entries := entriesOf(lp.Get("content"))
		entries = append(entries, entriesOf(lp.Get("refusal"))...)
		if tokens := lp.Get("tokens"); tokens != nil {
			entries = parallelEntries(lp)
		}
		r.add(idsOf(ids), entries)
	}
}

// takePrompt reads what vLLM tells of the prompt: beside the choices of a chat, inside those of completions.
func (r *tokenReader) takePrompt(v *fastjson.Value) {
	if ids := idsOf(v.Get("prompt_token_ids")); len(ids) > 0 {
		r.list.PromptIDs = ids
	}
	for i, place := range v.GetArray("prompt_logprobs") {
		t := Token{ID: -1}
		if place.Type() == fastjson.TypeObject {
			t = promptToken(place, r.list.PromptIDs, i)
		} else if i < len(r.list.PromptIDs) {
			t.ID = r.list.PromptIDs[i]
		}
		r.list.Prompt = append(r.list.Prompt, t)
	}
}

// promptToken reads {"<id>": {logprob, rank, decoded_token}, ...} of one place of the prompt. The token that stands
// there comes first, unless the ids of the prompt say which it is.
func promptToken(place *fastjson.Value, ids []int64, i int) Token {
	t := Token{ID: -1}
	place.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		id, err := strconv.ParseInt(string(key), 10, 64)
		lp := number(v.Get("logprob"))
		if err != nil || lp == nil {
			return
		}
		p := tokenProb(id, text(v.Get("decoded_token")), *lp)
		t.Top = append(t.Top, p)
		if here := i < len(ids) && ids[i] == id; here || t.ID < 0 && i >= len(ids) {
			t.ID, t.Text, t.Spelled, t.Logprob = id, p.Spelling(), true, lp
		}
	})
	sortProbs(t.Top)
	return t
}

// takeLlamaCpp reads an event of /completion.
func (r *tokenReader) takeLlamaCpp(v *fastjson.Value) {
	if index, ok := indexOf(v.Get("index")); ok && index != 0 {
		return
	}
	entries := entriesOf(v.Get("completion_probabilities"))
	if len(entries) == 0 {
		entries = entriesOf(v.Get("probs"))
	}
	r.add(idsOf(v.Get("tokens")), entries)
}

// takeResponses reads an event of the Responses dialect, or its whole body. What the done events say again is left out.
func (r *tokenReader) takeResponses(v *fastjson.Value) {
	if kind := string(text(v.Get("type"))); kind != "" {
		if strings.HasSuffix(kind, "output_text.delta") {
			r.add(nil, entriesOf(v.Get("logprobs")))
		}
		return
	}
	for _, item := range v.GetArray("output") {
		for _, part := range item.GetArray("content") {
			r.add(nil, entriesOf(part.Get("logprobs")))
		}
	}
}

// takeGemini reads the log-probabilities of candidate 0: the chosen tokens, and beside them the best ones.
func (r *tokenReader) takeGemini(v *fastjson.Value) {
	for i, c := range v.GetArray("candidates") {
		if index, ok := indexOf(c.Get("index")); ok && index != 0 || !ok && i != 0 {
			continue
		}
		tops := c.GetArray("logprobsResult", "topCandidates")
		var entries []entry
		for k, chosen := range c.GetArray("logprobsResult", "chosenCandidates") {
			e := entry{geminiToken(chosen), ScaleRaw}
			if k < len(tops) {
				for _, other := range tops[k].GetArray("candidates") {
					if t := geminiToken(other); t.Logprob != nil {
						e.Top = append(e.Top, tokenProb(t.ID, []byte(t.Text), *t.Logprob))
					}
				}
			}
			sortProbs(e.Top)
			entries = append(entries, e)
		}
		r.add(nil, entries)
	}
}

func geminiToken(v *fastjson.Value) Token {
	t := Token{ID: -1, Text: string(text(v.Get("token"))), Spelled: true, Logprob: number(v.Get("logProbability"))}
	if id := countOf(v.Get("tokenId")); id.ok {
		t.ID = id.n
	}
	return t
}

// takeSGLang reads an event of /generate: ids, and triples of log-probability, id and text. Where events repeat what
// was said before, only the rest is new.
func (r *tokenReader) takeSGLang(a *answer, v *fastjson.Value) {
	if index, ok := indexOf(v.Get("index")); ok && index != 0 || !ok && len(a.choices) > 1 {
		return
	}
	meta := v.Get("meta_info")
	tops := meta.GetArray("output_top_logprobs")
	var entries []entry
	for i, triple := range meta.GetArray("output_token_logprobs") {
		e := entry{sglangToken(triple), ScaleRaw}
		if i < len(tops) {
			for _, other := range tops[i].GetArray() {
				if t := sglangToken(other); t.Logprob != nil {
					e.Top = append(e.Top, tokenProb(t.ID, []byte(t.Text), *t.Logprob))
				}
			}
		}
		sortProbs(e.Top)
		entries = append(entries, e)
	}
	ids := idsOf(v.Get("output_ids"))
	if a.choice(0).seen.mode == cumulative {
		had := len(r.list.Generated)
		ids, entries = ids[min(had, len(ids)):], entries[min(had, len(entries)):]
	}
	r.add(ids, entries)
	for _, triple := range meta.GetArray("input_token_logprobs") {
		if t := sglangToken(triple); len(r.list.Prompt) < len(meta.GetArray("input_token_logprobs")) {
			r.list.Prompt = append(r.list.Prompt, t)
			r.list.PromptIDs = append(r.list.PromptIDs, t.ID)
		}
	}
}

func sglangToken(triple *fastjson.Value) Token {
	t := Token{ID: -1, Logprob: number(triple.Get("0"))}
	if id := countOf(triple.Get("1")); id.ok {
		t.ID = id.n
	}
	if b := triple.Get("2"); present(b) {
		t.Text, t.Spelled = string(text(b)), true
	}
	return t
}

// entriesOf reads a list of entries as chat, llama.cpp and Ollama have them.
func entriesOf(v *fastjson.Value) []entry {
	var entries []entry
	for _, e := range v.GetArray() {
		entries = append(entries, entryOf(e))
	}
	return entries
}

// entryOf reads one entry: {token, bytes, logprob, top_logprobs}, with an id from llama.cpp and with prob and top_probs
// after sampling; {content, probs: [{tok_str, prob}]} from its older builds.
func entryOf(v *fastjson.Value) entry {
	e := entry{probOf(v), ScaleRaw}
	top := v.Get("top_logprobs")
	switch {
	case v.Get("probs") != nil:
		e.scale, top = ScaleLegacy, v.Get("probs")
	case v.Get("prob") != nil || v.Get("top_probs") != nil:
		e.scale, top = ScalePostSampling, v.Get("top_probs")
	}
	for _, other := range top.GetArray() {
		if t := probOf(other); t.Logprob != nil {
			e.Top = append(e.Top, tokenProb(t.ID, []byte(t.Text), *t.Logprob))
		}
	}
	sortProbs(e.Top)
	if e.Logprob == nil && e.scale == ScaleLegacy {
		for i := range e.Top {
			if e.Top[i].Spelling() == e.Text {
				e.Logprob = &e.Top[i].Logprob
				break
			}
		}
	}
	return e
}

// probOf reads token, bytes, id and the number beside them. A probability becomes its logarithm.
func probOf(v *fastjson.Value) Token {
	t := Token{ID: -1, Spelled: true}
	if id := countOf(v.Get("id")); id.ok {
		t.ID = id.n
	}
	spelled := text(firstOf(v, "token", "tok_str", "content"))
	if id, ok := strings.CutPrefix(string(spelled), tokenIDPrefix); ok {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 {
			t.ID, t.Spelled = n, false
			spelled = nil
		}
	}
	t.Text = string(spelled)
	if b := v.Get("bytes"); present(b) && t.Spelled {
		t.Text = string(bytesOf(b))
	}
	if t.Logprob = number(v.Get("logprob")); t.Logprob != nil {
		return t
	}
	if p := number(v.Get("prob")); p != nil && *p > 0 {
		lp := math.Log(*p)
		t.Logprob = &lp
	}
	return t
}

// parallelEntries reads the arrays of legacy completions: tokens, token_logprobs and top_logprobs, whose lists are
// objects of texts.
func parallelEntries(lp *fastjson.Value) []entry {
	values, tops := lp.GetArray("token_logprobs"), lp.GetArray("top_logprobs")
	var entries []entry
	for i, v := range lp.GetArray("tokens") {
		id, spelled, isText := legacyToken(text(v))
		e := entry{Token{ID: id, Text: spelled, Spelled: isText}, ScaleRaw}
		if i < len(values) {
			e.Logprob = number(values[i])
		}
		if i < len(tops) && tops[i].Type() == fastjson.TypeObject {
			tops[i].GetObject().Visit(func(key []byte, v *fastjson.Value) {
				if p := number(v); p != nil {
					id, spelled, _ := legacyToken(key)
					e.Top = append(e.Top, tokenProb(id, []byte(spelled), *p))
				}
			})
		}
		sortProbs(e.Top)
		entries = append(entries, e)
	}
	return entries
}

// legacyToken reads the spelling of a token in legacy completions: its text, bytes:\x.. for a part of a character, or an
// id when vLLM was asked for these.
func legacyToken(b []byte) (id int64, spelled string, isText bool) {
	s := string(b)
	if n, ok := strings.CutPrefix(s, tokenIDPrefix); ok {
		if id, err := strconv.ParseInt(n, 10, 64); err == nil && id >= 0 {
			return id, "", false
		}
	}
	if escaped, ok := strings.CutPrefix(s, "bytes:"); ok && strings.Contains(escaped, `\x`) {
		if raw, err := strconv.Unquote(`"` + escaped + `"`); err == nil {
			return -1, raw, true
		}
	}
	return -1, s, true
}

// idsOf reads a list of token ids; nil when it is none.
func idsOf(v *fastjson.Value) []int64 {
	var ids []int64
	for _, e := range v.GetArray() {
		id := countOf(e)
		if !id.ok {
			return nil
		}
		ids = append(ids, id.n)
	}
	return ids
}

func bytesOf(v *fastjson.Value) []byte {
	var b []byte
	for _, e := range v.GetArray() {
		n := countOf(e)
		if !n.ok || n.n > math.MaxUint8 {
			return nil
		}
		b = append(b, byte(n.n))
	}
	return b
}

// tokenProb is an entry of a list of most likely tokens.
func tokenProb(id int64, spelled []byte, logprob float64) exchange.TokenProb {
	p := exchange.TokenProb{ID: id, Text: string(spelled), Logprob: logprob}
	if !utf8.Valid(spelled) {
		p.Text, p.Bytes = strings.ToValidUTF8(p.Text, "\uFFFD"), slices.Clone(spelled)
	}
	return p
}

// sortProbs puts the best first; equal ones keep their order where the wire has one, and objects of texts had none.
func sortProbs(top []exchange.TokenProb) {
	slices.SortStableFunc(top, func(a, b exchange.TokenProb) int { return cmp.Compare(b.Logprob, a.Logprob) })
}

// promptIDs are the ids that the request itself gave as its prompt.
func promptIDs(x *exchange.Exchange) []int64 {
	body := x.Request.Body.Bytes()
	coding, _ := exchange.HeaderValue(x.Request.Headers, "Content-Encoding")
	if plain, ok := decodeAll(coding, body); ok {
		body = plain
	}
	p := jsonParsers.Get()
	defer giveBack(p, len(body))
	v, err := p.ParseBytes(body)
	if err != nil {
		return nil
	}
	return idsOf(v.Get("prompt"))
}
