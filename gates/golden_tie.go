package gates

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// tieOptions are what a gate allows before it calls a divergence a real one.
type tieOptions struct {
	reference *referenceParams
	views     bool     // ask the reference for its own views
	rerecord  int      // further recordings of the reference that may be made
	variants  []string // launch flags of the reference under which it may be asked for the place again
}

// tieDetail is what is reported of one prompt.
type tieDetail struct {
	Turn        int          `json:"turn"` // from 1
	Golden      exchange.ID  `json:"golden"`
	Alternate   int          `json:"alternate"`
	Proof       string       `json:"prompt_proof,omitempty"` // how it is known that both read the same prompt: ids, request, count
	Differences []difference `json:"differences,omitempty"`
	Status      string       `json:"status"`
	Why         string       `json:"why,omitempty"`
	FullMatch   bool         `json:"full_match"`
	Compared    int          `json:"compared_tokens"` // of the golden; 0 where it has none
	Position    *int         `json:"position"`        // token of the golden, from 0; null for a full match
	Offset      *int         `json:"offset"`          // byte of the generated text; null for a full match
	GoldenToken *tokenDetail `json:"golden_token"`
	Token       *tokenDetail `json:"token"` // the subject's
	Rule        tieRule      `json:"rule,omitempty"`
	Gap         *float64     `json:"gap"` // nats; the smallest, where there are several
	Gaps        []float64    `json:"gaps,omitempty"`
	Noise       *float64     `json:"noise,omitempty"`
	Bar         *float64     `json:"bar,omitempty"`
	Views       []view       `json:"views,omitempty"`
	Recordings  int          `json:"re_recordings,omitempty"`
	Variants    []view       `json:"variants,omitempty"`

	tie       tie
	recording *exchange.Golden // that the answer was held against; nil for none
}

// tokenDetail is one token of a report.
type tokenDetail struct {
	ID   *int64 `json:"id"` // null when not known
	Text string `json:"text"`
	End  bool   `json:"end,omitempty"` // it ends the answer
}

func detailOf(t spelled) *tokenDetail {
	d := &tokenDetail{Text: strings.ToValidUTF8(t.text, "\uFFFD"), End: t.end}
	if t.id >= 0 {
		d.ID = &t.id
	}
	return d
}

func (d *tokenDetail) String() string {
	if d.End {
		return "the end"
	}
	return strconv.Quote(d.Text)
}

// tieJudge is the state of judging one prompt against the recordings of the reference.
type tieJudge struct {
	w *wants
	o *tieOptions
	a *answer
	f followed
	d tieDetail
}

// judgeTie judges one turn. While the answers that w asks for are missing, the detail says nothing.
func judgeTie(w *wants, turn int, a *answer, goldens []*exchange.Golden, o *tieOptions) tieDetail {
	j := &tieJudge{w: w, o: o, a: a, d: tieDetail{Turn: turn + 1}}
	if len(goldens) == 0 {
		return j.settle(exchange.VerdictIncomparable, "there is no golden of it")
	}
	f, refused := bestOf(goldens, a, w.e.Case, o.reference)
	if refused != nil {
		return j.settle(exchange.VerdictIncomparable, "the golden is refused for its "+refused.Error())
	}
	broke := w.broke
	d := j.against(f)
	if failed := d.Status == string(exchange.VerdictFail); failed && o.rerecord > 0 && len(w.needs) == 0 {
		d = j.again(d)
	}
	if d.Status == string(exchange.VerdictFail) && w.broke > broke { // what could have saved it came broken
		d.Status = string(exchange.VerdictIncomparable)
	}
	return d
}

// against judges the answer by one recording.
func (j *tieJudge) against(f followed) tieDetail {
	j.take(f)
	if d, done := j.whole(); done {
		return d
	}
	if !j.resolve() {
		return j.d
	}
	if j.f.none { // in other tokens, the same text
		d, _ := j.whole()
		return d
	}
	if j.near() || len(j.w.needs) == 0 && j.variants() {
		return j.settle(exchange.VerdictOK, "")
	}
	return j.rejected()
}

