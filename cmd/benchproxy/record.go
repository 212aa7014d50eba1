package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

func (p *program) recordCommand() *cli.Command {
	return &cli.Command{
		Name:      "record",
		Usage:     "put a recording proxy in front of an engine",
		ArgsUsage: "[-- CMD ARGS]",
		Description: "Point a client at the printed address (OpenAI clients want it with /v1 behind it), or let record start it: with a\n" +
			"command after \"--\" it sets OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL, OLLAMA_HOST and\n" +
			"GOOGLE_GEMINI_BASE_URL, ends when the client ends, and returns its exit code. The first Ctrl-C lets running\n" +
			"exchanges end, closes the run and prints a summary; the second does not wait.\n\n" +
			"   benchproxy record --upstream http://127.0.0.1:8080\n" +
			"   benchproxy record --upstream http://127.0.0.1:8080 --run agent -- python agent.py\n" +
			"   benchproxy record --upstream a=http://127.0.0.1:8080 --upstream b=http://127.0.0.1:8081\n" +
			"   benchproxy record --engine llamacpp --model model.gguf -- python agent.py",
		Flags: append(slices.Concat(proxyFlags(), draftingFlags(), keepFlags(), launchFlags()),
			storeFlag(),
			&cli.StringFlag{Name: "engine", Usage: "`ID` of an engine to start, and to end at the end, instead of --upstream"},
			&cli.StringFlag{Name: "run", Usage: "`NAME` of the run"},
			&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` to keep with the run; repeatable"},
			&cli.StringSliceFlag{Name: "weights", Usage: "`[NAME=]FILE`, the GGUF model file that the engine has loaded: its digest becomes part of what the run knows; NAME is an upstream's"},
			&cli.StringFlag{Name: "durability", Value: "async", Usage: "`WHEN` a record counts as stored: async survives a killed process, sync a loss of power too"},
			&cli.IntFlag{Name: "queue", Value: 256, Usage: "what may wait to be stored, in `MIB`; more is dropped and counted"},
		),
		Action: func(c *cli.Context) error {
			if err := exactArgs(c); err != nil {
				return err
			}
			s, err := p.recordSettings(c)
			if err != nil {
				return err
			}
			return p.capture(c.Context, s)
		},
	}
}

func (p *program) recordSettings(c *cli.Context) (captureSettings, error) {
	s, err := p.settings(c, "record")
	if err != nil {
		return s, err
	}
	if p.rest != nil && len(p.rest) == 0 {
		return s, usagef("there is no command after \"--\"")
	}
	if exchange.ValidID(s.run.Name) {
		return s, usagef("--run %q has the form of an id; choose another name", s.run.Name)
	}
	switch d := c.String("durability"); d {
	case "async":
	case "sync":
		s.sync = true
	default:
		return s, usagef("--durability is async or sync, not %q", d)
	}
	if s.run.Labels, err = labels(c); err != nil {
		return s, err
	}
	if s.weights, err = modelFiles(weightFlags(c, s.launch), s.upstreams); err != nil {
		return s, err
	}
	if s.run.Drafting, err = drafting(c); err != nil {
		return s, err
	}
	s.run.Identity = s.session.Identity
	s.run.Command = redact.Args(p.rest)
	s.queue = int64(c.Int("queue")) << 20
	if s.keep, err = limits(c, "prune-older", "prune-keep"); err != nil {
		return s, err
	}
	s.store, err = p.storeDir(c)
	return s, err
}

func (p *program) proxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "proxy",
		Usage: "put a measuring proxy in front of an engine, keeping nothing",
		Description: "As record, without a store.\n\n" +
			"   benchproxy proxy --upstream http://127.0.0.1:8080",
		Flags: proxyFlags(),
		Action: func(c *cli.Context) error {
			if err := exactArgs(c); err != nil {
				return err
			}
			if p.rest != nil {
				return usagef("proxy starts no client; record -- CMD does")
			}
			s, err := p.settings(c, "proxy")
			if err != nil {
				return err
			}
			return p.capture(c.Context, s)
		},
	}
}

// capture runs a proxy until its client ends or the first signal comes.
func (p *program) capture(ctx context.Context, s captureSettings) error {
	if p.rest != nil {
		s.form = boardQuiet // the screen is the client's
	}
	if err := p.startEngine(ctx, &s); err != nil {
		return err
	}
	c, err := startCapture(p.env, s)
	if err != nil {
		return errors.Join(err, s.launched.Close())
	}
	s.launched.tell(c.failed)
	c.announce()
	waitErr := p.wait(ctx, c)
	if n := c.session.Stats().Running; n > 0 {
		c.board.Note("%d still running: they have %s to end; a second Ctrl-C ends them now", n, s.drain)
	}
	run, err := c.Close(p.Signals)
	err = errors.Join(err, s.launched.Close())
	out := p.Stdout
	if s.form == boardJSON || p.rest != nil { // stdout belongs to the rows, or to the client
		out = p.Stderr
	}
	sum := c.board.Total()
	printSummary(out, run, sum)
	if p.rest != nil && sum.Exchanges == 0 && waitErr == nil {
		note(p.Stderr, "Nothing came through the proxy. Does the client take its address from OPENAI_BASE_URL, or from one of its kin?")
	}
	return errors.Join(waitErr, err)
}

// wait returns when the capture is over: the client ended, a signal came, or a listener failed.
func (p *program) wait(ctx context.Context, c *capture) error {
	if p.rest != nil {
		ch, err := startChild(p.env, p.rest, childEnv(c.base(0)))
		if err != nil {
			return err
		}
		return ch.Run(ctx, p.Signals)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s := <-p.Signals:
		if _, tty := p.TTY(p.Stderr); tty && s == os.Interrupt && c.board.form != boardLive {
			fmt.Fprintln(p.Stderr) // the terminal echoed ^C; a board clears it
		}
		return nil
	case err := <-c.failed:
		return err
	}
}
