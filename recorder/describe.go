package recorder

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Replay keeps with an open run what it sends of a plan and what became of it. It is written with the next commit of the
// run, at the latest with its closing write, which makes the run incomplete when r says that items did not end. After
// Close it does nothing and returns false.
func (w *Writer) Replay(r exchange.Replay) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.State != exchange.RunOpen {
		return false
	}
	w.run.Replay = &r // the one before may be in use by copies of the run
	return true
}

// NameModel adds to an open run what its first answer to requests for a model named. It is written with the next commit of
// the run. After Close it does nothing and returns false.
func (w *Writer) NameModel(m exchange.ModelNamed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.State != exchange.RunOpen {
		return false
	}
	w.run.Models = append(slices.Clip(w.run.Models), m) // copies of the run keep their own list
	return true
}

// Describe adds to an open run what was read of an engine behind one of its upstreams. When it returns, the run is
// written with it and a killed process does not lose it; where the write fails, the next commit of the run, or its
// closing write, has it. After Close it does nothing and returns false.
func (w *Writer) Describe(d exchange.Deployment) bool {
	w.writing.Lock()
	defer w.writing.Unlock()
	run, ok := w.describe(d)
	if !ok {
		return false
	}
	if err := w.store.describeRun(run); err != nil {
		w.store.o.log().Warn("write what was read of an engine; the next commit repeats it", "run", run.ID, "err", err)
	}
	return true
}

// describe adds d to the run in memory and gives the run as it is to be written.
func (w *Writer) describe(d exchange.Deployment) (RunSize, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.State != exchange.RunOpen {
		return RunSize{}, false
	}
	w.run.Deployments = append(slices.Clip(w.run.Deployments), d) // copies of the run keep their own list
	if w.run.Identity == (exchange.Identity{}) {
		w.run.Identity = d.Identity
	}
	return RunSize{Run: cloneRun(w.run), Bytes: w.bytes}, true
}
