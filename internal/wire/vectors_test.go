package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// TestVectors holds every written transcript against its expected values, whole, byte by byte and in random splits.
func TestVectors(t *testing.T) {
	n, assumed := 0, 0
	for _, v := range wiretest.Vectors(t) {
		n++
		if v.Assumed {
			assumed++
		}
		t.Run(v.Name(), func(t *testing.T) {
			if DialectOf(v.Path()) == DialectNone {
				t.Fatalf("path %s has no dialect", v.Path())
			}
			whole := parseIn(v, [][]byte{v.Body})
			checkVector(t, v, whole)
			for how, pieces := range splits(v.Body) {
				got := parseIn(v, pieces)
				if d := cmp.Diff(withoutReads(whole), withoutReads(got)); d != "" {
					t.Errorf("split %s changes the transcript (-whole +split):\n%s", how, d)
				}
			}
		})
	}
	if n != 81 {
		t.Fatalf("found %d vectors, want 81", n)
	}
	t.Logf("%d vectors, %d of them of a shape that is assumed, each at %d splits", n, assumed, len(splits([]byte("x"))))
}

// parseIn parses a vector whose body comes in the given pieces, each a read of its own. Every transcript ended with
// its connection, so the end is a clean one.
func parseIn(v wiretest.Vector, pieces [][]byte) *Transcript {
	p := NewParser(Info{Path: v.Path(), Status: v.Status, ContentType: v.ContentType})
	for i, b := range pieces {
		p.Feed(b, i)
	}
	return p.Finish(true)
}

// splits are ways to cut a body: byte by byte, and at random places.
func splits(body []byte) map[string][][]byte {
	out := map[string][][]byte{"byte by byte": slices.Collect(slices.Chunk(body, 1))}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var pieces [][]byte
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(1<<(1+r.IntN(8))))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		out[fmt.Sprintf("at random (seed %d)", seed)] = pieces
	}
	return out
}

// withoutReads is a transcript whose events do not say which read brought them.
func withoutReads(t *Transcript) *Transcript {
	c := *t
	c.Events = slices.Clone(t.Events)
	for i := range c.Events {
		c.Events[i].Read = 0
	}
	return &c
}

// beyondIndex is what a wire shows that its entry in the index leaves out.
var beyondIndex = map[string]func(*wiretest.Expected){
	"llamacpp-completion-native-nprobs.txt": func(e *wiretest.Expected) { e.TokenIDs = 2 },
	"lmstudio-native-events.txt":            func(e *wiretest.Expected) { e.ProgressEvents = 1 },
	"sglang-generate-cumulative.txt": func(e *wiretest.Expected) {
		e.TokenIDs, e.Timings = 4, map[string]float64{"total_ms": 400}
	},
	"ollama-v1-error-swallowed.txt": func(e *wiretest.Expected) { e.Suspect = string(SuspectSwallowed) },
}

func checkVector(t *testing.T, v wiretest.Vector, tr *Transcript) {
	want, got := v.Expected, observed(tr)
	if add := beyondIndex[v.File]; add != nil {
		add(&want)
	}
	if !strings.HasPrefix(tr.Choice0().Text, want.EchoPrefix) {
		t.Errorf("text %q does not begin with the echoed %q", tr.Choice0().Text, want.EchoPrefix)
	}
	if want.Error != nil {
		if code, ok := want.Error.Code.(float64); ok { // a transcript holds codes as text
			want.Error.Code = strconv.FormatFloat(code, 'f', -1, 64)
		}
	}
	// What splits inline tags stands above the wire.
	want.Derived, want.EchoPrefix = nil, ""
	want.CumulativeText = false // a note of the index on how the text came
	if want.UsageEvents == nil {
		got.UsageEvents = nil
	}
	if want.Choices == nil {
		got.Choices = nil
	}
	if want.Timings == nil && len(got.Timings) > 0 {
		t.Errorf("timings %v out of nothing", got.Timings)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("transcript (-want +got):\n%s", d)
	}
}

