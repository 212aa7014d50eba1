package exchange

import (
	"errors"
	"strings"
)

// Kinds of failure that have an exit code of their own. Wrap one in an Error; test with errors.Is.
var (
	ErrUsage       = errors.New("usage")                  // 2: the command line or a config is wrong
	ErrGate        = errors.New("gate failed")            // 3: a gate failed or a regression was found
	ErrMiss        = errors.New("not available")          // 4: not in the store, replay miss, missing or stale golden
	ErrUnreachable = errors.New("engine not reachable")   // 5
	ErrLocked      = errors.New("store locked")           // 6: another process owns the store
	ErrDamaged     = errors.New("store damaged or newer") // 7: the store cannot be used by this build
	ErrNoSpace     = errors.New("no space")               // 8: below the free-space floor
	ErrIncomplete  = errors.New("run incomplete")         // 9
)

// Error is a failure told so that a person can act on it: what was tried, on what, whose fault it is, why, and what
// to do next.
type Error struct {
	Op     string // verb and noun: "open store", "dial engine"
	Object string // which one: a path, URL or id, credentials masked
	Side   Side   // whose fault
	Cause  error  // wrapped
	Hint   string // next step, a phrase without a final stop; "" when there is none
}

// Error is "op object: cause (side: hint)" with the empty parts left out.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Object != "" {
		b.WriteString(" " + e.Object)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	if e.Side != "" {
		b.WriteString(" [" + string(e.Side) + "]")
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
