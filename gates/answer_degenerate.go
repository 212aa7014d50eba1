package gates

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// The bounds of degenerate text. They leave room for what people ask for: tables, lists, code, refrains.
const (
	loopCopies    = 4   // times that the end of a text is repeated, at least
	loopRunes     = 200 // characters that the copies have together, at least
	fewWordsFrom  = 100 // words from which the share of distinct ones is looked at
	fewWordsShare = 20  // one distinct word among so many is too few
	fewRunesFrom  = 200 // the same for characters, of a text without blanks
	fewRunes      = 4
)

// degenerateDetail is what degenerate found.
type degenerateDetail struct {
	Runes  int    `json:"chars"`
	Words  int    `json:"words"`
	Unique int    `json:"distinct_words"`
	Loop   string `json:"loop,omitempty"`   // what is repeated, shortened
	Copies int    `json:"copies,omitempty"` // how often
}

func degenerateGate() Gate {
	return Gate{
		ID: "degenerate", Version: 2, Family: "answer",
		Summary: "the text is no loop and more than a few words over and over",
		Explain: `A broken model, cache or kernel shows as text that runs in circles. Each choice's content channel is looked at:
- a text of 200 characters and more that ends in the same thing four times and more, with nothing in between, is a loop when
  the copies fill half of it, or have 200 characters together and hold letters or digits (a ruler of dashes is none);
- a text of 100 words and more with fewer than one distinct word in 20 says nothing;
- a text of 200 characters and more without blanks with four distinct characters and fewer says nothing.
An answer that stopped by itself without text, reasoning, refusal, tool call or media is empty, and fails too.
ok: none of it. fail: one of it; the detail names what is repeated. skipped: the answer holds no text (tool calls, media), or its
budget ended inside the reasoning; or a golden of the case is degenerate, too: then it is the model's own way, and the gates
that compare the two have the say. not_run: there is no whole answer.
Judged by itself: every answer, unless the request forces the model past its own end (ignore_eos).`,
		auto: func(a *Asked) (json.RawMessage, bool) {
			forced := string(a.Field("ignore_eos")) == "true" || string(a.Field("sampling_params", "ignore_eos")) == "true"
			return nil, !forced
		},
		judge: answered(degenerate),
	}
}

func degenerate(e *Evidence, t Turn) Finding {
	f := degenerated(t)
	if f.Status != exchange.VerdictFail {
		return f
	}
	for _, g := range goldensOf(e.Case, len(e.Turns)-1) {
		if degenerateGolden(g) {
			return Finding{Status: exchange.VerdictSkipped, Reason: f.Reason + ", and golden " + string(g.ID) + " is degenerate, too", Detail: f.Detail}
		}
	}
	return f
}

// degenerateGolden reports whether a recording of the reference is what the rule fails.
func degenerateGolden(g *exchange.Golden) bool {
	if text := strip(g.Text); text != "" {
		return circles(text).Status == exchange.VerdictFail
	}
	return g.Finish == finishStop && g.Reasoning == "" && len(g.Calls) == 0
}

// degenerated judges the texts of an answer.
func degenerated(t Turn) Finding {
	var last Finding
	texts := 0
	for _, c := range t.Transcript.Choices {
		text := strip(c.Text)
		if text == "" {
			continue
		}
		texts++
		if last = circles(text); last.Status != ok().Status {
			return last
		}
	}
	if texts > 0 {
		return last
	}
	tr := t.Transcript
	generated := tr.TokenEvents() > 0 || slices.ContainsFunc(tr.Choices, func(c wire.Choice) bool {
		return c.Text != "" || c.Reasoning != "" || c.Refusal != "" || len(c.ToolCalls) > 0
	})
	if !generated && tr.FinishNorm == finishStop {
		return fail("the answer is empty")
	}
	return skipped("the answer holds no text to look at")
}

// circles judges one text that is not empty.
func circles(text string) Finding {
	runes := []rune(text)
	words := strings.Fields(text)
	distinct := map[string]bool{}
	for _, w := range words {
		distinct[w] = true
	}
	d := degenerateDetail{Runes: len(runes), Words: len(words), Unique: len(distinct)}
	f := ok()
	if period, length := loopAtEnd(runes); period > 0 {
		d.Copies = length / period
		d.Loop = string(runes[len(runes)-period : len(runes)-period+min(period, 80)])
		f = fail("it ends in %s %d times", excerpt(d.Loop), d.Copies)
	} else if len(words) >= fewWordsFrom && len(distinct)*fewWordsShare < len(words) {
		f = fail("%d words, only %d of them distinct", len(words), len(distinct))
	} else if len(words) == 1 && len(runes) >= fewRunesFrom && distinctRunes(runes) <= fewRunes {
		f = fail("%d characters without a blank, only %d of them distinct", len(runes), distinctRunes(runes))
	}
	if f.Status == exchange.VerdictFail { // of sound text it would be noise
		f.Detail = d
	}
	return f
}

func distinctRunes(runes []rune) int {
	sorted := slices.Clone(runes)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}

// loopAtEnd finds the loop that a text ends in: the length of what is repeated and of all its copies together, 0 and 0
// when there is none. It is the longest repetition there is. The borders of the reversed text give, for each end of the
// text, the shortest thing it repeats.
func loopAtEnd(text []rune) (period, length int) {
	if len(text) < loopRunes {
		return 0, 0
	}
	n := len(text)
	at := func(i int) rune { return text[n-1-i] }
	border := make([]int32, n+1)
	border[0] = -1
	for i, k := 0, int32(-1); i < n; i++ {
		for k >= 0 && at(i) != at(int(k)) {
			k = border[k]
		}
		k++
		border[i+1] = k
		size := i + 1
		if p := size - int(k); size >= p*loopCopies {
			period, length = p, size
		}
	}
	switch tail := text[n-length:]; {
	case period == 0:
		return 0, 0
	case 2*length >= n:
		return period, length
	case length >= loopRunes && slices.ContainsFunc(tail[:period], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return period, length
	}
	return 0, 0
}
