package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's root, seen from this package.
const root = "../.."

// file is one parsed source file of the product.
type file struct {
	pkg  string // directory below the module root, "." never occurs
	name string // path below the module root
	test bool
	fset *token.FileSet
	ast  *ast.File
}

func (f file) line(p token.Pos) int { return f.fset.Position(p).Line }

// load parses the product: every Go file of this module. Modules of their own (tools, test) are not the product.
func load(t *testing.T) []file {
	t.Helper()
	var out []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "tools" || rel == "test" || rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, file{
			pkg: filepath.ToSlash(filepath.Dir(rel)), name: rel, test: strings.HasSuffix(rel, "_test.go"), fset: fset, ast: parsed,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 200 {
		t.Fatalf("found %d source files below %s: the rules would hold nothing", len(out), root)
	}
	return out
}

// selectors calls f for every pkg.Name expression whose pkg is an imported package's name. Import names are resolved by
// the file's own import list, so a local variable called time is not mistaken for the package.
func selectors(f file, visit func(importPath, name string, at token.Pos)) {
	imports := map[string]string{}
	for _, im := range f.ast.Imports {
		path := strings.Trim(im.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if im.Name != nil {
			name = im.Name.Name
		}
		imports[name] = path
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := s.X.(*ast.Ident); ok {
			if path, ok := imports[id.Name]; ok {
				visit(path, s.Sel.Name, s.Pos())
			}
		}
		return true
	})
}
