package engines

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Daemon says how an engine is found and controlled that starts itself, listens on a port of its own choice, and notes it
// in a file.
type Daemon struct {
	File string `json:"file"` // JSON, below the home directory
	// Keys of the file. Addresses is a text or a list of texts, of which the first counts; Port stands for an address of
	// this machine where there is none.
	Addresses string   `json:"addresses"`
	Port      string   `json:"port,omitempty"`
	PID       string   `json:"pid,omitempty"`
	Load      []string `json:"load"`   // command line that loads "$model"
	Unload    []string `json:"unload"` // command line that frees its memory
	Start     string   `json:"start"`  // what a person types to start it
}

func (d *Daemon) check() error {
	if d.File == "" || path.IsAbs(d.File) || path.Clean(d.File) != d.File || strings.HasPrefix(d.File, "..") {
		return fmt.Errorf("daemon: %q is no file below the home directory", d.File)
	}
	if d.Addresses == "" || d.Start == "" {
		return fmt.Errorf("daemon: it needs the key of its addresses, and how it is started")
	}
	for _, command := range [][]string{d.Load, d.Unload} {
		if len(command) < 2 || !slices.Contains(command[1:], "$model") {
			return fmt.Errorf(`daemon: a command line that loads or unloads is a program and arguments, "$model" among them`)
		}
	}
	return nil
}
