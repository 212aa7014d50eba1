package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder puts the flags of every command before its arguments, because the flag parser stops at the first argument and
// would take a later flag for one without a word. Everything after "--" is returned apart and untouched: it belongs to a
// client command.
func reorder(app *cli.App, argv []string) (head, rest []string) {
	for i, a := range argv {
		if a == "--" {
			argv, rest = argv[:i], argv[i+1:]
			if rest == nil {
				rest = []string{}
			}
			break
		}
	}
	commands, flags := app.Commands, app.Flags
	var front, pending, args []string // path and flags so far; flags and arguments of the present command
	for i := 0; i < len(argv); i++ {
		a := argv[i]
		if strings.HasPrefix(a, "-") && a != "-" {
			pending = append(pending, a)
			if takesValue(flags, a) && i+1 < len(argv) {
				i++
				pending = append(pending, argv[i])
			}
			continue
		}
		if sub := find(commands, a); sub != nil && len(args) == 0 {
			front = append(append(front, pending...), a)
			pending, commands, flags = nil, sub.Subcommands, sub.Flags
			continue
		}
		args = append(args, a)
	}
	return append(append(front, pending...), args...), rest
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue reports whether the flag spelled a, without "=value", is followed by its value. An unknown flag is not: the
// parser will refuse it by name.
func takesValue(flags []cli.Flag, a string) bool {
	name := strings.TrimLeft(a, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				_, isBool := f.(*cli.BoolFlag)
				return !isBool
			}
		}
	}
	return false
}