// again records the reference anew before a failure stands: it is not the same from run to run. A recording that the
// answer follows no less far than the one before, and from which it parts at a near-tie, settles it.
func (j *tieJudge) again(failed tieDetail) tieDetail {
	best, before := failed, j.f
	more, lacks := j.recordings()
	if len(j.w.needs) > 0 {
		return failed
	}
	best.Why += lacks
	for _, g := range more {
		f := followed{golden: g, pairing: before.pairing, script: scriptOfGolden(g), answer: before.answer}
		f.divergence = diverge(f.script, f.answer)
		f.compared = commonPrefix(f.script.text(), f.answer.text())
		if before.further(&f) {
			continue
		}
		next := &tieJudge{w: j.w, o: j.o, a: j.a, d: tieDetail{Turn: failed.Turn}}
		if d := next.against(f); d.tie.near {
			best = d
			break
		}
	}
	best.Recordings = len(more)
	return best
}

// take notes which recording the answer follows furthest, and where it leaves it.
func (j *tieJudge) take(f followed) {
	j.f = f
	d := &j.d
	d.recording = f.golden
	d.Golden, d.Alternate, d.Proof, d.Differences = f.golden.ID, f.golden.Alternate, f.proof, f.differences
	d.Compared = f.tokens()
	if f.none || f.stuck != "" {
		return
	}
	d.Position, d.Offset = &f.index, &f.offset
	d.GoldenToken, d.Token = detailOf(f.divergence.golden), detailOf(f.candidate)
}

// whole settles what needs no look at a place: equal answers, and those that cannot be compared.
func (j *tieJudge) whole() (d tieDetail, done bool) {
	f := &j.f
	switch {
	case f.stuck != "":
		return j.settle(exchange.VerdictIncomparable, f.stuck), true
	case f.none && f.compared == 0 && !endedItself(j.a.finish) && f.script.text() != "" && !j.a.hidden():
		return j.settle(exchange.VerdictFail, fmt.Sprintf("turn %d is empty, where golden %s is not", j.d.Turn, f.golden.ID)), true
	case f.none && f.compared == 0 && !endedItself(j.a.finish):
		return j.settle(exchange.VerdictIncomparable, "there is nothing to compare: the answer is empty"), true
	case f.none && f.overlap() < leastOverlap:
		return j.settle(exchange.VerdictIncomparable, fmt.Sprintf("they agree as far as they go, and %s at its limit after %d of %d bytes: too little was compared", f.shorter(), f.compared, f.longest())), true
	case f.none:
		zero := 0.0
		j.d.FullMatch, j.d.Rule, j.d.tie = true, ruleMatch, tie{near: true, rule: ruleMatch, gap: &zero}
		j.d.Position, j.d.Offset, j.d.GoldenToken, j.d.Token = nil, nil, nil, nil
		return j.settle(exchange.VerdictOK, ""), true
	case drawn(j.a):
		return j.settle(exchange.VerdictIncomparable, "tokens are drawn: where the answers part says nothing ("+conditionsText(f.differences)+")"), true
	case len(f.golden.Tokens) == 0:
		return j.settle(exchange.VerdictIncomparable, fmt.Sprintf("the texts part at byte %d, and the golden has no tokens to judge it by", f.compared)), true
	}
	return j.d, false
}

// leastOverlap is the part of the longer answer that must have been compared: one that a limit of its own cut early agrees
// with everything.
const leastOverlap = 0.5

// overlap is the part of the longer of two answers that is compared, where they do not part.
func (f *followed) overlap() float64 {
	compared, longest := f.compared, f.longest()
	if longest == 0 { // ids without texts
		compared, longest = min(len(f.script.parts), len(f.answer.parts)), max(len(f.script.parts), len(f.answer.parts))
	}
	if longest == 0 {
		return 1
	}
	return float64(compared) / float64(longest)
}

// longest is the length of the longer answer, in bytes.
func (f *followed) longest() int { return max(len(f.script.text()), len(f.answer.text()), f.compared) }

// shorter names the one of two answers that ends first.
func (f *followed) shorter() string {
	if len(f.script.text()) < len(f.answer.text()) {
		return "the golden ends"
	}
	return "the answer ends"
}

