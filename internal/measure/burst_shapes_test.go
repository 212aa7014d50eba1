package measure

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// stampedBy says which clock stamped the reads, and for one that shows it how late each was taken: until the client had it.
func (s *script) stampedBy(c exchange.StampClock, lateMS float64) *script {
	s.x.Timeline.Clock = c
	for i := range s.x.Timeline.Reads {
		s.x.Timeline.Reads[i].Write = int64(lateMS * 1e6)
	}
	return s
}

// stalled makes the last read so far wait for the client.
func (s *script) stalled(ms float64) *script {
	s.x.Timeline.Reads[len(s.x.Timeline.Reads)-1].Write = int64(ms * 1e6)
	return s
}

// sized gives the events their bytes: an envelope and four for each token.
func (s *script) sized(tokens ...int) *script {
	var at int64
	for i, n := range tokens {
		s.t.Events[i].Start, s.t.Events[i].End = at, at+180+4*int64(n)
		at = s.t.Events[i].End
	}
	return s
}

// shapeCase is a stream with its prompt and completion. Completion 0 stands for one token an event.
type shapeCase struct {
	s                  *script
	prompt, completion int64
	unreported         bool // the engine reports no usage
}

func (c shapeCase) derive() *Analysis {
	if !c.unreported {
		n := c.completion
		if n == 0 {
			n = int64(len(c.s.t.Events))
		}
		c.s.usage(c.prompt, n)
	}
	return c.s.derive()
}

// TestReleasesAreBuffered holds every known way in which a finished answer is let go.
func TestReleasesAreBuffered(t *testing.T) {
	const text, tool, reasoning = wire.KindText, wire.KindTool, wire.KindReasoning
	for name, c := range map[string]shapeCase{
		"a role event before the silence":               {s: newScript().read(4, 0).burst(2000, 30), prompt: 20},
		"keep-alive events through the silence":         {s: newScript().read(500, 0).read(1000, 0).read(1500, 0).burst(2000, 30), prompt: 20},
		"in two segments":                               {s: newScript().burst(2000, 30).burst(2000.2, 30), prompt: 20},
		"in two segments, the second after its ACK":     {s: newScript().burst(4000, 1).burst(4040, 59), prompt: 20},
		"in the flights of a long way":                  {s: newScript().burst(9000, 40).burst(9060, 80).burst(9120, 90), prompt: 20},
		"replayed 50 us apart":                          {s: newScript().spaced(600, 50, 400), prompt: 9000},
		"replayed 50 us apart, no usage":                {s: newScript().spaced(600, 50, 400), unreported: true},
		"replayed 300 us apart":                         {s: newScript().spaced(4000, 300, 200), prompt: 40},
		"replayed 300 us apart, no usage":               {s: newScript().spaced(4000, 300, 200), unreported: true},
		"a finished answer cut into twelve pieces":      {s: newScript().spaced(3000, 900, 12), prompt: 50, completion: 300},
		"reasoning whole, then the tool call whole":     {s: newScript().read(5000, reasoning).read(5000.05, tool), prompt: 50, completion: 200},
		"two pieces in one read":                        {s: newScript().read(5000, reasoning, text), prompt: 50, completion: 200},
		"tool fragments at the end of the work":         {s: newScript().read(2300, slices.Repeat([]wire.Kind{tool}, 14)...), prompt: 300, completion: 40},
		"most of the answer in the first event":         {s: newScript().texts(3000, 20, 3).sized(58, 1, 1), prompt: 50, completion: 60},
		"all but the last token in the first event":     {s: newScript().texts(3000, 0.1, 2).sized(58, 1), prompt: 50, completion: 59},
		"buffers of ten events":                         {s: newScript().burst(2500, 10).burst(5000, 10).burst(7500, 10).burst(8000, 3), prompt: 20},
		"the engine's stated time, played at once":      {s: newScript().burst(3, 200).timings(1900), prompt: 20},
		"in flights, and the engine states its time":    {s: newScript().burst(9000, 40).burst(9060, 80).burst(9120, 90).timings(8000), prompt: 20},
		"a heavy start, and the engine states its time": {s: newScript().texts(3000, 20, 3).sized(58, 1, 1).timings(2900), prompt: 50, completion: 60},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.derive()
			wantAbsent(t, a, ReasonBuffered, TTFTMS, DecodeTPS, TPOTMS, Peak1sTPS, DecodeFirstEventTPS)
			if !a.Flagged(FlagBuffered) || a.Flagged(FlagLateBurst) {
				t.Errorf("flags %q", a.Flags)
			}
		})
	}
}

