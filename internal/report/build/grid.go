package build

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Grid is the cells of a matrix with the order in which engines and backends stand in tables.
type Grid struct {
	Cells      []Cell
	Subject    string   // engine that the others are held against
	References []string // engines it is divided by
	Engine     func(id string) string

	index  gridIndex
	proofs proofs
}

// backends are those with a name for people, in the order of columns; others follow as they come.
var backends = [...]struct{ id, name string }{
	{"ggml_cuda", "GGML CUDA"}, {"gpu", "GPU"}, {"ggml_vulkan", "GGML Vulkan"}, {"ggml_metal", "GGML Metal"}, {"cuda", "CUDA"},
	{"mlx", "MLX"}, {"ggml_cpu", "GGML CPU"}, {"cpu", "CPU"},
}

// The engine whose harness had its own name stand in every ratio, and those it was divided by.
const defaultSubject = "tensorsharp"

var defaultReferences = [...]string{"llamacpp", "vllm"}

// NewGrid orders cells. An empty subject is TensorSharp where it has cells, else the engine of the first cell; without
// references these are llama.cpp and vLLM for TensorSharp, and all others for another subject. name gives engines their names
// for people.
func NewGrid(cells []Cell, subject string, references []string, name func(id string) string) *Grid {
	g := &Grid{Cells: cells, Subject: subject, References: references, Engine: name, index: indexOf(cells), proofs: proofs{}}
	engines := g.engines()
	if g.Subject == "" && len(engines) > 0 {
		g.Subject = engines[0]
		if slices.Contains(engines, defaultSubject) {
			g.Subject = defaultSubject
		}
	}
	if len(references) > 0 {
		return g
	}
	if g.Subject == defaultSubject {
		g.References = defaultReferences[:]
		return g
	}
	for _, e := range engines {
		if e != g.Subject {
			g.References = append(g.References, e)
		}
	}
	return g
}

