package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/report/build"
)

// completeWord is the first argument with which a completion script asks what may stand for the last of the arguments
// behind it. The scripts know nothing else, so that they never go stale.
const completeWord = "__complete"

// completionScripts are the scripts by shell. Where the program has no answer, the shell offers files.
var completionScripts = map[string]string{
	"bash": `# To use it: source <(benchproxy completion bash)
_benchproxy() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _benchproxy benchproxy
`,
	"zsh": `#compdef benchproxy
# To use it: source <(benchproxy completion zsh), after compinit
_benchproxy() {
    local -a found
    found=("${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if (( ${#found} )) && [[ -n ${found[1]} ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _benchproxy benchproxy
`,
	"fish": `# To use it: benchproxy completion fish | source
function __benchproxy_complete
    set -l words (commandline -opc)
    $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c benchproxy -a '(__benchproxy_complete)'
`,
	"powershell": `# To use it: benchproxy completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName benchproxy -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
    if (-not $wordToComplete) { $words += '""' }
    & $words[0] __complete @($words | Select-Object -Skip 1) 2>$null |
        ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`,
}

// shells are the known shells in the order in which help names them.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print the completion script of a shell",
		ArgsUsage:   strings.Join(shells, "|"),
		Description: "The first line of each script says how to use it; for bash:\n\n   source <(benchproxy completion bash)",
		Action: func(c *cli.Context) error {
			if err := exactArgs(c, "SHELL"); err != nil {
				return err
			}
			script, ok := completionScripts[c.Args().First()]
			if !ok {
				return usagef("there is no script for shell %q; there is one for %s", c.Args().First(), strings.Join(shells, ", "))
			}
			_, err := fmt.Fprint(p.Stdout, script)
			return err
		},
	}
}

// completing is the place of a command line that is to be completed.
type completing struct {
	command *cli.Command // it belongs to; one without a name is the program
	flag    string       // its value is asked for; "" for a word of its own
	last    string       // as far as it is typed
	store   string       // that the words before name, "" when they name none
}

// complete is what may stand for the last of words: values of the flag before it, flags, commands, runs of the store, or
// nothing, which leaves it to the shell.
func (p *program) complete(app *cli.App, words []string) []string {
	if len(words) == 0 || slices.Contains(words[:len(words)-1], "--") {
		return nil
	}
	at := placeIn(app, words)
	var found []string
	for _, c := range p.candidates(&at) {
		if strings.HasPrefix(c, at.last) {
			found = append(found, c)
		}
	}
	return found
}

// placeIn finds the place of the last of words.
func placeIn(app *cli.App, words []string) completing {
	at := completing{command: &cli.Command{Subcommands: app.Commands, Flags: app.Flags}, last: strings.TrimPrefix(words[len(words)-1], "=")}
	for _, w := range words[:len(words)-1] {
		switch sub := find(at.command.Subcommands, w); {
		case w == "=": // bash makes a word of it
		case at.flag != "":
			if at.flag == "store" {
				at.store = w
			}
			at.flag = ""
		case strings.HasPrefix(w, "-"):
			if takesValue(at.command.Flags, w) {
				at.flag = strings.TrimLeft(w, "-")
			}
			if dir, ok := strings.CutPrefix(w, "--store="); ok {
				at.store = dir
			}
		case sub != nil:
			at.command = sub
		}
	}
	return at
}

// candidates are all words at a place.
func (p *program) candidates(at *completing) []string {
	command, flag, last := at.command, at.flag, at.last
	switch {
	case flag == "baseline" && command.Name == "report":
		return p.runNames(at)
	case flag != "":
		return map[string][]string{"format": formats(), "durability": {"async", "sync"}, "raw": sides, "head": sides}[flag]
	case strings.HasPrefix(last, "-"):
		out := []string{"--help"}
		for _, f := range command.Flags {
			if visible(f) {
				out = append(out, "--"+f.Names()[0])
			}
		}
		slices.Sort(out)
		return out
	case command.Name == "completion":
		return shells
	case strings.Contains(command.ArgsUsage, "RUN") || command.Name == "compare":
		return p.runNames(at)
	}
	var out []string
	for _, c := range command.Subcommands {
		out = append(out, c.Name)
	}
	return out
}

// runNames are the names of the runs of the store, the newest first; ids of those without a name. A store that cannot be read
// offers none.
func (p *program) runNames(at *completing) []string {
	set := flag.NewFlagSet("complete", flag.ContinueOnError)
	set.String("store", at.store, "")
	store, err := p.openReading(cli.NewContext(nil, set, nil))
	if err != nil {
		return nil
	}
	defer store.Close()
	runs, err := store.Runs()
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range slices.Backward(runs) {
		name := r.Name
		if name == "" || build.ShellWords([]string{name}) != name { // a word of the shell can be taken as it is
			name = string(r.ID)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
