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
	"runtime"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stamps:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var cfg config
	var asJSON, idle bool
	fs := flag.NewFlagSet("stamps", flag.ContinueOnError)
	fs.StringVar(&cfg.binary, "benchproxy", "", "the program to take the scripted engine from")
	fs.IntVar(&cfg.streams, "streams", 256, "streams at the same time")
	fs.IntVar(&cfg.events, "events", 100, "events of each stream")
	fs.IntVar(&cfg.rate, "rate", 20, "events a second of each stream")
	fs.IntVar(&cfg.rounds, "rounds", 3, "rounds of each kind of stamps")
	fs.BoolVar(&idle, "idle", false, "leave the cores alone")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if cfg.binary == "" || cfg.streams < 1 || cfg.events < 2 || cfg.rate < 1 || cfg.rounds < 1 {
		return errors.New("want -benchproxy PATH, and positive numbers")
	}
	cfg.busy = !idle
	sides, err := measure(ctx, cfg)
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{
			"schema": 1, "streams": cfg.streams, "events": cfg.events, "rate": cfg.rate, "rounds": cfg.rounds, "busy": cfg.busy,
			"cores": runtime.NumCPU(), "sides": sides,
		})
	}
	return print(stdout, cfg, sides)
}

// print writes the table for people.
func print(w io.Writer, cfg config, sides []*side) error {
	cores := "busy"
	if !cfg.busy {
		cores = "left alone"
	}
	fmt.Fprintf(w, "%d streams of %d events at %d a second, %d rounds each; %d cores, %s\n", cfg.streams, cfg.events, cfg.rate, cfg.rounds, runtime.NumCPU(), cores)
	fmt.Fprintln(w, "stamp less the engine's own write stamp, events that are last in their read, us")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stamps\tp50\tp99\tmax\tevents\tmerged\tby another clock\t")
	for _, s := range sides {
		other := s.Answers
		for clock, n := range s.Clocks {
			if string(clock) == s.Name {
				other -= n
			}
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%d\t%.1f %%\t%d of %d\t\n", s.Name, s.P50, s.P99, s.Max, s.Events, 100*s.mergedShare(), other, s.Answers)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if k, r := sides[0], sides[1]; k.P99 > 0 {
		_, err := fmt.Fprintf(w, "p99 of the kernel's is %.1f us (must: 100, aim: 40), %.1f times better than that of the reads (must: 5)\n", k.P99, r.P99/k.P99)
		return err
	}
	return nil
}
