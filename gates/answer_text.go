package gates

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// exactParams are the parameters of exact.
type exactParams struct {
	Text string `json:"text"`
}

// Validate wants a text.
func (p *exactParams) Validate() error {
	if p.Text == "" {
		return errors.New("text is missing: what the answer must be")
	}
	return nil
}

func exactGate() Gate {
	return Gate{
		ID: "exact", Version: 1, Family: "answer",
		Summary: "the answer is exactly the expected text",
		Explain: `The text of the answer's content channel, without white space at its two ends, must equal the parameter "text" code point by
code point: no case folding, no normalization, nothing before or behind it. What stands in the reasoning does not count.
ok: equal. fail: anything else. not_run, skipped: there is no whole answer.`,
		Params: func() any { return &exactParams{} },
		judge: answered(func(e *Evidence, t Turn) Finding {
			want, got := e.params.(*exactParams).Text, strip(t.Content())
			if got == want {
				return ok()
			}
			return fail("want %s, got %s", excerpt(want), excerpt(got))
		}),
	}
}

// strip cuts white space off both ends: that of Unicode and the four separators of ASCII, as Python does.
func strip(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}

// excerptRunes is how much of a text a reason shows.
const excerptRunes = 80

// excerpt is a text for a reason: quoted and not longer than a line.
func excerpt(s string) string {
	if short := firstRunes(s, excerptRunes); len(short) < len(s) {
		return fmt.Sprintf("%q...", short)
	}
	return fmt.Sprintf("%q", s)
}

// shorten is a text that is words of ours already, not longer than two lines.
func shorten(s string) string {
	if short := firstRunes(s, 2*excerptRunes); len(short) < len(s) {
		return short + "..."
	}
	return s
}

// firstRunes is the beginning of a text.
func firstRunes(s string, most int) string {
	for at := range s {
		if most--; most < 0 {
			return s[:at]
		}
	}
	return s
}

// recallParams are the parameters of long_context_recall.
type recallParams struct {
	Codes []recallCode `json:"codes"`
}

// recallCode is one needle of a long prompt.
type recallCode struct {
	Label string  `json:"label,omitempty"` // what the prompt calls it; "" for a needle that has no name
	Code  string  `json:"code"`
	Depth float64 `json:"depth"` // where in the prompt it stands, 0 to 1
}

// Validate wants codes that are told apart.
func (p *recallParams) Validate() error {
	if len(p.Codes) == 0 {
		return errors.New("codes are missing: what the answer must hold")
	}
	for i, c := range p.Codes {
		switch {
		case c.Code == "":
			return fmt.Errorf("codes[%d].code is missing", i)
		case slices.ContainsFunc(p.Codes[:i], func(o recallCode) bool { return o.Code == c.Code }):
			return fmt.Errorf("codes[%d].code %q is there twice", i, c.Code)
		}
	}
	return nil
}

// recallDetail is what long_context_recall found.
type recallDetail struct {
	Found    []string `json:"found"`     // codes, in the order of the prompt
	Missing  []string `json:"missing"`   // codes
	Misnamed []string `json:"misplaced"` // labels that stand at another code
}

func recallGate() Gate {
	return Gate{
		ID: "long_context_recall", Version: 2, Family: "answer",
		Summary: "codes hidden in a long prompt come back exactly",
		Explain: `The prompt hides codes at known depths (0.1, 0.5 and 0.9 of it, say) and asks for them. Each code of the parameter "codes"
must stand in the content channel exactly, upper and lower case as given, and not as a part of a longer word: next to it
stands neither a letter (of a script that puts blanks between words) nor a digit, hyphen or underscore. Where a code has a
label and the answer names all labels, each label must stand at its own code: either every label right before it or every
label right behind it, with no other code in between; or all labels stand before all codes or behind them, in their order.
ok: all codes are there and at their labels. fail: a code is missing or stands at another label; the detail tells which, and
so at which depth recall broke. not_run, skipped: there is no whole answer.
It is a gate of its own: near-tie rules do not excuse a code that is not there.`,
		Params: func() any { return &recallParams{} },
		judge:  answered(func(e *Evidence, t Turn) Finding { return recall(e.params.(*recallParams).Codes, t.Content()) }),
	}
}

