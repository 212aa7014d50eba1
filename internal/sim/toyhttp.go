package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// toyBody are the fields of a request that the toy reads.
type toyBody struct {
	Prompt       json.RawMessage `json:"prompt"`
	Content      string          `json:"content"`
	AddSpecial   bool            `json:"add_special"`
	Messages     []toyMessage    `json:"messages"`
	NPredict     *int            `json:"n_predict"`
	MaxTokens    *int            `json:"max_tokens"`
	Temperature  *float64        `json:"temperature"`
	TopK         int             `json:"top_k"`
	Seed         int64           `json:"seed"`
	NProbs       int             `json:"n_probs"`
	ReturnTokens bool            `json:"return_tokens"`
	Logprobs     bool            `json:"logprobs"`
	TopLogprobs  int             `json:"top_logprobs"`
	CachePrompt  *bool           `json:"cache_prompt"`
	Draft        *bool           `json:"draft"`
}

type toyMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// answer is the status and body for a request.
func (t *Toy) answer(r Request) (status int, body []byte) {
	if r.Method == "GET" {
		return 200, []byte(`{"object":"list","data":[{"id":"toy"}]}`)
	}
	var b toyBody
	if err := json.Unmarshal(r.Body, &b); err != nil {
		if bytes.Contains(r.Body, []byte(`"image_url"`)) {
			return 500, refuseLlamaCpp(500, "server_error", "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")
		}
		return 400, refuseLlamaCpp(400, "invalid_request_error", err.Error())
	}
	switch path := r.Path(); {
	case strings.HasSuffix(path, "/tokenize"):
		return 200, t.tokenize(b.Content)
	case strings.HasSuffix(path, "/apply-template"):
		return 200, encode(object{{"prompt", toyTemplate(b.Messages)}})
	case strings.HasSuffix(path, "chat/completions"):
		return t.speak(&b, t.tokens(toyTemplate(b.Messages)), t.chat)
	case strings.HasSuffix(path, "/completion"):
		prompt, err := t.prompt(b.Prompt)
		if err != nil {
			return 400, refuseLlamaCpp(400, "invalid_request_error", err.Error())
		}
		return t.speak(&b, prompt, t.completion)
	}
	return 404, refuseLlamaCpp(404, "not_found_error", "File Not Found")
}

// toyTemplate renders messages: every role and content a word, and the word that opens the answer.
func toyTemplate(messages []toyMessage) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString("<" + m.Role + "> " + m.Content + " ")
	}
	return b.String() + "<assistant>"
}

// prompt reads a text, or ids.
func (t *Toy) prompt(raw json.RawMessage) (ids []int, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return t.tokens(text), nil
	}
	if err := json.Unmarshal(raw, &ids); err != nil || len(ids) == 0 {
		return nil, fmt.Errorf("\"prompt\" must be a text or a list of ids")
	}
	return ids, nil
}

func (t *Toy) tokenize(text string) []byte {
	list := array{}
	for _, id := range t.tokens(text) {
		list = append(list, object{{"id", id}, {"piece", t.text(id)}})
	}
	return encode(object{{"tokens", list}})
}

// speak generates for a prompt and writes the answer in a form.
func (t *Toy) speak(b *toyBody, prompt []int, form func(*toyBody, *toyAnswer) []byte) (status int, body []byte) {
	if t.o.Limit > 0 && len(prompt) > t.o.Limit {
		return 400, refuseLlamaCpp(400, "exceed_context_size_error", fmt.Sprintf("the prompt has %d tokens and the context %d", len(prompt), t.o.Limit))
	}
	q := toyAsk{prompt: prompt, predict: 16, cache: b.CachePrompt == nil || *b.CachePrompt, seed: b.Seed,
		greedy: b.Temperature != nil && *b.Temperature <= 0 || b.TopK == 1, drafts: t.o.Drafts && (b.Draft == nil || *b.Draft)}
	if b.MaxTokens != nil {
		q.predict = *b.MaxTokens
	}
	if b.NPredict != nil {
		q.predict = *b.NPredict
	}
	a := t.generate(q)
	return 200, form(b, &a)
}

func (t *Toy) content(a *toyAnswer) string {
	var b strings.Builder
	for _, id := range a.ids {
		b.WriteString(t.text(id))
	}
	return b.String()
}

// timings are those of llama.cpp; the counts are true.
func (a *toyAnswer) timings() object {
	o := object{{"cache_n", a.cached}, {"prompt_n", len(a.ask.prompt) - a.cached}, {"prompt_ms", 1.0}, {"predicted_n", len(a.ids)}, {"predicted_ms", 1.0}}
	n := 0
	if a.ask.drafts {
		n = len(a.ids)
	}
	return o.with(member{"draft_n", n}, member{"draft_n_accepted", n})
}

// entries are the log-probabilities of the tokens with the first top of each list.
func (t *Toy) entries(a *toyAnswer, top int) array {
	list := array{}
	for i, id := range a.ids {
		own := toyLogprobs[len(toyLogprobs)-1] - 1 // of a word beside the list
		others := array{}
		for rank, p := range a.lists[i] {
			if p.id == id {
				own = p.logprob
			}
			if rank < top {
				others = append(others, t.entry(p.id, p.logprob))
			}
		}
		list = append(list, t.entry(id, own).with(member{"top_logprobs", others}))
	}
	return list
}

func (t *Toy) entry(id int, logprob float64) object {
	text := t.text(id)
	codes := make([]int, len(text))
	for i := range len(text) {
		codes[i] = int(text[i])
	}
	return object{{"id", id}, {"token", text}, {"bytes", codes}, {"logprob", logprob}}
}

func (t *Toy) completion(b *toyBody, a *toyAnswer) []byte {
	o := object{{"index", 0}, {"content", t.content(a)}, {"stop", true}, {"model", "toy"}, {"tokens_predicted", len(a.ids)},
		{"tokens_evaluated", len(a.ask.prompt)}, {"stop_type", "limit"}, {"timings", a.timings()}}
	if ids := a.ids; b.ReturnTokens && len(ids) > 0 {
		o = o.with(member{"tokens", ids})
	}
	if b.NProbs > 0 {
		o = o.with(member{"completion_probabilities", t.entries(a, b.NProbs)})
	}
	return encode(o)
}

func (t *Toy) chat(b *toyBody, a *toyAnswer) []byte {
	choice := object{{"index", 0}, {"message", object{{"role", "assistant"}, {"content", t.content(a)}}}, {"finish_reason", "length"}}
	if b.Logprobs {
		choice = choice.with(member{"logprobs", object{{"content", t.entries(a, b.TopLogprobs)}}})
	}
	return encode(object{{"id", "chatcmpl-toy"}, {"object", "chat.completion"}, {"model", "toy"}, {"choices", array{choice}}, {"timings", a.timings()},
		{"usage", object{{"prompt_tokens", len(a.ask.prompt)}, {"completion_tokens", len(a.ids)}, {"total_tokens", len(a.ask.prompt) + len(a.ids)},
			{"prompt_tokens_details", object{{"cached_tokens", a.cached}}}}}})
}
