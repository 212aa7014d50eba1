package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// vectorAnalysis measures a written transcript whose events come 10 ms apart.
func vectorAnalysis(t *testing.T, file string) *Analysis {
	t.Helper()
	for _, v := range wiretest.Vectors(t) {
		if v.File == file+".txt" {
			return Analyze(vectorExchange(v))
		}
	}
	t.Fatalf("there is no vector %s", file)
	return nil
}

func TestQueue(t *testing.T) {
	a := vectorAnalysis(t, "tensorsharp-chat-queue-usage")
	wantValue(t, a, QueueMS, 20, msrd)
	wantAbsent(t, a, ReasonNotReported, EngineQueueMS, LoadMS)
	if d := cmp.Diff([]exchange.PhaseSpan{{Phase: "queue", FirstMS: 10, LastMS: 20, Events: 2}}, a.Phases); d != "" {
		t.Errorf("phases (-want +got):\n%s", d)
	}
	none := newScript().texts(10, 10, 3)
	wantAbsent(t, none.derive(), ReasonNotReported, QueueMS, EngineQueueMS, LoadMS)
	none.t.Timings = &wire.Timings{QueueMS: ref(0.0), LoadMS: ref(-1.0)}
	wantValue(t, none.derive(), EngineQueueMS, 0, rptd) // no wait is a measurement, unlike no rate
	wantAbsent(t, none.derive(), ReasonNotReported, QueueMS, LoadMS)
	none.x.Timeline.SendStart = exchange.Mark{}
	wantAbsent(t, none.derive(), ReasonNotSent, QueueMS)
	none.t = &wire.Transcript{}
	none.x.Timeline.SendStart = exchange.MarkAt(1)
	wantAbsent(t, none.derive(), ReasonNoDialect, QueueMS, LoadMS, EngineQueueMS)
}

