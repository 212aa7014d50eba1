package launch

import "strings"

// running are the living processes of a program.
func running(program string) []int {
	var out []int
	for _, pid := range processes() {
		if p, ok := readProcess(pid); ok && !p.dead && strings.HasPrefix(commandOf(pid), program) {
			out = append(out, pid)
		}
	}
	return out
}
