package house

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/benchproxy/benchproxy/"

// layers are the packages of the module from the bottom up. A package may import packages of lower rows only; siblings
// of one row do not know each other.
var layers = [][]string{
	{"internal/exchange", "internal/clock"},
	{"internal/wire", "internal/canon", "internal/stat", "internal/redact", "internal/strict", "gates/pysource"},
	{"internal/measure", "engines", "internal/chart"},
	{"gates", "proxy", "recorder", "engines/launch", "engines/models", "engines/host", "engines/weights", "internal/telemetry", "internal/compare", "internal/audit", "internal/sim", "replay/scenario", "replay/bridge", "replay/matrix"},
	{"replay", "internal/selftest", "internal/web", "internal/report"},
	{"replay/bench", "internal/report/build"},
	{"cmd/benchproxy"},
}

// forbidden are pairs that the rows would allow and the design does not.
var forbidden = map[string][]string{
	"proxy":             {"internal/wire", "internal/canon", "internal/measure", "internal/stat"}, // the measured path parses nothing
	"recorder":          {"internal/measure"},                                                     // what a row means is handed in
	"replay":            {"recorder"},                                                             // replay knows a Source interface
	"internal/selftest": {"recorder"},                                                             // records are handed in
}

// testSupport are packages that only tests import; they stand outside the layers.
var testSupport = []string{"internal/house", "internal/e2e", "internal/wire/wiretest", "internal/measure/reportcases"}

// doors names the only packages that may import a library. Tests may import any library of this table, and the ones of
// testLibraries.
var doors = map[string][]string{
	"github.com/valyala/fasthttp":             {"proxy"},
	"github.com/dgraph-io/badger/v4":          {"recorder"},
	"github.com/klauspost/compress":           {"recorder", "internal/wire", "replay"}, // replay unpacks workload files
	"github.com/andybalholm/brotli":           {"internal/wire"},
	"github.com/valyala/fastjson":             {"internal/wire", "internal/canon"},
	"github.com/cespare/xxhash/v2":            {"internal/canon"},
	"github.com/gpustack/gguf-parser-go":      {"engines/weights"},
	"github.com/parquet-go/parquet-go":        {"replay"},
	"github.com/urfave/cli/v2":                {"cmd/benchproxy"},
	"github.com/mattn/go-runewidth":           {"cmd/benchproxy"},
	"github.com/santhosh-tekuri/jsonschema":   {"gates"},
	"github.com/HdrHistogram/hdrhistogram-go": {"internal/stat"},
	"go.opentelemetry.io/otel":                {"internal/telemetry"},
	"github.com/go-logr/logr":                 {"internal/telemetry"}, // the log of the SDK
	"github.com/prometheus/client_golang":     {"internal/telemetry"},
	"golang.org/x/term":                       {"cmd/benchproxy"},
	"golang.org/x/sys":                        {"proxy", "recorder", "cmd/benchproxy", "engines/launch", "engines/models"},
}

var testLibraries = []string{"github.com/google/go-cmp", "go.uber.org/goleak", "github.com/rogpeppe/go-internal", "go.yaml.in/yaml/v3"}

func rank(pkg string) int {
	return slices.IndexFunc(layers, func(row []string) bool { return slices.Contains(row, pkg) })
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range load(t) {
		if slices.Contains(testSupport, f.pkg) {
			continue
		}
		from := rank(f.pkg)
		if from < 0 {
			t.Errorf("%s: package %s has no row in the layer table", f.name, f.pkg)
			continue
		}
		for _, im := range f.ast.Imports {
			path := strings.Trim(im.Path.Value, `"`)
			to, ours := strings.CutPrefix(path, module)
			if !ours || to == f.pkg {
				continue
			}
			if slices.Contains(testSupport, to) {
				if !f.test {
					t.Errorf("%s imports %s, which is for tests", f.name, to)
				}
				continue
			}
			if f.test && f.pkg != "internal/exchange" && f.pkg != "internal/clock" {
				continue // a test may use what stands beside or above its package, as long as no cycle forms
			}
			if rank(to) >= from || slices.Contains(forbidden[f.pkg], to) {
				t.Errorf("%s imports %s: imports point down only", f.name, to)
			}
		}
	}
}

func TestLibrariesHaveOneDoor(t *testing.T) {
	for _, f := range load(t) {
		for _, im := range f.ast.Imports {
			path := strings.Trim(im.Path.Value, `"`)
			first, _, _ := strings.Cut(path, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(path, module) {
				continue
			}
			if f.test && slices.ContainsFunc(testLibraries, func(l string) bool { return under(path, l) }) {
				continue
			}
			if !slices.ContainsFunc(doorsOf(path), func(p string) bool { return f.test || p == f.pkg }) {
				t.Errorf("%s imports %s behind another door than its own", f.name, path)
			}
		}
	}
}

func doorsOf(path string) []string {
	for lib, pkgs := range doors {
		if under(path, lib) {
			return pkgs
		}
	}
	return nil
}

func under(path, lib string) bool { return path == lib || strings.HasPrefix(path, lib+"/") }
