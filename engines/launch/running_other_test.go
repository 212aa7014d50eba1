//go:build !linux

package launch

import (
	"os/exec"
	"strconv"
	"strings"
)

// running are the living processes of a program, as ps tells them; none where there is no ps.
func running(program string) []int {
	out, err := exec.Command("ps", "-axo", "pid=,state=,command=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || strings.HasPrefix(f[1], "Z") || !strings.HasPrefix(f[2], program) {
			continue
		}
		if pid, err := strconv.Atoi(f[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
