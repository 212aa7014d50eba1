package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// LogDir is where logs of servers and the plan are kept below the results, beside no record.
const LogDir = "logs"

// PlanFile is the plan of the last sitting, below the results.
const PlanFile = LogDir + "/plan.json"

// Bytes of disk that results must find. A record holds up to 8,000 characters of text, and samples.
const (
	roomOfCell = 64 << 10
	leastRoom  = 1 << 20
	mostRoom   = 32 << 20
)

// Check finds out whether the results of a plan can be written to a directory that was claimed, before hours are spent on
// them: that files can be made, filled and put in place there, and that no directory stands where a file of a cell goes. It
// leaves nothing behind. The error wraps exchange.ErrNoSpace on a full disk.
func Check(dir string, p *matrix.Plan) error {
	cells := 0
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			c := &p.Groups[i].Cells[j]
			if c.Do != matrix.DoRun && c.Do != matrix.DoSkip {
				continue
			}
			cells++
			path := filepath.Join(dir, c.File())
			if st, err := os.Lstat(path); err == nil && st.IsDir() {
				return fmt.Errorf("check directory of results: %s is a directory, and is to be the result of a cell", path)
			}
		}
	}
	if err := tryWrite(dir, min(max(cells*roomOfCell, leastRoom), mostRoom)); err != nil {
		return fmt.Errorf("check directory of results: %w", roomFor(err))
	}
	return nil
}

// tryWrite makes a file of so many bytes, puts it in place as results are, and removes it.
func tryWrite(dir string, size int) error {
	f, err := os.CreateTemp(dir, ".try.*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, size))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	name := f.Name()
	if err == nil {
		if err = os.Rename(name, name+".json"); err == nil {
			name += ".json"
		}
	}
	return errors.Join(err, os.Remove(name))
}

// savePlan makes the directory of results and writes the plan into it.
func savePlan(dir string, p *matrix.Plan) error {
	if err := os.MkdirAll(filepath.Join(dir, LogDir), 0o755); err != nil {
		return fmt.Errorf("make directory of results: %w", roomFor(err))
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = replay.ReplaceFile(filepath.Join(dir, filepath.FromSlash(PlanFile)), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save plan: %w", roomFor(err))
	}
	return nil
}

// roomFor tells a full disk as one.
func roomFor(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", exchange.ErrNoSpace, err)
	}
	return err
}
