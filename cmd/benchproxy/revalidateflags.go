package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
)

const revalidateHelp = "\n\nWith --revalidate nothing is sent either: the recorded answers are judged by the gates and metrics of this build, and\n" +
	"the recording is not written to. FILE is an exported run, or a report that TensorSharp's validation has captured. What\n" +
	"failed when it was recorded stays failed. The exit code is 3 when something fails, 9 for a run that is not whole.\n\n" +
	"   benchproxy replay --revalidate agent\n" +
	"   benchproxy replay --revalidate agent --output verdicts.json --output junit.xml --output report.md\n" +
	"   benchproxy replay --revalidate agent --against verdicts.json --gates json,finish_reason --gates 'exact={\"text\":\"42\"}'\n" +
	"   benchproxy replay --revalidate candidate --gates near_tie,text_divergence --weights-id W   # against what golden add kept"

// revalidateFlags are the flags of replay that go with --revalidate only.
func revalidateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "revalidate", Usage: "judge the recorded answers of RUN or FILE again"},
		&cli.StringSliceFlag{Name: "output", Usage: "write the judgment into `FILE`: .json, .md or .xml (JUnit), packed with .gz behind it; repeatable"},
		&cli.BoolFlag{Name: "force", Usage: "replace output files that are there"},
		&cli.StringSliceFlag{Name: "gates", Usage: "judge by these `GATES` only, as a,b or as ID={...} with parameters; repeatable (default: what each request asked for); near_tie, text_divergence, vision and needle hold answers against the goldens of the store"},
		&cli.StringSliceFlag{Name: "external", Usage: "let `[NAME=]COMMAND` judge too: a program, or a JSON list of it and its arguments; repeatable"},
		&cli.DurationFlag{Name: "external-timeout", Value: replay.DefaultExternalTime, Usage: "longest `DURATION` of an external gate"},
		&cli.StringFlag{Name: "against", Usage: "list what differs from the earlier judgment in `FILE`, and keep what that failed"},
		&cli.StringFlag{Name: "weights-id", Usage: "`ID` of the weights that answered, as goldens name theirs (default: what the run knows of its engine)"},
		&cli.StringFlag{Name: "weights", Usage: "refuse a run that was not answered by the weights of this `DIGEST`"},
	}
}

// revalidateToo are the flags of replay that mean something with --revalidate, beside those for it alone.
var revalidateToo = []string{"store", "input", "json", "quiet", "admin-key-file"}

// revalidateOr is the action of replay: it judges what was recorded, or leaves the arguments to send.
func (p *program) revalidateOr(send cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		own, asked := revalidateFlags(), c.Bool("revalidate")
		for _, f := range c.Command.Flags {
			name := f.Names()[0]
			switch mine := slices.ContainsFunc(own, func(o cli.Flag) bool { return o.Names()[0] == name }); {
			case !c.IsSet(name):
			case mine && !asked:
				return usagef("--%s goes with --revalidate", name)
			case asked && !mine && !slices.Contains(revalidateToo, name):
				return usagef("--%s does not go with --revalidate, which sends nothing", name)
			}
		}
		if asked {
			return p.interruptible(p.revalidate)(c)
		}
		return send(c)
	}
}

// gateFlags are the checks that --gates names, nil for none.
func gateFlags(c *cli.Context) ([]exchange.Check, error) {
	var out []exchange.Check
	add := func(k exchange.Check) error {
		if err := gates.Validate(k); err != nil {
			return err
		}
		if g, _ := gates.Lookup(k.Gate); g.Family == "golden" && !replay.AgainstGoldens(k.Gate) {
			return usagef("gate %s asks an engine again, or needs a whole conversation, which cannot be had offline; gate --suite runs it", k.Gate)
		}
		out = append(out, k)
		return nil
	}
	for _, text := range c.StringSlice("gates") {
		if id, params, ok := strings.Cut(text, "={"); ok {
			if err := add(exchange.Check{Gate: id, Params: json.RawMessage("{" + params)}); err != nil {
				return nil, err
			}
			continue
		}
		for id := range strings.SplitSeq(text, ",") {
			if err := add(exchange.Check{Gate: strings.TrimSpace(id)}); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

var externalName = regexp.MustCompile(`^([a-z][a-z0-9_-]*)=`)

// externalEnv are the variables that an external gate gets. Keys of ours are not among them.
var externalEnv = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "PATHEXT"}

// externalGates are the commands that --external names.
func (p *program) externalGates(c *cli.Context) ([]*replay.External, error) {
	var env []string
	for _, name := range externalEnv {
		if v := p.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	limit := c.Duration("external-timeout")
	if limit <= 0 {
		return nil, usagef("--external-timeout %s is not above 0", limit)
	}
	var out []*replay.External
	for _, text := range c.StringSlice("external") {
		e, err := readExternal(text, env, limit)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o *replay.External) bool { return o.Name == e.Name }) {
			return nil, usagef("two external gates are called %q; say NAME=COMMAND", e.Name)
		}
		out = append(out, e)
	}
	return out, nil
}

func readExternal(text string, env []string, limit time.Duration) (*replay.External, error) {
	e := &replay.External{Env: env, Time: limit}
	command := text
	if m := externalName.FindString(text); m != "" {
		e.Name, command = strings.TrimSuffix(m, "="), text[len(m):]
	}
	e.Argv = []string{command}
	if strings.HasPrefix(command, "[") {
		e.Argv = nil
		if err := json.Unmarshal([]byte(command), &e.Argv); err != nil || len(e.Argv) == 0 {
			return nil, usagef("--external %s is no JSON list of a command and its arguments", command)
		}
	}
	if e.Argv[0] == "" {
		return nil, usagef("--external %q names no command", text)
	}
	if e.Name == "" {
		base := filepath.Base(e.Argv[0])
		e.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return e, nil
}

// outputForm is how a file of that name is written: json, md or xml.
func outputForm(name string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(strings.TrimSuffix(name, ".gz"))); ext {
	case ".json", ".md", ".xml":
		return ext[1:], nil
	}
	return "", usagef("--output %s: its name must end in .json, .md or .xml", name)
}

// outputNames checks the files to write before anything is read: none may be what is judged, be it under another name.
func outputNames(c *cli.Context, storeDir string) ([]string, error) {
	names := c.StringSlice("output")
	read := []string{c.Args().First()}
	if a := c.String("against"); a != "" {
		read = append(read, a)
	}
	for i, name := range names {
		if _, err := outputForm(name); err != nil {
			return nil, err
		}
		for _, other := range read {
			if sameFile(name, other) {
				return nil, usagef("--output %s is what is judged, or judged against", name)
			}
		}
		for _, other := range names[:i] {
			if filepath.Clean(name) == filepath.Clean(other) {
				return nil, usagef("--output names %s twice", name)
			}
		}
		if inside(name, storeDir) {
			return nil, usagef("--output %s is inside the store", name)
		}
	}
	return names, nil
}

// sameFile reports whether two names are one file.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// inside reports whether a file of that name would stand in a directory, or below it.
func inside(name, dir string) bool {
	at, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return false
	}
	for {
		if sameFile(at, dir) {
			return true
		}
		up := filepath.Dir(at)
		if up == at {
			return false
		}
		at = up
	}
}
