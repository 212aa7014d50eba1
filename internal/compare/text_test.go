package compare

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestDiverge(t *testing.T) {
	call := func(args string) []exchange.ToolCall {
		return []exchange.ToolCall{{ID: args, Name: "get", Arguments: args}}
	}
	for _, c := range []struct {
		name          string
		ref, cand     Answer
		channel, kind string // "" when nothing diverges
		offset        int
		prefix        float64
	}{
		{"the same", Answer{Text: ".\n \n \nNext"}, Answer{Text: ".\n \n \nNext"}, "", "", 0, 1},
		{"both cut by the limit, one earlier", Answer{Text: "One two three", Finish: "length"}, Answer{Text: "One two", Finish: "length"}, "", "", 0, 1},
		{"one goes on", Answer{Text: "One two three", Finish: "stop"}, Answer{Text: "One two", Finish: "stop"}, "text", KindEnds, 7, 7.0 / 13},
		{"cut, but it differs before", Answer{Text: "One two three", Finish: "stop"}, Answer{Text: "One too", Finish: "length"}, "text", KindDiffers, 5, 5.0 / 13},
		{"cut before the other began to call", Answer{Text: "One", Calls: call("{}"), Finish: "tool_calls"}, Answer{Text: "One", Finish: "length"}, "", "", 0, 1},
		{"in the reasoning", Answer{Reasoning: "abc", Text: "x"}, Answer{Reasoning: "abd", Text: "x"}, "reasoning", KindDiffers, 2, 0.5},
		{"thought against not thought", Answer{Reasoning: "ab", Text: "x"}, Answer{Text: "x"}, "reasoning", KindEnds, 0, 0},
		{"characters, not bytes", Answer{Text: "äöü!"}, Answer{Text: "äöü?"}, "text", KindDiffers, 3, 0.75},
		{"other arguments", Answer{Calls: call(`{"a":1}`)}, Answer{Calls: call(`{"a":2}`)}, "tool_calls", KindDiffers, 9, 9.0 / 12},
		{"nothing at all", Answer{}, Answer{}, "", "", 0, 1},
	} {
		d, diverges := diverge(c.ref, c.cand)
		if diverges != (c.kind != "") || diverges && (d.Channel != c.channel || d.Kind != c.kind || d.Offset != c.offset) || math.Abs(d.Prefix-c.prefix) > 1e-9 {
			t.Errorf("%s: %v %+v", c.name, diverges, d)
		}
	}
}

func TestDivergenceHasContext(t *testing.T) {
	same := strings.Repeat("s", 100)
	d, _ := diverge(Answer{Text: same + strings.Repeat("r", 100)}, Answer{Text: same + "c"})
	if d.Shared != same[:before] || d.Texts != [2]string{strings.Repeat("r", after), "c"} {
		t.Errorf("%+v", d)
	}
}

func TestAnswerHashIgnoresIDsOfCalls(t *testing.T) {
	a := Answer{Text: "x", Calls: []exchange.ToolCall{{ID: "call_1", Name: "f", Arguments: "{}"}}, Finish: "stop"}
	b := Answer{Text: "x", Calls: []exchange.ToolCall{{ID: "call_2", Name: "f", Arguments: "{}"}}, Finish: "tool_calls"}
	if answerHash(a) != answerHash(b) {
		t.Error("answers with other ids of calls are not the same")
	}
	if answerHash(Answer{Text: "a", Refusal: ""}) == answerHash(Answer{Text: "", Refusal: "a"}) {
		t.Error("text and refusal are the same")
	}
}

func TestAgreementOverPairs(t *testing.T) {
	texts := map[exchange.ID]Answer{}
	a, b := side("a", 12, 100, 50), side("b", 12, 100, 50)
	for i := range a.Entries {
		texts[id("a", i)], texts[id("b", i)] = Answer{Text: "the answer"}, Answer{Text: "the answer"}
	}
	texts["b3"], texts["b5"] = Answer{Text: "the other"}, Answer{Text: "no"}
	for _, s := range []*Side{a, b} {
		for i := range s.Entries {
			s.Entries[i].Answer = answerHash(texts[s.Entries[i].Row.ID])
		}
	}
	b.Entries[7].Row.Outcome = exchange.OutcomeTimeout
	loaded := 0
	load := func(_ context.Context, id exchange.ID) (Answer, error) {
		loaded++
		return texts[id], nil
	}
	r, err := Compare(context.Background(), a, b, Options{}, load)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Answers
	if got.Identical.Part != 9 || got.Identical.Whole != 11 || got.NotCompared[ReasonFailed] != 1 || loaded != 4 {
		t.Errorf("%+v after %d loads", got, loaded)
	}
	if got.Diverged != 2 || got.Divergences[0].Candidate != "b5" || got.Divergences[1].Candidate != "b3" || *got.Prefix.Min != 0 || got.Prefix.Interval == nil {
		t.Errorf("%+v", got.Divergences)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Compare(ended, a, b, Options{}, load); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	broken := errors.New("store gone")
	if _, err := Compare(context.Background(), a, b, Options{}, func(context.Context, exchange.ID) (Answer, error) { return Answer{}, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestTakesThatDifferAmongThemselvesAreCounted(t *testing.T) {
	a, b := side("a", 1, 100, 50), replayOf(side("b", 1, 100, 50), "a")
	again := b.Entries[0]
	again.Row.ID, again.Answer = "b9", 7
	b.Entries = append(b.Entries, again)
	r := mustCompare(t, a, b, Options{}) // one of the takes is as the reference: nothing is loaded
	if r.Answers.Unstable != [2]int{0, 1} || r.Answers.Identical.Part != 1 {
		t.Errorf("%+v", r.Answers)
	}
}
