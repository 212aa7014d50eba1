package build

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// The statuses of a cell.
const (
	StatusOK      = "ok"
	StatusFail    = "fail"
	StatusSkipped = "skipped"
	// StatusUnsupported is of what the engine said that it lacks.
	StatusUnsupported = "unsupported"
)

// Cell is what one engine did in one scenario. Rates and times that were not measured are 0, as in the result files of
// other harnesses.
type Cell struct {
	Source string // of the cell: a directory or run; cells of different sources are not divided by each other

	Engine, Backend, Model, Scenario string
	Status                           string // ok, fail, skipped, unsupported
	Detail                           string // why it failed or was skipped, or what to know of it
	MTP                              bool
	Method                           string // of drafts, where there is more than one
	Depth                            int    // tokens that are drafted at a time; 0 when it is not stated
	Drafter                          string // file or model that drafts; "" when it is not stated
	TP, CPUMoELayers, CPUMoEThreads  int    // layers: -1 is all of them
	Concurrency                      int

	PromptTokens, CompletionTokens   int
	TTFTMS, PrefillTPS, DecodeTPS    float64
	TotalWallMS                      float64
	AggregateTPS, SteadyTPS, Batch   float64 // of requests that ran together; see internal/measure
	EnginePrefillTPS, EngineDecode   float64 // by the engine's own clock
	RequestsOK, Turns, TurnsExpected int
	FinishReason                     string
	ToolCallOK                       *bool // null where no tool was to be called
	Output                           string

	DecodeSource    string // stream_window, engine, request_wall; "" when unknown
	Estimated       bool   // tokens are counted events
	RequestedDevice string
	ObservedDevice  string
	CPUFallback     *bool // of any of its requests; null when unknown
	Acceptance      *float64
	Flags           []string // not_speculating, short_answer ...
	ModelMemory     int64    // bytes; 0 when unknown
	Spreads         map[string]Spread
	Version         string                     // of the engine, as it says; its build where the file names one
	Weights         string                     // name or digest
	Harness         string                     // that wrote the file
	Command         string                     // that started the engine, "" when the file does not say
	Plan            string                     // hash of what was sent
	RunID           string                     // of the store, with the exchanges
	Absent          map[string]exchange.Reason // why a field is 0
	Exchanges       []exchange.ID
}

// Spread is how far the samples of a metric lie apart, by the name of its field in result files.
type Spread struct {
	Lo, Hi  float64
	N       int
	Range   bool      // Lo and Hi are the least and the largest sample, not the ends of an interval
	Median  *float64  // of the samples, not rounded; nil where the file does not say
	Samples []float64 // one a repeat; nil where the file has none
}

// Names of the metrics of a cell in result files.
const (
	fieldTTFT      = "ttft_ms"
	fieldPrefill   = "prefill_tps"
	fieldDecode    = "decode_tps"
	fieldAggregate = "aggregate_decode_tps"
	fieldSteady    = "steady_tps"
	fieldBatch     = "batch_tps"
)

// errNoCell says that a JSON document is no result of a cell.
var errNoCell = errors.New("it is no result of a cell: engine, model, scenario and status are missing")

// unknownDevice is the word for a device that nothing showed.
const unknownDevice = "unknown"

// methodNone is the word for speculative decoding being off, beside cells of methods.
const methodNone = "none"

// sourceServer is the word of TensorSharp's reports for a rate that the engine states.
const sourceServer = "server"

