package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// vector parses a written transcript.
func vector(t *testing.T, file string) *Transcript {
	t.Helper()
	all := wiretest.Vectors(t)
	i := slices.IndexFunc(all, func(v wiretest.Vector) bool { return v.File == file+".txt" })
	if i < 0 {
		t.Fatalf("there is no vector %s", file)
	}
	return parseIn(all[i], [][]byte{all[i].Body})
}

// TestEngineQuirks holds what each engine does in its own way on the OpenAI surface.
func TestEngineQuirks(t *testing.T) {
	for name, hold := range map[string]func(*testing.T){
		"Prism: device and times in telemetry":                                                     quirksPrism,
		"Foundry: reasoning is counted, not shown":                                                 quirksFoundry,
		"TabbyAPI: the finish reason rides on the usage event, a rate may be a word":               quirksTabbyAPI,
		"LiteLLM: usage beside an empty choice, codes as text":                                     quirksLiteLLM,
		"Strata: llama.cpp's times on the finish event":                                            quirksStrata,
		"TensorFold: drafts apart from times, rounds are no steps, an error inside a normal event": quirksTensorFold,
		"NInfer: usage null until the last, no DONE behind an error":                               quirksNInfer,
		"Halogen: thinking may eat the whole budget":                                               quirksHalogen,
		"Loom: tokens of a reused prompt are cached ones":                                          quirksLoom,
		"Groq: usage and times in x_groq":                                                          quirksGroq,
		"Mistral: content in parts":                                                                quirksMistral,
		"vLLM: several tokens an event, drafts by request":                                         quirksvLLM,
		"SGLang: reasoning tokens beside the counts, abort is an error":                            quirksSGLang,
		"LM Studio REST v0: stats and drafts":                                                      quirksLMStudioRESTv0,
		"OpenRouter: an error of one choice, comments while it waits":                              quirksOpenRouter,
		"TensorSharp: thinking of a whole answer, places in the queue":                             quirksTensorSharp,
	} {
		t.Run(name, hold)
	}
}

func quirksPrism(t *testing.T) {
	tr := vector(t, "prism-chat-reasoning-telemetry")
	if tr.Timings.Source != "telemetry" || tr.Timings.Device == "" || tr.Timings.TTFTMS == nil || tr.Timings.DecodeTPS == nil {
		t.Errorf("%+v", tr.Timings)
	}
	more := say(stream(finishChunk, `{"choices":[],"telemetry":{"prompt_tokens":20,"prompt_eval_duration_sec":0.05}}`)).Timings
	if *more.PrefillN != 20 || *more.PrefillMS != 50 {
		t.Errorf("prompt times %+v", more)
	}
}

func quirksFoundry(t *testing.T) {
	tr := vector(t, "foundry-chat-hidden-reasoning")
	if *tr.Usage.Reasoning == 0 || tr.Choice0().Reasoning != "" || !tr.DialectEnd {
		t.Errorf("%+v, usage %+v", tr.Choice0(), tr.Usage)
	}
}

func quirksTabbyAPI(t *testing.T) {
	tr := vector(t, "tabbyapi-chat-tools-indeterminate")
	if !tr.DialectEnd || tr.Usage == nil || tr.Extras["usage"] == nil {
		t.Errorf("end %v, usage %+v, extras %v", tr.DialectEnd, tr.Usage, tr.Extras)
	}
	if tm := vector(t, "tabbyapi-chat-crlf-ping").Timings; tm.Source != "usage" || tm.PrefillMS == nil || tm.DecodeMS == nil {
		t.Errorf("timings %+v", tm)
	}
	if bad := say(stream(`{"error":{"message":"m","trace":"t"}}`)); bad.Error.Message != "m" || bad.DialectEnd {
		t.Errorf("error %+v", bad.Error)
	}
}

func quirksLiteLLM(t *testing.T) {
	if tr := vector(t, "litellm-chat-usage-nonempty-choices"); tr.Usage == nil || tr.Usage.Partial || !tr.DialectEnd {
		t.Errorf("usage %+v", tr.Usage)
	}
	if e := vector(t, "litellm-chat-midstream-error").Error; e == nil || e.Code == "" {
		t.Errorf("error %+v", e)
	}
}

func quirksStrata(t *testing.T) {
	if tr := vector(t, "strata-chat-timings"); tr.Timings.Source != "timings" || tr.Usage == nil || !tr.DialectEnd {
		t.Errorf("timings %+v, usage %+v", tr.Timings, tr.Usage)
	}
}

