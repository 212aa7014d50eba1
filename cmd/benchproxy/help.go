package main

import (
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/urfave/cli/v2"
)

// The columns of the options in a help text. The library's own layout has lines of any width.
const (
	helpWidth = 100
	helpFlags = 30 // where the text begins; a longer flag has a line to itself
)

// commandHelp is the library's template of a command's help, without the options: optionsHelp lays them out.
const commandHelp = `NAME:
   {{template "helpNameTemplate" .}}

USAGE:
   {{template "usageTemplate" .}}{{if .Description}}

DESCRIPTION:
   {{template "descriptionTemplate" .}}{{end}}{{if .VisibleCommands}}

COMMANDS:{{template "visibleCommandCategoryTemplate" .}}{{end}}

`

// optionsHelp lists flags: name and placeholder, what they are for, and the default where there is one.
func optionsHelp(flags []cli.Flag) string {
	var b strings.Builder
	b.WriteString("OPTIONS:\n")
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && visible(f) {
			name, text := describeFlag(d)
			hangingText(&b, "   "+name, text)
		}
	}
	hangingText(&b, "   --help, -h", "show this help")
	return b.String()
}

// visible reports whether a flag is for people; the others are how the program calls itself.
func visible(f cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return !ok || v.IsVisible()
}

// describeFlag is a flag's left and right column. The word in backquotes of its usage stands for the value.
func describeFlag(f cli.DocGenerationFlag) (name, text string) {
	var names []string
	for _, n := range f.Names() {
		if len(n) > 1 {
			n = "-" + n
		}
		names = append(names, "-"+n)
	}
	name, text = strings.Join(names, ", "), f.GetUsage()
	if before, rest, ok := strings.Cut(text, "`"); ok {
		word, after, _ := strings.Cut(rest, "`")
		name, text = name+" "+word, before+word+after
	}
	if value := strings.Trim(f.GetDefaultText(), `"`); f.TakesValue() && value != "" && value != "0" && value != "0s" {
		text += " (default: " + value + ")"
	}
	return name, text
}

// hangingText writes label, and beside it text, which keeps to its column over as many lines as it takes.
func hangingText(b *strings.Builder, label, text string) {
	b.WriteString(label)
	at := runewidth.StringWidth(label)
	if at > helpFlags-2 {
		b.WriteByte('\n')
		at = 0
	}
	for _, word := range strings.Fields(text) {
		switch width := runewidth.StringWidth(word); {
		case at < helpFlags:
			b.WriteString(strings.Repeat(" ", helpFlags-at))
			at = helpFlags + width
		case at+1+width > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", helpFlags))
			at = helpFlags + width
		default:
			b.WriteByte(' ')
			at += 1 + width
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
}
