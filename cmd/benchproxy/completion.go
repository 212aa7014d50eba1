package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
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

// complete is what may stand for the last of words: values of the flag before it, flags, commands, or nothing, which
// leaves it to the shell.
func complete(app *cli.App, words []string) []string {
	if len(words) == 0 || slices.Contains(words[:len(words)-1], "--") {
		return nil
	}
	last, flag := strings.TrimPrefix(words[len(words)-1], "="), ""
	command := &cli.Command{Subcommands: app.Commands, Flags: app.Flags}
	for _, w := range words[:len(words)-1] {
		switch sub := find(command.Subcommands, w); {
		case w == "=": // bash makes a word of it
		case flag != "":
			flag = ""
		case strings.HasPrefix(w, "-"):
			if takesValue(command.Flags, w) {
				flag = strings.TrimLeft(w, "-")
			}
		case sub != nil:
			command = sub
		}
	}
	var found []string
	for _, c := range candidates(command, flag, last) {
		if strings.HasPrefix(c, last) {
			found = append(found, c)
		}
	}
	return found
}

// candidates are all words at the place of last.
func candidates(command *cli.Command, flag, last string) []string {
	switch {
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
	}
	var out []string
	for _, c := range command.Subcommands {
		out = append(out, c.Name)
	}
	return out
}
