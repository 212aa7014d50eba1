package matrix

import (
	"math"
	"strconv"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// RecordVersion is the schema version of result files.
const RecordVersion = 1

// Status of a record.
type Status string

// What can have become of a cell.
const (
	StatusOK      Status = "ok"
	StatusFail    Status = "fail" // also of a cell that was begun and not ended
	StatusSkipped Status = "skipped"
	// StatusUnsupported is of a cell that needs what the engine said, in so many words, that it has not: no failure of it.
	StatusUnsupported Status = "unsupported"
)

// Lengths of the texts in a record, in characters.
const (
	PreviewLength = 300
	TextLength    = 8000
)

// Record is the result of one cell: the content of its file. The fields down to mtp are those of TensorSharp's
// engine_comparison, under its names; a number that is absent is null here, with its reason in Absent, where that tool
// writes 0. decode_tps is always the rate over the stream's window (or, for an answer that is not streamed, over the whole
// request), never the engine's word.
//
// With several requests at a time the rates and ttft_ms are means over the ones that came to their end; with several
// repeats each is the median over repeats of that. A conversation's are those of its last turn, total_wall_ms is all of it.
type Record struct {
	Engine             string   `json:"engine"`
	Backend            string   `json:"backend"`
	Model              string   `json:"model"`
	Scenario           string   `json:"scenario"`
	Status             Status   `json:"status"`
	Detail             string   `json:"detail"` // why it was skipped, failed or is unsupported, or how far it came
	PromptTokens       *int     `json:"prompt_tokens"`
	CompletionTokens   *int     `json:"completion_tokens"`
	TTFTms             *float64 `json:"ttft_ms"`
	PrefillTPS         *float64 `json:"prefill_tps"`
	DecodeTPS          *float64 `json:"decode_tps"`
	TotalWallMS        *float64 `json:"total_wall_ms"`
	AggregateDecodeTPS *float64 `json:"aggregate_decode_tps"` // of one request: its decode_tps
	RequestsOK         int      `json:"requests_ok"`          // of the concurrent ones, in the worst repeat
	Turns              int      `json:"turns"`                // of the conversation, of the one that came least far
	TurnsExpected      int      `json:"turns_expected"`
	FinishReason       string   `json:"finish_reason"`
	ToolCallOK         *bool    `json:"tool_call_ok"`   // null where the scenario calls no tool
	OutputPreview      string   `json:"output_preview"` // the first PreviewLength characters
	OutputText         string   `json:"output_text"`    // the first TextLength characters
	TP                 int      `json:"tp"`
	Concurrency        int      `json:"concurrency"`
	CPUMoELayers       int      `json:"cpu_moe_layers"` // -1 = all
	CPUMoEThreads      int      `json:"cpu_moe_threads"`
	MTP                bool     `json:"mtp"`

	Schema     int    `json:"schema"`
	Cell       string `json:"cell"`       // Cell.Name; exchanges carry it
	Definition string `json:"definition"` // Cell.Definition
	Plan       string `json:"plan"`       // Plan.Hash of the sitting that made it
	SkipKind   string `json:"skip_kind,omitempty"`
	Method     string `json:"method,omitempty"`
	Depth      int    `json:"depth,omitempty"`
	Drafter    string `json:"drafter,omitempty"` // file of the model that drafts, without its directory
	Device     string `json:"device,omitempty"`
	Split      string `json:"split,omitempty"` // how tp spread the model: tensor or layer
	Thinking   bool   `json:"thinking"`
	MaxTokens  int    `json:"max_tokens"`
	Stream     bool   `json:"stream"`
	Repeats    int    `json:"repeats"` // that were measured
	Warmup     int    `json:"warmup"`

	DecodeSource     measure.DecodeSource       `json:"decode_source"`      // of decode_tps; "" when it is null
	EngineDecodeTPS  *float64                   `json:"engine_decode_tps"`  // the engine's own word
	EnginePrefillTPS *float64                   `json:"engine_prefill_tps"` // the engine's own word
	UsageBasis       exchange.Basis             `json:"usage_basis"`        // of completion_tokens: reported or estimated; "" when it is null
	SteadyTPS        *float64                   `json:"steady_tps"`         // while all requests decode; null for one
	BatchTPS         *float64                   `json:"batch_tps"`          // over the whole wall of the requests
	Acceptance       *float64                   `json:"draft_acceptance"`
	Absent           map[string]exchange.Reason `json:"absent,omitempty"`  // field -> why it is null
	Spreads          map[string]Spread          `json:"spreads,omitempty"` // field -> its values over repeats, which are not rounded
	Flags            []string                   `json:"flags,omitempty"`   // short_answer, queued, buffered ...
	Gates            []exchange.CaseVerdict     `json:"gates,omitempty"`   // of each that looked at the cell the worst verdict
	Answers          []string                   `json:"answers,omitempty"` // digests of the distinct texts over all requests

	// Lack is what the engine said that its model lacks, and to which request: of a cell that is unsupported. Where that is
	// none of its own exchanges the cell was not sent.
	Lack *exchange.Lack `json:"lack,omitempty"`

	Run             exchange.ID       `json:"run,omitempty"`       // that holds the exchanges
	Exchanges       []exchange.ID     `json:"exchanges,omitempty"` // the timed ones, in order
	Warmups         []exchange.ID     `json:"warmups,omitempty"`   // the ones before
	Identity        exchange.Identity `json:"identity"`
	Launch          string            `json:"launch,omitempty"`      // digest of build and environment of a server that was launched
	Build           string            `json:"build,omitempty"`       // digest of its program and what belongs to it
	ModelFiles      string            `json:"model_files,omitempty"` // digest of sizes and times of its model files
	Weights         string            `json:"weights,omitempty"`     // digest or name of the weights, as far as it is known
	RequestedDevice string            `json:"requested_device,omitempty"`
	ObservedDevice  string            `json:"observed_device,omitempty"` // unknown when nothing showed it
	CPUFallback     bool              `json:"cpu_fallback"`
	Slots           *int              `json:"slots"`                 // that the engine has
	Context         *int              `json:"context"`               // tokens of one slot
	Memory          *Memory           `json:"memory"`                // of the server; null where it was not sampled
	LoadMS          *float64          `json:"load_ms"`               // from the launch until it was ready
	Command         []string          `json:"command,omitempty"`     // it was launched with, secrets masked
	Log             string            `json:"log,omitempty"`         // file below the results
	Environment     map[string]string `json:"environment,omitempty"` // variables that the config set, secrets masked
	Harness         string            `json:"harness"`
	Started         *time.Time        `json:"started"`
	Ended           *time.Time        `json:"ended"`
}

// Memory is what a server took, in bytes. A figure that was not had is null; so is a growth over a baseline that still
// held a model.
type Memory struct {
	HostPeak   *int64 `json:"host_peak"`
	HostGrowth *int64 `json:"host_growth"`
	GPUPeak    *int64 `json:"gpu_peak"`
	GPUGrowth  *int64 `json:"gpu_growth"`
	Why        string `json:"why,omitempty"` // a figure is null
}

// Spread is a value over the repeats of a cell.
type Spread struct {
	N       int       `json:"n"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"` // in the order of the repeats
}

// Exact is a number of the record as it was before its rounding: the median over the repeats. It is nil where there is none.
func (r *Record) Exact(field string) *float64 {
	if sp, ok := r.Spreads[field]; ok {
		return &sp.Median
	}
	return nil
}

// SpreadOf is the spread of samples; ok is false when there are none.
func SpreadOf(samples []float64) (sp Spread, ok bool) {
	s := stat.Summarize(samples)
	if s.N == 0 || s.Median == nil {
		return Spread{}, false
	}
	return Spread{N: s.N, Median: *s.Median, Min: *s.Min, Max: *s.Max, Samples: samples}, true
}

// NewRecord is the record of a cell before anything was measured: it says fail until it says otherwise.
func NewRecord(p *Plan, g *Group, c *Cell) Record {
	r := Record{
		Engine: c.Engine, Backend: c.Backend, Model: c.Model, Scenario: c.Scenario, Status: StatusFail,
		TP: c.TP, Concurrency: c.Concurrency, CPUMoELayers: c.CPUMoELayers, CPUMoEThreads: c.CPUMoEThreads, MTP: c.MTP,
		Schema: RecordVersion, Cell: c.Name, Definition: c.Definition, Plan: p.Hash, Method: c.Method, Depth: c.Depth, Drafter: base(g.Launch.Drafter), Device: c.Device,
		Split: g.Launch.SplitMode, Thinking: c.Thinking, MaxTokens: c.MaxTokens, Stream: c.Stream, Repeats: 0, Warmup: c.Warmup,
	}
	if c.Do == DoSkip && c.Skip != nil {
		r.SkipWith(c.Skip)
	}
	return r
}

// SkipWith makes it the record of a cell that cannot run.
func (r *Record) SkipWith(s *Skip) {
	r.Status, r.Detail, r.SkipKind = StatusSkipped, s.Reason, string(s.Kind)
}

// LackWith makes it the record of a cell that needs what the engine said that its model lacks.
func (r *Record) LackWith(l exchange.Lack, why string) {
	r.Status, r.Detail, r.Lack = StatusUnsupported, why, &l
}

// SetText keeps the beginning of an answer, cut between characters.
func (r *Record) SetText(text string) {
	r.OutputPreview, r.OutputText = firstRunes(text, PreviewLength), firstRunes(text, TextLength)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Rounded is a value of a record: one decimal, and null for what is no number.
func Rounded(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 1, 64), 64)
	if err != nil {
		return nil
	}
	return &r
}
