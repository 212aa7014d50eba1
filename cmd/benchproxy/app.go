package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// run is the whole program: it parses the arguments of e, does what they say, and returns the exit code.
func run(ctx context.Context, e env) int {
	p := &program{env: e}
	app := p.app()
	if len(e.Args) > 0 && e.Args[0] == completeWord {
		for _, w := range p.complete(app, e.Args[1:]) {
			fmt.Fprintln(e.Stdout, w)
		}
		return exitOK
	}
	argv, rest := reorder(app, e.Args)
	p.rest = rest
	err := app.RunContext(ctx, append([]string{app.Name}, argv...))
	var quiet childExit
	var noTopic cli.ExitCoder // the library's only one: help for a command that is none
	if errors.As(err, &noTopic) {
		err = usagef("there is no help on that; 'benchproxy help' lists the commands")
	}
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
		DisableSliceFlagSeparator: true,
		Reader:                    p.Stdin,
		Writer:                    p.Stdout,
		ErrWriter:                 p.Stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides on messages and codes
		OnUsageError:              usageError,
		Flags:                     []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version", DisableDefaultText: true}},
		CustomAppHelpTemplate:     cli.AppHelpTemplate + "\n" + exitHelp,
		Commands: []*cli.Command{
			p.demoCommand(),
			p.recordCommand(),
			p.proxyCommand(),
			p.replayCommand(),
			p.benchCommand(),
			p.compareCommand(),
			p.reportCommand(),
			p.auditCommand(),
			p.storeCommand(),
			p.gateCommand(),
			p.goldenCommand(),
			p.validateCommand(),
			p.enginesCommand(),
			p.configCommand(),
			p.modelsCommand(),
			p.uiCommand(),
			p.simCommand(),
			p.selftestCommand(),
			p.completionCommand(),
			p.versionCommand(),
		},
	}
	app.Action = func(c *cli.Context) error {
		if c.Bool("version") {
			return p.printVersion(c)
		}
		return p.noCommand("", app.Commands)(c)
	}
	for _, c := range app.Commands {
		p.finish(c, c.Name)
	}
	return app
}

// finish gives a command and its subcommands the behavior all commands share.
func (p *program) finish(c *cli.Command, path string) {
	c.OnUsageError = usageError
	c.HideHelpCommand = len(c.Subcommands) == 0
	c.CustomHelpTemplate = commandHelp + optionsHelp(c.Flags)
	if c.Action == nil {
		c.Action = p.noCommand(path, c.Subcommands)
	}
	for _, s := range c.Subcommands {
		p.finish(s, path+" "+s.Name)
	}
}

// noCommand is the action where one of commands was expected: help when nothing was said, an error when something else was.
func (p *program) noCommand(path string, commands []*cli.Command) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Len() == 0 {
			if path == "" {
				return cli.ShowAppHelp(c)
			}
			return cli.ShowSubcommandHelp(c)
		}
		var names []string
		for _, known := range commands {
			names = append(names, known.Name)
		}
		return usagef("there is no command %q; there is %s", strings.TrimSpace(path+" "+c.Args().First()), strings.Join(names, ", "))
	}
}

// parserFlag matches a flag in the parser's messages, which show every one with a single dash.
var parserFlag = regexp.MustCompile(`(flag|defined:|argument:) -([a-z][a-z-]+)`)

func usageError(_ *cli.Context, err error, _ bool) error {
	text := parserFlag.ReplaceAllString(err.Error(), "$1 --$2")
	return usagef("%s", strings.Replace(text, "flag provided but not defined:", "there is no flag", 1))
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
