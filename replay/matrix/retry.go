package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sample is what becomes of a timed answer.
type Sample string

// What can become of one.
const (
	SampleCounts Sample = "counts" // its rate is a sample
	SampleAgain  Sample = "again"  // it is asked for once more, under another nonce
	SampleNone   Sample = "none"   // there is no rate: null, and the cell is flagged short_answer
)

// HalfBudget judges an answer that decode is measured by: one of less than half of its limit reads as a rate of its own
// kind, since drafted tokens arrive in bursts. It is asked for once more; attempt counts from 0. An answer whose tokens
// are not known is taken.
func HalfBudget(completion *int, maxTokens, attempt int) Sample {
	switch {
	case completion == nil || *completion*2 >= maxTokens:
		return SampleCounts
	case attempt == 0:
		return SampleAgain
	}
	return SampleNone
}

// Warmup is the cell whose first request a group is warmed up with: a request of the same shape (prompt, limit, streaming,
// thinking), under a nonce of its own. A one-word question leaves kernels and drafts cold that the timed request then
// pays for. ok is false when nothing is to be sent.
func (g *Group) Warmup(turns []Turn, group int) (cell *Cell, requests int, ok bool) {
	for _, t := range turns {
		if t.Group == group {
			c := &g.Cells[t.Cell]
			return c, c.Warmup, c.Warmup > 0
		}
	}
	return nil, 0, false
}

// Asked names one request of a cell.
type Asked struct {
	Repeat  int
	Index   int // among those that run together
	Attempt int
	Warmup  bool
}

// Nonce is the text that tells a request from every other one to the same server, at the very beginning of its prompt. It
// is the same for every engine, backend and model: they are asked the same. salt tells sittings apart, for servers that
// outlive them.
func (c *Cell) Nonce(salt string, a Asked) string {
	what := fmt.Sprintf("%s\n%s\n%d\n%t\n%+v", salt, c.Scenario, c.Concurrency, c.Thinking, a)
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:8])
}
