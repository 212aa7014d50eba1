package measure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// TestEveryFlagHasItsMeaning holds the table of flags and the constants together, and every flag of a real answer to it.
func TestEveryFlagHasItsMeaning(t *testing.T) {
	known := map[string]bool{}
	for _, f := range Flags() {
		if f.Text == "" || known[f.Name] {
			t.Errorf("%q: %q", f.Name, f.Text)
		}
		known[f.Name] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "flags.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Flag") {
			constants++
			if word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value); err != nil || !known[word] {
				t.Errorf("%s = %s is not in the table", v.Names[0], v.Values[0].(*ast.BasicLit).Value)
			}
		}
		return true
	})
	if constants != len(known) || constants < 20 {
		t.Errorf("%d constants, %d flags", constants, len(known))
	}
	for _, c := range wiretest.Captures(t) {
		for _, flag := range Analyze(c.Exchange()).Flags {
			if !known[flag] {
				t.Errorf("%s has the unknown flag %s", c.ID(), flag)
			}
		}
	}
}
