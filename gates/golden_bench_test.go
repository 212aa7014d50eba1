package gates

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// scoredAnswer is an answer of /completion with so many tokens, each with a list of five.
func scoredAnswer(tokens int, swap bool) string {
	rng := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	ids, entries := make([]int, 0, tokens), make([]map[string]any, 0, tokens)
	for i := range tokens {
		id, other := rng.IntN(50_000), 50_000+rng.IntN(50_000)
		if swap && i == tokens-1 {
			id, other = other, id
		}
		word := " t" + strconv.Itoa(id)
		text.WriteString(word)
		ids = append(ids, id)
		top := []map[string]any{{"id": id, "token": word, "logprob": -0.7}, {"id": other, "token": " t" + strconv.Itoa(other), "logprob": -1.1}}
		for k := range 3 {
			top = append(top, map[string]any{"id": 200_000 + k, "token": " u" + strconv.Itoa(k), "logprob": -4 - float64(k)})
		}
		entries = append(entries, map[string]any{"id": id, "token": word, "logprob": -0.7, "top_logprobs": top})
	}
	raw, err := json.Marshal(map[string]any{"content": text.String(), "tokens": ids, "stop": true, "stop_type": "limit", "tokens_predicted": tokens,
		"tokens_evaluated": 4, "timings": map[string]any{"cache_n": 0, "prompt_n": 4, "predicted_n": tokens}, "completion_probabilities": entries})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// BenchmarkNearTie judges prompts with 10,000 golden positions together, from the recorded bytes to the verdict: one
// answer of that length, and 156 of 64 tokens, each of which parts from its golden at its last token.
func BenchmarkNearTie(b *testing.B) {
	for name, n := range map[string]int{"one_answer": 10_000, "answers_of_64": 64} {
		b.Run(name, func(b *testing.B) {
			c := &exchange.Case{ID: "c"}
			for turn := range 10_000 / n {
				g, err := GoldenOf(made(madeAsk, scoredAnswer(n, false)), Recording{ID: exchange.ID("G" + strconv.Itoa(turn)), Weights: "w", Turn: turn})
				if err != nil {
					b.Fatal(err)
				}
				c.Goldens = append(c.Goldens, g)
				c.Exchanges = append(c.Exchanges, made(madeAsk, scoredAnswer(n, true)))
			}
			check := ownCheck("near_tie", map[string]any{"weights": "w"})
			for b.Loop() {
				v, needs, err := Judge(Prepare(c), check)
				if err != nil || len(needs) > 0 || v.Status != exchange.VerdictOK {
					b.Fatalf("%+v, %d needs, %v", v.Status, len(needs), err)
				}
			}
		})
	}
}
