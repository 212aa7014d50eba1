package telemetry

import (
	"encoding/json"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// maxRead bounds the request body that is read for a span, in bytes.
const maxRead = 8 << 20

// asked is what a request body says of how to generate, under the names that APIs share. Ollama has most of it in options,
// Gemini in generationConfig.
type asked struct {
	temperature, topP, topK, frequency, presence json.RawMessage
	seed, stop, effort, format                   json.RawMessage

	conversation json.RawMessage // of the Responses API: an id, or an object with one
}

// bodyOf is the request body where it can be read as it is.
func bodyOf(x *exchange.Exchange) []byte {
	coding, _ := exchange.HeaderValue(x.Request.Headers, "Content-Encoding")
	if !x.Request.Body.Whole() || x.Request.Body.Size > maxRead || coding != "" && !strings.EqualFold(coding, "identity") {
		return nil
	}
	return x.Request.Body.Bytes()
}

// read takes the fields of a JSON object. What says the same in several ways counts in the order of least nesting.
func (q *asked) read(body []byte) {
	var nested asked
	eachField(body, func(name []byte, v json.RawMessage) {
		switch string(name) {
		case "options", "generationConfig":
			nested.read(v)
		case "reasoning":
			eachField(v, func(name []byte, v json.RawMessage) {
				if string(name) == "effort" {
					nested.effort = v
				}
			})
		default:
			if to := q.field(name); to != nil {
				*to = v
			}
		}
	})
	for _, x := range []struct{ to, from *json.RawMessage }{
		{&q.temperature, &nested.temperature}, {&q.topP, &nested.topP}, {&q.topK, &nested.topK}, {&q.frequency, &nested.frequency},
		{&q.presence, &nested.presence}, {&q.seed, &nested.seed}, {&q.stop, &nested.stop}, {&q.effort, &nested.effort},
	} {
		*x.to = or(*x.to, *x.from)
	}
}

// field is where a field goes, nil for one that says nothing here.
func (q *asked) field(name []byte) *json.RawMessage {
	switch string(name) {
	case "temperature":
		return &q.temperature
	case "top_p", "topP":
		return &q.topP
	case "top_k", "topK":
		return &q.topK
	case "frequency_penalty":
		return &q.frequency
	case "presence_penalty":
		return &q.presence
	case "seed":
		return &q.seed
	case "stop", "stop_sequences", "stopSequences":
		return &q.stop
	case "reasoning_effort":
		return &q.effort
	case "response_format":
		return &q.format
	case "conversation":
		return &q.conversation
	}
	return nil
}

// or is the first value that is there.
func or(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if len(v) > 0 && string(v) != "null" {
			return v
		}
	}
	return nil
}

// request adds what the request asked for. Defaults of an engine are never made up.
func (a *attributes) request(x *exchange.Exchange, an *measure.Analysis) {
	a.str(aiRequestModel, cut(an.Request.Model, maxValue))
	if an.Request.Stream {
		a.bool(aiStream, true)
	}
	if n := an.Request.MaxTokens; n != nil {
		a.int(aiMaxTokens, *n)
	}
	if an.Request.N > 1 {
		a.int(aiChoices, an.Request.N)
	}
	var q asked
	q.read(bodyOf(x))
	a.number(aiTemperature, q.temperature)
	a.number(aiTopP, q.topP)
	a.whole(aiTopK, q.topK)
	a.number(aiFrequencyPenalty, q.frequency)
	a.number(aiPresencePenalty, q.presence)
	a.whole(aiSeed, q.seed)
	a.texts(aiStopSequences, q.stop)
	a.text(aiReasoningLevel, q.effort)
	a.outputType(q.format)
	a.conversation(q.conversation)
}

func (a *attributes) number(name string, v json.RawMessage) {
	var f float64
	if or(v) != nil && json.Unmarshal(v, &f) == nil {
		a.float(name, f)
	}
}

func (a *attributes) whole(name string, v json.RawMessage) {
	var n int64
	if or(v) != nil && json.Unmarshal(v, &n) == nil {
		a.int(name, n)
	}
}

