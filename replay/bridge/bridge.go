package bridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Endpoint is where a request goes: the dialect that is spoken there, and how the engine spells what its dialect leaves
// open.
type Endpoint struct {
	Dialect wire.Dialect   // "" translates nothing
	Keeps   []wire.Dialect // dialects that are understood there too, and not translated
	Engine  string         // its id, for those who read what was changed; "" when it is not known
	Hosted  bool           // a vendor's API, which takes the fields of its own documents only

	// What follows is of chat. Of several fields the first one is to be used; a dot leads into an object.
	Limits       []string          // fields that bound the output; none is max_tokens
	Repetition   string            // field for the penalty of repetitions, or engines.RepetitionNone; "" is not known
	ThinkingOn   json.RawMessage   // object that turns thinking on; nil when nothing is known of it
	ThinkingOff  json.RawMessage   // the same for off
	ThinkingAlso []json.RawMessage // other objects that do either
	Efforts      []string          // fields that say how much to think
	Budgets      []string          // fields that bound the tokens of thinking

	// Known is what the fields of recorded requests mean that are not translated. Those that this engine spells otherwise
	// are respelled; nil leaves all as recorded.
	Known *Spellings
}

// EndpointOf is an engine by its profile, spoken to in a dialect.
func EndpointOf(d wire.Dialect, p engines.Profile) Endpoint {
	q := p.Requests
	e := Endpoint{Dialect: d, Engine: p.ID, Hosted: p.Kind == engines.KindHosted, Limits: limitsOf(q), Repetition: q.Repetition,
		Efforts: q.Effort, Budgets: q.Budget}
	if t := q.Thinking; t != nil {
		e.ThinkingOn, e.ThinkingOff = t.On, t.Off
	}
	for _, t := range q.ThinkingAlso {
		e.ThinkingAlso = append(e.ThinkingAlso, t.On, t.Off)
	}
	return e
}

// limitsOf are the fields of chat that bound the output: a dot leads to those of other dialects.
func limitsOf(q engines.Requests) []string {
	var out []string
	for _, name := range q.Limit {
		if !strings.Contains(name, ".") {
			out = append(out, name)
		}
	}
	return out
}

// Translates reports whether a request in a dialect is said in another one there. One without a dialect is not: it asks
// for no answer that a dialect could say.
func (e Endpoint) Translates(from wire.Dialect) bool {
	return e.Dialect != wire.DialectNone && from != wire.DialectNone && from != e.Dialect && !slices.Contains(e.Keeps, from)
}

// Outcome is how many requests are translated of those counted by dialect, and the dialects in which all are said.
func (e Endpoint) Outcome(counts map[wire.Dialect]int) (translated int, said []wire.Dialect) {
	for _, d := range slices.Sorted(maps.Keys(counts)) {
		if e.Translates(d) {
			translated += counts[d]
			d = e.Dialect
		}
		if d != wire.DialectNone && !slices.Contains(said, d) {
			said = append(said, d)
		}
	}
	return translated, said
}

func (e Endpoint) limit() string {
	if len(e.Limits) == 0 {
		return "max_tokens"
	}
	return e.Limits[0]
}

// reading and writing of the dialects.
type (
	readFunc  func(r *reader, target string, f *fields) *Request
	writeFunc func(w *writer, q *Request) (target string, body object)
)

func readerOf(d wire.Dialect) readFunc {
	switch d {
	case wire.DialectChat:
		return readChat
	case wire.DialectAnthropic:
		return readAnthropic
	case wire.DialectGemini:
		return readGemini
	case wire.DialectOllama:
		return readOllama
	case wire.DialectResponses:
		return readResponses
	}
	return nil
}

func writerOf(d wire.Dialect) writeFunc {
	switch d {
	case wire.DialectChat:
		return writeChat
	case wire.DialectAnthropic:
		return writeAnthropic
	case wire.DialectGemini:
		return writeGemini
	case wire.DialectOllama:
		return writeOllama
	}
	return nil
}

// Dialects are the languages that can be translated to.
func Dialects() []wire.Dialect {
	return []wire.Dialect{wire.DialectChat, wire.DialectAnthropic, wire.DialectGemini, wire.DialectOllama}
}

// Reads reports whether requests of a dialect can be translated at all.
func Reads(d wire.Dialect) bool { return readerOf(d) != nil }

// Translated is a request in the dialect of its target.
type Translated struct {
	Target  string // path and query
	Headers []exchange.Header
	Body    []byte
	Changes []Change // in the order of the recorded request, then of the new one
}

// Read reads a request. The error says why it cannot be read at all; what could not be read of it is among the changes.
func Read(d wire.Dialect, target string, body []byte) (*Request, []Change, error) {
	read := readerOf(d)
	if read == nil {
		return nil, nil, fmt.Errorf("a request to %s cannot be translated", pathOf(target))
	}
	if _, err := canon.JSON(body); err != nil {
		return nil, nil, fmt.Errorf("read body: %w", err)
	}
	if _, ok := parseObject(body); !ok {
		return nil, nil, fmt.Errorf("read body: it is no JSON object")
	}
	r := &reader{}
	q := read(r, target, r.fields(Value{Raw: body}))
	return q, r.changes, nil
}

// Write makes a request for an endpoint, whose dialect is one of Dialects.
func Write(q *Request, to Endpoint) Translated {
	w := &writer{to: to}
	target, body := writerOf(to.Dialect)(w, q)
	t := Translated{Target: target, Body: encode(body), Changes: w.changes}
	for _, h := range w.headers {
		t.Headers = append(t.Headers, exchange.Header{Name: h.name, Value: string(h.value)})
	}
	return t
}

// Translate says a request to an endpoint. model names the model of a request that names none, "" for none. The error
// says why it cannot be said at all.
func Translate(from wire.Dialect, target string, body []byte, to Endpoint, model string) (Translated, error) {
	if !slices.Contains(Dialects(), to.Dialect) {
		return Translated{}, fmt.Errorf("the bridge does not speak %s", to.Dialect)
	}
	q, changes, err := Read(from, target, body)
	if err != nil {
		return Translated{}, err
	}
	if q.Model == "" {
		q.Model = model
	}
	t := Write(q, to)
	t.Changes = append(changes, t.Changes...)
	return t, nil
}

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
