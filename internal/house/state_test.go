package house

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestClockIsReadInOnePlace holds that internal/clock is the only reader of time.
func TestClockIsReadInOnePlace(t *testing.T) {
	for _, f := range load(t) {
		if f.pkg == "internal/clock" {
			continue
		}
		selectors(f, func(path, name string, at token.Pos) {
			if path == "time" && slices.Contains([]string{"Now", "Since", "Until"}, name) {
				t.Errorf("%s:%d reads time.%s; ask internal/clock", f.name, f.line(at), name)
			}
		})
	}
}

// processFacilities belong to package main alone; everything else is handed what it needs.
var processFacilities = []string{
	"Exit", "Args", "Getenv", "LookupEnv", "Environ", "Setenv", "Stdin", "Stdout", "Stderr", "UserHomeDir", "UserConfigDir", "Getwd",
}

// fileFacilities touch files or processes.
var fileFacilities = []string{
	"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll",
	"Rename", "ReadDir", "Stat", "Lstat", "Chmod", "Truncate", "Link", "Symlink", "StartProcess", "FindProcess", "DirFS",
}

var filePackages = []string{
	"recorder", "engines/launch", "engines/weights", "engines/models", "engines/host",
	"replay", "replay/matrix", "replay/bench", "internal/report", "cmd/benchproxy",
}

func TestProcessAndFilesHaveTheirPlace(t *testing.T) {
	for _, f := range load(t) {
		if f.test || f.pkg == "cmd/benchproxy" {
			continue
		}
		selectors(f, func(path, name string, at token.Pos) {
			if path != "os" {
				return
			}
			if slices.Contains(processFacilities, name) {
				t.Errorf("%s:%d uses os.%s, which belongs to cmd", f.name, f.line(at), name)
			}
			if slices.Contains(fileFacilities, name) && !slices.Contains(filePackages, f.pkg) {
				t.Errorf("%s:%d uses os.%s; files are for %s", f.name, f.line(at), name, strings.Join(filePackages, ", "))
			}
		})
		for _, im := range f.ast.Imports {
			if im.Path.Value == `"os/exec"` && !slices.Contains(filePackages, f.pkg) {
				t.Errorf("%s imports os/exec; processes are for %s", f.name, strings.Join(filePackages, ", "))
			}
		}
	}
}

// TestNoPackageStateChanges holds that a package-level variable is never assigned again: tables and sentinels are fine,
// state is not. (A sync.Pool is used through its methods and so passes.)
func TestNoPackageStateChanges(t *testing.T) {
	files := load(t)
	vars := map[string]map[string]bool{} // package -> its variables
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if vars[f.pkg] == nil {
						vars[f.pkg] = map[string]bool{}
					}
					vars[f.pkg][n.Name] = true
				}
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
			local := declared(fn)
			ast.Inspect(fn, func(n ast.Node) bool {
				for _, id := range assigned(n) {
					if vars[f.pkg][id.Name] && !local[id.Name] {
						t.Errorf("%s:%d: %s changes the package variable %s", f.name, f.line(id.Pos()), fn.Name.Name, id.Name)
					}
				}
				return true
			})
		}
	}
}

// assigned are the variables that a statement writes to, directly, by index or by field.
func assigned(n ast.Node) []*ast.Ident {
	var targets []ast.Expr
	switch s := n.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			targets = s.Lhs
		}
	case *ast.IncDecStmt:
		targets = []ast.Expr{s.X}
	}
	var out []*ast.Ident
	for _, e := range targets {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.Ident:
				out = append(out, x)
			}
			break
		}
	}
	return out
}

// declared are the names a function declares itself, which hide package variables of the same name.
func declared(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	add := func(fl *ast.FieldList) {
		if fl == nil {
			return
		}
		for _, f := range fl.List {
			for _, n := range f.Names {
				out[n.Name] = true
			}
		}
	}
	add(fn.Recv)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.FuncType:
			add(s.Params)
			add(s.Results)
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, e := range s.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						out[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{s.Key, s.Value} {
				if id, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE {
					out[id.Name] = true
				}
			}
		case *ast.ValueSpec:
			for _, id := range s.Names {
				out[id.Name] = true
			}
		}
		return true
	})
	return out
}
