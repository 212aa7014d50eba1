package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/recorder"
)

// TestReadmeSession runs the commands of the README's console blocks, in order and over one store, and compares what they
// print with what it shows. Numbers, ids and times differ from run to run and compare by their place; "..." stands for any
// lines. A command may fail where the next one is "echo $?".
func TestReadmeSession(t *testing.T) {
	store := t.TempDir()
	ran, code := 0, 0
	steps, text := session(t), readme(t)
	weights, err := filepath.Abs(filepath.Join("testdata", "files", "tiny.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // for what they write
	files := readmeFiles(t, text, weights, engineAddress)
	for i, step := range steps {
		if step.command == askCode {
			if want := strings.Join(step.shown, ""); want != strconv.Itoa(code) {
				t.Errorf("%s ends with code %d, the README says %s", steps[i-1].command, code, want)
			}
			continue
		}
		var out, errOut bytes.Buffer
		e := env{
			Args: words(files.Replace(step.command))[1:], Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
			Getenv:  func(name string) string { return map[string]string{"BENCHPROXY_STORE": store}[name] },
			Environ: func() []string { return nil }, TTY: func(io.Writer) (int, bool) { return 0, false },
		}
		if strings.HasSuffix(step.command, " &") {
			e.Args = e.Args[:len(e.Args)-1]
			files = readmeFiles(t, text, weights, background(t, e))
			continue
		}
		if code = run(context.Background(), e); code != 0 && !(i+1 < len(steps) && steps[i+1].command == askCode) {
			t.Fatalf("%s: exit code %d\n%s", step.command, code, errOut.String())
		}
		if line, ok := follows(step.shown, out.String()); !ok {
			t.Errorf("%s does not print the README's line %q; it prints:\n%s", step.command, line, out.String())
		}
		ran++
	}
	if ran == 0 {
		t.Fatal("the README has no console block with a command")
	}
}

// words are those of a command as a shell takes them apart, as far as the README needs it: quoted ones stand in single quotes.
func words(command string) (out []string) {
	for _, w := range quotedOr.FindAllString(command, -1) {
		out = append(out, strings.Trim(w, "'"))
	}
	return out
}

var quotedOr = regexp.MustCompile(`'[^']*'|\S+`)

// askCode is how a shell tells the exit code of the command before.
const askCode = "echo $?"

// engineAddress is where the README's engine listens; the test's listens where there is room.
const engineAddress = "127.0.0.1:8092"

// background runs a command that serves until the test ends, and gives the address it serves at.
func background(t *testing.T, e env) string {
	t.Helper()
	signals, ended := make(chan os.Signal, 1), make(chan int, 1)
	var said watchedBuffer
	e.Signals, e.Stderr = signals, &said
	go func() { ended <- run(context.Background(), e) }()
	t.Cleanup(func() {
		signals <- os.Interrupt
		if code := <-ended; code != 0 {
			t.Errorf("%q ended with code %d: %s", e.Args, code, said.String())
		}
	})
	if !said.await(patience, func(text string) bool { return addresses.MatchString(text) }) {
		t.Fatalf("%q does not serve: %s", e.Args, said.String())
	}
	return strings.TrimPrefix(addresses.FindString(said.String()), "http://")
}

// readmeFiles writes the file that the README shows, and puts into its commands the paths of the files it names and the
// address at which its engine serves.
func readmeFiles(t *testing.T, text, weights, engine string) *strings.Replacer {
	t.Helper()
	_, shown, ok := strings.Cut(text, "```jsonc\n// benchproxy.json\n")
	if !ok {
		t.Fatal("the README shows no config")
	}
	shown, _, _ = strings.Cut(shown, "```")
	file := filepath.Join(t.TempDir(), "benchproxy.json")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(shown, engineAddress, engine)), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("benchproxy.json", file, "tiny.gguf", weights, engineAddress, engine,
		"benchproxy sim ", "benchproxy sim --listen 127.0.0.1:0 ")
}

type readmeStep struct {
	command string
	shown   []string
}

func session(t *testing.T) []readmeStep {
	t.Helper()
	var steps []readmeStep
	in := false
	for _, line := range strings.Split(readme(t), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```console"
		case in && strings.HasPrefix(line, "$ "):
			steps = append(steps, readmeStep{command: line[2:]})
		case in:
			last := &steps[len(steps)-1]
			last.shown = append(last.shown, line)
		}
	}
	return steps
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	ids     = regexp.MustCompile(`\b[0-9A-Z]{26}\b`)
	numbers = regexp.MustCompile(`~?[0-9][0-9.:-]*|-`)
	units   = regexp.MustCompile(`[KMG]iB|\bB\b`)
	blanks  = regexp.MustCompile(`\s+`)
)

// shape is a line without what differs between runs.
func shape(line string) string {
	line = ids.ReplaceAllString(line, "ID")
	line = units.ReplaceAllString(numbers.ReplaceAllString(line, "0"), "SIZE")
	return blanks.ReplaceAllString(strings.TrimSpace(line), " ")
}

// follows reports whether the shown lines occur in the output in this order, without gaps but where "..." stands. Flags
// that depend on the machine's load may follow a shown line's words.
func follows(shown []string, output string) (missing string, ok bool) {
	lines := strings.Split(output, "\n")
	at, gap := 0, false
	for _, want := range shown {
		if want == "..." {
			gap = true
			continue
		}
		found := false
		for at < len(lines) && !found {
			found = strings.HasPrefix(shape(lines[at]), shape(want))
			at++
			if !found && !gap {
				return want, false
			}
		}
		if !found {
			return want, false
		}
		gap = false
	}
	return "", true
}

// TestReadmeDefinesEveryMetric holds the README's table and the table of definitions together.
func TestReadmeDefinesEveryMetric(t *testing.T) {
	text := readme(t)
	metrics := measure.Metrics()
	if len(metrics) == 0 {
		t.Fatal("there are no metrics")
	}
	for _, m := range metrics {
		row := "| `" + m.Name + "` | " + m.Unit + " | " + m.Text + " |"
		if !strings.Contains(text, row) {
			t.Errorf("README lacks the row\n%s", row)
		}
	}
}

// TestReadmeListsFlagsAndDialects holds the README's tables and those of the code together.
func TestReadmeListsFlagsAndDialects(t *testing.T) {
	text := readme(t)
	flags, dialects := measure.Flags(), wire.Dialects()
	if len(flags) == 0 || len(dialects) == 0 {
		t.Fatalf("%d flags, %d dialects", len(flags), len(dialects))
	}
	for _, f := range flags {
		if row := "| `" + f.Name + "` | " + f.Text + " |"; !strings.Contains(text, row) {
			t.Errorf("README lacks the row\n%s", row)
		}
	}
	for _, name := range []string{engines.FlagModelChanged, engines.FlagModelDiffers, recorder.FlagRawKey, recorder.FlagDeriveFailed} {
		if !strings.Contains(text, "| `"+name+"` | ") {
			t.Errorf("README lacks the flag %s", name)
		}
	}
	for _, d := range dialects {
		if row := "| `" + string(d) + "` | "; !strings.Contains(text, row) {
			t.Errorf("README lacks the dialect %s", d)
		}
	}
}

// TestReadmeFlagsExist holds that every command line of the README's shell blocks names a command and flags we have.
func TestReadmeFlagsExist(t *testing.T) {
	checked, in := 0, false
	for _, line := range strings.Split(readme(t), "\n") {
		if strings.HasPrefix(line, "```") {
			in = !in
		}
		if !in {
			continue
		}
		line, _, _ = strings.Cut(line, "  #")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "benchproxy" {
			continue
		}
		app := (&program{}).app()
		commands, flags := app.Commands, app.Flags
		for _, w := range words[1:] {
			if w == "--" {
				break
			}
			if sub := find(commands, w); sub != nil {
				commands, flags = sub.Subcommands, sub.Flags
				continue
			}
			if name, ok := strings.CutPrefix(w, "--"); ok && !hasFlag(flags, name) {
				t.Errorf("%s: there is no flag --%s", line, name)
			}
		}
		if len(flags) == 0 {
			t.Errorf("%s: names no command", line)
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("found %d command lines in the README", checked)
	}
}

func hasFlag(flags []cli.Flag, name string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}
