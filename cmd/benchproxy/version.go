package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// buildInfo is what `version` prints.
type buildInfo struct {
	Schema    int               `json:"schema"`
	Version   string            `json:"version"`
	Commit    string            `json:"commit,omitempty"`
	Modified  bool              `json:"modified"` // built from a tree with uncommitted changes
	Go        string            `json:"go"`
	Platform  string            `json:"platform"`
	Libraries map[string]string `json:"libraries"`
	Rows      int               `json:"summary_schema"`
}

// shown are the libraries whose versions matter to a reader of our numbers.
var shown = []string{"github.com/valyala/fasthttp", "github.com/dgraph-io/badger/v4", "github.com/valyala/fastjson"}

func readBuild() buildInfo {
	b := buildInfo{Schema: 1, Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Libraries: map[string]string{}, Rows: exchange.SummaryVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		for _, name := range shown {
			if d.Path == name {
				b.Libraries[name] = d.Version
			}
		}
	}
	return b
}

// version is the short form, as it is stored with every exchange.
func version() string {
	b := readBuild()
	v := b.Version
	if b.Commit != "" && !strings.Contains(v, b.Commit[:min(12, len(b.Commit))]) {
		v += "+" + b.Commit[:min(12, len(b.Commit))]
	}
	if b.Modified && !strings.Contains(v, "dirty") {
		v += "+dirty"
	}
	return v
}

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print version, commit, Go and library versions",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := exactArgs(c); err != nil {
				return err
			}
			return p.printVersion(c)
		},
	}
}

// printVersion is the version command, and the --version flag.
func (p *program) printVersion(c *cli.Context) error {
	b := readBuild()
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(b)
	}
	fmt.Fprintf(p.Stdout, "benchproxy %s\n", version())
	fmt.Fprintf(p.Stdout, "  go        %s %s\n", b.Go, b.Platform)
	for _, name := range shown {
		short := strings.TrimSuffix(name, "/v4")
		fmt.Fprintf(p.Stdout, "  %-9s %s\n", short[strings.LastIndex(short, "/")+1:], b.Libraries[name])
	}
	return nil
}