func quirksTensorFold(t *testing.T) {
	tm := vector(t, "tensorfold-chat-extras").Timings
	if tm.DraftN == nil || tm.DraftAccepted == nil || tm.DraftSteps != nil || tm.DraftSource != draftsOfResponse || tm.TTFTMS == nil {
		t.Errorf("%+v", tm)
	}
	cuda := say(stream(finishChunk, `{"choices":[],"tensorfold":{"ttft":0.1,"drafted":8,"accepted":6}}`)).Timings
	if *cuda.DraftN != 8 || *cuda.DraftAccepted != 6 || *cuda.TTFTMS != 100 {
		t.Errorf("CUDA: %+v", cuda)
	}
	if e := vector(t, "tensorfold-chat-embedded-error").Error; e == nil || e.Where != whereEmbedded {
		t.Errorf("error %+v", e)
	}
}

func quirksNInfer(t *testing.T) {
	if tr := vector(t, "ninfer-chat-usage-null"); tr.Usage == nil || tr.Usage.Events != 1 {
		t.Errorf("usage %+v", tr.Usage)
	}
	if tr := vector(t, "ninfer-chat-error-no-done"); tr.Error == nil || tr.Terminator != "eof" {
		t.Errorf("error %+v, terminator %q", tr.Error, tr.Terminator)
	}
}

func quirksHalogen(t *testing.T) {
	tr := vector(t, "halogen-chat-length-empty-answer")
	if tr.FinishNorm != normLength || tr.Choice0().Text != "" || *tr.Usage.Reasoning != *tr.Usage.Completion {
		t.Errorf("%+v, usage %+v", tr.Choice0(), tr.Usage)
	}
}

func quirksLoom(t *testing.T) {
	if u := vector(t, "loom-chat-basic").Usage; *u.Cached != 48 || *u.Prompt != 64 {
		t.Errorf("%+v", u)
	}
}

func quirksGroq(t *testing.T) {
	if tr := vector(t, "generic-groq-x-usage"); tr.Usage == nil || tr.Timings == nil || tr.Timings.Source != "x_groq" {
		t.Errorf("usage %+v, timings %+v", tr.Usage, tr.Timings)
	}
}

func quirksMistral(t *testing.T) {
	if c := vector(t, "generic-mistral-content-parts").Choice0(); c.Text == "" {
		t.Errorf("%+v", c)
	}
}

