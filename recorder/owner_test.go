//go:build linux

package recorder

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestProcessThatEndedIsNoOwner holds that a process whose parent has not taken note of its end does not count as alive:
// it holds no lock.
func TestProcessThatEndedIsNoOwner(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // only now does the id go
	stat := fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)
	for end := now().Add(20 * time.Second); now().Before(end); {
		b, err := os.ReadFile(stat)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(") Z ")) {
			break
		}
	}
	if alive(cmd.Process.Pid) {
		t.Error("a process that ended counts as alive")
	}
	if !alive(os.Getpid()) {
		t.Error("this process does not count as alive")
	}
}