// TestFirstEventWithCountedTokens holds the heavy start where the wire says how many tokens it holds.
func TestFirstEventWithCountedTokens(t *testing.T) {
	for first, buffered := range map[int]bool{4: false, 15: false, 16: true, 30: true} {
		s := newScript().texts(3000, 20, 5).usage(50, int64(first+4))
		s.t.Events[0].Tokens = first
		if a := s.derive(); a.Flagged(FlagBuffered) != buffered {
			t.Errorf("%d tokens of %d in the first event: flags %q", first, first+4, a.Flags)
		}
	}
	s := newScript().texts(3000, 20, 100).usage(50, 130)
	s.t.Events[0].Tokens = 31
	if a := s.derive(); a.Flagged(FlagBuffered) {
		t.Error("a quarter of the answer in its first event is called buffered")
	}
}

// TestGenuineStreamsKeepTheirFigures holds what looks like a release and is none.
func TestGenuineStreamsKeepTheirFigures(t *testing.T) {
	const text, tool = wire.KindText, wire.KindTool
	kernel, read := exchange.ClockKernel, exchange.ClockRead
	for name, c := range map[string]shapeCase{
		"5,000 tokens a second, long prompt":            {s: newScript().spaced(1000, 200, 300), prompt: 8000},
		"5,000 tokens a second, short prompt":           {s: newScript().spaced(60, 200, 30), prompt: 20},
		"5,000 tokens a second, no usage":               {s: newScript().spaced(400, 200, 30), unreported: true},
		"2,500 tokens a second, prompt of 4,000":        {s: newScript().spaced(1500, 400, 100), prompt: 4000},
		"5,000 tokens a second, merged and late":        {s: newScript().burst(60, 20).stampedBy(kernel, 4), prompt: 20},
		"200 tokens a second, three merged":             {s: newScript().burst(400, 3).stampedBy(kernel, 9), prompt: 300},
		"200 tokens a second, eight merged in two":      {s: newScript().burst(700, 5).burst(705, 3).stampedBy(kernel, 20), prompt: 300},
		"three events merged, stamps of the read":       {s: newScript().burst(400, 3).stampedBy(read, 0.05), prompt: 300},
		"ten events merged, stamps of the read":         {s: newScript().burst(700, 10).stampedBy(read, 0.05), prompt: 300},
		"three events, each its read":                   {s: newScript().texts(2000, 5, 3), prompt: 300},
		"four tokens an event, 14 ms apart":             {s: newScript().texts(120, 14, 100), prompt: 9, completion: 400},
		"a speculative step of sixteen":                 {s: newScript().read(2000, text).burst(2020, 16), prompt: 300},
		"one lone token, 2 s of prompt, two steps":      {s: newScript().read(2000, text).burst(2030, 8).burst(2060, 8), prompt: 300},
		"steps of eight, a slow model":                  {s: newScript().read(1500, text).burst(2000, 8).burst(2500, 8).burst(3000, 8), prompt: 30},
		"many tokens of no event, streamed":             {s: newScript().texts(900, 20, 30), prompt: 30, completion: 45},
		"tool call: name, then fragments":               {s: newScript().read(900, tool).read(920, tool).read(940, tool).read(960, tool).sized(24, 1, 1, 1), prompt: 80, completion: 20},
		"a long word first":                             {s: newScript().texts(900, 20, 10).sized(5, 1, 1, 1, 1, 1, 1, 1, 1, 1), prompt: 80, completion: 12},
		"client that stalls: large reads, long pauses":  {s: newScript().burst(300, 20).stalled(900).burst(1210, 20).stalled(900).burst(2120, 20), prompt: 20},
		"busy machine: flights that are our lateness":   {s: newScript().burst(1500, 20).burst(1518, 20).burst(1536, 20).stampedBy(kernel, 17), prompt: 4000},
		"text, then a tool call whole":                  {s: newScript().texts(300, 20, 30).read(2600, tool), prompt: 300, completion: 90},
		"tool name in time, arguments at once":          {s: newScript().read(300, tool).burst(2600, 20), prompt: 300},
		"two tool calls, each whole":                    {s: newScript().read(900, tool).read(1700, tool).sized(40, 30), prompt: 300, completion: 70},
		"fast, and the engine's stated time agrees":     {s: newScript().spaced(300, 50, 100).timings(6), prompt: 20},
		"answer of one event, then the end of its text": {s: newScript().texts(900, 30, 2).sized(12, 1), prompt: 30, completion: 13},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.derive()
			if a.Flagged(FlagBuffered) || !a.Figures[TTFTMS].Present() {
				t.Errorf("flags %q, TTFT %+v", a.Flags, a.Figures[TTFTMS])
			}
			if d := a.Figures[DecodeTPS]; d.Value > 1e9/fastestToken && c.s.t.Timings == nil {
				t.Errorf("decode at %v tokens a second", d.Value)
			}
		})
	}
}

