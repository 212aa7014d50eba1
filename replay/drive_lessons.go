package replay

import (
	"net/http"
	"regexp"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// reasonLearned is the reason of an intervention that an engine's 400 asked for.
const reasonLearned = "learned_from_400"

// lessons are what engines taught with a 400 about the spelling of requests: each endpoint once for each model. A request
// that was refused so is sent again in the other spelling, an exchange of its own; later ones have it from the start.
type lessons struct {
	lossy bool // options may be dropped from requests that were not translated

	mu    sync.Mutex
	known map[lesson]bool
}

// lesson is one thing that a model at an endpoint wants.
type lesson struct {
	target int
	model  string
	field  string // max_tokens is called max_completion_tokens; temperature stands for all sampling options, which it rejects
}

// The fields that lessons are about.
const (
	fieldLimit    = "max_tokens"
	fieldLimitNew = "max_completion_tokens"
	fieldSampling = "temperature"
)

// samplingFields are dropped together: a model that rejects one rejects the others.
var samplingFields = []string{"temperature", "top_p", "top_k"}

// How engines say that a field is not theirs. A value out of range is no such thing.
var (
	rejects      = regexp.MustCompile(`(?i)unsupported|not supported|not support|deprecated|instead|unrecognized|unknown|not permitted|not allowed|extra input|may only|cannot|removed`)
	namesOptions = regexp.MustCompile(`\b(temperature|top_p|top_k)\b`)
	namesLimit   = regexp.MustCompile(`\bmax_completion_tokens\b`)
	outOfRange   = regexp.MustCompile(`(?i)too large|too long|context length|context window|at most|at least|less than|greater than`)
)

func newLessons(lossy bool) *lessons { return &lessons{lossy: lossy, known: map[lesson]bool{}} }

// has reports whether a body has a field at its top.
func (d *draft) has(field string) bool {
	b, err := d.json()
	if err != nil {
		return false
	}
	_, ok := b.value(jsonPath{{name: field, index: -1}})
	return ok
}

// about is the lesson on a field that a request could be taught.
func about(target int, q *draft, field string) lesson {
	return lesson{target, wire.ReadRequest(q.target, q.headers, q.body).Model, field}
}

// apply spells a request as its endpoint wants it.
func (l *lessons) apply(target int, q *draft) error {
	l.mu.Lock()
	limit, sampling := len(l.known) > 0 && l.known[about(target, q, fieldLimit)], len(l.known) > 0 && l.known[about(target, q, fieldSampling)]
	l.mu.Unlock()
	if limit && q.has(fieldLimit) {
		if err := q.rename(fieldLimit, fieldLimitNew, reasonLearned); err != nil {
			return err
		}
	}
	if !sampling || !l.drops(q) {
		return nil
	}
	for _, f := range samplingFields {
		if q.has(f) {
			if err := q.edit(Edit{path: jsonPath{{name: f, index: -1}}}, reasonLearned); err != nil {
				return err
			}
		}
	}
	return nil
}

// drops reports whether sampling options may be dropped from a request.
func (l *lessons) drops(q *draft) bool {
	return wire.DialectOf(q.target) == wire.DialectAnthropic && (q.translated || l.lossy)
}

// rename gives a field of the body another name.
func (d *draft) rename(from, to, reason string) error {
	b, err := d.json()
	if err != nil {
		return err
	}
	s, ok := b.value(jsonPath{{name: from, index: -1}})
	if !ok {
		return nil
	}
	value := string(b[s.from:s.to])
	if err := d.edit(Edit{path: jsonPath{{name: from, index: -1}}}, reason); err != nil {
		return err
	}
	return d.edit(Edit{path: jsonPath{{name: to, index: -1}}, value: value}, reason)
}

// learn reads a refusal, and reports whether the request can be sent again in another spelling.
func (l *lessons) learn(target int, q *draft, x *exchange.Exchange) bool {
	if x.Response.Status != http.StatusBadRequest || x.End != exchange.EndEOF {
		return false
	}
	e := measure.Analyze(x).Transcript.Error
	if e == nil {
		return false
	}
	field := ""
	switch says := e.Message + " " + e.Code; {
	case outOfRange.MatchString(says) || !rejects.MatchString(says):
		return false
	case namesLimit.MatchString(says) && wire.DialectOf(q.target) == wire.DialectChat && q.has(fieldLimit) && !q.has(fieldLimitNew):
		field = fieldLimit
	case namesOptions.MatchString(says) && l.drops(q) && (q.has(samplingFields[0]) || q.has(samplingFields[1]) || q.has(samplingFields[2])):
		field = fieldSampling
	default:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[about(target, q, field)] = true
	return true
}