func quirksvLLM(t *testing.T) {
	if tr := vector(t, "vllm-chat-spec-multitoken"); tr.TokenIDs != 8 || tr.TokenEvents() >= 8 {
		t.Errorf("%d ids in %d token events", tr.TokenIDs, tr.TokenEvents())
	}
	if tm := vector(t, "vllm-chat-reasoning").Timings; *tm.DraftN != 12 || *tm.DraftAccepted != 6 || *tm.DraftSteps != 4 || *tm.QueueMS != 1.25 {
		t.Errorf("%+v", tm)
	}
	named := say(stream(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`))
	if named.FinishNorm != normTools {
		t.Errorf("a named tool ends with %q", named.FinishNorm)
	}
}

func quirksSGLang(t *testing.T) {
	tr := say(stream(`{"choices":[{"index":0,"delta":{},"finish_reason":"abort","matched_stop":null}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":3,"reasoning_tokens":2}}`, "[DONE]"))
	if *tr.Usage.Reasoning != 2 || tr.FinishNorm != normError || tr.DialectEnd {
		t.Errorf("%+v, usage %+v", tr, tr.Usage)
	}
}

func quirksLMStudioRESTv0(t *testing.T) {
	if tm := vector(t, "lmstudio-v0-nonstream-stats").Timings; tm.Source != "stats" || *tm.TTFTMS != 110 || *tm.DecodeMS != 50 {
		t.Errorf("%+v", tm)
	}
	draft := say(stream(finishChunk, `{"choices":[],"stats":{"total_draft_tokens_count":9,"accepted_draft_tokens_count":6}}`)).Timings
	if *draft.DraftN != 9 || *draft.DraftAccepted != 6 {
		t.Errorf("%+v", draft)
	}
}

func quirksOpenRouter(t *testing.T) {
	tr := say(": OPENROUTER PROCESSING\n\n" + stream(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"m"}}]}`, "[DONE]"))
	if tr.Error == nil || tr.Error.Code != "502" || tr.Error.Where != whereEmbedded || tr.Comments != 1 {
		t.Errorf("%+v", tr.Error)
	}
}

func quirksTensorSharp(t *testing.T) {
	whole := sayAt(Info{Path: "/v1/chat/completions", ContentType: "application/json"}, `{"choices":[{"index":0,"message":{"content":"a","thinking":"hm","tool_calls":null},"finish_reason":"stop"}]}`)
	if whole.Choice0().Reasoning != "hm" {
		t.Errorf("%+v", whole.Choice0())
	}
	tr := vector(t, "tensorsharp-chat-queue-usage")
	if tr.QueueEvents != 2 || tr.Events[0].Phase != PhaseQueue || tr.Events[0].Kinds != 0 || tr.Events[2].Phase != PhaseNone {
		t.Errorf("%+v", tr.Events)
	}
}

// TestDraftsOfTheResponseGoFirst holds that counts of two sources are not mixed.
func TestDraftsOfTheResponseGoFirst(t *testing.T) {
	tm := say(stream(finishChunk, `{"choices":[],"timings":{"predicted_n":9,"draft_n":100,"draft_n_accepted":1},"metrics":{"speculative_decoding":{"num_accepted_tokens":6,"num_draft_tokens":12,"num_verify_steps":4}}}`)).Timings
	if *tm.DraftN != 12 || *tm.DraftAccepted != 6 || *tm.DraftSteps != 4 || tm.DraftSource != draftsOfResponse || tm.Source != "timings" {
		t.Errorf("%+v", tm)
	}
	old := say(stream(finishChunk, `{"choices":[],"timings":{"draft_n":10,"draft_n_accepted":7}}`)).Timings
	if *old.DraftN != 10 || *old.DraftAccepted != 7 || old.DraftSource != draftsOfTimings {
		t.Errorf("%+v", old)
	}
}

// TestHiddenErrors holds the signs of an error that the wire does not call one, and that a plain answer shows none.
func TestHiddenErrors(t *testing.T) {
	sse := Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"}
	json := Info{Path: "/v1/chat/completions", ContentType: "application/json"}
	html := Info{Path: "/v1/chat/completions", ContentType: "text/html"}
	text := func(s, finish string) string {
		return `{"model":"m","choices":[{"index":0,"delta":{"content":"` + s + `"},"finish_reason":` + finish + `}]}`
	}
	usage := func(n string) string {
		return `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":` + n + `}}`
	}
	for _, tc := range []struct {
		name string
		info Info
		body string
		want Suspect
	}{
		{"error as content, no tokens", sse, stream(text("Error: m", "null"), finishChunk, usage("0"), "[DONE]"), SuspectErrorAsContent},
		{"error as content in one chunk", sse, stream(text("Error: m", `"stop"`), "[DONE]"), SuspectErrorAsContent},
		{"error behind content", sse, stream(text("It", "null"), text("Error: m", `"stop"`), "[DONE]"), SuspectErrorAsContent},
		{"error in one piece, no tokens", json, `{"choices":[{"index":0,"message":{"content":"Error: m"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, SuspectErrorAsContent},
		{"a model writes such words", sse, stream(text("Error: m", "null"), finishChunk, usage("4"), "[DONE]"), ""},
		{"a model writes them first", sse, stream(text("Error: m", "null"), text(" is raised", `"stop"`), "[DONE]"), ""},
		{"a whole answer of such words", json, `{"choices":[{"index":0,"message":{"content":"Error: m"},"finish_reason":"stop"}]}`, ""},
		{"swallowed", sse, stream(text("The", "null"), `{"model":"","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`), SuspectSwallowed},
		{"a nameless chunk with the end", sse, stream(text("The", "null"), `{"model":"","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), ""},
		{"a nameless chunk between", sse, stream(text("The", "null"), `{"model":"","choices":[]}`, text("x", "null")), ""},
		{"no name at all", sse, stream(`{"model":"","choices":[{"index":0,"delta":{"content":"a"}}]}`), ""},
		{"cut", sse, stream(text("The", "null")), ""},
		{"a web page", html, "<!doctype html><html></html>", SuspectNoAPI},
		{"words", json, "it works", SuspectNoAPI},
		{"a page with a status of its own", Info{Path: "/v1/chat/completions", ContentType: "text/html", Status: 502}, "<html></html>", ""},
		{"a page where no dialect is", Info{Path: "/metrics", ContentType: "text/html"}, "<html></html>", ""},
		{"nothing", json, "", ""},
		{"an error that says so", sse, stream(`{"error":"m"}`, text("Error: m", `"stop"`)), ""},
	} {
		if tr := sayAt(tc.info, tc.body); tr.Suspect != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tr.Suspect, tc.want)
		}
	}
}

// TestNothingBehindDoneIsContent holds that what no client reads is not measured, and that an error there still counts.
func TestNothingBehindDoneIsContent(t *testing.T) {
	late := `{"choices":[{"index":0,"delta":{"content":"b","tool_calls":[{"id":"x"}]},"token_ids":[1],"logprobs":{"content":[{}]}}]}`
	tr := say(stream(delta(`{"content":"a"}`), finishChunk, "[DONE]", late, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`))
	if c := tr.Choice0(); c.Text != "a" || len(c.ToolCalls) != 0 || tr.TokenEvents() != 1 || tr.TokenIDs+tr.LogprobEntries != 0 {
		t.Errorf("content behind DONE: %+v", c)
	}
	if tr.AfterDone != 2 || len(tr.Events) != 5 || !tr.DialectEnd || tr.Usage == nil || tr.Terminator != doneMark {
		t.Errorf("%d events behind DONE of %d, end %v, usage %+v", tr.AfterDone, len(tr.Events), tr.DialectEnd, tr.Usage)
	}
	bad := say(stream(delta(`{"content":"a"}`), finishChunk, "[DONE]", `{"error":{"message":"m"}}`))
	if bad.Error == nil || bad.DialectEnd {
		t.Errorf("an error behind DONE: %+v", bad.Error)
	}
	if clean := say(stream(delta(`{"content":"a"}`), finishChunk, "[DONE]")); clean.AfterDone != 0 {
		t.Errorf("%d events behind DONE", clean.AfterDone)
	}
}

// TestEngineClock holds that the moments an engine writes on its events are kept beside them and nowhere else.
func TestEngineClock(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixNano()
	}
	native := Info{Path: "/api/chat", ContentType: "application/x-ndjson"}
	tr := sayAt(native, `{"message":{"content":"a"}}`+"\n"+`{"created_at":"2026-01-01T00:00:00.123456789Z","message":{"content":"b"}}`+"\n"+
		`{"created_at":"2026-01-01T01:00:00.2+01:00","message":{"content":"c"}}`+"\n"+`{"created_at":"0001-01-01T00:00:00Z","done":true}`+"\n")
	want := []int64{0, at("2026-01-01T00:00:00.123456789Z"), at("2026-01-01T00:00:00.2Z"), 0}
	if d := cmp.Diff(want, tr.EngineClock); d != "" {
		t.Errorf("moments (-want +got):\n%s", d)
	}
	for _, s := range []string{`7`, `null`, `"soon"`, `""`, `"9999-01-01T00:00:00Z"`} {
		if tr := sayAt(native, `{"created_at":`+s+`,"response":"a","done":true}`); tr.EngineClock != nil {
			t.Errorf("%s gives %v", s, tr.EngineClock)
		}
	}
	real := parseCapture(t, "ollama/api-chat-stream")
	if len(real.EngineClock) != len(real.Events) || !slices.IsSorted(real.EngineClock) || real.EngineClock[0] == 0 {
		t.Errorf("a real server: %v", real.EngineClock)
	}
	if chat := parseCapture(t, "llama-server/chat-stream-200"); chat.EngineClock != nil {
		t.Errorf("whole seconds of creation are no token clock: %v", chat.EngineClock)
	}
}

// TestSeveralPromptsAreKnown holds which requests carry a list of prompts.
func TestSeveralPromptsAreKnown(t *testing.T) {
	for body, want := range map[string]int64{
		`{"prompt":"a"}`: 0, `{"prompt":["a","b"]}`: 2, `{"prompt":[1,2,3]}`: 0, `{"prompt":[[1,2],[3]]}`: 2, `{"prompt":[]}`: 0,
		`{"text":["a","b","c"]}`: 3, `{"input_ids":[[1],[2]]}`: 2, `{"prompt":null}`: 0, `{"prompt":{"prompt_string":"a"}}`: 0,
	} {
		if got := ReadRequest("/completion", nil, []byte(body)).Prompts; got != want {
			t.Errorf("%s has %d prompts, want %d", body, got, want)
		}
	}
	f := ReadRequest("/generate", nil, []byte(`{"text":"a","sampling_params":{"max_new_tokens":7,"n":3}}`))
	if *f.MaxTokens != 7 || f.N != 3 {
		t.Errorf("SGLang's limits: %+v", f)
	}
	if f := ReadRequest("/api/chat", nil, []byte(`{"maxTokens":5}`)); *f.MaxTokens != 5 {
		t.Errorf("TensorSharp's limit: %+v", f)
	}
	if f := ReadRequest("/completion", nil, []byte(`{"n_predict":5,"n_cmpl":2}`)); *f.MaxTokens != 5 || f.N != 2 {
		t.Errorf("llama.cpp's limits: %+v", f)
	}
}
