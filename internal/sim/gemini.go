package sim

import (
	"encoding/json"
	"errors"
	"strings"
)

// geminiDialect is :generateContent, and :streamGenerateContent with alt=sse.
var geminiDialect = dialect{
	mime: mimeSSE, ping: ": ping\n\n", whole: true,
	parse: parseGemini, stream: streamGemini, plain: plainGemini, refuse: refuseGemini,
	breakup: func(int) []byte { return sse(refuseGemini(500, "", lostModel)) },
}

// geminiArrayDialect is :streamGenerateContent without alt=sse: one JSON array that grows by an element.
var geminiArrayDialect = dialect{
	mime: mimeJSON, whole: true,
	parse: parseGemini, stream: streamGeminiArray, plain: plainGemini,
	refuse: func(status int, kind, message string) []byte {
		return encode(array{json.RawMessage(refuseGemini(status, kind, message))})
	},
	breakup: func(sent int) []byte {
		return append(arrayElement(sent, refuseGemini(500, "", lostModel)), arrayEnd...)
	},
}

const arrayEnd = "\n]\n"

// geminiAt is the dialect of a request whose path is models/NAME:METHOD, nil for any other.
func geminiAt(req Request) *dialect {
	path, query, _ := strings.Cut(req.Target, "?")
	_, name, ok := strings.Cut(path, "/models/")
	if !ok || !strings.HasPrefix(path, "/v1beta/") {
		return nil
	}
	switch _, method, _ := strings.Cut(name, ":"); method {
	case "generateContent":
		return &geminiDialect
	case "streamGenerateContent":
		if strings.Contains("&"+query+"&", "&alt=sse&") {
			return &geminiDialect
		}
		return &geminiArrayDialect
	}
	return nil
}

// geminiContent is one turn.
type geminiContent struct {
	Parts []struct {
		Text             string          `json:"text"`
		FunctionResponse json.RawMessage `json:"functionResponse"`
	} `json:"parts"`
}

// geminiBody is a request body, as far as the engine looks at it.
type geminiBody struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction geminiContent   `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string          `json:"name"`
			Parameters           json.RawMessage `json:"parameters"`
			ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	GenerationConfig struct {
		MaxOutputTokens    *int            `json:"maxOutputTokens"`
		CandidateCount     *int            `json:"candidateCount"`
		StopSequences      []string        `json:"stopSequences"`
		ResponseMIMEType   string          `json:"responseMimeType"`
		ResponseSchema     json.RawMessage `json:"responseSchema"`
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		ThinkingConfig     struct {
			IncludeThoughts bool `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

func parseGemini(req Request, o Options) (ask, error) {
	var b geminiBody
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	_, name, _ := strings.Cut(req.Path(), "/models/")
	a.model, _, _ = strings.Cut(name, ":")
	a.stream = strings.Contains(req.Path(), ":stream")
	if len(b.Contents) == 0 {
		return a, errors.New("contents is not specified")
	}
	c := b.GenerationConfig
	a.bound(c.MaxOutputTokens)
	if c.CandidateCount != nil {
		a.n = *c.CandidateCount
	}
	a.stop, a.thinking = c.StopSequences, c.ThinkingConfig.IncludeThoughts
	switch {
	case c.ResponseSchema != nil:
		a.schema = c.ResponseSchema
	case c.ResponseJSONSchema != nil:
		a.schema = c.ResponseJSONSchema
	case c.ResponseMIMEType == mimeJSON:
		a.schema = anyJSON
	}
	wish := b.toolWish()
	for _, turn := range append([]geminiContent{b.SystemInstruction}, b.Contents...) {
		wish.answered = false
		for _, part := range turn.Parts {
			a.prompt += words(part.Text)
			wish.answered = wish.answered || part.FunctionResponse != nil
		}
	}
	a.offer(wish, o)
	return a, nil
}

func (b geminiBody) toolWish() toolWish {
	config := b.ToolConfig.FunctionCallingConfig
	w := toolWish{forbid: config.Mode == "NONE"}
	if len(config.AllowedFunctionNames) == 1 {
		w.named = config.AllowedFunctionNames[0]
	}
	for _, t := range b.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.Parameters
			if schema == nil {
				schema = f.ParametersJSONSchema
			}
			w.tools = append(w.tools, newTool(f.Name, schema))
		}
	}
	return w
}

