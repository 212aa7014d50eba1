package compare

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func TestSlowerRunIsWorse(t *testing.T) {
	r := mustCompare(t, side("a", 12, 100, 50), replayOf(side("b", 12, 125, 40), "a"), Options{Margin: DefaultMargin})
	for name, ratio := range map[string]float64{measure.DecodeTPS: 0.8, measure.TTFTMS: 1.25, measure.TPOTMS: 1.25, measure.WallTPS: 0.8} {
		m := of(t, r, name)
		if m.Verdict != Worse || m.N != 12 || m.Ratio == nil || math.Abs(*m.Ratio-ratio) > 0.02 || *m.P > 0.01 {
			t.Errorf("%s: %+v", name, m)
		}
		if iv := m.Interval; iv == nil || iv.Lo > *m.Ratio || iv.Hi < *m.Ratio || iv.Hi-iv.Lo > 0.05 {
			t.Errorf("%s: the interval %+v around %v", name, iv, *m.Ratio)
		}
	}
	back := mustCompare(t, replayOf(side("b", 12, 125, 40), "a"), side("a", 12, 100, 50), Options{Margin: DefaultMargin})
	if m := of(t, back, measure.DecodeTPS); m.Verdict != Better || math.Abs(*m.Ratio-1.25) > 0.02 {
		t.Errorf("the other way round: %+v", m)
	}
}

func TestEqualRunsAreIndistinguishable(t *testing.T) {
	r := mustCompare(t, side("a", 12, 100, 50), side("b", 12, 100, 50), Options{Margin: DefaultMargin})
	for _, m := range r.Metrics {
		if m.Ratio != nil && m.Verdict != Indistinguishable || m.Ratio == nil && m.Verdict != Incomparable {
			t.Errorf("%s: %+v", m.Name, m)
		}
	}
	if m := of(t, r, measure.DecodeTPS); m.Ratio == nil || math.Abs(*m.Ratio-1) > 0.02 {
		t.Errorf("decode_tps: %+v", m)
	}
	if r.Answers.Identical.Part != 12 || *r.Answers.Prefix.Mean != 1 || *r.Answers.Difflib.Mean != 1 {
		t.Errorf("answers: %+v", r.Answers)
	}
}

func TestWhatIsNotToldFromNoise(t *testing.T) {
	selftest := &exchange.Instrument{Noise: []exchange.NoiseFloor{{Load: exchange.LoadIdle, Streams: 1, US: new(float64)}, {Load: exchange.LoadIdle, Streams: 64, US: new(float64)}}}
	*selftest.Noise[0].US, *selftest.Noise[1].US = 9_000, 900_000
	for _, c := range []struct {
		name   string
		n      int
		ttft   float64
		margin float64
		want   []exchange.Reason
	}{
		{"five pairs", 5, 200, 0, []exchange.Reason{ReasonTooFew}},
		{"below the margin", 30, 104, 0.2, []exchange.Reason{ReasonMargin}},
		{"below what the machine can tell", 30, 106, 0.02, []exchange.Reason{ReasonInstrument}},
		{"above it", 30, 120, 0.02, nil},
	} {
		ref, cand := side("a", c.n, 100, 50), side("b", c.n, c.ttft, 50)
		cand.Run.Instrument = selftest
		m := of(t, mustCompare(t, ref, cand, Options{Margin: c.margin}), measure.TTFTMS)
		if diff := cmp.Diff(c.want, m.Reasons); diff != "" || (m.Verdict == Worse) != (c.want == nil) {
			t.Errorf("%s: %s\n%s", c.name, m.Verdict, diff)
		}
	}
}

