package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// target is an engine that the config gives a name.
type target struct {
	URL     string            `json:"url"`
	Engine  string            `json:"engine"`  // label, with or without @version; believed
	Dialect string            `json:"dialect"` // of its answers, whatever the path
	Headers map[string]string `json:"headers"` // added when sending
	KeyEnv  string            `json:"key_env"` // variable that holds its key
	KeyFile string            `json:"key_file"`
	Session string            `json:"session_header"` // header that carries one value a conversation
}

// config is the file of --config: JSON, as people write it (strict.Plain).
type config struct {
	Targets map[string]target          `json:"targets"`
	Engines map[string]json.RawMessage `json:"engines"` // parts of profiles, laid over those of the same name
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "`FILE` that names targets and adds to what is known of engines (or BENCHPROXY_CONFIG)"}
}

// readConfig reads the config of a command; without one it is empty.
func (p *program) readConfig(c *cli.Context) (config, error) {
	var cfg config
	file := cmp.Or(c.String("config"), p.Getenv("BENCHPROXY_CONFIG"))
	if file == "" {
		return cfg, nil
	}
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return cfg, usagef("read --config: %v", err)
	}
	if err := strict.Decode(strict.Plain(raw), &cfg, ""); err != nil {
		return cfg, usagef("read --config %s: %v", file, err)
	}
	for name, t := range cfg.Targets {
		if err := t.check(); err != nil {
			return cfg, usagef("read --config %s: target %s: %v", file, name, err)
		}
	}
	return cfg, nil
}

// catalog is what is known of engines: the profiles of this program, with those of the config laid over them.
func (p *program) catalog(c *cli.Context) (*engines.Catalog, error) {
	cfg, err := p.readConfig(c)
	if err != nil {
		return nil, err
	}
	catalog, err := engines.Builtin()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Engines)) {
		if err := catalog.Override(name, cfg.Engines[name]); err != nil {
			return nil, fmt.Errorf("read --config: %w", err)
		}
	}
	return catalog, nil
}

func (t target) check() error {
	if nameAndURL.FindString("x="+t.URL) == "" {
		return fmt.Errorf("url %q is not http://, https:// or unix:/socket", t.URL)
	}
	if t.KeyEnv != "" && t.KeyFile != "" {
		return errors.New("key_env and key_file exclude each other")
	}
	if t.Dialect != "" && !slices.Contains(formats(), t.Dialect) {
		return fmt.Errorf("there is no dialect %q; there is %s", t.Dialect, strings.Join(formats(), ", "))
	}
	if strings.ContainsAny(t.Session, " \t\r\n:") {
		return fmt.Errorf("session_header %q cannot be sent", t.Session)
	}
	for name, value := range t.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("header %q cannot be sent", name)
		}
	}
	return nil
}

// upstream is the target as something to send to. Its key is read now, stays in memory, and goes to this upstream only.
func (p *program) upstreamOf(name string, t target) (upstream, error) {
	u := upstream{name: name, url: t.URL, label: t.Engine, dialect: t.Dialect, session: t.Session}
	var hs []exchange.Header
	for _, h := range slices.Sorted(maps.Keys(t.Headers)) {
		hs = append(hs, exchange.Header{Name: h, Value: t.Headers[h]})
	}
	key := ""
	switch {
	case t.KeyFile != "":
		var err error
		if key, err = keyOf(t.KeyFile); err != nil {
			return u, usagef("target %s: key_file: %v", name, err)
		}
	case t.KeyEnv != "":
		if key = strings.TrimSpace(p.Getenv(t.KeyEnv)); key == "" {
			return u, usagef("target %s: the variable %s holds no key", name, t.KeyEnv)
		}
	}
	if key != "" {
		hs = append(hs, exchange.Header{Name: "Authorization", Value: "Bearer " + key})
	}
	if hs != nil {
		u.credentials = func() []exchange.Header { return hs }
	}
	return u, nil
}

// probeTargets are the engines that args name by URL, NAME=URL or the name of a target; without args all targets.
func (p *program) probeTargets(c *cli.Context, args []string) ([]upstream, error) {
	cfg, err := p.readConfig(c)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = slices.Sorted(maps.Keys(cfg.Targets))
	}
	if len(args) == 0 {
		return nil, usagef("no engine is named; say [NAME=]URL, or name a config with targets")
	}
	key, err := p.secret(c, "key-file", "BENCHPROXY_UPSTREAM_KEY")
	if err != nil {
		return nil, err
	}
	var out []upstream
	for _, arg := range args {
		u, err := p.named(cfg, arg)
		if err != nil {
			return nil, err
		}
		if u.name == "" {
			u.name = u.url
		}
		if key != "" && u.credentials == nil {
			u.credentials = func() []exchange.Header { return []exchange.Header{{Name: "Authorization", Value: "Bearer " + key}} }
		}
		out = append(out, u)
	}
	return out, nil
}

// named is what one argument means: NAME=URL, the name of a target, or a URL, which gives no name.
func (p *program) named(cfg config, arg string) (upstream, error) {
	if m := nameAndURL.FindStringSubmatch(arg); m != nil {
		return upstream{name: m[1], url: m[2]}, nil
	}
	if t, ok := cfg.Targets[arg]; ok {
		return p.upstreamOf(arg, t)
	}
	if !strings.Contains(arg, ":") {
		return upstream{}, usagef("%q is neither a URL nor a target of the config", arg)
	}
	return upstream{url: arg}, nil
}
