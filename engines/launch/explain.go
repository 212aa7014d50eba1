package launch

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/benchproxy/benchproxy/engines"
)

// exit is how a process ended.
type exit struct {
	code   *int
	signal string // name, "" when none ended it
	number int    // of the signal
}

// exitOf reads how a process ended.
func exitOf(s *os.ProcessState) exit {
	if s == nil {
		return exit{}
	}
	if name, number := signalOf(s); name != "" {
		return exit{signal: name, number: number}
	}
	code := s.ExitCode()
	return exit{code: &code}
}

// String says how it ended.
func (x exit) String() string {
	switch {
	case x.signal != "":
		return "ended by signal " + x.signal
	case x.code == nil:
		return "ended"
	case windowsLoad(*x.code):
		return fmt.Sprintf("ended with exit code 0x%X", uint32(*x.code))
	}
	return fmt.Sprintf("ended with exit code %d", *x.code)
}

// Meanings of signals, and of the exit codes by which shells and containers pass them on.
var signalMeanings = map[int]string{
	4:  "it used an instruction that this processor does not have: the build is for another one",
	6:  "it aborted itself: an assertion failed, or a library of the GPU reported an error",
	7:  "it touched memory that is not there: a file that it maps was cut off, or a disk is full",
	9:  "something killed it, most often the kernel for want of memory (see dmesg): a smaller model, window or number of slots may do",
	11: "it crashed: a bug of the build, or of a driver",
	15: "somebody asked it to end",
}

// Meanings of other exit codes.
var codeMeanings = map[int]string{
	126: "the program cannot be executed",
	127: "a program or a library that it needs was not found",
}

// Meanings of the codes with which Windows ends a program.
var windowsMeanings = map[uint32]string{
	0xC0000005: "it crashed: an access to memory that is not its own",
	0xC000001D: "it used an instruction that this processor does not have: the build is for another one",
	0xC0000017: "there is not enough memory",
	0xC00000FD: "its stack overflowed",
	0xC0000135: "a DLL that it needs was not found: install the runtime of its backend, or add its directory to PATH",
	0xC0000139: "a DLL that it needs is another version",
	0xC0000142: "a DLL that it needs did not start",
	0xC0000409: "it aborted itself",
}

// windowsLoad reports an exit code of the range in which Windows says why it ended or did not load a program.
func windowsLoad(code int) bool { return uint32(code) >= 0xC0000000 && uint32(code) <= 0xCFFFFFFF }

// meaning explains the end, as far as it explains itself; "" when it does not.
func (x exit) meaning() string {
	switch {
	case x.signal != "":
		return signalMeanings[x.number]
	case x.code == nil:
		return ""
	case windowsLoad(*x.code):
		if m, ok := windowsMeanings[uint32(*x.code)]; ok {
			return m
		}
		return "Windows could not load or run it"
	case *x.code > 128 && *x.code < 128+65:
		return signalMeanings[*x.code-128]
	}
	return codeMeanings[*x.code]
}

// Times at which hints are looked for.
const (
	hintExit    = engines.HintExit
	hintTimeout = engines.HintTimeout
)

// finalHint adds to what an end explains itself what the profile knows about such an end. A profile knows its engine, so
// its word comes first.
func (p *Process) finalHint(s *Status, e end) {
	if e.state != Failed || e.theirs {
		return
	}
	parts := p.hints(func(h engines.Hint) bool {
		if h.When != e.when && h.When != engines.HintAny {
			return false
		}
		return len(h.Exit) == 0 || s.Exit != nil && slices.Contains(h.Exit, *s.Exit)
	})
	if s.Hint != "" {
		parts = append(parts, s.Hint)
	}
	s.Hint = strings.Join(parts, "; ")
}

// hints are what those of the profile's hints say that apply and whose text was in the output.
func (p *Process) hints(applies func(engines.Hint) bool) []string {
	var out []string
	if p.spec.Engine.Launch == nil {
		return nil
	}
	for _, h := range p.spec.Engine.Launch.Hints {
		if applies(h) && (len(h.Log) == 0 || p.devs.printed(h.Log)) {
			out = append(out, h.Say)
		}
	}
	return out
}

// colors are what terminals are told about colors and cursors.
var colors = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// plainLines are lines of an output as an error may tell them: without what a terminal would obey.
func plainLines(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.Map(func(r rune) rune {
			if r == '\t' || unicode.IsPrint(r) {
				return r
			}
			return '·'
		}, colors.ReplaceAllString(l, ""))
	}
	return out
}

// shellWords that need no quotes.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%"

// shellLine writes words so that a shell would read them again.
func shellLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.Trim(w, plainWord) != "" {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
