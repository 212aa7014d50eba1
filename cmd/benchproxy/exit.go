package main

import (
	"errors"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Exit codes. They are part of the command line's contract.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitGate        = 3
	exitMiss        = 4
	exitUnreachable = 5
	exitLocked      = 6
	exitDamaged     = 7
	exitNoSpace     = 8
	exitIncomplete  = 9
)

// exitHelp is the table that `help` prints.
const exitHelp = `EXIT CODES:
   0  ok                                  5  engine not reachable
   1  failure                             6  store locked by another process
   2  usage                               7  store damaged, or newer than this build
   3  gate failed, or a regression        8  no space
   4  no such record, or a replay miss    9  run incomplete
   130, 143  a signal ended the command before its work was done
`

// childExit carries the exit code of a client that record ran; it is ours too.
type childExit struct{ code int }

func (c childExit) Error() string { return fmt.Sprintf("the client ended with exit code %d", c.code) }

// exitCode maps an error to the code the process ends with.
func exitCode(err error) int {
	var child childExit
	var signal interrupted
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &signal):
		return signal.code()
	}
	for _, row := range []struct {
		kind error
		code int
	}{
		{exchange.ErrUsage, exitUsage},
		{exchange.ErrGate, exitGate},
		{exchange.ErrMiss, exitMiss},
		{exchange.ErrUnreachable, exitUnreachable},
		{exchange.ErrLocked, exitLocked},
		{exchange.ErrDamaged, exitDamaged},
		{exchange.ErrNoSpace, exitNoSpace},
		{exchange.ErrIncomplete, exitIncomplete},
	} {
		if errors.Is(err, row.kind) {
			return row.code
		}
	}
	return exitFailure
}

// usagef is an error of the command line.
func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", exchange.ErrUsage, fmt.Sprintf(format, args...))
}
