package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what is looked at of a workflow of GitHub Actions.
type workflow struct {
	Name string `yaml:"name"`
	On   any    `yaml:"on"`
	Jobs map[string]struct {
		RunsOn any            `yaml:"runs-on"`
		Env    map[string]any `yaml:"env"`
		Steps  []struct {
			Name string `yaml:"name"`
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// TestWorkflowsOfTheDocs holds that the example workflows are YAML of that form, and that every command of benchproxy in
// them is there, with its flags.
func TestWorkflowsOfTheDocs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "ci", "*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var w workflow
			if err := yaml.Unmarshal(raw, &w); err != nil {
				t.Fatal(err)
			}
			if w.Name == "" || w.On == nil || len(w.Jobs) == 0 {
				t.Fatalf("it has no name, no trigger or no job: %+v", w)
			}
			var used []string
			for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
				job := w.Jobs[name]
				if job.RunsOn == nil {
					t.Errorf("job %s runs nowhere", name)
				}
				for i, step := range job.Steps {
					if (step.Uses == "") == (step.Run == "") {
						t.Errorf("step %d of %s needs one of uses and run", i, name)
					}
					for _, words := range ourCommands(step.Run) {
						used = append(used, words[0])
						holdCommand(t, words)
					}
				}
			}
			if !slices.Contains(used, "bench") && !slices.Contains(used, "gate") {
				t.Errorf("it measures and judges nothing: %v", used)
			}
		})
	}
}

// holdCommand holds that a command line parses, down to the values of its flags. Its arguments are left out: help takes
// none.
func holdCommand(t *testing.T, words []string) {
	t.Helper()
	app := (&program{}).app()
	commands, flags := app.Commands, app.Flags
	var kept []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch sub := find(commands, word); {
		case strings.HasPrefix(word, "-"):
			kept = append(kept, word)
			if takesValue(flags, word) && i+1 < len(words) {
				i++
				kept = append(kept, words[i])
			}
		case sub != nil:
			kept = append(kept, word)
			commands, flags = sub.Subcommands, sub.Flags
		case len(commands) > 0:
			t.Errorf("there is no command %q in benchproxy %s", word, strings.Join(words, " "))
		}
	}
	if code, _, errOut := invoke(t, append(kept, "--help")...); code != 0 {
		t.Errorf("benchproxy %s: %s", strings.Join(words, " "), errOut)
	}
}

// ourCommands are the command lines of benchproxy in a script, without the name: at the beginning of a line, and where a
// client's stands behind "--".
func ourCommands(script string) (out [][]string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.Lines(script) {
		words := scriptWords(line)
		for len(words) > 1 && words[0] == "benchproxy" {
			words = words[1:]
			next := slices.Index(words, "--")
			if next < 0 {
				out = append(out, words)
				break
			}
			out = append(out, words[:next])
			words = words[next+1:]
		}
	}
	return out
}

// scriptWords are the words of the first command of a line. Variables stay as they are.
func scriptWords(line string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			end()
		case strings.ContainsRune("|;&<>#", c):
			end()
			return words
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	end()
	return words
}

func TestCommandsOfAScript(t *testing.T) {
	got := ourCommands("echo benchproxy no\nbenchproxy a --x \"b c\" > f\n  benchproxy r --s 'p<q' -- \\\n  benchproxy g --t $U | cat\n# benchproxy none\n")
	want := [][]string{{"a", "--x", "b c"}, {"r", "--s", "p<q"}, {"g", "--t", "$U"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}
