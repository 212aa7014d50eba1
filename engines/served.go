package engines

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// PickModel is the model that requests are to name: the one that was asked for, else the one the engine serves. An engine
// that lists several and does not say which is loaded leaves the choice to the user: the error, which wraps
// exchange.ErrUsage, names them. Callers with a terminal ask instead.
func PickModel(d *exchange.Deployment, asked string) (string, error) {
	switch {
	case asked != "":
		return asked, nil
	case d.Model != nil:
		return *d.Model, nil
	case len(d.Models) == 0:
		return "", fmt.Errorf("%w: the engine lists no model; name one", exchange.ErrUsage)
	}
	const shown = 20
	list := strings.Join(d.Models[:min(len(d.Models), shown)], ", ")
	if more := len(d.Models) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "", fmt.Errorf("%w: the engine lists %d models; name one of %s", exchange.ErrUsage, len(d.Models), list)
}

// Serves reports whether an engine lists a model, under this name or one that cannot be told from it. One that lists nothing
// serves everything, for all that is known.
func Serves(d *exchange.Deployment, model string) bool {
	names := slices.Clone(d.Models)
	for _, name := range []*string{d.Model, d.ModelRoot} {
		if name != nil {
			names = append(names, *name)
		}
	}
	return len(names) == 0 || slices.ContainsFunc(names, func(s string) bool { return sameName(s, model) })
}

// The flags of a row whose answer names another model than it should.
const (
	FlagModelChanged = exchange.FlagModelChanged
	FlagModelDiffers = exchange.FlagModelDiffers
)

// ModelWatch compares the models that answers name with each other and with what the engine was found to serve. The zero
// value is ready; it is safe for concurrent use.
type ModelWatch struct {
	mu     sync.Mutex
	named  map[modelAsked]modelNamed
	serves map[string][]served // by upstream, in the order of their readings
}

type modelAsked struct{ upstream, model string }

// modelNamed are the models that answers to one model's requests named.
type modelNamed struct{ first, last string }

// served is what an upstream was found to serve from one moment on.
type served struct {
	since time.Time
	names []string
}

// Answered is what one exchange says of models.
type Answered struct {
	Upstream string
	Asked    string    // model that the request names
	Model    string    // model that the answer names; "" says nothing
	At       time.Time // when the answer had come
}

// AnsweredBy is what an exchange says of models, given what its request and its answer name.
func AnsweredBy(x *exchange.Exchange, asked, model string) Answered {
	at := x.Timeline.Wall
	if ns, ok := x.Timeline.BodyEnd.NS(); ok {
		at = at.Add(time.Duration(ns))
	}
	return Answered{Upstream: x.Upstream, Asked: asked, Model: model, At: at}
}

// ModelWord is what an answer's model says.
type ModelWord struct {
	Before string   // the model that was named until now, where this answer is the first to name another; else ""
	First  bool     // nothing was known of what answers to such requests name
	Flags  []string // FlagModelChanged, FlagModelDiffers; nil for none
}

// ModelsOf is the watch of a run as its records tell it. Its Flags are those that the answers had while they were watched,
// in whatever order they are asked for.
func (c *Catalog) ModelsOf(run *exchange.Run) *ModelWatch {
	var w ModelWatch
	for _, m := range run.Models {
		w.set(modelAsked{m.Upstream, m.Asked}, modelNamed{m.Named, m.Named})
	}
	for _, d := range run.Deployments {
		if c.NamesModels(d) {
			w.Expect(d)
		}
	}
	return &w
}

// NamesModels reports whether a reading says which models the answers of its upstream name: behind a front they have names
// of their own, and a reading of an answer or a file lists none.
func (c *Catalog) NamesModels(d exchange.Deployment) bool {
	p, known := c.Lookup(d.Engine)
	return d.Inner == nil && (!known || p.Kind == KindServer) && d.Why != exchange.ReadAtAnswer && d.Why != exchange.ReadOfFile
}

// Expect takes what an upstream was found to serve. What its first answers named stays what a run began with.
func (w *ModelWatch) Expect(d exchange.Deployment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serves == nil {
		w.serves = map[string][]served{}
	}
	names := slices.Clone(d.Models)
	for _, name := range []*string{d.Model, d.ModelRoot} {
		if name != nil {
			names = append(names, *name)
		}
	}
	w.serves[d.Upstream] = append(w.serves[d.Upstream], served{d.ReadAt, names})
	if d.Model == nil {
		return
	}
	key := modelAsked{d.Upstream, *d.Model}
	if _, known := w.named[key]; !known {
		w.set(key, modelNamed{*d.Model, *d.Model})
	}
}

// Observe takes the models of an exchange in the order in which they come. An answer that names none says nothing.
func (w *ModelWatch) Observe(a Answered) ModelWord {
	var word ModelWord
	if a.Model == "" {
		return word
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := modelAsked{a.Upstream, a.Asked}
	seen, known := w.named[key]
	if !known {
		seen, word.First = modelNamed{a.Model, a.Model}, true
	}
	if !sameName(seen.last, a.Model) {
		word.Before = seen.last
	}
	word.Flags = w.flags(a)
	seen.last = a.Model
	w.set(key, seen)
	return word
}

// Flags are the flags of an exchange, FlagModelChanged and FlagModelDiffers; nil for none. Nothing is learned of it.
func (w *ModelWatch) Flags(a Answered) []string {
	if a.Model == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flags(a)
}

// flags compares an answer with the first of its kind and with what is served; mu is held.
func (w *ModelWatch) flags(a Answered) (flags []string) {
	if seen, known := w.named[modelAsked{a.Upstream, a.Asked}]; known && !sameName(seen.first, a.Model) {
		flags = append(flags, FlagModelChanged)
	}
	var serves []string
	for _, s := range w.serves[a.Upstream] {
		if !s.since.After(a.At) {
			serves = s.names
		}
	}
	if len(serves) > 0 && !sameName(a.Asked, a.Model) && !slices.ContainsFunc(serves, func(s string) bool { return sameName(s, a.Model) }) {
		flags = append(flags, FlagModelDiffers)
	}
	return flags
}

func (w *ModelWatch) set(key modelAsked, named modelNamed) {
	if w.named == nil {
		w.named = map[modelAsked]modelNamed{}
	}
	const most = 1024 // upstreams and models that clients make up are not remembered without end
	if _, known := w.named[key]; known || len(w.named) < most {
		w.named[key] = named
	}
}

// sameName reports whether names cannot tell two models apart: they are one for SameModel, or become it without the
// directory or owner before them and without the ending of a model file.
func sameName(a, b string) bool { return SameModel(a, b) || SameModel(bareName(a), bareName(b)) }

func bareName(s string) string {
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(s, ".gguf")
}
