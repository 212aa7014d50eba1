package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// A validation report is the document of `validate`: the keys are those of TensorSharp's own validation, so that its tools
// and replay --revalidate read it. What benchproxy adds stands under "benchproxy" and in the field exchange of a turn.

// ValidationReport is that document.
type ValidationReport struct {
	Format       int                           `json:"format_version"` // 1
	Engine       string                        `json:"engine"`         // "" when unknown
	URL          string                        `json:"url"`            // credentials masked
	Harness      map[string]string             `json:"harness_sha256"` // of the program, and of the gates that judged: id and version -> digest of the rule as told
	Model        string                        `json:"model"`
	WeightsID    string                        `json:"weights_id"` // as stated; "unspecified" when nothing was
	Profile      string                        `json:"profile"`    // as stated
	Thinking     bool                          `json:"thinking"`
	Stream       bool                          `json:"stream"`
	Sampling     scenario.SamplingFields       `json:"sampling"`
	Structured   bool                          `json:"structured_tool_results"`
	Serial       bool                          `json:"serial_tool_workflows"`
	Fenced       bool                          `json:"accept_fenced_json"`
	MaxTokens    *int                          `json:"max_tokens_override"` // null for the scenarios' own
	Plan         ValidationPlan                `json:"execution_plan"`
	Complete     bool                          `json:"run_complete"`
	Cases        []ValidationCase              `json:"cases"`
	Waves        []ValidationWave              `json:"waves"`
	NotCovered   []string                      `json:"not_covered"`
	Warmup       ValidationWarmup              `json:"warmup"`
	Summary      map[string]*ValidationSummary `json:"summary"` // by scenario@cN
	Comparison   *Comparison                   `json:"comparison"`
	ToolPolicies                               // of the suite of tool policies alone
	// ToolUse are the rates of the tool_use suite: of all planned turns, then by category; absent in other reports.
	ToolUse    []gates.UseRate `json:"tool_use_rates,omitempty"`
	Instrument ValidationTool  `json:"benchproxy"`

	sampled json.RawMessage // sampling as a report that was read states it; nil for one of this run
	unsaid  []string        // conditions that a report which was read does not state
}

// ToolPolicies are the keys that only the report of the tool policies has.
type ToolPolicies struct {
	NativeSum   *string         `json:"native_sha256,omitempty"` // as stated
	ServerBuild *string         `json:"server_build,omitempty"`  // as stated
	Started     *string         `json:"started_utc,omitempty"`
	Finished    *string         `json:"finished_utc,omitempty"`
	Fixtures    json.RawMessage `json:"fixtures,omitempty"`
	FixturesSum string          `json:"fixtures_sha256,omitempty"`
	Scope       string          `json:"scope,omitempty"`
}

// ValidationTool is what benchproxy adds.
type ValidationTool struct {
	Harness  string      `json:"harness"` // version
	Run      exchange.ID `json:"run"`     // in the store, which holds every exchange
	Suite    string      `json:"suite"`
	PlanHash string      `json:"plan"`
	Dialect  string      `json:"dialect"` // that the engine was asked in

	// Of an engine that was started for the validation; absent for one that ran already, and where it is not known.
	Launch          string `json:"launch,omitempty"` // command line
	Build           string `json:"build,omitempty"`  // digest of what was started: program, what belongs to it, environment
	RequestedDevice string `json:"requested_device,omitempty"`
	ObservedDevice  string `json:"observed_device,omitempty"` // where it says that it runs
}

// ValidationPlan is what was to be done.
type ValidationPlan struct {
	Scenarios   []string `json:"scenarios"`
	Concurrency []int    `json:"concurrency"`
	Repeats     int      `json:"repeats"`
	Expected    int      `json:"expected_cases"`
	Requests    int      `json:"expected_requests,omitempty"` // of tool policies
}

// ValidationWarmup is what was asked before the first wave.
type ValidationWarmup struct {
	Requests  int `json:"requests"`
	MaxTokens int `json:"max_tokens"`
}

