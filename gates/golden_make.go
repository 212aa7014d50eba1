package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Recording is what a golden says beside what its exchange does.
type Recording struct {
	ID       exchange.ID
	Weights  string            // sha256:<hex> of the weights, or the word by which the user knows them; "" when unknown
	Unnamed  bool              // make a golden also when the weights are not known
	Engine   exchange.Identity // of the reference; the zero one stands for that of the exchange
	Launch   string            // as Golden.Launch
	Build    string            // as Golden.Build
	Drafting *bool             // whether the engine drafts, as its deployment says; nil when unknown
	// Concurrency is the number of requests that ran together, itself included; 0 when unknown.
	Concurrency int
	Turn        int    // of the case's conversation, from 0
	Variant     string // launch flags of the reference beside its usual ones
}

// The bases of a golden: how deep a comparison with it can go.
const (
	BasisLogprobs = "tokens_logprobs"
	BasisTokens   = "tokens"
	BasisText     = "text"
)

// RefusedError says which field of an answer or a golden keeps it from being a reference.
type RefusedError struct {
	Field string
	Why   string
}

// Error is "field: why".
func (r *RefusedError) Error() string { return r.Field + ": " + r.Why }

// GoldenOf makes a golden of an answer. The error is an *exchange.Error that wraps exchange.ErrMiss and a *RefusedError
// naming the field for which the answer is no reference: it is incomplete, its engine drafted, its weights are unknown,
// or its log-probabilities are those after sampling.
func GoldenOf(x *exchange.Exchange, r Recording) (*exchange.Golden, error) {
	a := replyAnswer(x)
	if err := refusal(a, &r); err != nil {
		return nil, &exchange.Error{Op: "make golden", Object: string(x.ID), Side: exchange.SideStore,
			Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err), Hint: refusalHints[err.Field]}
	}
	key, digest := canon.RequestIdentity(&x.Request)
	asked := askedFor(x)
	g := &exchange.Golden{
		Version: exchange.GoldenVersion, ID: r.ID, Key: key.Key, Digest: digest, Turn: r.Turn, Source: x.ID, Run: x.Run,
		Made: x.Timeline.Wall, Harness: x.Harness, Weights: r.Weights, Engine: r.Engine, Launch: r.Launch, Build: r.Build, Sampling: asked.sampling(),
		Conditions: conditionsOf(a, asked, &r), Path: x.Request.Target, PromptDigest: asked.promptDigest(),
		PromptIDs: a.tokens.PromptIDs, Text: a.text, Reasoning: a.reasoning, Calls: a.calls, Finish: a.finish, Basis: BasisText,
	}
	if g.Engine == (exchange.Identity{}) {
		g.Engine = x.Identity
	}
	if a.usage != nil {
		g.PromptTokens = a.usage.Prompt
	}
	takeTokens(g, a.tokens)
	return g, nil
}

// refusalHints say what to do about a refusal, by field.
var refusalHints = map[string]string{
	"outcome":         "record the request again",
	"record":          "record it again with a larger --body-cap",
	"drafting":        "start the reference without drafts and record again",
	"weights":         "name them with --weights-id, or accept the golden without them with --accept-unknown-weights",
	"log-probability": "record again with post_sampling_probs false, or at temperature 0",
	"choices":         "ask for one choice",
}

func refusal(a *answer, r *Recording) *RefusedError {
	switch x := a.x; {
	case a.told.Outcome != exchange.OutcomeComplete:
		return &RefusedError{"outcome", "the answer is " + string(a.told.Outcome)}
	case x.State == exchange.StateTruncated || !x.Response.Body.Whole() || !x.Request.Body.Whole():
		return &RefusedError{"record", "it is not whole"}
	case a.told.Transcript.Dialect == wire.DialectNone || a.told.Transcript.Dialect == wire.DialectEmbeddings:
		return &RefusedError{"path", fmt.Sprintf("%s generates no text that is understood", x.Request.Target)}
	case len(a.told.Transcript.Choices) > 1:
		return &RefusedError{"choices", fmt.Sprintf("the answer has %d", len(a.told.Transcript.Choices))}
	case r.Drafting != nil && *r.Drafting || drafted(a.told):
		return &RefusedError{"drafting", "the engine drafted: log-probabilities behind the first token are not its own"}
	case r.Weights == "" && !r.Unnamed:
		return &RefusedError{"weights", "it is not known which were used"}
	case zeroed(a.tokens):
		return &RefusedError{"drafting", "every log-probability behind the first token is 0, as of an engine that drafts"}
	case a.tokens.Scale == wire.ScalePostSampling:
		return &RefusedError{"log-probability", "they are those after sampling"}
	case a.tokens.Scale == wire.ScaleLegacy && !askedFor(a.x).greedy():
		return &RefusedError{"log-probability", "this build gives raw ones at temperature 0 only"}
	}
	return nil
}

