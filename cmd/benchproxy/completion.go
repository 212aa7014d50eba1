package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Scripts that ask the program itself what may follow, so that they never go stale.
var completionScripts = map[string]string{
	"bash": `_benchproxy() {
    local cur words
    cur="${COMP_WORDS[COMP_CWORD]}"
    words="$("${COMP_WORDS[@]:0:COMP_CWORD}" --generate-bash-completion 2>/dev/null)"
    COMPREPLY=($(compgen -W "${words}" -- "${cur}"))
}
complete -o bashdefault -o default -F _benchproxy benchproxy
`,
	"zsh": `#compdef benchproxy
_benchproxy() {
    local -a opts
    opts=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
    _describe 'values' opts
}
compdef _benchproxy benchproxy
`,
	"fish": `function __benchproxy_complete
    set -l words (commandline -opc)
    $words --generate-bash-completion 2>/dev/null
end
complete -c benchproxy -f -a '(__benchproxy_complete)'
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName benchproxy -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = $commandAst.CommandElements | ForEach-Object { $_.ToString() }
    if ($wordToComplete) { $words = $words[0..($words.Count - 2)] }
    & $words[0] ($words | Select-Object -Skip 1) --generate-bash-completion 2>$null |
        Where-Object { $_ -like "$wordToComplete*" } |
        ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`,
}

// shells are the known shells in the order in which help names them.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: strings.Join(shells, "|"),
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