// ValidationCase is one case.
type ValidationCase struct {
	Scenario    string           `json:"scenario"`
	Tag         string           `json:"tag"`
	Status      string           `json:"status"` // ok or fail; of tool_use that of the verdict, such as unsupported
	Detail      string           `json:"detail"`
	Thinking    *bool            `json:"thinking,omitempty"` // of tool policies
	InputSum    string           `json:"input_sha256"`       // of the question; of the whole first body for tool policies
	Turns       []ValidationTurn `json:"turns"`
	Validated   *string          `json:"validated_content"` // the text that passed; null when none did
	Lenient     string           `json:"lenient_status,omitempty"`
	WallMS      *float64         `json:"total_wall_ms"`
	WallSeconds *float64         `json:"wall_seconds,omitempty"` // of tool policies
	Concurrency int              `json:"concurrency"`
	Repeat      int              `json:"repeat"`
}

// ValidationTurn is one request with what came back.
type ValidationTurn struct {
	Request    json.RawMessage     `json:"request"` // as sent; in the words of chat where the engine was asked in another dialect
	RequestSum string              `json:"request_sha256,omitempty"`
	Response   *ValidationResponse `json:"response,omitempty"` // of tool policies
	Metrics    ValidationMetrics   `json:"metrics"`
	Exchange   exchange.ID         `json:"exchange"`
}

// ValidationResponse is an answer as it came.
type ValidationResponse struct {
	Status      int      `json:"http_status"` // 0 when none came
	ContentType string   `json:"content_type"`
	Lines       []string `json:"sse_lines"` // null for an answer that was no event stream
	Body        *string  `json:"body"`      // null for one that was
}

// ValidationMetrics are the numbers of a turn by TensorSharp's rules: see measure.TensorSharp. Absent is null.
type ValidationMetrics struct {
	UsagePresent bool            `json:"usage_present"`
	Prompt       *float64        `json:"prompt_tokens"`
	Completion   *float64        `json:"completion_tokens"`
	Finish       *string         `json:"finish_reason"`
	TTFT         *float64        `json:"ttft_ms"`
	PrefillTPS   *float64        `json:"prefill_tps"`
	DecodeTPS    *float64        `json:"decode_tps"`
	DecodeSource string          `json:"decode_timing_source"` // stream_window, server or request_wall: by which a rate is made, whether there is one or not
	WallMS       *float64        `json:"total_wall_ms"`
	Message      capturedMessage `json:"assistant_message"`
}

// capturedMessage is an answer as a message.
type capturedMessage struct {
	Role      string         `json:"role"`
	Content   string         `json:"content"`
	Reasoning string         `json:"reasoning_content,omitempty"`
	Calls     []capturedCall `json:"tool_calls,omitempty"`
}

type capturedCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// ValidationWave is one wave.
type ValidationWave struct {
	Scenario    string   `json:"scenario"`
	Concurrency int      `json:"concurrency"`
	Repeat      int      `json:"repeat"`
	WallMS      *float64 `json:"wall_ms"`
	Generated   int64    `json:"generated_tokens"` // of all turns
	TPS         *float64 `json:"end_to_end_tokens_per_second"`
	AllPassed   bool     `json:"all_passed"`
}

// ValidationSummary is what one scenario came to at one concurrency. Rates and latencies are those of the first turns of
// passed cases.
type ValidationSummary struct {
	Passed        int      `json:"passed"`
	Total         int      `json:"total"`
	LenientPassed int      `json:"lenient_passed"`
	TTFT          *float64 `json:"ttft_ms_median"`
	PrefillTPS    *float64 `json:"prefill_tps_median"`
	DecodeTPS     *float64 `json:"decode_tps_median"`
	WallMS        *float64 `json:"conversation_wall_ms_median"`

	TTFTSamples    []float64 `json:"ttft_ms_samples"`
	PrefillSamples []float64 `json:"prefill_tps_samples"`
	DecodeSamples  []float64 `json:"decode_tps_samples"`
	WallSamples    []float64 `json:"conversation_wall_ms_samples"`
}

// ValidationFacts are what a report says of itself beside its cases.
type ValidationFacts struct {
	Engine, URL, Model, WeightsID, Profile string
	NativeSum, ServerBuild                 string // of tool policies
	ToolSum                                string // hex SHA-256 of the program
	Fenced                                 bool
	Left                                   []string // what no case says anything about, beside what none of the suites does
	Degrees                                []int
	Repeats                                int
	Tool                                   ValidationTool
	Started                                time.Time
}