func TestLoad(t *testing.T) {
	a := vectorAnalysis(t, "lmstudio-native-events")
	wantValue(t, a, LoadMS, 2500, rptd)
	want := []exchange.PhaseSpan{{Phase: "load", FirstMS: 20, LastMS: 40, Events: 3}, {Phase: "prompt", FirstMS: 50, LastMS: 70, Events: 3}}
	if d := cmp.Diff(want, a.Phases); d != "" {
		t.Errorf("phases (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]exchange.PrefillPoint{{Tokens: 15, MS: 60, Estimated: true}}, a.Curve); d != "" {
		t.Errorf("curve (-want +got):\n%s", d)
	}
	wantValue(t, vectorAnalysis(t, "ollama-chat-thinking"), LoadMS, 120, rptd)
	wantValue(t, vectorAnalysis(t, "vllm-chat-reasoning"), EngineQueueMS, 1.25, rptd)
}

func TestPrefillCurve(t *testing.T) {
	a := vectorAnalysis(t, "llamacpp-chat-progress-pings")
	want := []exchange.PrefillPoint{
		{Tokens: 1024, Cached: ref(int64(512)), MS: 10, EngineMS: ref(210.0)},
		{Tokens: 2560, Cached: ref(int64(512)), MS: 20, EngineMS: ref(830.0)},
		{Tokens: 4096, Cached: ref(int64(512)), MS: 30, EngineMS: ref(1490.0)},
	}
	if d := cmp.Diff(want, a.Curve); d != "" {
		t.Errorf("curve (-want +got):\n%s", d)
	}
	real := Analyze(capture(t, "chat-stream-return-progress-cached"))
	if n := len(real.Curve); n != 2 || real.Curve[1].Tokens != 952 || real.Curve[0].MS > real.Curve[1].MS || real.Curve[1].MS > real.Figures[TTFTMS].Value {
		t.Errorf("a real server: %+v, TTFT %v", real.Curve, real.Figures[TTFTMS].Value)
	}
	s := newScript().texts(10, 10, 3)
	s.t.Progress = []wire.Progress{{Event: 0, Share: ref(0.5)}, {Event: 1, Tokens: ref(int64(7))}, {Event: 9, Tokens: ref(int64(9))}}
	if d := cmp.Diff([]exchange.PrefillPoint{{Tokens: 7, MS: 20}}, s.derive().Curve); d != "" {
		t.Errorf("a share of an unknown prompt and an event without a stamp (-want +got):\n%s", d)
	}
}

func TestThinking(t *testing.T) {
	s := newScript().read(100, wire.KindReasoning).read(150, wire.KindReasoning).read(400, wire.KindText)
	s.t.Choices = []wire.Choice{{Reasoning: "né"}, {Index: 1, Reasoning: "a"}}
	a := s.derive()
	wantValue(t, a, ThinkMS, 300, msrd)
	wantValue(t, a, ReasoningChars, 3, msrd)
	wantValue(t, newScript().texts(10, 10, 2).derive(), ThinkMS, 0, msrd)
	wantValue(t, newScript().texts(10, 10, 2).derive(), ReasoningChars, 0, msrd)
	only := newScript().read(100, wire.KindReasoning)
	wantAbsent(t, only.derive(), ReasonReasoningOnly, ThinkMS)
	wantAbsent(t, newScript().derive(), ReasonNoTokenEvent, ThinkMS)
	only.x.Response.Body = exchange.Body{Size: 2, Kept: 1}
	wantAbsent(t, only.derive(), ReasonRecordTruncated, ReasoningChars)
	only.x.Response.Status = 0
	wantAbsent(t, only.derive(), ReasonNoResponse, ReasoningChars)
}

// TestOllamaCountsTheCache holds that a count with cached tokens in it and a time without them make no rate.
func TestOllamaCountsTheCache(t *testing.T) {
	a := vectorAnalysis(t, "ollama-chat-thinking") // 30 counted, 10 of them read in 40 ms
	wantAbsent(t, a, ReasonCachedUnknown, EnginePrefillTPS)
	wantValue(t, a, EnginePrefillMaxTPS, 750, rptd)
	wantValue(t, a, EngineDecodeTPS, 50, rptd)
	wantAbsent(t, a, ReasonNotComparable, PrefillEngineDiff)

	s := newScript().texts(100, 20, 5).usage(30, 5)
	s.t.Timings = &wire.Timings{PrefillMS: ref(40.0), PrefillN: ref(int64(30)), PrefillCounts: true}
	s.t.Usage.Cached = ref(int64(20)) // TensorSharp says it under the same path
	wantValue(t, s.derive(), EnginePrefillTPS, 250, rptd)
	s.t.Timings.PrefillN, s.t.Timings.PrefillCounts = nil, false // Groq, Prism: a time alone
	wantValue(t, s.derive(), EnginePrefillTPS, 250, rptd)
	s.t.Usage.Cached = nil
	wantAbsent(t, s.derive(), ReasonCachedUnknown, EnginePrefillTPS)
	s.t.Timings.PrefillTPS = ref(123.0)
	wantValue(t, s.derive(), EnginePrefillTPS, 123, rptd)
	s.t.Timings.PrefillMS = nil
	wantAbsent(t, s.derive(), ReasonNotReported, EnginePrefillMaxTPS)
}

// TestHiddenReasoningLeavesNoPrefillRate holds that a TTFT with decoding in it makes no prefill rate.
func TestHiddenReasoningLeavesNoPrefillRate(t *testing.T) {
	s := newScript().texts(1000, 20, 30).usage(500, 60)
	s.t.Usage.Reasoning, s.t.Usage.Cached = ref(int64(30)), ref(int64(0))
	a := s.derive()
	wantAbsent(t, a, ReasonHiddenReasoning, PrefillTPS, PrefillUncachedTPS, DecodeTPS)
	wantValue(t, a, TTFTMS, 1000, msrd)
	s.t.Events[0].Kinds = wire.KindReasoning
	wantValue(t, s.derive(), PrefillTPS, 500, msrd)
	wantAbsent(t, vectorAnalysis(t, "foundry-chat-hidden-reasoning"), ReasonHiddenReasoning, PrefillTPS)
}

// TestDifferenceNeedsTokens holds the smallest sample of the 5 % flags.
func TestDifferenceNeedsTokens(t *testing.T) {
	for n, want := range map[int]bool{minCompared - 1: false, minCompared: true} {
		s := newScript().texts(100, 20, n).usage(int64(n), int64(n))
		s.t.Timings = &wire.Timings{PrefillTPS: ref(1000.0), DecodeTPS: ref(100.0)}
		a := s.derive()
		if a.Flagged(FlagDecodeDiffers) != want || a.Flagged(FlagPrefillDiffers) != want {
			t.Errorf("%d tokens: flags %q", n, a.Flags)
		}
		if !a.Figures[DecodeEngineDiff].Present() {
			t.Errorf("%d tokens: the difference itself is absent", n)
		}
	}
}

// TestUsageOfOneOfSeveralPrompts holds that counts of one prompt are not those of a request with a list of them.
func TestUsageOfOneOfSeveralPrompts(t *testing.T) {
	s := newScript().texts(100, 20, 5).usage(30, 5)
	s.t.Usage.PerChoice, s.t.Usage.Cached = true, ref(int64(3))
	wantValue(t, s.derive(), PromptTokens, 30, rptd) // several answers to one prompt
	s.r.Prompts = 2
	wantAbsent(t, s.derive(), ReasonPerChoice, PromptTokens, CachedTokens, CompletionTokens, PrefillTPS, DecodeTPS)
}

// TestListsAreNoStreams holds that a list of whole answers has no instants.
func TestListsAreNoStreams(t *testing.T) {
	for target, body := range map[string]string{
		"/completion": `[{"index":0,"content":"a","stop":true},{"index":1,"content":"b","stop":true}]`,
		"/generate":   `[{"text":"a","meta_info":{"finish_reason":{"type":"stop"}}},{"text":"b","meta_info":{"finish_reason":{"type":"stop"}}}]`,
	} {
		s := newScript().read(10)
		s.x.Request.Target, s.x.Response.Body = target, exchange.NewBody([]byte(body))
		s.x.Timeline.Reads[0].Size = len(body)
		a := Analyze(s.x)
		wantAbsent(t, a, ReasonNotStreamed, TTFTMS, DecodeTPS)
		if a.Outcome != exchange.OutcomeComplete {
			t.Errorf("%s: outcome %s", target, a.Outcome)
		}
	}
}

func TestDetailShowsPhasesClockAndSuspicion(t *testing.T) {
	for _, v := range wiretest.Vectors(t) {
		d := Detail(vectorExchange(v), exchange.Summary{})
		switch v.File {
		case "llamacpp-chat-progress-pings.txt":
			if len(d.PrefillCurve) != 3 || len(d.Phases) != 1 {
				t.Errorf("curve %+v, phases %+v", d.PrefillCurve, d.Phases)
			}
		case "ollama-chat-thinking.txt":
			if len(d.EngineClock) != v.Expected.Events {
				t.Errorf("%d moments of %d events", len(d.EngineClock), v.Expected.Events)
			}
		case "tensorsharp-chat-error-as-content.txt":
			if d.Suspect != string(wire.SuspectErrorAsContent) {
				t.Errorf("suspicion %q", d.Suspect)
			}
		}
	}
}

// TestRR21HeadIsNoLatency holds that the head, the first byte, the first token and the last are four instants.
func TestRR21HeadIsNoLatency(t *testing.T) {
	s := newScript().read(2).read(90, 0).texts(400, 20, 6).usage(10, 6)
	s.x.Timeline.FirstRead = exchange.MarkAt(t0NS + 90e6)
	a := s.derive()
	wantValue(t, a, HeadersMS, 2, msrd)
	wantValue(t, a, FirstByteMS, 90, msrd)
	wantValue(t, a, FirstEventMS, 90, msrd)
	wantValue(t, a, TTFTMS, 400, msrd)
	wantValue(t, a, LastTokenMS, 500, msrd)
}
