package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// config is what the flags say.
type config struct {
	benchproxy   string            // path of the program
	reverseproxy string            // path of the comparison
	peers        map[string]string // paths of peers by name
	targets      []string          // direct first, in the order of targetNames
	only         []string          // what is measured
	rounds       int
	large        int     // large scenarios are played in every so many rounds
	streams      int     // of the large scenarios
	noise        float64 // spread of direct above which nothing is judged
	judge        bool
	json         bool
	markdown     string // path of the results for people, "" for none
	command      string // what a person types for this run
	commit       string // of the program
}

// defaultTargets are those that need no program of another's.
var defaultTargets = []string{direct, proxied, records, traced, unsampled, compare}

// onceNames are what is measured once, after the rounds.
var onceNames = []string{"gone", "memory", "allocations"}

// measured are the names of everything that can be measured.
func measured() []string {
	var names []string
	for _, s := range scenarioList(0) {
		names = append(names, s.name)
	}
	return append(names, onceNames...)
}

// has is true when a scenario, or what is measured once, is asked for.
func (c config) has(name string) bool { return slices.Contains(c.only, name) }

// noisy is the default of -noise. The median of twelve rounds is known to about a quarter of the distance between the
// quartiles, so at this bound direct itself is known to a sixteenth. Two processors to themselves stay below it; with
// three busy loops that come and go beside the run they do not.
const noisy = 0.25

func parse(args []string, stderr io.Writer) (config, error) {
	cfg := config{peers: map[string]string{}}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&cfg.benchproxy, "benchproxy", "", "`PATH` of the program")
	fs.StringVar(&cfg.reverseproxy, "reverseproxy", "", "`PATH` of the comparison")
	for _, p := range peerList {
		fs.Func(p.name, "`PATH` of "+p.name, func(v string) error { cfg.peers[p.name] = v; return nil })
	}
	targets := fs.String("targets", strings.Join(defaultTargets, ","), "measure these: `NAMES` of "+strings.Join(targetNames, ", "))
	only := fs.String("only", "ttft,events,json,load,many,gone,memory,allocations", "measure this: `NAMES` of "+strings.Join(measured(), ", "))
	fs.IntVar(&cfg.rounds, "rounds", 6, "how often every scenario is played on every target")
	fs.IntVar(&cfg.large, "large", 3, "large scenarios are played in every `N`th round")
	fs.IntVar(&cfg.streams, "streams", 1000, "streams that run or rest at once in the large scenarios")
	fs.Float64Var(&cfg.noise, "noise", noisy, "`SHARE` of direct's median that its quartiles may lie apart for a figure to be judged")
	fs.BoolVar(&cfg.judge, "judge", false, "exit with 3 when a budget is surely not met, 4 when one cannot be judged")
	fs.BoolVar(&cfg.json, "json", false, "print JSON")
	fs.StringVar(&cfg.markdown, "markdown", "", "write the results to this `FILE` too")
	fs.StringVar(&cfg.command, "command", "", "`WORDS` that started this, for the results")
	fs.StringVar(&cfg.commit, "commit", "", "`ID` of what is measured, for the results")
	if err := fs.Parse(args); err != nil {
		return cfg, err
	}
	if fs.NArg() > 0 || cfg.rounds < 1 || cfg.streams < 1 || cfg.large < 1 || cfg.noise <= 0 || cfg.benchproxy == "" {
		return cfg, errors.New("want -benchproxy PATH, and -rounds, -large, -streams and -noise above 0")
	}
	var err error
	if cfg.targets, err = choose("-targets", *targets+","+direct, targetNames); err != nil {
		return cfg, err
	}
	cfg.only, err = choose("-only", *only, measured())
	return cfg, err
}

// choose takes names that a flag lists, in the order of all.
func choose(name, list string, all []string) ([]string, error) {
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(all, w) {
			return nil, fmt.Errorf("%s: there is no %q; there are %s", name, w, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(wanted, n) }), nil
}
