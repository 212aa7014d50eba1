package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/redact"
)

// tool is a program that is run for what it prints or does, and ends by itself: a question about versions or devices, a
// command to a daemon.
type tool struct {
	path string
	args []string
	env  []string // nil: ours
	dir  string
	time time.Duration // that it may take
}

// errToolTime is the cause of the end of a tool that took too long.
var errToolTime = errors.New("it did not end in time")

// mostPrinted bounds what is kept of a tool's output.
const mostPrinted = 1 << 20

// run runs the tool and gives what it printed. When its time is over or ctx ends, it is killed with all that it started in
// its group.
func (t tool) run(outer context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(outer, t.time, fmt.Errorf("%w, %s", errToolTime, t.time))
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path, t.args...)
	cmd.Env, cmd.Dir = t.env, t.dir
	cmd.SysProcAttr = toolGroup()
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	cmd.WaitDelay = time.Second
	var printed bounded
	cmd.Stdout, cmd.Stderr = &printed, &printed
	err := cmd.Run()
	out := printed.String()
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // the second: it ended well, and left somebody with its output
		return out, nil
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case errors.As(err, &exit):
		x := exitOf(exit.ProcessState)
		return out, errors.New(strings.TrimRight(x.String()+": "+redact.Text(tellingLine(out))+"; "+x.meaning(), ":; "))
	}
	var start *fs.PathError
	if errors.As(err, &start) {
		err = fmt.Errorf("it is no program for this machine, or not to be run: %w", start.Err)
	}
	return out, err
}

// tellingLine is the line of an output that says most about a failure: the first that speaks of one, else the last.
func tellingLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		if low := strings.ToLower(l); strings.Contains(low, "error") || strings.Contains(low, "fail") || strings.Contains(low, "cannot") {
			return firstLine([]byte(l))
		}
	}
	return firstLine([]byte(lines[len(lines)-1]))
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ strings.Builder }

// Write takes all and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	b.Builder.Write(p[:min(len(p), mostPrinted-b.Len())])
	return len(p), nil
}
