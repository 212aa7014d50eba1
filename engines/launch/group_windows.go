package launch

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// limits are what cannot be told or done here.
const limits = "an engine goes on when this program is killed; the next start finds it, but not what it started; who holds a port cannot be told"

// ownGroup keeps the terminal's Ctrl-C from the engine.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func toolGroup() *syscall.SysProcAttr { return ownGroup() }

// awaitExit returns when the process has ended. It reaps it; a second Wait gives an error, which nobody reads.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// killGroup kills the process and those it started.
func killGroup(p *os.Process) {
	killTree(p.Pid)
	_ = p.Kill() // there may be none left
}

func killTree(pid int) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(pid)).Run() // as above
}

// killSame kills a process that was seen a moment ago with what it started, and not one that got its number since.
func killSame(m process) {
	if now, ok := readProcess(m.pid); ok && !now.dead && now.start == m.start {
		killTree(m.pid)
	}
}

// pipeName is known only on Linux.
func pipeName(*os.File) string { return "" }

func carries(int, string) bool { return true } // nobody is told by anything

// living is the engine itself: what it started cannot be told, and taskkill ends it as far as it hangs together.
func (f *family) living(bool) []process {
	if f.leader <= 0 {
		return nil
	}
	if p, ok := readProcess(f.leader); ok && !p.dead {
		return []process{p}
	}
	return nil
}

// stillActive is the exit code of a process that has not ended.
const stillActive = 259

// readProcess reads when a process was started, and whether it has ended. ok is false when there is none, or none that may
// be asked.
func readProcess(pid int) (p process, ok bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return p, false
	}
	defer func() { _ = windows.CloseHandle(h) }() // there is nothing to lose
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return p, false
	}
	var code uint32
	if err := windows.GetExitCodeProcess(h, &code); err != nil {
		return p, false
	}
	return process{pid: pid, name: imageOf(h), start: strconv.FormatInt(created.Nanoseconds(), 10), dead: code != stillActive}, true
}

// startOf is what tells a process from a later one of the same number.
func startOf(pid int) (string, bool) {
	p, ok := readProcess(pid)
	return p.start, ok && !p.dead
}

// commandOf is the file of a process; its arguments cannot be read.
func commandOf(pid int) string {
	p, _ := readProcess(pid)
	return p.name
}

func imageOf(h windows.Handle) string {
	name := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(name))
	if err := windows.QueryFullProcessImageName(h, 0, &name[0], &n); err != nil {
		return ""
	}
	return windows.UTF16ToString(name[:n])
}

// portOwner is known only on Linux.
func portOwner(string, int) (owner, bool) { return owner{}, false }

func residentBytes(int) (int64, bool) { return 0, false }
