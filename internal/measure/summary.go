package measure

import (
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Summarize is the row of an exchange: all fields but Key and Digest, which belong to whoever hashes the request.
// Model is what the client asked for; where the request names none, what the answer names.
func Summarize(x *exchange.Exchange, a *Analysis) exchange.Summary {
	t := a.Transcript
	model := a.Request.Model
	if model == "" {
		model = t.Model
	}
	path, _, _ := strings.Cut(x.Request.Target, "?")
	return exchange.Summary{
		Version:       exchange.SummaryVersion,
		ID:            x.ID,
		Run:           x.Run,
		Seq:           x.Seq,
		Started:       x.Timeline.Wall,
		Upstream:      x.Upstream,
		Method:        x.Request.Method,
		Path:          path,
		Model:         model,
		Engine:        x.Identity.Engine,
		Dialect:       dialectOf(x, t),
		Status:        x.Response.Status,
		End:           x.End,
		Outcome:       a.Outcome,
		Cause:         a.Cause,
		Stream:        streamed(t),
		FinishReason:  t.FinishReason,
		ToolCalls:     toolCalls(t),
		UsageEstimate: a.Flagged(FlagTokensEstimated),
		ParseErrors:   t.ParseErrors,
		Flags:         a.Flags,
		State:         x.State,
		RequestBytes:  x.Request.Body.Size,
		ResponseBytes: x.Response.Body.Size,
		RequestSum:    x.Request.Body.Sum(),
		ResponseSum:   x.Response.Body.Sum(),
		Interventions: append([]exchange.Intervention{}, x.Interventions...),
		Origin:        x.Origin,
		Item:          x.Item,
		Wave:          x.Wave,
		Rules:         Rules(),
		Metrics:       a.Figures,
	}
}

func dialectOf(x *exchange.Exchange, t *wire.Transcript) string {
	if !hasDialect(x, t) {
		return ""
	}
	return string(t.Dialect)
}

// streamed reports whether the answer came event by event.
func streamed(t *wire.Transcript) bool {
	switch t.Framing {
	case wire.FramingSSE, wire.FramingNDJSON:
		return true
	case wire.FramingJSONArray: // these two send one element a prompt or choice, all at the end
		return t.Dialect != wire.DialectLlamaCpp && t.Dialect != wire.DialectSGLang
	}
	return false
}

func toolCalls(t *wire.Transcript) int {
	n := 0
	for i := range t.Choices {
		n += len(t.Choices[i].ToolCalls)
	}
	return n
}
