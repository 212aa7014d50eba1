package exchange

// Counters are what an engine had counted since its start, read before an exchange was sent and after it had ended, with
// nothing else running through the proxy in between. They are facts of the exchange: what they say of it is derived.
type Counters struct {
	Source string         `json:"source"` // engine and document: "vllm /metrics"
	Before CounterReading `json:"before"`
	After  CounterReading `json:"after"`
}

// CounterReading is one reading of an engine's counters. What the engine does not count is nil.
type CounterReading struct {
	Drafted   *int64 `json:"drafted"`   // tokens proposed by drafts
	Accepted  *int64 `json:"accepted"`  // of them accepted
	Steps     *int64 `json:"steps"`     // verification steps
	Generated *int64 `json:"generated"` // tokens of answers
}

// Drafts reports whether the engine counts drafts at all.
func (r CounterReading) Drafts() bool { return r.Drafted != nil && r.Accepted != nil }

// Equal reports whether two readings say the same.
func (r CounterReading) Equal(o CounterReading) bool {
	a, b := r.all(), o.all()
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || a[i] != nil && *a[i] != *b[i] {
			return false
		}
	}
	return true
}

func (r CounterReading) all() [4]*int64 {
	return [...]*int64{r.Drafted, r.Accepted, r.Steps, r.Generated}
}

// Moved is how far a counter went from before to after; ok is false when it was not read both times, or went back, as
// after a restart.
func Moved(before, after *int64) (n int64, ok bool) {
	if before == nil || after == nil || *after < *before {
		return 0, false
	}
	return *after - *before, true
}
