package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// event is one event of generated content and its instant.
type event struct {
	at     time.Duration
	choice int
	tokens []token // of one kind and one call; or a whole call
	whole  bool    // tokens are a whole call
}

// answerPlan is what a request gets: every choice, and every event with its instant. Both forms of the answer, stream
// and plain, are written from it.
type answerPlan struct {
	ask
	Options
	choices []choice
	events  []event       // in order of their instants
	prefill time.Duration // when the first token is due
	last    time.Duration // instant of the last event
	total   Usage
}

// generate answers a chat or completions request.
func (s *Server) generate(req Request, o Options) *Script {
	a, err := parseAsk(req, o)
	if err != nil {
		return errorScript(400, "invalid_request_error", err.Error())
	}
	if a.model == "" {
		a.model = s.cfg.Model
	}
	if s.cfg.Context > 0 && a.prompt+1 > s.cfg.Context {
		return errorScript(400, "exceed_context_size_error",
			fmt.Sprintf("the prompt has %d tokens, the context holds %d", a.prompt, s.cfg.Context))
	}
	if s.cfg.Context > 0 && a.prompt+a.limit > s.cfg.Context {
		a.limit, a.bounded = s.cfg.Context-a.prompt, true
	}
	p := newAnswerPlan(a, o)
	var script *Script
	if a.stream {
		script = p.stream()
	} else {
		script = p.plain()
	}
	script.Usage = p.total
	return script
}

func newAnswerPlan(a ask, o Options) *answerPlan {
	p := &answerPlan{ask: a, Options: o}
	p.total = Usage{Prompt: a.prompt, Cached: min(o.Cached, a.prompt)}
	for i := range a.n {
		c := a.speak(i, o)
		p.choices = append(p.choices, c)
		p.total.Completion += len(c.tokens)
		for _, t := range c.tokens {
			if t.kind == kindReasoning {
				p.total.Reasoning++
			}
		}
	}
	p.prefill = o.TTFT + perSecond(p.total.Prompt-p.total.Cached, o.PrefillTPS)
	p.last = p.prefill
	for i, c := range p.choices {
		p.schedule(i, c.tokens)
	}
	slices.SortStableFunc(p.events, func(x, y event) int { return int(x.at - y.at) })
	return p
}

// perSecond is the time that n things take at a rate; a rate of 0 is none.
func perSecond(n int, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / rate * float64(time.Second))
}

// schedule groups the tokens of a choice into events. The first is due at the end of the prefill, the others on a grid
// of absolute instants; an event of several tokens comes when its first one is due, as from a drafting engine.
func (p *answerPlan) schedule(index int, tokens []token) {
	rng := rand.New(rand.NewPCG(p.seed, uint64(index)+1<<32))
	last := p.prefill
	for from := 0; from < len(tokens); {
		to, whole := p.group(tokens, from)
		due := from
		if whole {
			due = to - 1
		}
		at := p.prefill + perSecond(due, p.DecodeTPS)
		gap := perSecond(p.PerEvent, p.DecodeTPS)
		at = max(at+time.Duration(p.Jitter*rng.Float64()*float64(gap)), last)
		if from == 0 && !whole {
			at = p.prefill
		}
		last = at
		p.events = append(p.events, event{at: at, choice: index, tokens: tokens[from:to], whole: whole})
		p.last = max(p.last, at)
		from = to
	}
}

// group is the end of the event that starts at token from.
func (p *answerPlan) group(tokens []token, from int) (to int, whole bool) {
	first := tokens[from]
	whole = p.Tools == ToolsWhole && first.kind == kindCall
	to = from + 1
	for to < len(tokens) {
		next := tokens[to]
		switch {
		case whole && next.kind == kindArgs:
		case !whole && next.kind == first.kind && next.call == first.call && to-from < p.PerEvent:
		default:
			return to, whole
		}
		to++
	}
	return to, whole
}

// stream is the answer as server-sent events.
func (p *answerPlan) stream() *Script {
	s := &Script{
		Framing: FramingChunked,
		Headers: []exchange.Header{
			{Name: "Server", Value: "benchproxy-sim"}, {Name: "Content-Type", Value: "text/event-stream"},
			{Name: "Cache-Control", Value: "no-cache"},
		},
	}
	sse := func(at time.Duration, json []byte) {
		data := make([]byte, 0, len(json)+8)
		data = append(append(append(data, "data: "...), json...), "\n\n"...)
		s.Steps = append(s.Steps, Step{At: at, Data: data})
	}
	p.pings(s)
	if p.chat {
		at := p.prefill
		if p.EarlyRole {
			at = 0
		}
		for i := range p.choices {
			sse(at, p.roleEvent(i))
		}
	}
	running := 0
	for _, e := range p.events {
		running += len(e.tokens)
		sse(e.at, p.contentEvent(e, running))
		step := &s.Steps[len(s.Steps)-1]
		step.Token, step.Tokens = true, len(e.tokens)
	}
	for i, c := range p.choices {
		sse(p.last, p.finishEvent(i, c.finish))
	}
	if p.lastChunk() {
		sse(p.last, p.usageEvent())
	}
	s.Steps = append(s.Steps, Step{At: p.last, Data: []byte("data: [DONE]\n\n")})
	slices.SortStableFunc(s.Steps, func(x, y Step) int { return int(x.At - y.At) })
	return s
}

// pings plans the comments that keep a client waiting.
func (p *answerPlan) pings(s *Script) {
	if p.Ping <= 0 {
		return
	}
	for at := p.Ping; at < p.prefill; at += p.Ping {
		s.Steps = append(s.Steps, Step{At: at, Data: []byte(": ping\n\n")})
	}
}

// lastChunk reports whether the stream ends with a chunk for the usage alone.
func (p *answerPlan) lastChunk() bool {
	switch p.Options.Usage {
	case UsageRequest:
		return p.ask.usage
	case UsageAlways, UsageContinuous:
		return true
	}
	return false
}

// plain is the answer as one JSON body, sent when its last token is due.
func (p *answerPlan) plain() *Script {
	s := jsonScript(200, p.wholeAnswer())
	s.Steps[0].At = p.last
	s.Steps[0].Token, s.Steps[0].Tokens = p.total.Completion > 0, p.total.Completion
	return s
}