// settle is the end of judging.
func (j *tieJudge) settle(status exchange.VerdictStatus, why string) tieDetail {
	j.d.Status, j.d.Why = string(status), why
	return j.d
}

// resolve finds the token that the subject has at the divergence, where its engine told text only: the reference splits
// the text the way it splits its own. It reports whether judging goes on.
func (j *tieJudge) resolve() bool {
	if !j.f.open {
		return true
	}
	p := j.place()
	text := j.f.answer.text()
	parts, missing, ok := []part(nil), "the reference is no llama.cpp, which could split it", false
	if llamaCpp(j.f.golden) {
		parts, missing, ok = p.tokenized(p.id("tokenize", string(j.a.x.ID)), text, false, "the tokens of the subject's text")
	}
	if !ok && missing == "" {
		return false
	}
	if ok {
		s := &script{parts: parts, whole: true, ended: j.f.answer.ended, endID: -1}
		if s.text() == " "+text { // a vocabulary that puts a blank in front
			s.parts[0].text = s.parts[0].text[1:]
		}
		if s.text() == text {
			j.f.answer, j.f.divergence = s, diverge(j.f.script, s)
			j.take(j.f)
			return true
		}
		missing = "the reference's tokens do not spell it"
	}
	j.settle(exchange.VerdictIncomparable, fmt.Sprintf("the answers part at token %d, and which token the subject has there is not known: it lists none, and %s", j.f.index, missing))
	return false
}

func (j *tieJudge) place() *place { return &place{w: j.w, g: j.f.golden, a: j.a, index: j.f.index} }

// list is the reference's own list at the divergence, and the log-probability of the token that it took.
func (j *tieJudge) list() (top []exchange.TokenProb, own *float64) {
	if i := j.f.index; i < len(j.f.golden.Tokens) {
		return j.f.golden.Tokens[i].Top, j.f.golden.Tokens[i].Logprob
	}
	return nil, nil
}

// near applies both rules. It is false, too, while views are asked for.
func (j *tieJudge) near() bool {
	top, own := j.list()
	t := nearTie(top, own, j.f.divergence.golden, j.f.candidate)
	j.ruled(t)
	if t.near || !j.o.views {
		return t.near
	}
	views, done := j.place().views()
	if !done {
		return false
	}
	var lists [][]exchange.TokenProb
	for i := range views {
		lists = append(lists, views[i].Top)
		views[i].Gap = nearTie(views[i].Top, nil, j.f.divergence.golden, j.f.candidate).gap
	}
	v := nearTieAt(top, own, j.f.divergence.golden, j.f.candidate, lists)
	if v.rule == ruleNotListed && t.rule == ruleNoList {
		v.rule = ruleNoList
	}
	j.ruled(v.tie)
	j.d.Gaps, j.d.Noise, j.d.Bar, j.d.Views = v.gaps, &v.noise, &v.bar, views
	return v.near
}

func (j *tieJudge) ruled(t tie) { j.d.Rule, j.d.Gap, j.d.tie = t.rule, t.gap, t }

// recordings are further recordings of the reference, of the golden's prompt by its ids. lacks says which are not to be
// had, as the end of a sentence.
func (j *tieJudge) recordings() (more []*exchange.Golden, lacks string) {
	if !llamaCpp(j.f.golden) {
		return nil, ""
	}
	g, p := j.f.golden, j.place()
	ids, missing, ok := p.prompt()
	if !ok {
		return nil, "; without re-recordings: " + missing
	}
	for i := range j.o.rerecord {
		need := exchange.Need{ID: p.id("recording", strconv.Itoa(i+1)), Party: exchange.Reference, Method: "POST", Path: "/completion",
			Body: body(map[string]any{"prompt": ids, "n_predict": len(g.Tokens), "temperature": 0, "n_probs": topPlaces, "return_tokens": true,
				"post_sampling_probs": false, "cache_prompt": false, "stream": false, "seed": i + 1}), // greedy: the seed only tells the takes apart
			Why: "another recording of the reference, which is not the same from run to run"}
		a, missing, ok := j.w.reply(need)
		if !ok {
			lacks += fmt.Sprintf("; without re-recording %d: %s", i+1, missing)
			continue
		}
		again, err := GoldenOf(a.x, Recording{ID: a.x.ID, Weights: g.Weights, Unnamed: true, Engine: g.Engine, Turn: g.Turn, Drafting: g.Drafting})
		if err != nil {
			lacks += fmt.Sprintf("; without re-recording %d: %v", i+1, err)
			continue
		}
		again.Alternate = g.Alternate + i + 1
		more = append(more, again)
	}
	return more, lacks
}

