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
