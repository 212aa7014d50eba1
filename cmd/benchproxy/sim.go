package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/sim"
)

func (p *program) simCommand() *cli.Command {
	return &cli.Command{
		Name:  "sim",
		Usage: "run a scripted engine to try things on",
		Description: "It answers OpenAI chat and completions with text, times and token counts that follow from the request and --set, and\n" +
			"knows the truth about every write it made (GET /sim/records). A request can change the options for itself with the\n" +
			"header X-Sim.\n\n" +
			"   benchproxy sim --set \"ttft=200ms; decode=50\"\n" +
			"   curl -H \"X-Sim: fault=reset@3\" ...\n\n" + answerOptions(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8092", Usage: "`ADDR` to serve"},
			&cli.StringFlag{Name: "set", Usage: "`OPTIONS` of every answer: \"key=value; key=value\""},
			&cli.StringFlag{Name: "model", Value: "sim", Usage: "`NAME` of the model"},
			&cli.IntFlag{Name: "slots", Usage: "`N` requests run at once, others wait (default: no limit)"},
			&cli.IntFlag{Name: "context", Usage: "`N` tokens of prompt and answer together at most (default: no limit)"},
			&cli.StringFlag{Name: "play", Usage: "answer every request with what `FILE` holds: frames (JSON), or a raw response; NAME.chunks.tsv beside NAME.response.txt gives its times"},
			&cli.StringFlag{Name: "as", Usage: "answer those who ask what it is as `ENGINE` does: " + strings.Join(sim.Disguises(), ", ")},
			&cli.StringFlag{Name: "toy", Usage: "be a toy model whose log-probabilities can be set: `JSON` with seed, drafts, limit, delay_ms and nudges, {} for none of them"},
			&cli.Float64Flag{Name: "speed", Value: 1, Usage: "`FACTOR` on the times of a played response, 0 = at once"},
			&cli.BoolFlag{Name: "insecure", Usage: "allow listening beyond this machine"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := exactArgs(c); err != nil {
				return err
			}
			return p.sim(c)
		},
	}
}

// answerOptions lists what --set and X-Sim take.
func answerOptions() string {
	var b strings.Builder
	b.WriteString("OPTIONS OF AN ANSWER, by --set or X-Sim:\n")
	sim.Describe(func(key, doc string) { hangingText(&b, "   "+key, doc) })
	return strings.TrimRight(b.String(), "\n")
}

func (p *program) sim(c *cli.Context) error {
	cfg := sim.Config{Model: c.String("model"), Slots: c.Int("slots"), Context: c.Int("context")}
	if err := cfg.Options.Set(c.String("set")); err != nil {
		return err
	}
	if file := c.String("play"); file != "" {
		h, err := playFile(file, c.Float64("speed"))
		if err != nil {
			return err
		}
		cfg.Handler = h
	}
	if as := c.String("as"); as != "" {
		if cfg.Handler != nil {
			return usagef("--as and --play exclude each other")
		}
		h, err := sim.Disguise(as, cfg.Model)
		if err != nil {
			return err
		}
		cfg.Handler = h
	}
	if toy := c.String("toy"); toy != "" {
		if cfg.Handler != nil {
			return usagef("--toy excludes --as and --play")
		}
		h, err := toyOf(toy)
		if err != nil {
			return err
		}
		cfg.Handler, cfg.Bare = h, true
	}
	addr := c.String("listen")
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usagef("--listen %q is not HOST:PORT", addr)
	}
	if !loopback(addr) && !c.Bool("insecure") {
		return usagef("%s can be reached from other machines; say --insecure if that is meant", addr)
	}
	srv, err := startScripted(addr, c.IsSet("listen"), cfg)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "url": srv.url})
		if err != nil {
			return errors.Join(err, srv.Close())
		}
	} else {
		note(p.Stderr, "scripted engine at %s, model %s; Ctrl-C ends it", srv.url, cfg.Model)
	}
	select {
	case <-c.Context.Done():
	case <-p.Signals:
	case err := <-srv.served: // it stopped by itself: a scripted crash
		srv.served <- nil
		return errors.Join(err, srv.Close())
	}
	return srv.Close()
}

// playFile makes a handler of a file: JSON frames, else the raw bytes of a response with the log of its reads when there
// is one beside it.
func playFile(path string, speed float64) (sim.Handler, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, usagef("read --play: %v", err)
	}
	script, err := playScript(path, raw, speed)
	if err != nil {
		return nil, usagef("read --play %s: %v", path, err)
	}
	return sim.Always(script), nil
}

func playScript(path string, raw []byte, speed float64) (*sim.Script, error) {
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
		frames, err := sim.ParseFrames(raw)
		if err != nil {
			return nil, err
		}
		return frames.Script(0)
	}
	if name, ok := strings.CutSuffix(path, ".response.txt"); ok {
		log, err := os.ReadFile(filepath.Clean(name + ".chunks.tsv"))
		if err == nil {
			return sim.CaptureScript(raw, log, speed)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return sim.RawScript(raw, []sim.Recv{{Size: len(raw)}}, sim.EndClose, speed)
}