// Names of the suites of `validate`.
const (
	ValidateInference = "inference"
	ValidateTools     = "tools"
	ValidateToolUse   = "tool_use"
)

const unspecified = "unspecified"

// notCovered is what no case of a suite says anything about.
func notCovered(kind string) []string {
	contexts := "contexts beyond a few hundred tokens, and prompts over the limit"
	if kind == ValidateInference {
		contexts = "contexts beyond about 64,000 tokens, and prompts over the limit"
	}
	return []string{
		"pictures, sound and video in the prompt",
		"sampling at temperatures above 0, seeds and penalties",
		contexts,
		"speculative decoding against decoding without drafts",
		"log-probabilities: whether the tokens are those of a reference",
		"more than a few prompts of each kind: it is a check, no quality benchmark",
	}
}

// Validation gathers the report of a suite while it runs.
type Validation struct {
	Report   ValidationReport
	kind     string
	tools    bool
	fenced   bool
	waved    int                // cases of waves that have ended
	verdicts []exchange.Verdict // of tool_use
}

// NewValidation begins the report of a suite with the options that its cases have.
func NewValidation(kind string, o *SuiteOptions, f ValidationFacts) *Validation {
	v := &Validation{kind: kind, tools: kind == ValidateTools, fenced: f.Fenced}
	v.Report = ValidationReport{
		Format: 1, Engine: f.Engine, URL: f.URL, Model: f.Model, WeightsID: f.WeightsID, Profile: f.Profile, Harness: map[string]string{"benchproxy": f.ToolSum},
		Thinking: o.Options.Thinking, Stream: o.Options.Stream, Sampling: scenario.Sampling(), Structured: o.Options.StructuredResults,
		Serial: o.Options.SerialTools, Fenced: f.Fenced, NotCovered: append(notCovered(kind), f.Left...), Warmup: ValidationWarmup{Requests: o.Warmup, MaxTokens: scenario.WarmupTokens},
		Plan:  ValidationPlan{Concurrency: f.Degrees, Repeats: f.Repeats, Expected: len(o.Members)},
		Cases: []ValidationCase{}, Waves: []ValidationWave{}, Summary: map[string]*ValidationSummary{}, Instrument: f.Tool,
	}
	r := &v.Report
	if r.WeightsID == "" {
		r.WeightsID = unspecified
	}
	if o.Options.MaxTokens > 0 {
		r.MaxTokens = &o.Options.MaxTokens
	}
	for _, m := range o.Members {
		if name := m.TagName(); !slices.Contains(r.Plan.Scenarios, name) {
			r.Plan.Scenarios = append(r.Plan.Scenarios, name)
		}
		for _, c := range m.Scenario.Case("", o.Options).Checks {
			if g, known := gates.Lookup(c.Gate); known {
				r.Harness[fmt.Sprintf("%s/%d", g.ID, g.Version)] = hexSum([]byte(g.Explain))
			}
		}
	}
	if v.tools {
		r.Plan.Requests = scenario.Requests(o.Members)
		started := f.Started.UTC().Format(time.RFC3339)
		r.ToolPolicies = ToolPolicies{NativeSum: &f.NativeSum, ServerBuild: &f.ServerBuild, Started: &started, Fixtures: scenario.PolicyFixtures(),
			FixturesSum: hexDigest(scenario.PolicyFixtures()), Scope: "tool_choice and parallel_tool_calls, one tool called or two, and requests that must be refused"}
	}
	return v
}

// AddCase takes a case that has ended before the others of its wave, so that a report which is saved then holds it. It is no
// part of the summary until its wave has ended.
func (v *Validation) AddCase(c *SuiteCase) error {
	one, err := v.caseOf(c)
	if err != nil {
		return fmt.Errorf("report case %s: %w", c.Tag(), err)
	}
	v.Report.Cases = append(v.Report.Cases, one)
	return nil
}

