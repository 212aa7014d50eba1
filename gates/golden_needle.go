package gates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// needleParams are the parameters of needle.
type needleParams struct {
	nearParams
	Expect    []string `json:"expect"`              // texts that the answer must hold
	Reference bool     `json:"reference,omitempty"` // there is one that can be asked whether it finds them
}

// Validate holds that something is looked for.
func (p *needleParams) Validate() error {
	for _, s := range p.Expect {
		if s == "" {
			return fmt.Errorf("expect holds an empty text, which every answer has")
		}
	}
	if len(p.Expect) == 0 {
		return fmt.Errorf("expect names nothing to find")
	}
	return p.nearParams.Validate()
}

// overLimitParams are the parameters of over_limit.
type overLimitParams struct {
	Health string `json:"health"` // path that a healthy server answers with a 2xx
}

func needleGates() []Gate {
	return []Gate{{
		ID: "needle", Version: 2, Family: "golden",
		Summary: "what is hidden in a long prompt is found, or the reference does not find it either",
		Explain: `The content of the last answer holds every expected text; or the reference's recording of the same prompt lacks one
too; or the answer leaves that recording at a near-tie, by the rule of near_tie with views. Retrieval alone is no
gate: a small model finds or misses a needle on a near-tie of its first token. Without a reference the answer must hold
them; with one ("reference") of which there is no golden it is incomparable. Whether they were found is in the detail
in any case. fail: not found, where the reference finds them and the divergence is a real one.`,
		Params: func() any { return &needleParams{} },
		judge:  needle,
	}, {
		ID: "over_limit", Version: 1, Family: "golden",
		Summary: "a prompt over the limit is a clean 400, and the server is healthy after",
		Explain: `The exchange of the case asked for more than the server can hold. Its answer must be a whole 400 with an error
object that has a message; then the server must answer a GET of the health path with a 2xx. fail: any other status
(a 200 says that the prompt was cut), a body that is no error object, a connection that broke, a server that does
not answer after.`,
		Params: func() any { return &overLimitParams{Health: "/v1/models"} },
		judge:  overLimit,
	}, {
		ID: "vision", Version: 2, Family: "golden",
		Summary: "prompts with images have as many tokens as the reference's, and answers follow it",
		Explain: `The number of prompt tokens of every turn is that of the golden: resizing, limits and markers of images all show in
it. Then the near-tie rule is applied with the golden's own lists alone: the reference's views do not hold for
prompts with images, whose parts cannot be sent again as ids. fail: another number of prompt tokens, or a divergence
that is no near-tie. unsupported: the engine refused and said in so many words that it takes no images.
incomparable: see near_tie.`,
		Params: func() any { return &referenceParams{} },
		judge:  vision,
	}}
}

// needleDetail is the detail of needle.
type needleDetail struct {
	Found     bool       `json:"found"`
	Missing   []string   `json:"missing,omitempty"`
	Reference *bool      `json:"reference_found"` // null without a golden
	Tie       *tieDetail `json:"divergence,omitempty"`
}

func needle(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*needleParams), &wants{e: e}
	a, last := answerOf(e.Last()), len(e.Turns)-1
	if a.told.Outcome != exchange.OutcomeComplete {
		return incomparable("the answer is %s", a.told.Outcome), nil
	}
	d := needleDetail{Missing: missing(a.text, p.Expect)}
	d.Found = len(d.Missing) == 0
	with := func(f Finding) (Finding, exchange.Needs) {
		f.Detail = d
		return f, nil
	}
	goldens := goldensOf(e.Case, last)
	f, refused := bestOf(goldens, a, e.Case, &p.referenceParams)
	if f.golden != nil {
		found := len(missing(f.golden.Text, p.Expect)) == 0
		d.Reference = &found
	}
	switch {
	case d.Found:
		return with(ok())
	case len(goldens) == 0 && p.Reference:
		return with(incomparable("%q is not in the answer, and there is no golden that tells whether the reference finds it", d.Missing[0]))
	case len(goldens) == 0:
		return with(fail("%q is not in the answer, and there is no reference that misses it too", d.Missing[0]))
	case refused != nil:
		return with(incomparable("%q is not in the answer, and the golden is refused for its %v", d.Missing[0], refused))
	case !*d.Reference:
		return with(ok())
	}
	t := judgeTie(w, last, a, goldens, p.options())
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	d.Tie = &t
	switch exchange.VerdictStatus(t.Status) {
	case exchange.VerdictOK:
		return with(ok())
	case exchange.VerdictIncomparable:
		return with(incomparable("%q is not in the answer, the reference finds it, and %s", d.Missing[0], t.Why))
	}
	return with(fail("%q is not in the answer, the reference finds it, and %s", d.Missing[0], t.Why))
}

// missing are the texts that an answer lacks.
func missing(answer string, expect []string) (out []string) {
	for _, s := range expect {
		if !strings.Contains(answer, s) {
			out = append(out, s)
		}
	}
	return out
}

