package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// run is the whole program: it parses the arguments of e, does what they say, and returns the exit code.
func run(ctx context.Context, e env) int {
	p := &program{env: e}
	app := p.app()
	argv, rest := reorder(app, e.Args)
	p.rest = rest
	err := app.RunContext(ctx, append([]string{app.Name}, argv...))
	var quiet childExit
	if err != nil && !errors.As(err, &quiet) {
		fmt.Fprintln(e.Stderr, "benchproxy: "+err.Error())
		if errors.Is(err, exchange.ErrUsage) {
			fmt.Fprintln(e.Stderr, "See 'benchproxy help' or 'benchproxy COMMAND --help'.")
		}
	}
	return exitCode(err)
}

// program is one run of the command line.
type program struct {
	env
	rest []string // what stood after "--"; nil when there was no "--"
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:                      "benchproxy",
		Usage:                     "measure, record and prove LLM inference engines",
		Version:                   version(),
		HideVersion:               true,
		EnableBashCompletion:      true,
		Suggest:                   true,
		DisableSliceFlagSeparator: true,
		Reader:                    p.Stdin,
		Writer:                    p.Stdout,
		ErrWriter:                 p.Stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides on messages and codes
		OnUsageError:              usageError,
		CustomAppHelpTemplate:     cli.AppHelpTemplate + "\n" + exitHelp,
		Commands: []*cli.Command{
			p.demoCommand(), p.recordCommand(), p.proxyCommand(), p.storeCommand(), p.simCommand(),
			p.completionCommand(), p.versionCommand(),
		},
	}
	app.Action = p.noCommand("")
	for _, c := range app.Commands {
		p.finish(c, c.Name)
	}
	return app
}

// finish gives a command and its subcommands the behavior all commands share.
func (p *program) finish(c *cli.Command, path string) {
	c.OnUsageError = usageError
	if c.Action == nil {
		c.Action = p.noCommand(path)
	}
	for _, s := range c.Subcommands {
		p.finish(s, path+" "+s.Name)
	}
}

// noCommand is the action where a command was expected: help when nothing was said, an error when something else was.
func (p *program) noCommand(path string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Len() == 0 {
			if path == "" {
				return cli.ShowAppHelp(c)
			}
			return cli.ShowSubcommandHelp(c)
		}
		return usagef("there is no command %q", strings.TrimSpace(path+" "+c.Args().First()))
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return usagef("%s", strings.Replace(err.Error(), "flag provided but not defined:", "there is no flag", 1))
}

// exactArgs refuses any other number of arguments than the names given. names describes them for the message.
func exactArgs(c *cli.Context, names ...string) error {
	if c.Args().Len() == len(names) {
		return nil
	}
	if len(names) == 0 {
		return usagef("%s takes no arguments, got %q", c.Command.FullName(), c.Args().First())
	}
	return usagef("%s takes %s, got %d arguments", c.Command.FullName(), strings.Join(names, " "), c.Args().Len())
}

// note prints one line for a person on stderr.
func note(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
