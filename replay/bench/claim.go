package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Claim makes the directory of results and holds it until it is closed, or this process ends: two sittings at once would
// each write over the records of the other. The error wraps exchange.ErrLocked where another one holds it.
func Claim(dir string) (io.Closer, error) {
	logs := filepath.Join(dir, LogDir)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of results: %w", roomFor(err))
	}
	name := filepath.Join(logs, ".lock")
	if st, err := os.Lstat(name); err == nil && !st.Mode().IsRegular() { // it would make a file where a link leads to
		return nil, fmt.Errorf("hold directory of results: %s is no regular file", name)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("hold directory of results: %w", roomFor(err))
	}
	if err := tryLock(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, &exchange.Error{Op: "hold results", Object: dir, Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", exchange.ErrLocked, err),
			Hint: "another bench writes there; wait for it, or name another --results"}
	}
	return f, nil
}
