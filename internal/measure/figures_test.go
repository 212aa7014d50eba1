package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func TestPlainStream(t *testing.T) {
	s := newScript().read(40, 0).texts(100, 20, 5).usage(50, 6).end(200)
	s.x.Timeline.HeaderRead = exchange.MarkAt(t0NS + 30e6)
	a := s.derive()
	wantValue(t, a, HeadersMS, 30, msrd)
	wantValue(t, a, FirstByteMS, 40, msrd)
	wantValue(t, a, FirstEventMS, 40, msrd)
	wantValue(t, a, TTFTMS, 100, msrd)
	wantValue(t, a, AnswerTTFTMS, 100, msrd)
	wantValue(t, a, LastTokenMS, 180, msrd)
	wantValue(t, a, TotalWallMS, 200, msrd)
	wantValue(t, a, PromptTokens, 50, rptd)
	wantValue(t, a, CompletionTokens, 6, rptd)
	wantValue(t, a, TokenEvents, 5, msrd)
	wantValue(t, a, PrefillTPS, 500, msrd)
	wantValue(t, a, DecodeTPS, 62.5, msrd)
	wantValue(t, a, TPOTMS, 16, msrd)
	wantValue(t, a, WallTPS, 30, msrd)
	wantValue(t, a, EventGapP50MS, 20, msrd)
	wantValue(t, a, EventGapMaxMS, 20, msrd)
	wantValue(t, a, TokensPerEvent, 1.2, msrd)
	wantValue(t, a, EventsPerRead, 1, msrd)
	wantValue(t, a, MergedReads, 0, msrd)
	wantValue(t, a, AddedP50US, 20, msrd)
	wantValue(t, a, AddedP99US, 20, msrd)
	wantValue(t, a, WriteStallMS, 0.02, msrd)
	wantValue(t, a, ProxyQueueMS, 1.5, msrd)
	wantAbsent(t, a, ReasonNotReported, CachedTokens, ReasoningTokens, EnginePrefillTPS, EngineDecodeTPS, EngineTTFTMS)
	wantAbsent(t, a, ReasonCachedUnknown, PrefillUncachedTPS)
	wantAbsent(t, a, ReasonFirstEventTokens, DecodeFirstEventTPS)
	wantAbsent(t, a, ReasonShortStream, Peak1sTPS)
	wantAbsent(t, a, ReasonNoDrafts, DraftAcceptance, TokensPerStep)
	wantAbsent(t, a, ReasonNotComparable, PrefillEngineDiff, DecodeEngineDiff)
	wantFlags(t, a)
	if a.Outcome != exchange.OutcomeComplete || a.Cause != nil || a.Version != Version {
		t.Errorf("outcome %s, cause %v, version %d", a.Outcome, a.Cause, a.Version)
	}
}

func TestReasoningStartsTTFTAndAnswerHasItsOwn(t *testing.T) {
	s := newScript().read(100, wire.KindReasoning).read(150, wire.KindReasoning).read(200, wire.KindTool).usage(1, 3)
	s.t.Usage.Reasoning = ref(int64(2))
	a := s.derive()
	wantValue(t, a, TTFTMS, 100, msrd)
	wantValue(t, a, AnswerTTFTMS, 200, msrd)
	wantValue(t, a, ReasoningTokens, 2, rptd)
	a = newScript().read(100, wire.KindReasoning).read(150, wire.KindReasoning).usage(1, 3).derive()
	wantAbsent(t, a, ReasonReasoningOnly, AnswerTTFTMS)
}

func TestHiddenReasoningWithholdsDecodeRates(t *testing.T) {
	s := newScript().texts(3000, 100, 20).usage(10, 220)
	s.t.Usage.Reasoning = ref(int64(200))
	a := s.derive()
	wantAbsent(t, a, ReasonHiddenReasoning, DecodeTPS, TPOTMS, DecodeFirstEventTPS, Peak1sTPS)
	wantValue(t, a, TTFTMS, 3000, msrd)
	wantFlags(t, a, FlagHiddenReasoning)
	s.t.Usage.Reasoning = ref(int64(0))
	wantFlags(t, s.derive())
}