// observed puts a transcript into the words of the index.
func observed(tr *Transcript) wiretest.Expected {
	c := tr.Choice0()
	got := wiretest.Expected{
		FinishReason:   tr.FinishReason,
		OutputText:     c.Text,
		ReasoningText:  c.Reasoning,
		RefusalText:    c.Refusal,
		ToolCalls:      []wiretest.Tool{},
		Events:         len(tr.Events),
		Comments:       tr.Comments,
		TokenEvents:    tr.TokenEvents(),
		Terminator:     tr.Terminator,
		Complete:       tr.DialectEnd && tr.Error == nil,
		TruncatedTail:  tr.TruncatedTail,
		LogprobEntries: tr.LogprobEntries,
		TokenIDs:       tr.TokenIDs,
		ProgressEvents: tr.ProgressEvents,
		QueueEvents:    tr.QueueEvents,
		Vectors:        tr.Vectors,
		VectorDims:     tr.VectorDims,
		Suspect:        string(tr.Suspect),
	}
	if tr.FinishNorm != "" {
		got.FinishNorm = &tr.FinishNorm
	}
	observeUsage(&got, tr)
	observeEvents(&got, tr)
	for _, tc := range c.ToolCalls {
		tool := wiretest.Tool{Index: tc.Index, Name: tc.Name, Arguments: tc.Arguments}
		if tc.ID != "" {
			tool.ID = &tc.ID
		}
		got.ToolCalls = append(got.ToolCalls, tool)
	}
	for _, c := range tr.Choices {
		got.Choices = append(got.Choices, wiretest.Choice{Index: c.Index, OutputText: c.Text, FinishReason: c.FinishReason})
	}
	if e := tr.Error; e != nil {
		got.Error = &wiretest.Error{Message: e.Message, Where: e.Where}
		if e.Type != "" {
			got.Error.Type = &e.Type
		}
		if e.Code != "" {
			got.Error.Code = e.Code
		}
	}
	got.Timings = observedTimings(tr)
	return got
}

func observeUsage(got *wiretest.Expected, tr *Transcript) {
	if u := tr.Usage; u != nil {
		got.UsagePresent, got.UsagePartial, got.UsageEvents = true, u.Partial, &u.Events
		got.PromptTokens, got.CompletionTokens, got.ReasoningTokens = u.Prompt, u.Completion, u.Reasoning
		got.CachedTokens, got.CacheCreation = u.Cached, u.CacheCreation
	}
	// The index completes a usage without this detail from the timings, but makes no usage out of timings alone.
	if got.UsagePresent && got.CachedTokens == nil && tr.Timings != nil {
		got.CachedTokens = tr.Timings.CachedN
	}
	if tr.Timings != nil {
		got.Device = tr.Timings.Device
	}
}

func observeEvents(got *wiretest.Expected, tr *Transcript) {
	for i, e := range tr.Events {
		if e.Kinds != 0 {
			if got.FirstToken == nil {
				got.FirstToken = &i
			}
			got.LastToken = &i
		}
		if e.Kinds&KindAnswer != 0 && got.FirstAnswer == nil {
			got.FirstAnswer = &i
		}
	}
}

func observedTimings(tr *Transcript) map[string]float64 {
	tm := tr.Timings
	if tm == nil {
		return nil
	}
	out := map[string]float64{}
	for k, v := range map[string]*float64{
		"queue_ms": tm.QueueMS, "load_ms": tm.LoadMS, "prefill_ms": tm.PrefillMS, "decode_ms": tm.DecodeMS,
		"total_ms": tm.TotalMS, "ttft_ms": tm.TTFTMS,
	} {
		if v != nil {
			out[k] = *v
		}
	}
	for k, v := range map[string]*int64{
		"prefill_n": tm.PrefillN, "cached_n": tm.CachedN, "decode_n": tm.DecodeN, "draft_n": tm.DraftN, "draft_accepted_n": tm.DraftAccepted,
	} {
		if v != nil {
			out[k] = float64(*v)
		}
	}
	return out
}
