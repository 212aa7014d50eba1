package measure

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

//go:embed testdata/usage-semantics.json
var usageSemantics embed.FS

// usageCase is the part of the case device_retry_usage that an answer's usage and times decide. Where a request runs is
// held by engines, and that it is sent again by replay.
type usageCase struct {
	Input struct {
		UsageMissing struct {
			Prompt string         `json:"prompt"`
			Chunks map[string]int `json:"parsed_sse_chunks"`
		} `json:"usage_missing"`
		Ollama    map[string]int64   `json:"ollama"`
		Telemetry map[string]float64 `json:"telemetry"`
	} `json:"input"`
	Expected struct {
		UsageMissing struct {
			Prompt     int     `json:"prompt_tokens"`
			Completion float64 `json:"completion_tokens"`
			Estimated  bool    `json:"usage_estimated"`
		} `json:"usage_missing"`
		Ollama struct {
			Prefill float64 `json:"prompt_tok_per_sec"`
			Decode  float64 `json:"eval_tok_per_sec"`
			LoadSec float64 `json:"load_time_sec"`
			From    string  `json:"prefill_provenance"`
			DecFrom string  `json:"decode_provenance"`
		} `json:"ollama"`
		Telemetry struct {
			Prefill float64 `json:"prompt_tok_per_sec"`
			From    string  `json:"prefill_provenance"`
		} `json:"telemetry"`
	} `json:"expected"`
}

func loadUsageCase(t *testing.T) usageCase {
	t.Helper()
	raw, err := usageSemantics.Open("testdata/usage-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(raw)
	d.DisallowUnknownFields()
	var file struct {
		Case usageCase `json:"device_retry_usage"`
	}
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Case.Input.UsageMissing.Prompt == "" {
		t.Fatal("the case is empty: nothing would be tested")
	}
	return file.Case
}

// answered is an exchange whose body comes in one read.
func answered(target, contentType, body string) *exchange.Exchange {
	s := newScript().read(100)
	s.x.Request.Target, s.x.Response.Body = target, exchange.NewBody([]byte(body))
	s.x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: contentType}}
	s.x.Timeline.Reads[0].Size = len(body)
	return s.x
}

// TestDeviceRetryUsage holds BenchRig's meaning of usage and engine times beside ours.
func TestDeviceRetryUsage(t *testing.T) {
	c := loadUsageCase(t)
	t.Run("usage_missing", func(t *testing.T) { holdUsageMissing(t, c) })
	t.Run("ollama", func(t *testing.T) { holdOllama(t, c) })
	t.Run("telemetry", func(t *testing.T) { holdTelemetry(t, c) })
}

// holdUsageMissing: its estimate counts every chunk, ours the ones with content; both say what they are.
func holdUsageMissing(t *testing.T, c usageCase) {
	chunk := func(delta, finish string) string {
		return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n"
	}
	in, want := c.Input.UsageMissing, c.Expected.UsageMissing
	body := strings.Repeat(chunk(`{"role":"assistant","content":""}`, "null"), in.Chunks["role_only"]) +
		strings.Repeat(chunk(`{"content":"a"}`, "null"), in.Chunks["content"]) + strings.Repeat(chunk("{}", `"stop"`), in.Chunks["finish_only"]) + "data: [DONE]\n\n"
	x := answered("/v1/chat/completions", "text/event-stream", body)
	a := Analyze(x)
	theirs := BenchRig(x, a.Transcript).Figures[CompletionTokens]
	if theirs.Value != want.Completion || (theirs.Basis == exchange.BasisEstimated) != want.Estimated || BenchRigPromptGuess(in.Prompt) != want.Prompt {
		t.Errorf("completion %+v, prompt %d, want %+v", theirs, BenchRigPromptGuess(in.Prompt), want)
	}
	wantValue(t, a, CompletionTokens, float64(in.Chunks["content"]), estd)
	wantAbsent(t, a, ReasonNotReported, PromptTokens)
	if !a.Flagged(FlagTokensEstimated) {
		t.Errorf("flags %q", a.Flags)
	}
}

func holdOllama(t *testing.T, c usageCase) {
	var last strings.Builder
	for k, v := range c.Input.Ollama {
		fmt.Fprintf(&last, `,%q:%d`, k, v)
	}
	x := answered("/api/generate", "application/x-ndjson", `{"response":"a","done":false}`+"\n"+`{"response":"","done":true,"done_reason":"stop"`+last.String()+"}\n")
	a, want := Analyze(x), c.Expected.Ollama
	row := BenchRig(x, a.Transcript)
	if row.Figures[PrefillTPS].Value != want.Prefill || row.Figures[DecodeTPS].Value != want.Decode || row.DecodeSource != SourceEngine || want.DecFrom != "engine" || want.From != "engine" {
		t.Errorf("prefill %+v, decode %+v from %s, want %+v", row.Figures[PrefillTPS], row.Figures[DecodeTPS], row.DecodeSource, want)
	}
	wantValue(t, a, LoadMS, 1000*want.LoadSec, rptd)
	wantValue(t, a, EngineDecodeTPS, want.Decode, rptd)
	wantValue(t, a, EnginePrefillMaxTPS, want.Prefill, rptd) // the same number, as the bound that it is
	wantAbsent(t, a, ReasonCachedUnknown, EnginePrefillTPS)
}

func holdTelemetry(t *testing.T, c usageCase) {
	raw, err := json.Marshal(c.Input.Telemetry)
	if err != nil {
		t.Fatal(err)
	}
	x := answered("/v1/chat/completions", "application/json", `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"telemetry":`+string(raw)+`}`)
	a, want := Analyze(x), c.Expected.Telemetry
	if row := BenchRig(x, a.Transcript); row.Figures[PrefillTPS].Value != want.Prefill || want.From != "engine" {
		t.Errorf("prefill %+v, want %+v", row.Figures[PrefillTPS], want)
	}
	wantValue(t, a, EnginePrefillTPS, want.Prefill, rptd)
}