func TestCachedPromptLeavesThePrefillRate(t *testing.T) {
	with := func(prompt, cached int64) *Analysis {
		s := newScript().texts(100, 10, 3).usage(prompt, 3)
		s.t.Usage.Cached = &cached
		return s.derive()
	}
	a := with(1000, 50) // exactly 5 %
	wantValue(t, a, PrefillTPS, 10000, msrd)
	wantValue(t, a, PrefillUncachedTPS, 9500, msrd)
	a = with(1000, 51)
	wantAbsent(t, a, ReasonCached, PrefillTPS)
	wantValue(t, a, PrefillUncachedTPS, 9490, msrd)
	a = with(1000, 969) // 31 left
	wantAbsent(t, a, ReasonCached, PrefillTPS, PrefillUncachedTPS)
	wantValue(t, with(1000, 968), PrefillUncachedTPS, 320, msrd)
	wantValue(t, with(1000, 0), CachedTokens, 0, rptd)
}

func TestTokenCountsInOrderOfTrust(t *testing.T) {
	s := newScript().texts(100, 20, 4)
	a := s.derive()
	wantValue(t, a, CompletionTokens, 4, estd)
	wantValue(t, a, DecodeTPS, 50, estd)
	wantValue(t, a, TPOTMS, 20, estd)
	wantValue(t, a, TokensPerEvent, 1, estd)
	wantValue(t, a, WallTPS, 25, estd)
	wantAbsent(t, a, ReasonNotReported, PromptTokens, PrefillTPS)
	wantFlags(t, a, FlagTokensEstimated)

	s.t.LogprobEntries = 6
	wantValue(t, s.derive(), CompletionTokens, 6, rptd)
	s.t.TokenIDs = 7
	wantValue(t, s.derive(), CompletionTokens, 7, rptd)
	s.t.Timings = &wire.Timings{Source: "timings", DecodeN: ref(int64(8)), PrefillN: ref(int64(90))}
	a = s.derive()
	wantValue(t, a, CompletionTokens, 8, rptd)
	wantAbsent(t, a, ReasonNotReported, PromptTokens) // the cached part is not known
	s.t.Timings.CachedN = ref(int64(10))
	a = s.derive()
	wantValue(t, a, PromptTokens, 100, rptd)
	wantValue(t, a, CachedTokens, 10, rptd)
	s.usage(101, 9)
	a = s.derive()
	wantValue(t, a, PromptTokens, 101, rptd)
	wantValue(t, a, CompletionTokens, 9, rptd)
	wantFlags(t, a)
}

func TestReportedZeroIsZero(t *testing.T) {
	a := newScript().texts(100, 20, 4).usage(0, 0).derive()
	wantValue(t, a, CompletionTokens, 0, rptd)
	wantValue(t, a, PromptTokens, 0, rptd)
	wantValue(t, a, PrefillTPS, 0, msrd)
	wantValue(t, a, WallTPS, 0, msrd)
	wantAbsent(t, a, ReasonTooFewTokens, DecodeTPS, TPOTMS)
	wantFlags(t, a)
}

func TestUsageOfOneChoiceClaimsNoTotal(t *testing.T) {
	s := newScript().texts(100, 20, 4).usage(10, 2)
	s.t.Usage.PerChoice = true
	a := s.derive()
	wantValue(t, a, PromptTokens, 10, rptd)
	wantAbsent(t, a, ReasonPerChoice, CompletionTokens, DecodeTPS, TPOTMS, WallTPS, TokensPerEvent)
	wantFlags(t, a, FlagPerChoiceUsage)
}

func TestSingleEventKeepsTTFT(t *testing.T) {
	a := newScript().read(30, 0).read(250, wire.KindTool).usage(100, 40).derive()
	wantValue(t, a, TTFTMS, 250, msrd)
	wantValue(t, a, PrefillTPS, 400, msrd)
	wantAbsent(t, a, ReasonSingleEvent, DecodeTPS, TPOTMS, DecodeFirstEventTPS, Peak1sTPS)
	wantAbsent(t, a, ReasonTooFewReads, EventGapP50MS, EventGapMaxMS)
	wantFlags(t, a, FlagSingleEvent)
}

func TestTwoEventsOfOneReadHaveNoWindow(t *testing.T) {
	a := newScript().burst(900, 2).usage(10, 2).derive()
	wantValue(t, a, TTFTMS, 900, msrd)
	wantAbsent(t, a, ReasonZeroWindow, DecodeTPS, TPOTMS)
	wantValue(t, a, EventsPerRead, 2, msrd)
	wantValue(t, a, MergedReads, 1, msrd)
	wantFlags(t, a, FlagMergedReads)
}