// variants asks the reference for the place under other launch flags. Where its first choice is then another and the
// subject's token is listed, or that is within the gap, the divergence is the reference's own noise, and documented.
func (j *tieJudge) variants() bool {
	if len(j.o.variants) == 0 {
		return false
	}
	p := j.place()
	ids, missing, ok := p.before()
	for i, flags := range j.o.variants {
		v := view{Name: flags}
		if ok && llamaCpp(j.f.golden) {
			a, missing, got := j.w.reply(exchange.Need{ID: p.id("variant", strconv.Itoa(i+1)), Party: exchange.Reference, Method: "POST", Path: "/completion",
				Body: p.scoring(ids, 1, false), Variant: flags, Why: "the reference's first choice under other launch flags"})
			v.take(a, missing, got, 0)
		} else {
			v.Absent = missing
		}
		j.d.Variants = append(j.d.Variants, v)
	}
	if len(j.w.needs) > 0 {
		return false
	}
	for i := range j.d.Variants {
		v := &j.d.Variants[i]
		if len(v.Top) == 0 {
			continue
		}
		t := nearTie(v.Top, nil, j.f.divergence.golden, j.f.candidate)
		v.Gap = t.gap
		_, _, listed := logprobIn(v.Top, j.f.candidate)
		changed := !j.f.divergence.golden.is(&v.Top[0])
		if listed && changed || t.gap != nil && *t.gap <= maxGap+sameLogprob {
			j.ruled(tie{near: true, rule: ruleVariantAgrees, gap: t.gap})
		}
	}
	return j.d.Rule == ruleVariantAgrees
}

// rejected is the end of a divergence that no rule calls a near-tie.
func (j *tieJudge) rejected() tieDetail {
	if len(j.w.needs) > 0 {
		return j.d
	}
	d := &j.d
	top, _ := j.list()
	switch {
	case d.Rule == ruleNoList:
		return j.settle(exchange.VerdictIncomparable, j.sentence()+"; the golden has no list that surely is of this place"+absences(d.Views))
	case d.Rule == ruleNotListed && len(top) < topPlaces && !anyList(d.Views):
		return j.settle(exchange.VerdictIncomparable, fmt.Sprintf("%s; the golden lists %d of the %d places that the rule looks at%s", j.sentence(), len(top), topPlaces, absences(d.Views)))
	}
	why := j.sentence() + absences(d.Views)
	if len(j.o.variants) > 0 {
		why += "; not proven noise by any variant of the reference"
	}
	return j.settle(exchange.VerdictFail, why)
}

// sentence says where and by how much the answers part.
func (j *tieJudge) sentence() string {
	d := &j.d
	s := fmt.Sprintf("turn %d parts from golden %s at token %d (byte %d): %s where it has %s", d.Turn, d.Golden, *d.Position, *d.Offset, d.Token, d.GoldenToken)
	switch {
	case d.Gap == nil:
		return s + ", " + string(d.Rule)
	case d.Bar != nil:
		return s + fmt.Sprintf(", gap %.3f, bar %.3f", *d.Gap, *d.Bar)
	}
	return s + fmt.Sprintf(", gap %.3f, bar %.3f", *d.Gap, maxGap)
}

// absences say which views could not be had.
func absences(views []view) string {
	var b strings.Builder
	for _, v := range views {
		if v.Absent != "" {
			b.WriteString("; without view " + v.Name + ": " + v.Absent)
		}
	}
	return b.String()
}

func anyList(views []view) bool {
	for _, v := range views {
		if len(v.Top) > 0 {
			return true
		}
	}
	return false
}
