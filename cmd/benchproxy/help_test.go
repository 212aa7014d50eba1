package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
)

// invoke runs the program without a terminal, and gives what it printed.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	store := t.TempDir()
	code = run(context.Background(), env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		Getenv:  func(name string) string { return map[string]string{"BENCHPROXY_STORE": store}[name] },
		Environ: func() []string { return nil }, TTY: func(io.Writer) (int, bool) { return 0, false },
	})
	return code, out.String(), errOut.String()
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct{ words, want []string }{
		{[]string{"st"}, []string{"store"}},
		{[]string{"store", "s"}, []string{"show", "stats"}},
		{[]string{"store", "ls", "--js"}, []string{"--json"}},
		{[]string{"store", "show", "demo/1", "--r"}, []string{"--raw"}},
		{[]string{"store", "show", "--raw", ""}, []string{"request", "response"}},
		{[]string{"store", "show", "--raw", "=", "resp"}, []string{"response"}},
		{[]string{"store", "show", "--raw", "="}, []string{"request", "response"}},
		{[]string{"record", "--durability", "s"}, []string{"sync"}},
		{[]string{"record", "--upstream", "store", "--keep"}, []string{"--keep-host"}}, // the value of a flag is no command
		{[]string{"record", "--quiet", "--keep"}, []string{"--keep-host"}},
		{[]string{"record", "--store", ""}, nil}, // the shell offers files
		{[]string{"record", "--", "--ke"}, nil},
		{[]string{"completion", "f"}, []string{"fish"}},
		{[]string{"--ver"}, []string{"--version"}},
		{[]string{"nonsense", ""}, []string{"demo", "record", "proxy", "replay", "bench", "compare", "report", "audit", "store", "gate", "golden", "validate", "engines", "config", "models", "ui", "sim", "selftest", "completion", "version"}},
		{nil, nil},
	} {
		code, out, errOut := invoke(t, append([]string{completeWord}, c.words...)...)
		if code != 0 || errOut != "" {
			t.Errorf("%q: code %d, %s", c.words, code, errOut)
		}
		if diff := cmp.Diff(strings.Join(c.want, "\n"), strings.TrimSpace(out)); diff != "" {
			t.Errorf("%q: -want +got\n%s", c.words, diff)
		}
	}
}

// TestHelpFits holds that every help text names each flag and stays within the width of a terminal.
func TestHelpFits(t *testing.T) {
	app := (&program{}).app()
	paths := [][]string{}
	for _, c := range app.Commands {
		paths = append(paths, []string{c.Name})
		for _, s := range c.Subcommands {
			paths = append(paths, []string{c.Name, s.Name})
		}
	}
	if len(paths) < 10 {
		t.Fatalf("only %d commands", len(paths))
	}
	for _, path := range paths {
		code, out, errOut := invoke(t, append(path, "--help")...)
		if code != 0 || errOut != "" {
			t.Fatalf("%q --help: code %d, %s", path, code, errOut)
		}
		_, options, ok := strings.Cut(out, "\nOPTIONS:\n")
		if !ok || !strings.Contains(options, "--help, -h") {
			t.Errorf("%q --help has no options:\n%s", path, out)
		}
		for line := range strings.SplitSeq(options, "\n") {
			if runewidth.StringWidth(line) > helpWidth {
				t.Errorf("%q --help: a line of %d columns: %s", path, runewidth.StringWidth(line), line)
			}
		}
	}
	if _, out, _ := invoke(t, "record", "--help"); !strings.Contains(out, "--idle-timeout DURATION    longest DURATION of silence inside a body (default: 10m0s)") ||
		strings.Contains(out, "default: false") || strings.Contains(out, "default: 0s") {
		t.Errorf("record --help:\n%s", out)
	}
}