func TestFirstEventCorrection(t *testing.T) {
	s := newScript().texts(100, 10, 11).usage(10, 44)
	s.t.Events[0].Tokens = 4
	wantValue(t, s.derive(), DecodeFirstEventTPS, 400, msrd)
	s.t.Events[0].Tokens, s.t.Events[0].Running = -1, 14
	wantValue(t, s.derive(), DecodeFirstEventTPS, 300, msrd)
	s.t.Events[0].Running = 44
	wantAbsent(t, s.derive(), ReasonTooFewTokens, DecodeFirstEventTPS)
}

func TestGapsAreACensusBetweenReads(t *testing.T) {
	s := newScript().read(10, wire.KindText, wire.KindText).read(15, 0).read(20, wire.KindText).read(50, wire.KindText, wire.KindText)
	a := s.usage(1, 6).derive()
	wantValue(t, a, EventGapP50MS, 20, msrd) // 10 and 30
	wantValue(t, a, EventGapP90MS, 28, msrd)
	wantValue(t, a, EventGapMaxMS, 30, msrd)
	wantValue(t, a, EventsPerRead, 5.0/3, msrd)
	wantValue(t, a, MergedReads, 2, msrd)
}

func TestNotStreamedHasWallRateOnly(t *testing.T) {
	s := newScript().read(400, wire.KindText).usage(30, 20).end(500)
	s.t.Framing = wire.FramingJSON
	a := s.derive()
	wantAbsent(t, a, ReasonNotStreamed, TTFTMS, AnswerTTFTMS, LastTokenMS, PrefillTPS, DecodeTPS, TPOTMS,
		Peak1sTPS, EventGapP50MS, TokensPerEvent, EventsPerRead, TokenEvents)
	wantValue(t, a, WallTPS, 40, msrd)
	wantValue(t, a, TotalWallMS, 500, msrd)
	wantFlags(t, a)
	s.t.Usage = nil
	a = s.derive()
	wantAbsent(t, a, ReasonNotReported, CompletionTokens, WallTPS)
}

func TestNothingToMeasure(t *testing.T) {
	s := newScript()
	s.t.DialectEnd = false
	a := s.derive()
	wantAbsent(t, a, ReasonNoTokenEvent, TTFTMS, DecodeTPS, LastTokenMS)
	wantAbsent(t, a, ReasonNoEvent, FirstEventMS)
	wantAbsent(t, a, ReasonNoBody, FirstByteMS)
	wantAbsent(t, a, ReasonNoClientWrite, AddedP50US, AddedP99US, WriteStallMS)

	s.x.Response.Status = 0
	wantAbsent(t, s.derive(), ReasonNoResponse, TTFTMS, DecodeTPS, HeadersMS, TotalWallMS, WallTPS)

	s.x.Timeline.SendStart = exchange.Mark{}
	wantAbsent(t, s.derive(), ReasonNotSent, TTFTMS, HeadersMS, FirstEventMS, TotalWallMS, DecodeTPS, ProxyQueueMS)

	s = newScript().read(5)
	s.t = &wire.Transcript{Framing: wire.FramingJSON}
	a = s.derive()
	wantAbsent(t, a, ReasonNoDialect, TTFTMS, FirstEventMS, PromptTokens, CompletionTokens, DecodeTPS, EngineDecodeTPS, TokenEvents, DraftAcceptance)
	wantValue(t, a, TotalWallMS, 5, msrd)
	wantValue(t, a, AddedP50US, 20, msrd)
}

func TestEchoedPromptIsNotGenerated(t *testing.T) {
	s := newScript().texts(10, 10, 5)
	s.r.Echo = true
	a := s.derive()
	wantAbsent(t, a, ReasonEcho, TTFTMS, DecodeTPS, LastTokenMS)
	wantAbsent(t, a, ReasonNotReported, CompletionTokens)
	wantFlags(t, a, FlagEcho)
}

func TestCutRecordClaimsNothingOfItsEnd(t *testing.T) {
	s := newScript().texts(100, 20, 5)
	s.x.Response.Body, s.x.State = exchange.Body{Size: 100, Kept: 50}, exchange.StateTruncated
	s.t.DialectEnd = false
	a := s.derive()
	wantValue(t, a, TTFTMS, 100, msrd)
	wantAbsent(t, a, ReasonRecordTruncated, LastTokenMS, DecodeTPS, TPOTMS, CompletionTokens, TokensPerEvent)
	wantFlags(t, a, FlagRecordTruncated, FlagOutcomeUnverified)
	if a.Outcome != exchange.OutcomeComplete {
		t.Errorf("outcome %s", a.Outcome)
	}
	s.t.Events[0].Read = 99 // the reads are cut as well
	wantAbsent(t, s.derive(), ReasonRecordTruncated, TTFTMS, FirstEventMS, AnswerTTFTMS)
}