func overLimit(e *Evidence) (Finding, exchange.Needs) {
	p := e.params.(*overLimitParams)
	t := e.Last()
	if f := cleanRefusal(t); f.Status != exchange.VerdictOK {
		return f, nil
	}
	n := exchange.Need{ID: fmt.Sprintf("health/%s", t.Exchange.ID), Party: exchange.Candidate, Method: "GET", Path: p.Health, Why: "whether the server is healthy after a prompt over its limit"}
	r, found := e.reply(n.ID)
	switch {
	case !found:
		return Finding{}, exchange.Needs{n}
	case r.Exchange == nil:
		return fail("the server does not answer after it: %s", r.Reason), nil
	case r.Exchange.Response.Status == 0:
		return fail("the server does not answer after it: %s", outcomeText(replyAnswer(r.Exchange))), nil
	case r.Exchange.Response.Status/100 != 2:
		return fail("after it, %s answers with status %d", p.Health, r.Exchange.Response.Status), nil
	}
	_, end, ok1 := lifetime(t.Exchange)
	begin, _, ok2 := lifetime(r.Exchange)
	if ok1 && ok2 && begin.Before(end) {
		return incomparable("the health of the server was asked for before the answer had ended"), nil
	}
	return ok(), nil
}

// cleanRefusal holds that an answer refuses a request in the way clients understand.
func cleanRefusal(t Turn) Finding {
	x := t.Exchange
	switch {
	case x.Response.Status == 0:
		return fail("there is no answer: %s", t.Outcome)
	case x.Response.Status == 200:
		cut := ""
		if u := t.Transcript.Usage; u != nil && u.Prompt != nil {
			cut = fmt.Sprintf(" of which it read %d tokens", *u.Prompt)
		}
		return fail("a prompt over the limit is answered with 200,%s", cut)
	case x.Response.Status != 400:
		return fail("a prompt over the limit gets status %d, not 400", x.Response.Status)
	case x.End != exchange.EndEOF:
		return fail("the 400 did not come to its end: %s", x.End)
	}
	var refusal map[string]json.RawMessage
	if json.Unmarshal(x.Response.Body.Bytes(), &refusal) != nil || t.Transcript.Error == nil || t.Transcript.Error.Message == "" {
		return fail("the body of the 400 is no error object with a message")
	}
	return ok()
}

func vision(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*referenceParams), &wants{e: e}
	detail := nearDetail{}
	for i := range e.Turns {
		if why := e.Turns[i].takesNoImages(); why != "" {
			return Finding{Status: exchange.VerdictUnsupported, Reason: "the engine takes no images: " + why}, nil
		}
		a, goldens := answerOf(e.Turns[i]), goldensOf(e.Case, i)
		if n := wrongCount(a, goldens); n != "" {
			f := fail("turn %d: %s", i+1, n)
			f.Detail = detail
			return f, nil
		}
		d := judgeTie(w, i, a, withoutPromptIDs(goldens), &tieOptions{reference: p})
		detail.add(d.FullMatch, d.tie)
		detail.Turns = append(detail.Turns, d)
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	return tieFinding(detail), nil
}

// noImages matches what engines say that take no images, in lower case. A refusal of one image, for its size or form, is
// none of these.
var noImages = regexp.MustCompile(`image (input|content|inputs) (is|are) (not supported|unsupported|not enabled)` +
	`|(does not|doesn't|do not|don't|cannot) (support|accept|take|process) (the )?(image|vision|multimodal|multi-modal)` +
	`|(images|vision|multimodal|multi-modal|image_url)( input| inputs)? (is|are) (not (supported|enabled|available|allowed)|unsupported|only supported by)` +
	`|not a (multimodal|multi-modal|vision)|at most 0 image|missing data required for image|mmproj` +
	`|(unknown|unsupported|invalid|unexpected)[^.]{0,40}\bimage_url\b`)

// takesNoImages is what an engine said that has no images and says so; "" for everything else.
func (t Turn) takesNoImages() string {
	switch t.Response.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return ""
	}
	if said := t.said(); noImages.MatchString(strings.ToLower(said)) {
		return excerpt(oneLine(said))
	}
	return ""
}

// withoutPromptIDs are goldens that are compared by the count of their prompt's tokens: an image has no ids of its own,
// and engines fill its place as they like.
func withoutPromptIDs(goldens []*exchange.Golden) (list []*exchange.Golden) {
	for _, g := range goldens {
		bare := *g
		if bare.PromptTokens == nil && len(g.PromptIDs) > 0 {
			n := int64(len(g.PromptIDs))
			bare.PromptTokens = &n
		}
		bare.PromptIDs = nil
		list = append(list, &bare)
	}
	return list
}

// wrongCount says that the prompt has another number of tokens than every golden's; "" when one agrees or none tells.
func wrongCount(a *answer, goldens []*exchange.Golden) (why string) {
	for _, g := range goldens {
		told, counts := promptCounts(g, a)
		if !told {
			continue
		}
		if counts[0] == counts[1] {
			return ""
		}
		why = fmt.Sprintf("the prompt has %d tokens, and the reference's %d", counts[1], counts[0])
	}
	return why
}