func recall(codes []recallCode, text string) Finding {
	d := recallDetail{Found: []string{}, Missing: []string{}, Misnamed: []string{}}
	for _, c := range codes {
		if len(wordsAt(text, c.Code)) > 0 {
			d.Found = append(d.Found, c.Code)
		} else {
			d.Missing = append(d.Missing, c.Code)
		}
	}
	var f Finding
	switch {
	case len(d.Missing) > 0:
		f = fail("%d of %d codes are missing: %s", len(d.Missing), len(codes), strings.Join(d.Missing, ", "))
	case misplaced(codes, text, &d):
		f = fail("labels stand at other codes: %s", strings.Join(d.Misnamed, ", "))
	default:
		f = ok()
	}
	f.Detail = d
	return f
}

// mention is a place of a code or of a label in an answer.
type mention struct {
	at    int
	of    int // which code
	label bool
}

// misplaced reports whether labels stand at codes that are not theirs, and notes which.
func misplaced(codes []recallCode, text string, d *recallDetail) bool {
	var all []mention
	for i, c := range codes {
		labels := wordsAt(text, c.Label)
		if len(labels) == 0 {
			return false // an answer of codes alone has nothing to mix up
		}
		for _, at := range labels {
			all = append(all, mention{at, i, true})
		}
		for _, at := range wordsAt(text, c.Code) {
			all = append(all, mention{at, i, false})
		}
	}
	slices.SortFunc(all, func(a, b mention) int { return a.at - b.at })
	if apart, other := listsInOrder(all, len(codes)); apart {
		for _, i := range other {
			d.Misnamed = append(d.Misnamed, codes[i].Label)
		}
		return len(other) > 0
	}
	behind := strangers(slices.Values(all), len(codes))
	ahead := strangers(func(yield func(mention) bool) {
		for _, m := range slices.Backward(all) {
			if !yield(m) {
				return
			}
		}
	}, len(codes))
	if len(ahead) == 0 || len(behind) == 0 {
		return false
	}
	for _, i := range ahead {
		d.Misnamed = append(d.Misnamed, codes[i].Label)
	}
	return true
}

// listsInOrder reports whether the labels stand together and the codes stand together, each once, as in the header and the row of
// a table; other are those whose label has another place among the labels than the code has among the codes.
func listsInOrder(all []mention, codes int) (apart bool, other []int) {
	if len(all) != 2*codes || codes < 2 {
		return false, nil
	}
	first, second := all[:codes], all[codes:]
	for i := range codes {
		if first[i].label != first[0].label || second[i].label == first[0].label {
			return false, nil
		}
		if first[i].of != second[i].of {
			other = append(other, first[i].of)
		}
	}
	slices.Sort(other)
	return true, other
}

// strangers are the codes whose label has the code itself nowhere as the last code that was passed, of mentions in the
// order of the text or against it.
func strangers(all iter.Seq[mention], codes int) (out []int) {
	own := make([]bool, codes)
	last := -1
	for m := range all {
		if !m.label {
			last = m.of
		} else if last == m.of {
			own[m.of] = true
		}
	}
	for i, o := range own {
		if !o {
			out = append(out, i)
		}
	}
	return out
}

// wordsAt are the places where a word stands that is not part of a longer one.
func wordsAt(text, word string) (at []int) {
	if word == "" {
		return nil
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return at
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		behind, _ := utf8.DecodeRuneInString(text[i+len(word):])
		if !inWord(before) && !inWord(behind) {
			at = append(at, i)
		}
		from = i + 1
	}
}

// inWord reports whether a rune beside a code makes another code of it. The error of an empty text does not, nor do
// letters of scripts that write without blanks.
func inWord(r rune) bool {
	letter := unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
	return r != utf8.RuneError && (letter || unicode.IsDigit(r) || r == '-' || r == '_')
}