func TestShortAnswer(t *testing.T) {
	with := func(limit, completion, n int64) *script {
		s := newScript().texts(100, 20, 5).usage(1, completion)
		s.r.MaxTokens, s.r.N = &limit, n
		return s
	}
	for _, c := range []struct {
		limit, completion, n int64
		want                 bool
	}{{300, 149, 1, true}, {300, 150, 1, false}, {301, 150, 1, true}, {100, 99, 2, true}, {100, 100, 2, false}} {
		if got := with(c.limit, c.completion, c.n).derive().Flagged(FlagShortAnswer); got != c.want {
			t.Errorf("%d of %d x %d: short is %v", c.completion, c.limit, c.n, got)
		}
	}
	s := with(300, 10, 1)
	wantValue(t, s.derive(), DecodeTPS, 112.5, msrd) // shown all the same
	s.t.DialectEnd = false
	if s.derive().Flagged(FlagShortAnswer) {
		t.Error("a truncated answer is called short")
	}
}

func TestEngineFiguresAndTheirDifference(t *testing.T) {
	s := newScript().texts(100, 20, 21).usage(1000, 21)
	s.t.Timings = &wire.Timings{PrefillN: ref(int64(1000)), PrefillMS: ref(96.0), DecodeTPS: ref(52.0), DecodeN: ref(int64(21)), DecodeMS: ref(1.0), TTFTMS: ref(97.0)}
	a := s.derive()
	wantValue(t, a, EnginePrefillTPS, 1000/0.096, rptd)
	wantValue(t, a, EngineDecodeTPS, 52, rptd) // stated goes before derived
	wantValue(t, a, EngineTTFTMS, 97, rptd)
	wantValue(t, a, PrefillEngineDiff, 0.96-1, msrd)
	wantValue(t, a, DecodeEngineDiff, 50.0/52-1, msrd)
	wantFlags(t, a)
	s.t.Timings.DecodeTPS = ref(53.0)
	wantFlags(t, s.derive(), FlagDecodeDiffers)
	s.t.Timings.PrefillMS = ref(90.0)
	wantFlags(t, s.derive(), FlagDecodeDiffers, FlagPrefillDiffers)
	s.t.Timings = &wire.Timings{DecodeN: ref(int64(1)), DecodeTPS: ref(1e6)}
	wantAbsent(t, s.derive(), ReasonTooFewTokens, EngineDecodeTPS)
	for _, nonsense := range []float64{0, -1, math.Inf(1), math.NaN()} {
		s.t.Timings = &wire.Timings{DecodeTPS: &nonsense, PrefillTPS: &nonsense, TTFTMS: &nonsense, PrefillN: ref(int64(0)), PrefillMS: ref(0.0)}
		wantAbsent(t, s.derive(), ReasonNotReported, EnginePrefillTPS, EngineDecodeTPS, EngineTTFTMS)
	}
}

func TestDrafts(t *testing.T) {
	s := newScript().texts(100, 20, 6).usage(10, 125)
	s.t.Timings = &wire.Timings{DraftN: ref(int64(120)), DraftAccepted: ref(int64(84))}
	a := s.derive()
	wantValue(t, a, DraftAcceptance, 0.7, rptd)
	wantAbsent(t, a, ReasonStepsUnknown, TokensPerStep)
	s.t.Timings.DraftSteps = ref(int64(40))
	wantValue(t, s.derive(), TokensPerStep, 3.1, rptd)
	s.t.Timings = &wire.Timings{DraftN: ref(int64(0)), DraftAccepted: ref(int64(0))}
	wantAbsent(t, s.derive(), ReasonNoDrafts, DraftAcceptance)
}

func TestPeakCountsTokensNotEvents(t *testing.T) {
	// Slow, then twice as fast for more than a second: 4 tokens an event by usage.
	s := newScript().texts(100, 100, 10).texts(1100, 50, 30).usage(1, 160)
	wantValue(t, s.derive(), Peak1sTPS, 80, msrd)
	// The same stream whose fast part has one token an event.
	for i := range s.t.Events {
		s.t.Events[i].Tokens = 13
		if i >= 10 {
			s.t.Events[i].Tokens = 1
		}
	}
	wantValue(t, s.derive(), Peak1sTPS, 130, msrd)
}