// ParseCell reads a result file: that of a matrix of ours, or of another harness whose fields have these names. Fields that
// are unknown, missing or of another type are left out. The error says that it is none.
func ParseCell(data []byte) (Cell, error) {
	f, err := readFields(data)
	if err != nil {
		return Cell{}, errNoCell
	}
	c := Cell{
		Engine: f.text("engine"), Backend: f.text("backend"), Model: f.text("model"), Scenario: f.text("scenario"),
		Status: f.text("status"), Detail: f.text("detail"), MTP: f.flag("mtp"),
		TP: max(f.whole("tp"), 1), CPUMoELayers: f.whole("cpu_moe_layers"), CPUMoEThreads: f.whole("cpu_moe_threads"), Concurrency: max(f.whole("concurrency"), 1),
		PromptTokens: f.whole("prompt_tokens"), CompletionTokens: f.whole("completion_tokens"),
		TTFTMS: f.number(fieldTTFT), PrefillTPS: f.number(fieldPrefill), DecodeTPS: f.number(fieldDecode), TotalWallMS: f.number("total_wall_ms"),
		AggregateTPS: f.number(fieldAggregate), SteadyTPS: f.number(fieldSteady), Batch: f.number(fieldBatch),
		EnginePrefillTPS: f.number("engine_prefill_tps"), EngineDecode: f.number("engine_decode_tps"),
		RequestsOK: f.whole("requests_ok"), Turns: f.whole("turns"), TurnsExpected: f.whole("turns_expected"),
		FinishReason: f.text("finish_reason"), ToolCallOK: f.maybe("tool_call_ok"), Output: f.text("output_text"),
		DecodeSource: f.first("decode_source", "decode_timing_source"), Estimated: f.text("usage_basis") == string(exchange.BasisEstimated),
		RequestedDevice: f.text("requested_device"), ObservedDevice: f.text("observed_device"), CPUFallback: f.maybe("cpu_fallback"),
		ModelMemory: f.memory(), Exchanges: f.ids("exchanges"), Method: f.text("method"), Depth: f.whole("depth"), Drafter: f.drafter(),
	}
	_ = json.Unmarshal(f["absent"], &c.Absent) // what is no object of reasons gives none
	_ = json.Unmarshal(f["flags"], &c.Flags)
	c.Spreads = f.spreads()
	c.origin(f)
	for field, v := range map[string]*float64{fieldTTFT: &c.TTFTMS, fieldPrefill: &c.PrefillTPS, fieldDecode: &c.DecodeTPS,
		fieldAggregate: &c.AggregateTPS, fieldSteady: &c.SteadyTPS, fieldBatch: &c.Batch} {
		*v = c.exact(field, *v)
	}
	if f.flag("thinking") {
		c.Scenario += " (thinking)"
	}
	if c.Method == methodNone {
		c.Method = ""
	}
	if c.ObservedDevice == unknownDevice {
		c.ObservedDevice = ""
	}
	if c.Engine == "" || c.Model == "" || c.Scenario == "" || c.Status == "" {
		return Cell{}, errNoCell
	}
	if c.DecodeSource == sourceServer {
		c.DecodeSource = "engine"
	}
	if v, ok := f.float("draft_acceptance"); ok {
		c.Acceptance = &v
	}
	if c.Output == "" {
		c.Output = f.text("output_preview")
	}
	return c, nil
}

// rounding is how far a value of a result file may lie from the median of its samples: files hold one decimal.
const rounding = 0.0501

// origin is what the file says of where the cell came from.
func (c *Cell) origin(f fields) {
	var identity fields
	_ = json.Unmarshal(f["identity"], &identity)
	c.Version = strings.TrimSpace(identity.text("version") + " " + f.text("build"))
	c.Weights, c.Harness, c.Plan, c.RunID = f.text("weights"), f.text("harness"), f.text("plan"), f.text("run")
	var words []string
	if json.Unmarshal(f["command"], &words) == nil {
		if c.Command = strings.Join(words, ""); len(words) > 1 {
			c.Command = ShellWords(words)
		}
	}
}

// exact is the median of a field's samples where the file has it or them, and its value is that median, rounded. A ratio of
// rounded times would be off by a tenth where times are about a millisecond.
func (c *Cell) exact(field string, value float64) float64 {
	m := c.Spreads[field].Median
	if m == nil {
		m = stat.Summarize(c.Spreads[field].Samples).Median
	}
	if value <= 0 || m == nil || math.Abs(*m-value) > rounding {
		return value
	}
	return *m
}

// fields are those of a JSON object.
type fields map[string]json.RawMessage

func (f fields) text(name string) (s string) {
	if json.Unmarshal(f[name], &s) != nil {
		return ""
	}
	return s
}

// first is the first of the fields that holds a text.
func (f fields) first(names ...string) string {
	for _, n := range names {
		if s := f.text(n); s != "" {
			return s
		}
	}
	return ""
}

