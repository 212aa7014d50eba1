package replay

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestRevalidationCannotSend holds that no file of a revalidation knows a connection, a client or the proxy: nothing
// there can send a request.
func TestRevalidationCannotSend(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"revalidate*.go", "external*.go", "../cmd/benchproxy/revalidate*.go", "../gates/*.go", "../internal/report/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			checked++
			for _, im := range f.Imports {
				path := strings.Trim(im.Path.Value, `"`)
				if path == "net" || path == "crypto/tls" || strings.HasSuffix(path, "/proxy") || strings.HasSuffix(path, "/fasthttp") ||
					strings.HasPrefix(path, "net/") && path != "net/url" && !strings.HasPrefix(name, "../gates") {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d files", checked)
	}
}