func TestPeakByRunningUsage(t *testing.T) {
	s := newScript().texts(0, 250, 9).usage(1, 17)
	running := int64(0)
	for i := range s.t.Events {
		if running++; i < 4 {
			running += 2
		}
		s.t.Events[i].Running = running
	}
	wantValue(t, s.derive(), Peak1sTPS, 12, msrd) // four events of three tokens
}

func TestPeakIsNeverBelowTheMean(t *testing.T) {
	two := newScript().burst(100, 20).burst(1600, 20).usage(1, 40)
	a := two.derive()
	wantValue(t, a, Peak1sTPS, a.Figures[DecodeTPS].Value, msrd)
}

func TestAddedTimeIsPerEvent(t *testing.T) {
	s := newScript().read(10, wire.KindText, wire.KindText, wire.KindText).read(30, wire.KindText).usage(1, 4)
	s.x.Timeline.Reads[0].Write, s.x.Timeline.Reads[1].Write = 5_000, 9_000_000
	a := s.derive()
	wantValue(t, a, AddedP50US, 5, msrd)
	wantValue(t, a, WriteStallMS, 9, msrd)
	s.x.Timeline.Reads[0].Write, s.x.Timeline.Reads[1].Write = 0, 0
	wantAbsent(t, s.derive(), ReasonNoClientWrite, AddedP50US, WriteStallMS)
}

func TestValuesThatAreNotFiniteAreAbsent(t *testing.T) {
	a := &Analysis{Figures: exchange.Figures{}}
	a.set(DecodeTPS, measured(math.Inf(1), unitTPS))
	a.set(TPOTMS, measured(math.NaN(), unitMS))
	wantAbsent(t, a, ReasonZeroWindow, DecodeTPS, TPOTMS)
}

func TestNothingTookNoTime(t *testing.T) {
	a := newScript().texts(0, 0, 2).usage(5, 2).derive()
	wantAbsent(t, a, ReasonZeroWindow, PrefillTPS, DecodeTPS, WallTPS)
	wantValue(t, a, TTFTMS, 0, msrd)
}

func TestReasoningOnlyOfACutRecord(t *testing.T) {
	s := newScript().read(5, wire.KindReasoning)
	s.x.Response.Body = exchange.Body{Size: 2, Kept: 1}
	wantAbsent(t, s.derive(), ReasonRecordTruncated, AnswerTTFTMS)
}

func TestRemarks(t *testing.T) {
	s := newScript().texts(10, 10, 5).usage(1, 5)
	s.t.Usage.Partial, s.t.UnterminatedLast, s.t.TruncatedTail, s.t.Coding, s.t.CodingError = true, true, true, "gzip", "early end"
	s.x.End = exchange.EndReset
	wantFlags(t, s.derive(), FlagUsagePartial, FlagUnterminatedLast, FlagTruncatedTail, FlagContentCoded, FlagCodingError, FlagUncleanEnd)
	s = newScript().texts(10, 10, 5).usage(1, 5)
	s.x.End = exchange.EndClientGone
	wantFlags(t, s.derive())
}

func TestEveryMetricIsAlwaysThereWithAKnownReason(t *testing.T) {
	names := map[string]string{}
	for _, d := range Metrics() {
		if d.Text == "" || d.Unit == "" || names[d.Name] != "" {
			t.Errorf("definition %+v is incomplete or repeated", d)
		}
		names[d.Name] = d.Unit
	}
	scripts := map[string]*script{
		"plain": newScript().texts(100, 20, 5).usage(1, 5), "empty": newScript(), "json": newScript().read(5, wire.KindText),
		"buffered": newScript().burst(500, 20).usage(5, 20), "nothing": {x: &exchange.Exchange{}, t: &wire.Transcript{}},
	}
	scripts["json"].t.Framing = wire.FramingJSON
	for name, s := range scripts {
		a := s.derive()
		for metric, f := range a.Figures {
			if names[metric] != f.Unit {
				t.Errorf("%s: %s has the unit %q, its definition %q", name, metric, f.Unit, names[metric])
			}
			if !f.Present() && !slices.Contains(Reasons(), f.Reason) {
				t.Errorf("%s: %s is absent for %q, which is no word of the vocabulary", name, metric, f.Reason)
			}
			if f.Present() && f.Reason != "" {
				t.Errorf("%s: %s has a value and a reason", name, metric)
			}
		}
		if len(a.Figures) != len(names) {
			t.Errorf("%s: %d figures, %d definitions", name, len(a.Figures), len(names))
		}
	}
}