// TestLateBurst holds an answer that began in time and whose rest came at once: first and last token are where they were.
func TestLateBurst(t *testing.T) {
	for name, s := range map[string]*script{
		"after a first lone token":      newScript().read(300, wire.KindText).burst(2600, 40),
		"after a few":                   newScript().texts(300, 20, 10).burst(3600, 200),
		"a tool call after its name":    newScript().read(300, wire.KindTool).read(2600, slices.Repeat([]wire.Kind{wire.KindTool}, 30)...),
		"with a little more behind it":  newScript().texts(300, 20, 10).burst(3600, 200).texts(3700, 20, 10),
		"in events of their own":        newScript().read(300, wire.KindText).spaced(2600, 50, 40),
		"after reasoning that streamed": newScript().read(300, wire.KindReasoning).read(400, wire.KindReasoning).burst(2600, 40),
	} {
		t.Run(name, func(t *testing.T) {
			n := int64(len(s.t.Events))
			a := s.usage(20, n).derive()
			wantValue(t, a, TTFTMS, 300, msrd)
			wantAbsent(t, a, ReasonBuffered, Peak1sTPS)
			window := (a.Figures[LastTokenMS].Value - 300) / 1000
			wantValue(t, a, DecodeTPS, float64(n-1)/window, msrd)
			if !a.Flagged(FlagLateBurst) || a.Flagged(FlagBuffered) {
				t.Errorf("flags %q", a.Flags)
			}
		})
	}
	for name, s := range map[string]*script{
		"our own client made the pause": newScript().read(300, wire.KindText).stalled(2200).burst(2600, 40),
		"a step of sixteen":             newScript().texts(300, 20, 30).burst(1600, 16),
		"streamed":                      newScript().texts(300, 20, 100),
	} {
		if a := s.usage(20, int64(len(s.t.Events))).derive(); a.Flagged(FlagLateBurst) {
			t.Errorf("%s: flags %q", name, a.Flags)
		}
	}
}

// TestTokensFasterThanAnyEngineGiveNoRate holds that a window too short for its tokens gives no rate, whatever came before it.
func TestTokensFasterThanAnyEngineGiveNoRate(t *testing.T) {
	for name, s := range map[string]*script{
		"at once after 6 ms":        newScript().spaced(6, 3, 64),
		"in two reads":              newScript().burst(6, 30).burst(6.3, 30),
		"merged on a busy machine":  newScript().burst(200, 3).burst(200.2, 3).stampedBy(exchange.ClockKernel, 9),
		"engine's time says slower": newScript().spaced(6, 3, 64).timings(20),
	} {
		a := s.usage(20, int64(len(s.t.Events))).derive()
		wantAbsent(t, a, ReasonZeroWindow, DecodeTPS, TPOTMS, DecodeFirstEventTPS, Peak1sTPS)
		if !a.Figures[TTFTMS].Present() || a.Flagged(FlagBuffered) {
			t.Errorf("%s: flags %q, TTFT %+v", name, a.Flags, a.Figures[TTFTMS])
		}
	}
	a := newScript().spaced(6, 60, 64).timings(3.8).usage(20, 64).derive()
	wantValue(t, a, DecodeTPS, 1e6/60, msrd)
}

// TestMergedReadsHideNoRelease replays one answer in any division into reads, by either clock: it is buffered however the
// machine merged it. The same answer streamed at 50 tokens a second never is.
func TestMergedReadsHideNoRelease(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		clock := []exchange.StampClock{exchange.ClockKernel, exchange.ClockRead, exchange.ClockMixed}[r.IntN(3)]
		late, n := 30*r.Float64(), 64+r.IntN(200)
		if clock == exchange.ClockRead {
			late = 0.1
		}
		released := merge(r, clock, late, n, 0.05*r.Float64())
		if a := released.usage(30, int64(n)).derive(); !a.Flagged(FlagBuffered) {
			t.Fatalf("seed %d: %d events, %s stamps, %v ms late: not buffered", seed, n, clock, late)
		}
		streamed := merge(r, clock, late, n, 20)
		a := streamed.usage(30, int64(n)).derive()
		if a.Flagged(FlagBuffered) || a.Flagged(FlagLateBurst) || !a.Figures[DecodeTPS].Present() {
			t.Fatalf("seed %d: %d events, %s stamps, %v ms late: %q", seed, n, clock, late, a.Flags)
		}
	}
}

