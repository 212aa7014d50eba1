package launch

import (
	"os"
	"os/exec"
	"strconv"

	"github.com/benchproxy/benchproxy/engines"
)

// askToEnd asks an engine to end. A console program may not hear it; the kill follows.
func askToEnd(p *os.Process, _ *engines.Launch) {
	_ = exec.Command("taskkill", "/T", "/PID", strconv.Itoa(p.Pid)).Run() // it may have ended by itself
}
