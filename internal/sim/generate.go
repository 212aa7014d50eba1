package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
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

// generate answers a request in a dialect.
func (s *Server) generate(d *dialect, req Request, o Options) *Script {
	a, err := parseAsk(d, req, o)
	if err != nil {
		return refuse(d.refuse, 400, "invalid_request_error", err.Error())
	}
	if a.model == "" {
		a.model = s.cfg.Model
	}
	if a.toolless {
		return refuse(d.refuse, 400, "invalid_request_error", a.model+" does not support tools")
	}
	if s.cfg.Context > 0 && a.prompt+1 > s.cfg.Context {
		return refuse(d.refuse, 400, "exceed_context_size_error",
			fmt.Sprintf("the prompt has %d tokens, the context holds %d", a.prompt, s.cfg.Context))
	}
	if s.cfg.Context > 0 && a.prompt+a.limit > s.cfg.Context {
		a.limit, a.bounded = s.cfg.Context-a.prompt, true
	}
	p := newAnswerPlan(a, d.options(a, o))
	var script *Script
	if a.stream {
		script = p.streamed()
	} else {
		script = p.single()
	}
	script.Usage = p.total
	return script
}

// defaultThinking is how many tokens a request gets that asks for thinking when the options say nothing.
const defaultThinking = 8

// options are those of a request in this dialect.
func (d *dialect) options(a ask, o Options) Options {
	if a.thinking && o.Reasoning == 0 {
		o.Reasoning = defaultThinking
	}
	if d.mute {
		o.Reasoning = 0
	}
	if d.whole && o.Tools == ToolsFragments {
		o.Tools = ToolsWhole
	}
	return o
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

// pings plans what keeps a client waiting until the first token.
func (p *answerPlan) pings(w *scribe) {
	if p.Ping <= 0 || p.dialect.ping == "" {
		return
	}
	for at := p.Ping; at < p.prefill; at += p.Ping {
		w.add(at, []byte(p.dialect.ping), 0)
	}
}

func sortSteps(steps []Step) {
	slices.SortStableFunc(steps, func(x, y Step) int { return int(x.At - y.At) })
}

// single is the answer as one JSON body, sent when its last token is due.
func (p *answerPlan) single() *Script {
	s := jsonScript(200, p.dialect.plain(p))
	s.Steps[0].At = p.last
	s.Steps[0].Token, s.Steps[0].Tokens = p.total.Completion > 0, p.total.Completion
	s.Failure = func(int) []byte { return p.dialect.refuse(500, "server_error", lostModel) }
	return s
}
