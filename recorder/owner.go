package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Owner is the process that has a store open. Other commands read through its admin address.
type Owner struct {
	PID     int       `json:"pid"`
	Admin   string    `json:"admin,omitempty"` // host:port, "" when it has no admin listener
	Harness string    `json:"harness,omitempty"`
	Started time.Time `json:"started"`
}

// ReadOwner tells who has the store in dir open. ok is false when nobody says so or that process is gone.
func ReadOwner(dir string) (o Owner, ok bool) {
	o, err := readOwnerFile(dir)
	return o, err == nil && o.PID > 0 && alive(o.PID)
}

func readOwnerFile(dir string) (o Owner, err error) {
	b, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil {
		return Owner{}, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return Owner{}, fmt.Errorf("read %s: %w", ownerFile, err)
	}
	return o, nil
}

// alive reports whether a process of that id exists. Another program may have got the id of a dead owner; the lock of
// the store decides in the end.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	if runtime.GOOS == "windows" { // there, finding it is the answer
		_ = p.Release()
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return (err == nil || errors.Is(err, fs.ErrPermission)) && !ended(pid)
}

// ended reports whether a process is over and only its parent has not taken note, where /proc tells.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")) // a name may hold anything
	return bytes.HasPrefix(after, []byte("Z")) || bytes.HasPrefix(after, []byte("X"))
}

// SetAdmin publishes the address of the admin listener, host:port.
func (s *Store) SetAdmin(addr string) error { return s.writeOwner(addr) }

func (s *Store) writeOwner(admin string) error {
	b, err := json.Marshal(Owner{PID: os.Getpid(), Admin: admin, Harness: s.o.Harness, Started: now()})
	if err != nil {
		return fmt.Errorf("write %s: %w", ownerFile, err)
	}
	return writeFileSync(filepath.Join(s.dir, ownerFile), append(b, '\n'))
}

// removeOwner leaves a file alone that is not ours.
func (s *Store) removeOwner() error {
	if o, err := readOwnerFile(s.dir); err != nil || o.PID != os.Getpid() {
		return nil
	}
	return os.Remove(filepath.Join(s.dir, ownerFile))
}
