package launch

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// seesProcesses says whether the state of other processes can be read here.
const seesProcesses = false

// ownGroup keeps the terminal's Ctrl-C from the engine.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func toolGroup() *syscall.SysProcAttr { return ownGroup() }

// awaitExit returns when the process has ended. It reaps it; a second Wait gives an error, which nobody reads.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// killGroup kills the process and those it started.
func killGroup(p *os.Process) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run() // there may be none left
	_ = p.Kill()                                                                // as above
}

func killSame(process) {} // without a start time nobody can be told from a later one of the same number

// pipeName is known only on Linux.
func pipeName(*os.File) string { return "" }

func carries(int, string) bool { return true } // nobody is told by anything

// living cannot be told here: taskkill ends the tree as far as it hangs together.
func (f *family) living(bool) []process { return nil }

func readProcess(int) (process, bool) { return process{}, false }

func startOf(int) (string, bool) { return "", false }

func commandOf(int) string { return "" }

// portOwner is known only on Linux.
func portOwner(string, int) (owner, bool) { return owner{}, false }

func residentBytes(int) (int64, bool) { return 0, false }
