package compare

import (
	"encoding/json"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Read reads the JSON form of a report. The error wraps exchange.ErrUsage for what is none, and exchange.ErrDamaged for one of
// a newer schema.
func Read(data []byte) (*Report, error) {
	r := &Report{}
	switch err := json.Unmarshal(data, r); {
	case err != nil:
		return nil, fmt.Errorf("read comparison: %w: %w", exchange.ErrUsage, err)
	case r.Schema > Schema:
		return nil, fmt.Errorf("read comparison: %w: its schema %d is newer than %d", exchange.ErrDamaged, r.Schema, Schema)
	case r.Schema == 0 || len(r.Metrics) == 0 || r.Reference.ID == "" || r.Candidate.ID == "":
		return nil, fmt.Errorf("read comparison: %w: it is not the JSON of a comparison", exchange.ErrUsage)
	}
	return r, nil
}