// Add takes a wave that has ended. Its cases stand in the order of the plan then, also those that were added before.
func (v *Validation) Add(w *SuiteWave) error {
	v.Report.Cases = v.Report.Cases[:v.waved]
	out := ValidationWave{Scenario: w.Cases[0].TagName(), Concurrency: w.Cases[0].Member.Concurrency, Repeat: w.Cases[0].Member.Repeat, AllPassed: true}
	for _, c := range w.Cases {
		one, err := v.caseOf(c)
		if err != nil {
			return fmt.Errorf("report case %s: %w", c.Tag(), err)
		}
		v.Report.Cases = append(v.Report.Cases, one)
		out.AllPassed = out.AllPassed && one.passed()
		for _, t := range one.Turns {
			if n := t.Metrics.Completion; n != nil {
				out.Generated += int64(*n)
			}
		}
		v.summarize(&one)
		v.verdicts = append(v.verdicts, c.Verdicts...)
	}
	if w.Wall > 0 {
		ms := wallMillis(w.Wall)
		tps := float64(out.Generated) / w.Wall.Seconds()
		out.WallMS, out.TPS = &ms, &tps
	}
	v.Report.Waves = append(v.Report.Waves, out)
	v.waved = len(v.Report.Cases)
	return nil
}

func wallMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *ValidationCase) passed() bool { return c.Status == string(exchange.VerdictOK) }

// caseOf is a case as it is reported. Whatever is not ok has failed, but for tool_use, whose verdicts have more words.
func (v *Validation) caseOf(c *SuiteCase) (ValidationCase, error) {
	out := ValidationCase{Scenario: c.TagName(), Tag: c.Tag(), Status: "fail", Detail: c.Detail, InputSum: c.Digest,
		Turns: []ValidationTurn{}, Concurrency: c.Member.Concurrency, Repeat: c.Member.Repeat}
	for turn := range c.Asked {
		t, err := v.turnOf(c, turn)
		if err != nil {
			return out, err
		}
		out.Turns = append(out.Turns, t)
	}
	if v.kind == ValidateToolUse {
		out.Status = string(c.Status)
	}
	if c.Status == exchange.VerdictOK {
		out.Status = string(exchange.VerdictOK)
		if n := len(out.Turns); n > 0 && out.Turns[n-1].Metrics.Message.Content != "" {
			out.Validated = &out.Turns[n-1].Metrics.Message.Content
		}
	}
	if v.fenced {
		out.Lenient = "fail"
		if c.Judgment.Lenient == exchange.VerdictOK {
			out.Lenient = string(exchange.VerdictOK)
		}
	}
	if wall, answered := wallOf(c); answered {
		ms := wallMillis(wall)
		out.WallMS = &ms
		if v.tools {
			s := wall.Seconds()
			out.WallSeconds = &s
		}
	}
	if v.tools {
		thinking := len(c.Asked) > 0 && c.Asked[0].Thinking
		out.Thinking = &thinking
		if len(out.Turns) > 0 {
			out.InputSum = out.Turns[0].RequestSum
		}
	}
	return out, nil
}

// turnOf is a turn with the last exchange that carried it out.
func (v *Validation) turnOf(c *SuiteCase, turn int) (ValidationTurn, error) {
	if turn >= len(c.Exchanges) {
		return ValidationTurn{}, fmt.Errorf("turn %d has no exchange", turn+1)
	}
	x := c.Exchanges[turn]
	a := measure.Analyze(x)
	t := ValidationTurn{Request: json.RawMessage(bytes.Clone(x.Request.Body.Bytes())), Metrics: validationMetrics(x, a.Transcript), Exchange: x.ID}
	if wire.DialectOf(x.Request.Target) != wire.DialectChat {
		t.Request = c.Asked[turn].Body
	}
	if !v.tools {
		return t, nil
	}
	digest, err := canon.Digest(t.Request)
	t.RequestSum = strings.TrimPrefix(digest, exchange.DigestPrefix)
	t.Response = answerAsCame(x)
	return t, err
}

