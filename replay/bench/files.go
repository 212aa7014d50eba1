package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

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
		return fmt.Errorf("make directory of results: %w", err)
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = replay.ReplaceFile(filepath.Join(dir, filepath.FromSlash(PlanFile)), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return nil
}
