package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FaultKind is one way to misbehave.
type FaultKind string

const (
	FaultError         FaultKind = "error"          // an error event, then the proper end of the body and nothing else
	FaultErrorDone     FaultKind = "error_done"     // an error event, then what a good stream ends with: [DONE] and its like
	FaultCleanCut      FaultKind = "clean_cut"      // the body ends properly, without finish reason and terminal event
	FaultNoLastChunk   FaultKind = "no_last_chunk"  // FIN between two events, without the end of the framing
	FaultTruncateEvent FaultKind = "truncate_event" // FIN after half an event, in a whole chunk
	FaultTruncateChunk FaultKind = "truncate_chunk" // FIN after half a chunk
	FaultReset         FaultKind = "reset"          // RST
	FaultStall         FaultKind = "stall"          // silence until the client leaves
	FaultGarbage       FaultKind = "garbage"        // an event that is not JSON; the stream goes on
	FaultGarbageBody   FaultKind = "garbage_body"   // a body of bytes that are no text, and its proper end
	FaultBadChunk      FaultKind = "bad_chunk"      // a chunk size that is no number, then FIN
	FaultBadHead       FaultKind = "bad_head"       // a status line that is none, then FIN
	FaultCrashConn     FaultKind = "crash_conn"     // FIN at once, without a byte
	FaultCrash         FaultKind = "crash"          // the whole server goes, without a byte
)

// faultKinds holds every kind that ParseFault knows.
var faultKinds = []FaultKind{
	FaultError, FaultErrorDone, FaultCleanCut, FaultNoLastChunk, FaultTruncateEvent, FaultTruncateChunk, FaultReset,
	FaultStall, FaultGarbage, FaultGarbageBody, FaultBadChunk, FaultBadHead, FaultCrashConn, FaultCrash,
}

// Fault is a misbehavior and its place. The zero value is none.
type Fault struct {
	Kind  FaultKind
	After int // steps that are sent whole before it; the whole answer when it is shorter
}

// FaultKinds are the kinds that ParseFault knows.
func FaultKinds() []FaultKind { return slices.Clone(faultKinds) }

// ParseFault reads "kind" or "kind@N", N being the number of steps before it.
func ParseFault(text string) (Fault, error) {
	name, at, placed := strings.Cut(text, "@")
	f := Fault{Kind: FaultKind(name)}
	if !slices.Contains(faultKinds, f.Kind) {
		return Fault{}, fmt.Errorf("unknown fault %q; known are %v", name, faultKinds)
	}
	if placed {
		n, err := strconv.Atoi(at)
		if err != nil || n < 0 {
			return Fault{}, fmt.Errorf("fault %q: %q is not a number of steps", name, at)
		}
		f.After = n
	}
	return f, nil
}