func TestPairsThatAreNotComparable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *Entry)
		metric string
		why    exchange.Reason
		kept   string // a metric that the difference leaves alone
	}{
		{"failed", func(e *Entry) { e.Row.Outcome = exchange.OutcomeStreamError }, measure.TTFTMS, ReasonFailed, ""},
		{"error as content", func(e *Entry) { e.Row.Flags = []string{measure.FlagErrorAsContent} }, measure.TTFTMS, ReasonSuspect, ""},
		{"short answer", func(e *Entry) { e.Row.Flags = []string{measure.FlagShortAnswer} }, measure.DecodeTPS, ReasonShort, measure.TTFTMS},
		{"warm", func(e *Entry) { e.figure(measure.CachedTokens, 40) }, measure.TTFTMS, ReasonCache, measure.DecodeTPS},
		{"loaded the model", func(e *Entry) { e.figure(measure.LoadMS, 60) }, measure.PrefillTPS, ReasonLoad, measure.DecodeTPS},
		{"longer", func(e *Entry) { e.figure(measure.CompletionTokens, 150) }, measure.TotalWallMS, ReasonLength, measure.DecodeTPS},
		{"counted events", func(e *Entry) {
			e.Row.Metrics[measure.DecodeTPS] = exchange.Figure{Value: 50, Basis: exchange.BasisEstimated}
		}, measure.DecodeTPS, ReasonEstimated, measure.TTFTMS},
		{"whole answer", func(e *Entry) {
			e.Row.Stream = false
			e.Request[fieldStream] = "false"
			e.absent(measure.DecodeTPS, measure.ReasonNotStreamed)
		}, measure.DecodeTPS, ReasonStream, ""},
		{"rate of the engine only", func(e *Entry) {
			e.absent(measure.DecodeTPS, measure.ReasonBuffered)
			e.figure(measure.EngineDecodeTPS, 50)
		}, measure.DecodeTPS, ReasonSource, measure.TTFTMS},
		{"limit", func(e *Entry) { e.Request[fieldLimit] = "50" }, measure.DecodeTPS, ReasonLimit, ""},
		{"temperature", func(e *Entry) { e.Request["temperature"] = "1" }, measure.DecodeTPS, ReasonSampling, ""},
		{"temperature left open", func(e *Entry) { delete(e.Request, "temperature") }, measure.DecodeTPS, ReasonSampling, ""},
		{"thinking seen", func(e *Entry) { e.Reasoned = true }, measure.TTFTMS, ReasonThinking, ""},
		{"tools", func(e *Entry) { e.Request["tools"] = "sha256:1" }, measure.TTFTMS, ReasonStructure, ""},
		{"no figure", func(e *Entry) { e.absent(measure.TTFTMS, measure.ReasonBuffered) }, measure.TTFTMS, measure.ReasonBuffered, measure.DecodeTPS},
	} {
		ref, cand := side("a", 8, 100, 50), side("b", 8, 100, 50)
		for i := range cand.Entries {
			c.change(&cand.Entries[i])
		}
		r := mustCompare(t, ref, cand, Options{})
		got := of(t, r, c.metric)
		if got.Verdict != Incomparable || got.Ratio != nil || got.Excluded[c.why] != 8 || got.Reasons[0] != c.why {
			t.Errorf("%s: %s is %+v", c.name, c.metric, got)
		}
		if c.kept != "" && of(t, r, c.kept).N != 8 {
			t.Errorf("%s: %s is not compared: %+v", c.name, c.kept, of(t, r, c.kept))
		}
	}
}

func TestAcceptedDifferencesAreComparedAndTold(t *testing.T) {
	ref, cand := side("a", 8, 100, 50), side("b", 8, 125, 50)
	for i := range cand.Entries {
		cand.Entries[i].Request["temperature"] = "1"
	}
	cand.Run.State = exchange.RunIncomplete
	r := mustCompare(t, ref, cand, Options{Accept: []exchange.Reason{ReasonSampling, ReasonIncomplete}})
	if m := of(t, r, measure.TTFTMS); m.Verdict != Worse || len(r.Refused) != 0 {
		t.Errorf("%+v, refused %v", m, r.Refused)
	}
	told := 0
	for _, k := range r.Checks {
		if k.Accepted {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d accepted differences are told", told)
	}
	if _, err := Compare(t.Context(), ref, cand, Options{Accept: []exchange.Reason{"failed"}}, noTexts); err == nil {
		t.Error("failures were accepted")
	}
}

func TestReportHasNoNullLists(t *testing.T) {
	b, err := json.Marshal(mustCompare(t, side("a", 2, 100, 50), side("b", 2, 100, 50), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"checks", "request_fields", "failures", "partial_conversations", "metrics", "divergences", "unpaired_ids", "same", "differs", "unknown"} {
		if strings.Contains(string(b), `"`+name+`":null`) {
			t.Errorf("%s is null", name)
		}
	}
}
