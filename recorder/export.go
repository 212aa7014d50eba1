package recorder

import "github.com/benchproxy/benchproxy/internal/exchange"

// Has reports whether an exchange of that id is stored, so that an import can give it another. A store that cannot be
// read has none.
func (s *Store) Has(id exchange.ID) bool { return s.hasRecord(id) }

// DropNotExported counts what the run that a file was exported from had lost already.
const DropNotExported DropReason = "not_exported"

// Lost counts n exchanges that belong to the run and will never come, so that it closes as incomplete.
func (w *Writer) Lost(n int64, why DropReason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= 0 || w.run.State != exchange.RunOpen {
		return
	}
	w.countDrop(why)
	w.run.Counts.Dropped += n - 1
	w.run.Counts.DropWhy[string(why)] += n - 1
}
