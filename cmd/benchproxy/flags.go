package main

import (
	"cmp"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"
)

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON for scripts"}
}

func storeFlag() cli.Flag {
	return &cli.StringFlag{Name: "store", Usage: "`DIR` of the recordings (default: BENCHPROXY_STORE, else the user data directory)"}
}

// storeDir is the store of a command: the flag, BENCHPROXY_STORE, or the place where the platform keeps user data.
func (p *program) storeDir(c *cli.Context) (string, error) {
	if dir := cmp.Or(c.String("store"), p.Getenv("BENCHPROXY_STORE")); dir != "" {
		return dir, nil
	}
	dir, ok := p.dataDir()
	if !ok {
		return "", usagef("there is no home directory to keep recordings in; name one with --store DIR or BENCHPROXY_STORE")
	}
	return dir, nil
}

// dataDir is where the platform keeps the data of this program; ok is false where there is no home directory.
func (p *program) dataDir() (dir string, ok bool) {
	if dir := p.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "benchproxy"), true
	}
	base, under := p.Getenv("HOME"), []string{".local", "share", "benchproxy"}
	switch runtime.GOOS {
	case "windows":
		base, under = p.Getenv("LOCALAPPDATA"), []string{"benchproxy"}
	case "darwin":
		under = []string{"Library", "Application Support", "benchproxy"}
	}
	if base == "" {
		return "", false
	}
	return filepath.Join(append([]string{base}, under...)...), true
}
