package engines

import (
	"fmt"
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

// ModelWatch compares the model that answers name with the one that was served before. The zero value is ready; it is
// safe for concurrent use.
type ModelWatch struct {
	mu   sync.Mutex
	seen map[modelAsked]string
}

type modelAsked struct{ upstream, model string }

// Expect says what an upstream was found to serve.
func (w *ModelWatch) Expect(upstream, model string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(modelAsked{upstream, model}, model)
}

// Observe takes the model of a request and the model its answer names. When an earlier answer to the same request's model,
// or what was expected, named another, it returns that one and changed is true; from then on the new one is expected. An
// answer that names none says nothing.
func (w *ModelWatch) Observe(upstream, asked, answered string) (before string, changed bool) {
	if answered == "" {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := modelAsked{upstream, asked}
	before, known := w.seen[key]
	w.set(key, answered)
	return before, known && !SameModel(before, answered)
}

func (w *ModelWatch) set(key modelAsked, model string) {
	if w.seen == nil {
		w.seen = map[modelAsked]string{}
	}
	const most = 1024 // upstreams and models that clients make up are not remembered without end
	if len(w.seen) < most {
		w.seen[key] = model
	}
}