// drafted reports whether the engine says that it drafted tokens for this answer.
func drafted(a *measure.Analysis) bool {
	t := a.Transcript.Timings
	return t != nil && t.DraftN != nil && *t.DraftN > 0
}

// draftsNothing reports whether an engine says that it does not draft: by a count of 0, or as llama.cpp does in the
// settings that it repeats.
func draftsNothing(t *wire.Transcript) bool {
	if t.Timings != nil && t.Timings.DraftN != nil {
		return *t.Timings.DraftN == 0
	}
	var settings struct {
		Types string `json:"speculative.types"`
	}
	return json.Unmarshal(t.Extras["generation_settings"], &settings) == nil && settings.Types == "none"
}

// zeroed reports whether the log-probabilities behind the first token are all exactly 0: what llama.cpp gives for tokens
// that were drafted.
func zeroed(l *wire.TokenList) bool {
	n := 0
	for i := 1; i < len(l.Generated); i++ {
		lp := l.Generated[i].Logprob
		if lp == nil {
			continue
		}
		if *lp != 0 {
			return false
		}
		n++
	}
	return n >= zeroLogprobs
}

func conditionsOf(a *answer, asked *asking, r *Recording) exchange.Conditions {
	c := exchange.Conditions{Cache: exchange.CacheUnknown, Concurrency: r.Concurrency, Temperature: asked.number("temperature"), Seed: asked.whole("seed"), Drafting: r.Drafting, Variant: r.Variant}
	if c.Drafting == nil && draftsNothing(a.told.Transcript) {
		off := false
		c.Drafting = &off
	}
	if a.usage != nil && a.usage.Cached != nil {
		n := *a.usage.Cached
		c.CachedTokens, c.Cache = &n, exchange.CacheCold
		if n > 0 {
			c.Cache = exchange.CacheWarm
		}
	}
	return c
}

// takeTokens gives a golden the tokens of its answer. Without the end of a list nothing says where the answer went on, so
// a list that lacks tokens is none.
func takeTokens(g *exchange.Golden, l *wire.TokenList) {
	if l.Missing || len(l.Generated) == 0 {
		return
	}
	g.Basis, g.Spelled = BasisTokens, l.Texts()
	for i := range l.Generated {
		t := &l.Generated[i]
		out := exchange.GoldenToken{ID: t.ID, Text: t.Text, Logprob: t.Logprob, Top: slices.Clone(t.Top)}
		if !utf8.ValidString(t.Text) {
			out.Text, out.Bytes = strings.ToValidUTF8(t.Text, "\uFFFD"), []byte(t.Text)
		}
		if t.Top != nil {
			g.Basis = BasisLogprobs
		}
		g.Tokens = append(g.Tokens, out)
	}
}

// CheckGolden holds that a golden is one that this build can use, and that its numbers are numbers.
func CheckGolden(g *exchange.Golden) error {
	if g.Version > exchange.GoldenVersion || g.Version < 1 {
		return &RefusedError{"schema", fmt.Sprintf("it has version %d and this build knows up to %d", g.Version, exchange.GoldenVersion)}
	}
	for i := range g.Tokens {
		for _, p := range g.Tokens[i].Top {
			if math.IsNaN(p.Logprob) || p.Logprob > sameLogprob {
				return &RefusedError{"log-probability", fmt.Sprintf("token %d has %v, which is none", i, p.Logprob)}
			}
		}
	}
	switch {
	case g.Basis != BasisText && len(g.Tokens) == 0:
		return &RefusedError{"tokens", "there are none"}
	case g.Drafting != nil && *g.Drafting:
		return &RefusedError{"drafting", "its engine drafted"}
	}
	return nil
}

// Refused is the field for which something was refused as a reference, "" when err is another error.
func Refused(err error) string {
	var r *RefusedError
	if errors.As(err, &r) {
		return r.Field
	}
	return ""
}
