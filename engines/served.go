package engines

import (
	"fmt"
	"slices"
	"strings"
	"sync"

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

// Flags of a row whose answer names another model than it should. The words are part of the JSON contract.
const (
	FlagModelChanged = "model_changed" // not the one that answered such a request when the run began
	FlagModelDiffers = "model_differs" // none of those that the engine lists, and not the one that was asked for
)

// ModelWatch compares the models that answers name with each other and with what the engine was found to serve. The zero
// value is ready; it is safe for concurrent use.
type ModelWatch struct {
	mu     sync.Mutex
	named  map[modelAsked]modelNamed
	serves map[string][]string // upstream -> names of what it serves
}

type modelAsked struct{ upstream, model string }

// modelNamed are the models that answers to one model's requests named.
type modelNamed struct{ first, last string }

// ModelWord is what an answer's model says.
type ModelWord struct {
	Before string   // the model that was named until now, where this answer is the first to name another; else ""
	Flags  []string // FlagModelChanged, FlagModelDiffers; nil for none
}

// Expect takes what an upstream was found to serve. What its first answers named stays what a run began with.
func (w *ModelWatch) Expect(d exchange.Deployment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serves == nil {
		w.serves = map[string][]string{}
	}
	names := slices.Clone(d.Models)
	for _, name := range []*string{d.Model, d.ModelRoot} {
		if name != nil {
			names = append(names, *name)
		}
	}
	w.serves[d.Upstream] = names
	if d.Model == nil {
		return
	}
	key := modelAsked{d.Upstream, *d.Model}
	if _, known := w.named[key]; !known {
		w.set(key, modelNamed{*d.Model, *d.Model})
	}
}

// Observe takes the model of a request and the model that its answer names. An answer that names none says nothing.
func (w *ModelWatch) Observe(upstream, asked, answered string) ModelWord {
	var word ModelWord
	if answered == "" {
		return word
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := modelAsked{upstream, asked}
	seen, known := w.named[key]
	if !known {
		seen = modelNamed{answered, answered}
	}
	if !sameName(seen.last, answered) {
		word.Before = seen.last
	}
	if !sameName(seen.first, answered) {
		word.Flags = append(word.Flags, FlagModelChanged)
	}
	if serves := w.serves[upstream]; len(serves) > 0 && !sameName(asked, answered) &&
		!slices.ContainsFunc(serves, func(s string) bool { return sameName(s, answered) }) {
		word.Flags = append(word.Flags, FlagModelDiffers)
	}
	seen.last = answered
	w.set(key, seen)
	return word
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