func (a *attributes) text(name string, v json.RawMessage) {
	var s string
	if or(v) != nil && json.Unmarshal(v, &s) == nil {
		a.str(name, cut(s, maxValue))
	}
}

// maxTexts bounds the texts of a list.
const maxTexts = 16

// texts adds a list of texts, or one text as a list.
func (a *attributes) texts(name string, v json.RawMessage) {
	var list []string
	var one string
	switch {
	case or(v) == nil:
	case json.Unmarshal(v, &one) == nil:
		list = []string{one}
	case json.Unmarshal(v, &list) != nil:
		return
	}
	list = list[:min(len(list), maxTexts)]
	for i := range list {
		list[i] = cut(list[i], maxValue)
	}
	a.strs(name, list)
}

// outputType says json where the request asked for it.
func (a *attributes) outputType(format json.RawMessage) {
	var f struct {
		Type string `json:"type"`
	}
	if or(format) == nil || json.Unmarshal(format, &f) != nil {
		return
	}
	switch f.Type {
	case "json_object", "json_schema":
		a.str(aiOutputType, "json")
	case "text":
		a.str(aiOutputType, "text")
	}
}

// conversation adds the id of a conversation that the client gave.
func (a *attributes) conversation(v json.RawMessage) {
	var of struct {
		ID string `json:"id"`
	}
	if or(v) != nil && json.Unmarshal(v, &of) == nil {
		a.str(aiConversation, cut(of.ID, maxValue))
		return
	}
	a.text(aiConversation, v)
}

// response adds what the answer said of itself.
func (a *attributes) response(x *exchange.Exchange, an *measure.Analysis) {
	t := an.Transcript
	a.str(aiResponseModel, cut(t.Model, maxValue))
	a.str(aiResponseID, cut(t.ID, maxValue))
	a.strs(aiFinish, finishReasons(x, an))
	fs := an.Figures
	if f := fs[measure.FirstEventMS]; f.Present() && fs[measure.TokenEvents].Present() { // of a stream
		a.float(aiFirstChunk, f.Value/1e3)
	}
	a.reported(aiInput, fs[measure.PromptTokens])
	a.reported(aiOutput, fs[measure.CompletionTokens])
	a.reported(aiCacheRead, fs[measure.CachedTokens])
	a.reported(aiReasoning, fs[measure.ReasoningTokens])
	if u := t.Usage; u != nil && u.CacheCreation != nil {
		a.int(aiCacheWrite, *u.CacheCreation)
	}
}

// reported adds a count of the engine's; what was only estimated is none.
func (a *attributes) reported(name string, f exchange.Figure) {
	if f.Present() && f.Basis != exchange.BasisEstimated {
		a.int(name, int64(f.Value))
	}
}

// finishReasons are those of the choices. Of an answer that broke off before it gave one, it is error.
func finishReasons(x *exchange.Exchange, an *measure.Analysis) (out []string) {
	for i := range an.Transcript.Choices {
		if r := an.Transcript.Choices[i].FinishReason; r != nil {
			out = append(out, cut(*r, maxName))
		}
	}
	if len(out) == 0 && an.Outcome != exchange.OutcomeComplete && an.Outcome != exchange.OutcomeClientAbort &&
		x.Response.Status >= 200 && x.Response.Status < 300 {
		return []string{"error"}
	}
	return out[:min(len(out), maxTexts)]
}

// figures adds the metrics of the exchange in seconds and tokens a second.
func (a *attributes) figures(an *measure.Analysis) {
	fs := an.Figures
	a.figure(ourTTFT, fs[measure.TTFTMS], 1e3)
	a.figure(ourTTFA, fs[measure.AnswerTTFTMS], 1e3)
	a.figure(ourTPOT, fs[measure.TPOTMS], 1e3)
	a.figure(ourPrefill, fs[measure.PrefillTPS], 1)
	a.figure(ourDecode, fs[measure.DecodeTPS], 1)
	if f := fs[measure.TokenEvents]; f.Present() {
		a.int(ourChunks, int64(f.Value))
	}
	if f := fs[measure.CompletionTokens]; f.Present() {
		source := "usage"
		if f.Basis == exchange.BasisEstimated {
			source = "chunks"
		}
		a.str(ourTokenSource, source)
	}
}
