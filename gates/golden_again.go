package gates

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The gates of this file hold an engine against itself: they send the subject's own requests again.

// again is the subject's request as a need: the very same bytes, or with some fields changed.
func again(x *exchange.Exchange, id, why string, change map[string]any) (exchange.Need, error) {
	n := exchange.Need{ID: id, Party: exchange.Candidate, Method: x.Request.Method, Path: x.Request.Target, Body: x.Request.Body.Bytes(), Why: why}
	if len(change) == 0 {
		return n, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(n.Body, &fields); err != nil || fields == nil {
		return n, fmt.Errorf("the request is no JSON object")
	}
	for name, v := range change {
		if v == nil {
			delete(fields, name)
			continue
		}
		fields[name] = body(map[string]any{"v": v})
		var inner struct{ V json.RawMessage }
		if err := json.Unmarshal(fields[name], &inner); err != nil {
			return n, err
		}
		fields[name] = inner.V
	}
	n.Body = object(fields)
	return n, nil
}

// sameAnswer compares two answers of one engine to one request: by token ids where both tell them, else by what they
// say. where names the first difference; "" when there is none.
func sameAnswer(a, b *answer) (where string) {
	ids := func(x *answer) bool { return x.tokens.IDs() && !x.tokens.Missing }
	if ids(a) && ids(b) {
		for i := range min(len(a.tokens.Generated), len(b.tokens.Generated)) {
			if x, y := a.tokens.Generated[i], b.tokens.Generated[i]; x.ID != y.ID {
				return fmt.Sprintf("token %d (%q against %q)", i, x.Text, y.Text)
			}
		}
		if x, y := len(a.tokens.Generated), len(b.tokens.Generated); x != y {
			return fmt.Sprintf("length (%d tokens against %d)", x, y)
		}
	}
	switch {
	case a.reasoning != b.reasoning:
		return fmt.Sprintf("byte %d of the reasoning", commonPrefix(a.reasoning, b.reasoning))
	case a.text != b.text:
		return fmt.Sprintf("byte %d of the text", commonPrefix(a.text, b.text))
	case !a.channels.equal(&b.channels):
		return "the tool calls"
	case a.finish != b.finish:
		return fmt.Sprintf("the end (%s against %s)", a.finish, b.finish)
	}
	return ""
}

// cachedOf is how many prompt tokens an answer took from a cache; ok is false when the engine does not tell.
func cachedOf(a *answer) (n int64, ok bool) {
	if a.usage == nil || a.usage.Cached == nil {
		return 0, false
	}
	return *a.usage.Cached, true
}

// samePath reports whether two answers were computed alike: from equally many cached tokens.
func samePath(a, b *answer) bool {
	x, ok1 := cachedOf(a)
	y, ok2 := cachedOf(b)
	return ok1 && ok2 && x == y
}

// lifetime is when an exchange was with the engine.
func lifetime(x *exchange.Exchange) (begin, end time.Time, ok bool) {
	from, started := x.Timeline.SendStart.NS()
	to, ended := x.Timeline.BodyEnd.NS()
	return x.Timeline.Wall.Add(time.Duration(from)), x.Timeline.Wall.Add(time.Duration(to)), started && ended
}

// mostTogether is the largest number of exchanges that the engine had at one moment.
func mostTogether(xs []*exchange.Exchange) (most int) {
	for _, x := range xs {
		at, _, ok := lifetime(x)
		n := 0
		for _, y := range xs {
			begin, end, known := lifetime(y)
			if ok && known && !begin.After(at) && at.Before(end) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// aloneDetail is what was found of one member.
type aloneDetail struct {
	Exchange  exchange.ID `json:"exchange"`
	Runs      int         `json:"runs"`                // answers to it alone
	Status    string      `json:"status"`              // same, near_tie, cache_flip, race, differs, unknown
	Where     string      `json:"where,omitempty"`     // first difference
	Cached    []*int64    `json:"cached"`              // tokens from a cache: of the member, then alone; null when not told
	Path      *int64      `json:"path"`                // tokens from the cache of the two answers that share a path; null when not told
	Gap       *float64    `json:"gap,omitempty"`       // of a near-tie, in nats
	Rule      tieRule     `json:"rule,omitempty"`      // of a near-tie
	Documents string      `json:"documents,omitempty"` // what a difference that passes comes from
}

// consistencyParams are the parameters of consistency.
type consistencyParams struct {
	referenceParams
	MaxRuns int `json:"max_runs,omitempty"` // how often a member is sent alone before two runs share a path; 0 = 4
}

func (p *consistencyParams) runs() int {
	if p.MaxRuns == 0 {
		return defaultAloneRuns
	}
	return p.MaxRuns
}

// Validate refuses what cannot be meant.
func (p *consistencyParams) Validate() error {
	if p.MaxRuns != 0 && (p.MaxRuns < 2 || p.MaxRuns > 20) {
		return fmt.Errorf("max_runs %d is not from 2 to 20", p.MaxRuns)
	}
	return nil
}

const defaultAloneRuns = 4

func consistencyGates() []Gate {
	return []Gate{{
		ID: "consistency", Version: 2, Family: "golden",
		Summary: "requests that ran together are answered as each of them is alone",
		Explain: `The exchanges of the case are requests that ran together; the stamps must show that at least two did. Each is sent
again alone, in a row, until two of its answers alone share a path, which is the number of tokens from the prompt cache. Those
two must be identical: a difference on one path is a race. An answer under concurrency that differs from the one
alone passes only as a near-tie of the engine's own list, and only when every member is deterministic alone. Answers
alone that differ on different paths are a flip by the cache: a near-tie, or a failure, and never called a race.
Tokens must not be drawn. incomparable: nothing ran together; no two answers alone share a path; the engine tells no
log-probabilities of a difference.`,
		Params: func() any { return &consistencyParams{} },
		judge:  consistency,
	}}
}

func consistency(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*consistencyParams), &wants{e: e}
	if n := mostTogether(e.Case.Exchanges); n < 2 {
		return incomparable("no two of the exchanges ran together"), nil
	}
	var details []aloneDetail
	for _, t := range e.Turns {
		a := answerOf(t)
		switch {
		case a.told.Outcome != exchange.OutcomeComplete:
			return incomparable("exchange %s is %s", t.Exchange.ID, a.told.Outcome), nil
		case drawn(a):
			return incomparable("tokens are drawn: send the requests at temperature 0"), nil
		}
		details = append(details, alone(w, a, p))
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	return consistencyFinding(details), nil
}

// alone sends one member again until two answers share a path, and compares.
func alone(w *wants, a *answer, p *consistencyParams) aloneDetail {
	d := aloneDetail{Exchange: a.x.ID, Cached: []*int64{cachedPtr(a)}}
	var runs []*answer
	for i := range p.runs() {
		n, err := again(a.x, fmt.Sprintf("alone/%s/%d", a.x.ID, i+1), "the same request with nothing beside it", nil)
		if err != nil {
			return d.settle("unknown", err.Error())
		}
		n.Group = "alone/" + string(a.x.ID) // nothing in between, so that a cache holds what the run before left there
		r, missing, ok := w.reply(n)
		switch {
		case missing != "":
			return d.settle("unknown", missing)
		case ok:
			runs = append(runs, r)
			d.Runs, d.Cached = len(runs), append(d.Cached, cachedPtr(r))
		}
		if i+1 < min(firstRuns, p.runs()) {
			continue
		}
		if x, y := pairOnPath(runs); ok && x != nil {
			return d.settled(w, a, [2]*answer{x, y}, runs)
		}
		if !ok {
			return d
		}
	}
	return d.settle("unknown", "no two of its answers alone took as much from the cache")
}

// firstRuns is how many runs alone are asked for at once: behind the first, which may find anything in the cache, two that
// find the same there.
const firstRuns = 3

// settled judges, with one more answer alone where the member was answered cold and none of the others was: that tells
// what its cache does from what its neighbors do. It takes an engine that can be told to do without the cache.
func (d aloneDetail) settled(w *wants, a *answer, alike [2]*answer, runs []*answer) aloneDetail {
	cached, told := cachedOf(a)
	lacking := !slices.ContainsFunc(runs, func(r *answer) bool { return samePath(a, r) })
	if told && cached == 0 && lacking && cacheControl(a) && sameAnswer(a, alike[0]) != "" {
		n, err := again(a.x, fmt.Sprintf("alone/%s/cold", a.x.ID), "the same request with nothing beside it and nothing cached", map[string]any{"cache_prompt": false})
		if err != nil {
			return d.settle("unknown", err.Error())
		}
		r, missing, ok := w.reply(n)
		switch {
		case ok:
			runs = append(runs, r)
			d.Runs, d.Cached = len(runs), append(d.Cached, cachedPtr(r))
		case missing == "":
			return d
		}
	}
	return d.judge(a, alike[0], alike[1], runs)
}

func (d aloneDetail) settle(status, where string) aloneDetail {
	d.Status, d.Where = status, where
	return d
}

func cachedPtr(a *answer) *int64 {
	n, ok := cachedOf(a)
	if !ok {
		return nil
	}
	return &n
}

// pairOnPath are the first two answers on one path, nil when there are none. Where the engine does not tell the path,
// answers that are equal need no explanation; different ones could be of different paths.
func pairOnPath(runs []*answer) (x, y *answer) {
	for i := range runs {
		for k := range i {
			_, told := cachedOf(runs[k])
			if samePath(runs[k], runs[i]) || !told && sameAnswer(runs[k], runs[i]) == "" {
				return runs[k], runs[i]
			}
		}
	}
	return nil, nil
}

// judge compares the two answers alone on one path, then those on different paths, then the one that ran with others.
func (d aloneDetail) judge(a, x, y *answer, runs []*answer) aloneDetail {
	d.Path = cachedPtr(x)
	if where := sameAnswer(x, y); where != "" {
		return d.settle("race", where)
	}
	for i := range runs {
		for k := range i {
			if where := sameAnswer(runs[i], runs[k]); where != "" && samePath(runs[i], runs[k]) {
				d.Path = cachedPtr(runs[i])
				return d.settle("race", where)
			}
		}
	}
	for _, r := range runs {
		if where := sameAnswer(x, r); where != "" {
			return d.between(x, r, "cache_flip", where, "prompt tokens from the cache")
		}
	}
	where := sameAnswer(a, x)
	switch {
	case where == "":
		return d.settle("same", "")
	case !samePath(a, x):
		for _, r := range runs {
			if samePath(a, r) && sameAnswer(a, r) == "" {
				return d.settle("same", "")
			}
		}
		return d.between(x, a, "differs", where, "neighbors, or prompt tokens from the cache")
	}
	return d.between(x, a, "differs", where, "neighbors in the batch")
}

// between judges a difference by the engine's own list at the place.
func (d aloneDetail) between(x, other *answer, status, where, from string) aloneDetail {
	t, known := selfTie(x, other)
	d.Gap, d.Rule, d.Documents = t.gap, t.rule, from
	switch {
	case !known:
		return d.settle(status+"_unjudged", where)
	case t.near:
		return d.settle(status+"_near_tie", where)
	}
	return d.settle(status, where)
}

// selfTie judges the first difference of two answers by the list of either; known is false when neither has one.
func selfTie(x, other *answer) (t tie, known bool) {
	for _, pair := range [][2]*answer{{x, other}, {other, x}} {
		g := &exchange.Golden{Finish: pair[0].finish, Text: pair[0].text, Reasoning: pair[0].reasoning, Calls: pair[0].calls}
		takeTokens(g, pair[0].tokens)
		f := follow(g, pair[1])
		if f.stuck != "" || f.none || f.open || f.index >= len(g.Tokens) || g.Tokens[f.index].Top == nil || zeroed(pair[0].tokens) {
			continue
		}
		if next := nearTie(g.Tokens[f.index].Top, g.Tokens[f.index].Logprob, f.divergence.golden, f.candidate); !known || next.near {
			t, known = next, true
		}
	}
	return t, known
}

// consistencyFinding sums the members up: a race counts most, then a real difference, then one that could not be judged.
func consistencyFinding(details []aloneDetail) Finding {
	finding := ok()
	worse := func(f Finding) {
		if finding.Status == exchange.VerdictOK || finding.Status == exchange.VerdictIncomparable && f.Status == exchange.VerdictFail {
			finding = f
		}
	}
	for _, d := range details {
		if d.Status == "race" {
			worse(fail("a race: exchange %s alone gives two answers on one path (%s tokens cached), which part at %s", d.Exchange, countText(d.Path), d.Where))
		}
	}
	for _, d := range details {
		switch d.Status {
		case "cache_flip":
			worse(fail("exchange %s alone is answered otherwise from the cache: it parts at %s, gap %s, and is no near-tie (not a race: the paths differ)", d.Exchange, d.Where, gapText(d.Gap)))
		case "differs":
			worse(fail("exchange %s differs from its answer alone at %s, gap %s: %s", d.Exchange, d.Where, gapText(d.Gap), d.Documents))
		case "cache_flip_unjudged", "differs_unjudged":
			worse(incomparable("exchange %s differs at %s (%s), and the engine lists no log-probabilities there", d.Exchange, d.Where, d.Documents))
		case "unknown", "":
			worse(incomparable("exchange %s: %s", d.Exchange, d.Where))
		}
	}
	finding.Detail = map[string]any{"members": details}
	return finding
}

func gapText(gap *float64) string {
	if gap == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.3f", *gap)
}
