package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Store is a store as `benchproxy store` shows it.
type Store struct {
	Binary string // path of benchproxy
	Dir    string
}

// Check runs the full check; its error is not nil when anything is wrong.
func (s Store) Check(ctx context.Context) error {
	_, err := s.run(ctx, "check")
	return err
}

// Rows are all stored exchanges.
func (s Store) Rows(ctx context.Context) ([]exchange.Summary, error) {
	out, err := s.run(ctx, "ls", "--json")
	if err != nil {
		return nil, err
	}
	return summaries(lines(out))
}

// Runs are all runs, the oldest first.
func (s Store) Runs(ctx context.Context) ([]exchange.Run, error) {
	out, err := s.run(ctx, "ls", "--json", "--runs")
	if err != nil {
		return nil, err
	}
	var runs []exchange.Run
	for _, l := range lines(out) {
		var r exchange.Run
		if err := json.Unmarshal(l, &r); err != nil {
			return nil, fmt.Errorf("read run: %w", err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Body is the exact response body of one exchange.
func (s Store) Body(ctx context.Context, id exchange.ID) ([]byte, error) {
	return s.run(ctx, "show", "--raw", "response", string(id))
}

func (s Store) run(ctx context.Context, command string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Binary, append([]string{"store", command, "--store", s.Dir}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run store %s %s: %w: %s%s", command, strings.Join(args, " "), err, stderr.String(), out)
	}
	return out, nil
}

func lines(out []byte) [][]byte {
	list := bytes.Split(out, []byte("\n"))
	return list[:len(list)-1]
}
