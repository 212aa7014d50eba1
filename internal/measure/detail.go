package measure

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Detail is one exchange with its texts and timeline for people and scripts. The row gives the key and digest; all that
// is derived of the exchange is derived anew, so that a record shows what the present rules make of it; the flags that rest on the run
// are those of the row.
func Detail(x *exchange.Exchange, row exchange.Summary) exchange.Detail {
	return DetailOf(x, Analyze(x), row)
}

// DetailOf is Detail for a caller that has analyzed the exchange already.
func DetailOf(x *exchange.Exchange, a *Analysis, row exchange.Summary) exchange.Detail {
	t := a.Transcript
	s := Summarize(x, a)
	s.Key, s.SentKey, s.Digest = row.Key, row.SentKey, row.Digest
	s.Flags = withRunFlags(s.Flags, row.Flags)
	first := t.Choice0()
	return exchange.Detail{Summary: s, DetailBody: exchange.DetailBody{
		OutputText:    first.Text,
		ReasoningText: first.Reasoning,
		RefusalText:   first.Refusal,
		Calls:         calls(first.ToolCalls),
		Choices:       choiceTexts(t),
		Error:         answerError(t.Error),
		Timings:       timings(t.Timings),
		Extras:        t.Extras,
		EngineClock:   t.EngineClock,
		Phases:        a.Phases,
		PrefillCurve:  a.Curve,
		Suspect:       string(t.Suspect),
		Request:       requestView(&x.Request),
		Response:      responseView(&x.Response),
		Timeline:      x.Timeline.View(),
		Tunnel:        x.Tunnel,
	}}
}

// withRunFlags adds the flags of a row that rest on its run: the exchange alone does not tell them.
func withRunFlags(own, row []string) []string {
	out := own
	for _, f := range []string{exchange.FlagModelChanged, exchange.FlagModelDiffers} {
		if slices.Contains(row, f) && !slices.Contains(out, f) {
			out = append(slices.Clip(out), f)
		}
	}
	slices.Sort(out)
	return out
}

func calls(in []wire.ToolCall) []exchange.ToolCall {
	out := make([]exchange.ToolCall, len(in))
	for i, c := range in {
		out[i] = exchange.ToolCall(c)
	}
	return out
}

// choiceTexts are the choices of an answer that has several; one alone stands at the top of the document.
func choiceTexts(t *wire.Transcript) []exchange.ChoiceText {
	if len(t.Choices) < 2 {
		return nil
	}
	out := make([]exchange.ChoiceText, len(t.Choices))
	for i, c := range t.Choices {
		out[i] = exchange.ChoiceText{
			Index: c.Index, OutputText: c.Text, Reasoning: c.Reasoning, FinishReason: c.FinishReason, Calls: calls(c.ToolCalls),
		}
	}
	return out
}

func answerError(e *wire.Error) *exchange.AnswerError {
	if e == nil {
		return nil
	}
	return &exchange.AnswerError{Message: e.Message, Type: e.Type, Code: e.Code, Where: e.Where}
}

// timings writes the engine's own numbers under the names of the wire.Timings fields, absent ones left out.
func timings(t *wire.Timings) json.RawMessage {
	if t == nil {
		return nil
	}
	b, err := json.Marshal(struct {
		Source        string   `json:"source"`
		QueueMS       *float64 `json:"queue_ms,omitempty"`
		LoadMS        *float64 `json:"load_ms,omitempty"`
		PrefillMS     *float64 `json:"prefill_ms,omitempty"`
		PrefillN      *int64   `json:"prefill_n,omitempty"`
		CachedN       *int64   `json:"cached_n,omitempty"`
		DecodeMS      *float64 `json:"decode_ms,omitempty"`
		DecodeN       *int64   `json:"decode_n,omitempty"`
		TotalMS       *float64 `json:"total_ms,omitempty"`
		TTFTMS        *float64 `json:"ttft_ms,omitempty"`
		PrefillTPS    *float64 `json:"prefill_tps,omitempty"`
		DecodeTPS     *float64 `json:"decode_tps,omitempty"`
		DraftN        *int64   `json:"draft_n,omitempty"`
		DraftAccepted *int64   `json:"draft_accepted,omitempty"`
		DraftSteps    *int64   `json:"draft_steps,omitempty"`
		DraftSource   string   `json:"draft_source,omitempty"`
		Device        string   `json:"device,omitempty"`
		PrefillCounts bool     `json:"prefill_n_includes_cached,omitempty"`
	}(*t))
	if err != nil { // a number that JSON has no form for; the verbatim value is in the extras
		return nil
	}
	return b
}

func requestView(r *exchange.Request) exchange.HeadView {
	return exchange.HeadView{
		Line: firstLine(r.Head), Headers: headers(r.Headers),
		BodyBytes: r.Body.Size, BodyKept: r.Body.Kept, BodyDigest: r.Body.Sum(),
	}
}

func responseView(r *exchange.Response) exchange.HeadView {
	return exchange.HeadView{
		Line: firstLine(r.Head), Headers: headers(r.Headers), Trailers: r.Trailers, Informational: r.Informational,
		BodyBytes: r.Body.Size, BodyKept: r.Body.Kept, BodyDigest: r.Body.Sum(),
	}
}

func firstLine(head []byte) string {
	line, _, _ := strings.Cut(string(head), "\n")
	return strings.TrimSuffix(line, "\r")
}

// headers gives an empty list for none, so that the document never says null.
func headers(h []exchange.Header) []exchange.Header {
	if h == nil {
		return []exchange.Header{}
	}
	return h
}