func answerAsCame(x *exchange.Exchange) *ValidationResponse {
	r := &ValidationResponse{Status: x.Response.Status}
	r.ContentType, _ = exchange.HeaderValue(x.Response.Headers, "Content-Type")
	body := strings.ToValidUTF8(string(x.Response.Body.Bytes()), "\ufffd")
	if strings.HasPrefix(r.ContentType, "text/event-stream") {
		r.Lines = strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	} else {
		r.Body = &body
	}
	return r
}

func validationMetrics(x *exchange.Exchange, t *wire.Transcript) ValidationMetrics {
	row := measure.TensorSharp(x, t)
	m := ValidationMetrics{UsagePresent: row.UsageSeen, Finish: t.FinishReason, DecodeSource: string(row.DecodeSource),
		Message: capturedMessage{Role: "assistant"}}
	switch {
	case row.DecodeSource == measure.SourceEngine:
		m.DecodeSource = "server"
	case row.DecodeSource != "":
	case wire.RequestOf(x).Stream:
		m.DecodeSource = string(measure.SourceStreamWindow)
	default:
		m.DecodeSource = string(measure.SourceRequestWall)
	}
	for name, into := range map[string]**float64{
		measure.PromptTokens: &m.Prompt, measure.CompletionTokens: &m.Completion, measure.TTFTMS: &m.TTFT,
		measure.PrefillTPS: &m.PrefillTPS, measure.DecodeTPS: &m.DecodeTPS, measure.TotalWallMS: &m.WallMS,
	} {
		if f := row.Figures[name]; f.Present() {
			*into = &f.Value
		}
	}
	c := t.Choice0()
	m.Message.Content, m.Message.Reasoning = c.Text, c.Reasoning
	for _, call := range c.ToolCalls {
		out := capturedCall{ID: call.ID, Type: call.Type}
		out.Function.Name, out.Function.Arguments = call.Name, call.Arguments
		m.Message.Calls = append(m.Message.Calls, out)
	}
	return m
}

// summarize takes a case into the summary of its scenario and concurrency.
func (v *Validation) summarize(c *ValidationCase) {
	name := fmt.Sprintf("%s@c%d", c.Scenario, c.Concurrency)
	s := v.Report.Summary[name]
	if s == nil {
		s = &ValidationSummary{TTFTSamples: []float64{}, PrefillSamples: []float64{}, DecodeSamples: []float64{}, WallSamples: []float64{}}
		v.Report.Summary[name] = s
	}
	s.Total++
	if c.passed() || c.Lenient == string(exchange.VerdictOK) {
		s.LenientPassed++
	}
	if !c.passed() {
		return
	}
	s.Passed++
	m := &c.Turns[0].Metrics
	for _, of := range []struct {
		sample  *float64
		samples *[]float64
		median  **float64
	}{{m.TTFT, &s.TTFTSamples, &s.TTFT}, {m.PrefillTPS, &s.PrefillSamples, &s.PrefillTPS}, {m.DecodeTPS, &s.DecodeSamples, &s.DecodeTPS}, {c.WallMS, &s.WallSamples, &s.WallMS}} {
		if of.sample != nil && *of.sample > 0 {
			*of.samples = append(*of.samples, *of.sample)
			*of.median = median(*of.samples)
		}
	}
}

// Finish ends the report. It is complete only when the suite came to its end and every planned case is in it.
func (v *Validation) Finish(ran error, now time.Time) {
	v.Report.Complete = ran == nil && len(v.Report.Cases) == v.Report.Plan.Expected
	if v.tools {
		finished := now.UTC().Format(time.RFC3339)
		v.Report.Finished = &finished
	}
	if v.kind == ValidateToolUse {
		v.Report.ToolUse, _ = gates.UseRates(v.verdicts) // details that gates have just written can be read
	}
}

// Counts are the cases that passed, and all.
func (v *Validation) Counts() (passed, total int) {
	for i := range v.Report.Cases {
		if v.Report.Cases[i].passed() {
			passed++
		}
	}
	return passed, len(v.Report.Cases)
}

// Unsupported are the cases of what the engine said that it lacks.
func (v *Validation) Unsupported() (n int) {
	for i := range v.Report.Cases {
		if v.Report.Cases[i].Status == string(exchange.VerdictUnsupported) {
			n++
		}
	}
	return n
}