// engines are those of the cells, the subject first, then the references, then as they come.
func (g *Grid) engines() []string {
	var out []string
	for _, e := range slices.Concat([]string{g.Subject}, g.References, g.index.engines.order) {
		if g.index.engines.has[e] && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// column is one configuration, which has a column in the tables.
type column struct {
	source, engine, backend string
	tp                      int
}

func (c *Cell) column() column { return column{c.Source, c.Engine, c.Backend, c.TP} }

// sources are those of the cells in the order given: the first is that of the headline.
func (g *Grid) sources() []string { return g.index.sources.order }

func (g *Grid) models() []string { return g.index.models.order }

// scenarios are those of a model.
func (g *Grid) scenarios(model string) []string { return g.index.scenarios[model].order }

// columns are the configurations with baseline cells of the model, in the order of the tables.
func (g *Grid) columns(model string) []column { return g.ordered(g.index.columns[model].order) }

// ordered are configurations in the order of the tables.
func (g *Grid) ordered(columns []column) []column {
	out := slices.Clone(columns)
	sources, engines := g.sources(), g.engines()
	slices.SortStableFunc(out, func(a, b column) int {
		return cmp.Or(slices.Index(sources, a.source)-slices.Index(sources, b.source), slices.Index(engines, a.engine)-slices.Index(engines, b.engine),
			backendRank(a.backend)-backendRank(b.backend), a.tp-b.tp)
	})
	return out
}

func backendRank(id string) int {
	if i := slices.IndexFunc(backends[:], func(b struct{ id, name string }) bool { return b.id == id }); i >= 0 {
		return i
	}
	return len(backends)
}

// cell is the one of a configuration and scenario that pick takes; nil when there is none. Of several the last one counts:
// result files of one name replace each other.
func (g *Grid) cell(col column, model, scenario string, pick func(*Cell) bool) *Cell {
	var found *Cell
	for _, c := range g.index.at[place{col, model, scenario}] {
		if pick(c) {
			found = c
		}
	}
	return found
}

// marks collects the footnotes of a table.
type marks struct{ notes []string }

// sign is the raised number that leads to the note, which is written once.
func (m *marks) sign(note string) string {
	i := slices.Index(m.notes, note)
	if i < 0 {
		i = len(m.notes)
		m.notes = append(m.notes, note)
	}
	return raised.Replace(strconv.Itoa(i + 1))
}

var raised = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// unmarked is a label without its marks, for places that have no footnotes.
func unmarked(label string) string {
	words := slices.DeleteFunc(strings.Fields(label), func(w string) bool { return strings.Trim(w, "⁰¹²³⁴⁵⁶⁷⁸⁹") == "" })
	return strings.Join(words, " ")
}

// lines are the footnotes with their marks.
func (m *marks) lines() []string {
	var out []string
	for _, n := range m.notes {
		out = append(out, m.sign(n)+" "+n)
	}
	return out
}

// Footnotes of columns.
const (
	noteFallback = "a GPU was asked for and the engine ran on the CPU in at least one of its requests"
	noteDevice   = "the device it ran on is not on record"
	noteOneCPU   = "of llama.cpp, cpu and ggml_cpu are one configuration (no layer on a GPU): these columns repeat the same thing"
	notePinned   = "its backend pins an offload of experts itself, though its cells are recorded with 0 offloaded layers"
)

// label is the head of a column, with the marks of what a reader must know of its cells of the model; m is nil for no marks.
func (g *Grid) label(col column, model string, m *marks) string {
	words := []string{g.Engine(col.engine)}
	if col.backend != "" {
		words = append(words, backendName(col.backend))
	}
	if col.tp > 1 {
		words = append(words, fmt.Sprintf("tp%d", col.tp))
	}
	label := strings.Join(words, " · ")
	if all := g.sources(); len(all) > 1 && col.source != all[0] {
		label += " [" + col.source + "]"
	}
	if m == nil {
		return label
	}
	for _, note := range g.notesOf(col, model) {
		label += " " + m.sign(note)
	}
	return label
}

func backendName(id string) string {
	if i := backendRank(id); i < len(backends) {
		return backends[i].name
	}
	return id
}

// notesOf is what a reader must know of the cells of a column, of one model or, for "", of all.
func (g *Grid) notesOf(col column, model string) (notes []string) {
	has := g.index.devices[deviceKey{col, model}]
	if has.fallback {
		notes = append(notes, noteFallback)
	}
	if has.unknown {
		notes = append(notes, noteDevice)
	}
	twin := column{col.source, col.engine, map[string]string{"cpu": "ggml_cpu", "ggml_cpu": "cpu"}[col.backend], col.tp}
	if _, there := g.index.devices[deviceKey{twin, ""}]; there && col.engine == "llamacpp" {
		notes = append(notes, noteOneCPU)
	}
	if strings.Contains(col.backend, "cpu_moe") || strings.Contains(col.backend, "ncmoe") {
		notes = append(notes, notePinned)
	}
	return notes
}

// shown is a value of a cell in a table: a word or a dash where there is none, and why.
func shown(c *Cell, value float64, field string) report.Cell {
	switch {
	case c == nil:
		return report.AbsentAs("n/a", "no_record")
	case c.unasked():
		return report.Absent(exchange.Reason(c.Status)).Titled(c.Detail)
	case c.Status == StatusFail:
		return report.AbsentAs("fail", "failed").Titled(c.Detail).Toned(report.Bad)
	case c.Status != StatusOK:
		return report.AbsentAs(c.Status, "not_ok").Titled(c.Detail)
	case c.partial():
		return report.AbsentAs(fmt.Sprintf("partial %d/%d", c.Turns, c.TurnsExpected), "partial").Titled(c.Detail).Toned(report.Marked)
	case value <= 0:
		if why := c.Absent[field]; why != "" {
			return report.Absent(why).Of(c.Exchanges...)
		}
		return report.Absent("not_measured").Of(c.Exchanges...)
	}
	out := report.Number(value).Of(c.Exchanges...)
	if c.Estimated && field == fieldDecode {
		out = out.Based(exchange.BasisEstimated)
	}
	if s, ok := c.Spreads[field]; ok {
		kind := report.SpreadInterval
		if s.Range {
			kind = report.SpreadRange
		}
		out = out.Spread(report.Spread{Lo: s.Lo, Hi: s.Hi, N: s.N, Kind: kind})
	}
	return out
}
