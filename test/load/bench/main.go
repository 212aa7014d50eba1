package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// config is what the flags say.
type config struct {
	benchproxy   string // path of the program
	reverseproxy string // path of the comparison
	rounds       int
	streams      int // of the large scenarios
	json         bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var cfg config
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&cfg.benchproxy, "benchproxy", "", "`PATH` of the program")
	fs.StringVar(&cfg.reverseproxy, "reverseproxy", "", "`PATH` of the comparison")
	fs.IntVar(&cfg.rounds, "rounds", 5, "how often every scenario is played on every target")
	fs.IntVar(&cfg.streams, "streams", 1000, "streams that run or rest at once in the large scenarios")
	fs.BoolVar(&cfg.json, "json", false, "print JSON")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || cfg.rounds < 1 || cfg.streams < 1 || cfg.benchproxy == "" || cfg.reverseproxy == "" {
		return errors.New("want -benchproxy PATH -reverseproxy PATH, and -rounds and -streams above 0")
	}
	r, err := measureAll(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	if cfg.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.print(stdout)
}

// measureAll runs everything and gathers the report.
func measureAll(ctx context.Context, cfg config, progress io.Writer) (*report, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("make directory for stores: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's temporary directory
	b := &bench{cfg: cfg, dir: dir, progress: progress}
	defer b.Close()
	r := newReport(cfg)
	for _, step := range []func(context.Context, *report) error{b.start, b.scenarios, b.gone, b.memory, b.allocations} {
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r, nil
}