func (f fields) float(name string) (v float64, ok bool) {
	var p *float64
	if json.Unmarshal(f[name], &p) != nil || p == nil {
		return 0, false
	}
	return *p, true
}

func (f fields) number(name string) float64 {
	v, _ := f.float(name)
	return v
}

func (f fields) whole(name string) int {
	const most = 1 << 40 // beyond what any count of tokens or requests is
	return int(min(max(f.number(name), -most), most))
}

func (f fields) maybe(name string) (b *bool) {
	if json.Unmarshal(f[name], &b) != nil {
		return nil
	}
	return b
}

func (f fields) flag(name string) bool {
	b := f.maybe(name)
	return b != nil && *b
}

// spreads are the values of fields over the repeats of a cell.
func (f fields) spreads() map[string]Spread {
	var in map[string]struct {
		N        int
		Median   *float64
		Min, Max float64
		Samples  []float64
	}
	if json.Unmarshal(f["spreads"], &in) != nil {
		return nil
	}
	out := map[string]Spread{}
	for name, s := range in {
		out[name] = Spread{Lo: s.Min, Hi: s.Max, N: max(s.N, len(s.Samples)), Range: true, Median: s.Median, Samples: s.Samples}
	}
	return out
}

// memory is the growth of the server's memory by its model: on the GPU where that was had, else on the host.
func (f fields) memory() int64 {
	var in struct {
		GPU  *int64 `json:"gpu_growth"`
		Host *int64 `json:"host_growth"`
	}
	switch err := json.Unmarshal(f["memory"], &in); {
	case err != nil:
	case in.GPU != nil && *in.GPU > 0:
		return *in.GPU
	case in.Host != nil:
		return *in.Host
	}
	return 0
}

func (f fields) ids(name string) (ids []exchange.ID) {
	if json.Unmarshal(f[name], &ids) != nil {
		return nil
	}
	return ids
}

// mostCellBytes is the size beyond which a file is no result of a cell: texts in it are cut at some thousand characters.
const mostCellBytes = 8 << 20

// ReadCells reads the result files of a directory, in the order of their names. Other files are counted as left: harnesses
// put logs and reports beside their results. source names the cells.
func ReadCells(dir fs.FS, source string) (cells []Cell, left []string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".json" {
			continue
		}
		data, err := readBounded(dir, e)
		if err != nil {
			return nil, nil, err
		}
		c, err := ParseCell(data)
		if err != nil {
			left = append(left, e.Name())
			continue
		}
		c.Source = source
		cells = append(cells, c)
	}
	slices.SortStableFunc(cells, func(a, b Cell) int { return strings.Compare(a.Model, b.Model) })
	return cells, left, nil
}

func readBounded(dir fs.FS, e fs.DirEntry) ([]byte, error) {
	info, err := e.Info()
	if err != nil {
		return nil, err
	}
	if info.Size() > mostCellBytes {
		return nil, nil
	}
	return fs.ReadFile(dir, e.Name())
}

// ok reports whether the cell has results that stand for its scenario.
func (c *Cell) ok() bool { return c != nil && c.Status == StatusOK && !c.partial() }

// partial reports whether a conversation stopped early: its times are those of a shorter one.
func (c *Cell) partial() bool { return c.Status == StatusOK && c.Turns < c.TurnsExpected }

// unasked reports whether nothing was measured, and that is no failure: the cell could not run, or the engine lacks what it
// needs.
func (c *Cell) unasked() bool { return c.Status == StatusSkipped || c.Status == StatusUnsupported }

// baseline reports whether the cell belongs in the first tables: one request at a time, no drafts, nothing offloaded.
func (c *Cell) baseline() bool { return !c.drafts() && c.Concurrency <= 1 && c.CPUMoELayers == 0 }

// has reports whether the cell has a flag.
func (c *Cell) has(flag string) bool { return slices.Contains(c.Flags, flag) }

// drafts reports whether speculative decoding was on.
func (c *Cell) drafts() bool { return c.MTP || c.Method != "" }

// fallback reports whether a GPU was asked for and the engine is known to have run on the CPU.
func (c *Cell) fallback() bool { return c.CPUFallback != nil && *c.CPUFallback }