// merge is a stream of n events every ms apart after 6 s, as a reader takes it that is up to late ms late: a kernel stamp is
// that of the newest event in the read, a read stamp that of the read.
func merge(r *rand.Rand, clock exchange.StampClock, late float64, n int, every float64) *script {
	const from = 6000
	s := newScript()
	for i := 0; i < n; {
		taken := from + float64(i)*every + late*r.Float64()
		k := 1
		for i+k < n && from+float64(i+k)*every <= taken {
			k++
		}
		newest := from + float64(i+k-1)*every
		at, write := newest, taken-newest+0.02
		if clock == exchange.ClockRead {
			at, write = taken, 0.02
		}
		s.burst(at, k).stalled(write)
		i += k
	}
	s.x.Timeline.Clock = clock
	return s
}

// TestBufferedAnswersOfTheEnginesThatHoldBack plays the written transcripts of engines that hold an answer back as one
// release after 1.5 s: several token events are buffered, a single one is a single event, a whole body is not streamed.
func TestBufferedAnswersOfTheEnginesThatHoldBack(t *testing.T) {
	for name, want := range map[string]string{
		"prism-chat-tools-buffered":          FlagSingleEvent,
		"foundry-chat-tools-whole":           FlagSingleEvent,
		"vllm-completions-beam-single-event": FlagSingleEvent,
		"tabbyapi-disable-streaming-json":    "",
		"strata-chat-tools":                  FlagBuffered,
		"vllm-chat-spec-multitoken":          FlagBuffered,
		"openai-chat-tools":                  FlagBuffered,
		"tensorsharp-chat-queue-usage":       FlagBuffered,
	} {
		t.Run(name, func(t *testing.T) {
			x := releasedAt(vectorExchange(vector(t, name)), 1500)
			a := Analyze(x)
			if a.Outcome != exchange.OutcomeComplete {
				t.Errorf("outcome %s", a.Outcome)
			}
			if d := a.Figures[DecodeTPS]; d.Present() {
				t.Errorf("decode rate %v", d.Value)
			}
			if a.Flagged(FlagBuffered) != (want == FlagBuffered) || want == FlagSingleEvent && !a.Flagged(want) {
				t.Errorf("flags %q, want %q", a.Flags, want)
			}
			if got := a.Figures[TTFTMS].Present(); got != (want == FlagSingleEvent) {
				t.Errorf("TTFT %+v", a.Figures[TTFTMS])
			}
		})
	}
}

// vector is the written transcript of that name.
func vector(t *testing.T, name string) wiretest.Vector {
	t.Helper()
	all := wiretest.Vectors(t)
	i := slices.IndexFunc(all, func(v wiretest.Vector) bool { return v.File == name+".txt" })
	if i < 0 {
		t.Fatalf("there is no transcript %s", name)
	}
	return all[i]
}

// releasedAt is the exchange with all its reads right behind each other, ms after the send.
func releasedAt(x *exchange.Exchange, ms float64) *exchange.Exchange {
	tl, at := &x.Timeline, t0NS+int64(ms*1e6)
	tl.HeaderRead, tl.FirstRead = exchange.MarkAt(at), exchange.MarkAt(at)
	for i := range tl.Reads {
		tl.Reads[i].At = at
		at += 4_000
	}
	tl.LastRead, tl.BodyEnd, tl.ClientDone = exchange.MarkAt(at), exchange.MarkAt(at), exchange.MarkAt(at)
	return x
}

// TestAnyVectorReleasedAtOnceHasNoRate holds it for every written transcript: whatever the dialect, an answer that is let go
// at once after 3 s never has a decode rate.
func TestAnyVectorReleasedAtOnceHasNoRate(t *testing.T) {
	n := 0
	for _, v := range wiretest.Vectors(t) {
		x := releasedAt(vectorExchange(v), 3000)
		a := Analyze(x)
		checkInvariants(t, v.Name(), a)
		if a.Figures[TokenEvents].Value > 0 {
			n++
		}
		for _, rate := range []string{DecodeTPS, DecodeFirstEventTPS, Peak1sTPS} {
			if f := a.Figures[rate]; f.Present() {
				t.Errorf("%s: %s is %v", v.Name(), rate, f.Value)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d streams", n)
	}
}
