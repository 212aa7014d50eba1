package sim

import (
	"math/rand/v2"
	"strconv"
)

// logprobs are the log-probabilities of tokens in the form of the dialect; nil when they were not asked for or the
// tokens are no text. The values are made up, from the seed and the token.
func (p *answerPlan) logprobs(tokens []token) []byte {
	text := textOf(tokens)
	switch {
	case p.top < 0 || len(text) == 0:
		return nil
	case p.chat:
		return p.chatLogprobs(text)
	}
	return p.completionLogprobs(text)
}

// textOf are the tokens that are text.
func textOf(tokens []token) []token {
	var text []token
	for _, t := range tokens {
		if t.kind == kindText {
			text = append(text, t)
		}
	}
	return text
}

// logprob is the log-probability of the rank-th best token in the place of t: falling with the rank.
func (p *answerPlan) logprob(t token, rank int) float64 {
	h := p.seed
	for _, c := range []byte(t.text) {
		h = h*1099511628211 ^ uint64(c)
	}
	rng := rand.New(rand.NewPCG(h, 7))
	return -(float64(1+rng.IntN(500))/1000 + float64(rank))
}

// rival is the text of the rank-th best token; the chosen one is the best.
func rival(t token, rank int) string {
	if rank == 0 {
		return t.text
	}
	return " " + vocabulary[(len(t.text)*31+rank)%len(vocabulary)]
}

// appendEntry adds token, log-probability and bytes of one entry, without the closing brace.
func (p *answerPlan) appendEntry(b []byte, t token, rank int) []byte {
	text := rival(t, rank)
	b = appendString(append(b, `{"token":`...), text)
	b = strconv.AppendFloat(append(b, `,"logprob":`...), p.logprob(t, rank), 'f', 3, 64)
	b = append(b, `,"bytes":[`...)
	for i, c := range []byte(text) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, ']')
}

func (p *answerPlan) chatLogprobs(tokens []token) []byte {
	return append(append([]byte(`{"content":`), p.logprobList(tokens)...), '}')
}

// logprobList is an entry for each token, with its rivals.
func (p *answerPlan) logprobList(tokens []token) []byte {
	b := []byte("[")
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.appendEntry(b, t, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range p.top {
			if rank > 0 {
				b = append(b, ',')
			}
			b = append(p.appendEntry(b, t, rank), '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}

func (p *answerPlan) completionLogprobs(tokens []token) []byte {
	names, values, tops := []byte(`{"tokens":[`), []byte(`],"token_logprobs":[`), []byte(`],"top_logprobs":[`)
	for i, t := range tokens {
		if i > 0 {
			names, values, tops = append(names, ','), append(values, ','), append(tops, ',')
		}
		names = appendString(names, t.text)
		values = strconv.AppendFloat(values, p.logprob(t, 0), 'f', 3, 64)
		tops = append(tops, '{')
		for rank := range p.top {
			if rank > 0 {
				tops = append(tops, ',')
			}
			tops = append(appendString(tops, rival(t, rank)), ':')
			tops = strconv.AppendFloat(tops, p.logprob(t, rank), 'f', 3, 64)
		}
		tops = append(tops, '}')
	}
	return append(append(append(names, values...), tops...), "]}"...)
}
