package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes with -judge; without it a run that was measured ends with 0.
const (
	exitFailure = 1 // it could not be measured
	exitNotMet  = 3 // a budget is surely not met
	exitNoJudge = 4 // a budget could not be judged: the machine is too noisy, its figure is missing, or its interval holds the limit
)

// verdictError says how a judged run came out; everything was printed.
type verdictError struct {
	code int
	text string
}

func (e verdictError) Error() string { return e.text }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	code := exitFailure
	if judged := (verdictError{}); errors.As(err, &judged) {
		code = judged.code
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == asCollector {
		return collect(ctx, stdout)
	}
	cfg, err := parse(args, stderr)
	if err != nil {
		return err
	}
	r, err := measureAll(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	if cfg.markdown != "" {
		if err := r.writeMarkdown(cfg.markdown); err != nil {
			return err
		}
	}
	if err := r.write(stdout, cfg.json); err != nil {
		return err
	}
	if cfg.judge {
		return r.judge()
	}
	return nil
}

// write prints the report for people or as JSON.
func (r *report) write(w io.Writer, asJSON bool) error {
	if !asJSON {
		return r.print(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// measureAll runs everything and gathers the report.
func measureAll(ctx context.Context, cfg config, progress io.Writer) (*report, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("make directory for stores: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's temporary directory
	b := &bench{cfg: cfg, dir: dir, progress: progress, began: time.Now()}
	defer b.Close()
	r := newReport(cfg)
	if err := r.name(ctx, cfg); err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	if err := b.scenarios(ctx, r); err != nil {
		return nil, err
	}
	if err := b.exported(ctx); err != nil {
		return nil, err
	}
	once := []func(context.Context, *report) error{b.gone, b.memory, b.allocations} // as onceNames
	for i, step := range once {
		if !cfg.has(onceNames[i]) {
			continue
		}
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	r.finish(cfg)
	return r, nil
}
