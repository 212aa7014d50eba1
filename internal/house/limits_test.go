package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunction = 80
	maxFile     = 500
	maxParams   = 5
)

func TestLengths(t *testing.T) {
	for _, f := range load(t) {
		if n := f.line(f.ast.FileEnd); n > maxFile+1 {
			t.Errorf("%s has %d lines, the limit is %d", f.name, n, maxFile)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, the limit is %d", f.name, fn.Name.Name, n, maxFunction)
			}
			if n := fn.Type.Params.NumFields(); n > maxParams {
				t.Errorf("%s: %s has %d parameters, the limit is %d", f.name, fn.Name.Name, n, maxParams)
			}
		}
	}
}

// TestEveryPackageHasADoc holds that doc.go states what a package is for, and that nothing else carries a package comment.
func TestEveryPackageHasADoc(t *testing.T) {
	docs, pkgs := map[string]bool{}, map[string]bool{}
	for _, f := range load(t) {
		pkgs[f.pkg] = true
		if f.ast.Doc == nil {
			continue
		}
		if !strings.HasSuffix(f.name, "/doc.go") {
			t.Errorf("%s carries a package comment; its place is doc.go", f.name)
		}
		docs[f.pkg] = true
	}
	for p := range pkgs {
		if !docs[p] {
			t.Errorf("package %s has no doc.go with a package comment", p)
		}
	}
}

// TestGoroutinesHaveAnOwner holds that a go statement stands in a method of a type that can be ended: one with Close,
// Run or Shutdown.
func TestGoroutinesHaveAnOwner(t *testing.T) {
	files := load(t)
	closable := map[string]bool{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && slices.Contains([]string{"Close", "Run", "Shutdown"}, fn.Name.Name) {
				closable[f.pkg+"."+receiver(fn)] = true
			}
		}
	}
	for _, f := range files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if startsGoroutine(n) && !closable[f.pkg+"."+receiver(fn)] {
					t.Errorf("%s:%d: %s starts a goroutine, and no Close, Run or Shutdown of %q ends it",
						f.name, f.line(n.Pos()), fn.Name.Name, receiver(fn))
				}
				return true
			})
		}
	}
}

// startsGoroutine is true for a go statement and for sync.WaitGroup's Go.
func startsGoroutine(n ast.Node) bool {
	if _, ok := n.(*ast.GoStmt); ok {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Go"
}

// receiver is the name of a method's type, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