// geminiElements gives every element of an answer with its instant and its tokens.
func (p *answerPlan) geminiElements(each func(e event, element []byte)) {
	var running Usage
	for _, e := range p.events {
		running.Completion += len(e.tokens)
		if e.tokens[0].kind == kindReasoning {
			running.Reasoning += len(e.tokens)
		}
		b := block{kind: e.tokens[0].kind, call: e.tokens[0].call}
		b.name, b.text = e.parts()
		each(e, p.geminiElement(array{p.geminiPart(e.choice, b)}, e.choice, "", running))
	}
	for i, c := range p.choices {
		end := array{object{{"text", ""}}}
		each(event{at: p.last}, p.geminiElement(end, i, geminiReason(c), running))
	}
}

func streamGemini(p *answerPlan, w *scribe) {
	p.geminiElements(func(e event, element []byte) { w.add(e.at, sse(element), len(e.tokens)) })
}

func streamGeminiArray(p *answerPlan, w *scribe) {
	p.geminiElements(func(e event, element []byte) { w.add(e.at, arrayElement(len(w.steps), element), len(e.tokens)) })
	w.add(p.last, []byte(arrayEnd), 0)
}

// arrayElement is an element of the array after so many others.
func arrayElement(sent int, element []byte) []byte {
	if sent == 0 {
		return append([]byte("["), element...)
	}
	return append([]byte(",\r\n"), element...)
}

// geminiPart is one part of a candidate's content.
func (p *answerPlan) geminiPart(choice int, b block) object {
	switch b.kind {
	case kindReasoning:
		return object{{"text", b.text}, {"thought", true}}
	case kindCall:
		return object{{"functionCall", object{{"id", p.callID(choice, b.call)}, {"name", b.name}, {"args", b.arguments()}}}}
	}
	return object{{"text", b.text}}
}

// geminiElement is one response object. Its usage counts what was generated so far.
func (p *answerPlan) geminiElement(parts array, index int, finish string, u Usage) []byte {
	candidate := object{{"content", object{{"parts", parts}, {"role", "model"}}}}
	if finish != "" {
		candidate = candidate.with(member{"finishReason", finish})
	}
	return encode(p.geminiResponse(array{candidate.with(member{"index", index})}, u))
}

func (p *answerPlan) geminiResponse(candidates array, u Usage) object {
	o := object{{"candidates", candidates}}
	if p.Options.Usage != UsageNone {
		o = o.with(member{"usageMetadata", p.geminiUsage(u)})
	}
	return o.with(member{"modelVersion", p.model}, member{"responseId", p.id})
}

// geminiUsage counts thoughts apart from the candidates and leaves out what is zero, as the dialect does.
func (p *answerPlan) geminiUsage(u Usage) object {
	o := object{{"promptTokenCount", p.total.Prompt}}
	for _, m := range []struct {
		key string
		n   int
	}{
		{"candidatesTokenCount", u.Completion - u.Reasoning}, {"totalTokenCount", p.total.Prompt + u.Completion},
		{"cachedContentTokenCount", p.total.Cached}, {"thoughtsTokenCount", u.Reasoning},
	} {
		if m.n > 0 {
			o = o.with(member{m.key, m.n})
		}
	}
	return o
}

func geminiReason(c choice) string {
	if c.finish == "length" {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func plainGemini(p *answerPlan) []byte {
	candidates := array{}
	for i, c := range p.choices {
		parts := array{}
		for _, b := range p.blocks(i) {
			parts = append(parts, p.geminiPart(i, b))
		}
		candidates = append(candidates, object{
			{"content", object{{"parts", parts}, {"role", "model"}}}, {"finishReason", geminiReason(c)}, {"index", i},
		})
	}
	return encode(p.geminiResponse(candidates, p.total))
}

// refuseGemini is an error in Google's form, whose words follow from the status.
func refuseGemini(status int, _, message string) []byte {
	word := "INTERNAL"
	switch status {
	case 400, 405:
		word = "INVALID_ARGUMENT"
	case 401:
		word = "UNAUTHENTICATED"
	case 403:
		word = "PERMISSION_DENIED"
	case 404:
		word = "NOT_FOUND"
	case 429:
		word = "RESOURCE_EXHAUSTED"
	case 503:
		word = "UNAVAILABLE"
	}
	return encode(object{{"error", object{{"code", status}, {"message", message}, {"status", word}}}})
}

// geminiModels is the listing at /v1beta/models.
func (s *Server) geminiModels() []byte {
	return encode(object{{"models", array{object{
		{"name", "models/" + s.cfg.Model}, {"displayName", s.cfg.Model},
		{"supportedGenerationMethods", []string{"generateContent", "streamGenerateContent"}},
	}}}})
}
