package measure

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure/reportcases"
)

// reportTolerance is relative: the cases print two decimals.
const reportTolerance = 1e-4

// TestFieldReports measures every single-stream case from its frames.
func TestFieldReports(t *testing.T) {
	cases, err := reportcases.Load()
	if err != nil {
		t.Fatal(err)
	}
	here := 0
	for _, c := range cases {
		if c.Elsewhere != "" {
			t.Logf("%s belongs elsewhere: %s", c.ID, c.Elsewhere)
			continue
		}
		for _, v := range c.Variants {
			here++
			t.Run(c.ID+"/"+v.Name, func(t *testing.T) { checkReport(t, Analyze(v.Exchange()), v.Expect) })
		}
	}
	if here < 20 {
		t.Errorf("only %d variants were measured", here)
	}
}

// checkReport compares an analysis with everything an expectation says of one timeline.
func checkReport(t *testing.T, a *Analysis, want reportcases.Expect) {
	t.Helper()
	for name, v := range want.Figures {
		checkFigure(t, name, a.Figures[name], v)
	}
	for name, why := range want.Absent {
		if f := a.Figures[name]; f.Present() || f.Reason != why {
			t.Errorf("%s is %+v, want absent for %s", name, f, why)
		}
	}
	if want.Outcome != "" && a.Outcome != want.Outcome {
		t.Errorf("outcome %s, want %s", a.Outcome, want.Outcome)
	}
	if want.Success != nil && *want.Success != (a.Outcome == exchange.OutcomeComplete) {
		t.Errorf("outcome %s, success wanted: %v", a.Outcome, *want.Success)
	}
	if got := a.Transcript.FinishReason; want.FinishReason != "" && (got == nil || *got != want.FinishReason) {
		t.Errorf("finish reason %v, want %s", got, want.FinishReason)
	}
	for _, flag := range want.Flags {
		if !a.Flagged(flag) {
			t.Errorf("flag %s is missing in %q", flag, a.Flags)
		}
	}
	if got := a.Figures[CompletionTokens].Basis; want.TokenBasis != "" && got != want.TokenBasis {
		t.Errorf("completion tokens have the basis %s, want %s", got, want.TokenBasis)
	}
	if peak, decode := a.Figures[Peak1sTPS], a.Figures[DecodeTPS]; want.PeakAtLeast > 0 && (!peak.Present() || peak.Value < want.PeakAtLeast*decode.Value) {
		t.Errorf("peak %+v, want at least %v of %v", peak, want.PeakAtLeast, decode.Value)
	}
	if want.ToolCalls != nil {
		checkCalls(t, a, want.ToolCalls)
	}
}

func checkCalls(t *testing.T, a *Analysis, want []exchange.ToolCall) {
	t.Helper()
	var got []exchange.ToolCall
	for _, c := range a.Transcript.Choice0().ToolCalls {
		got = append(got, exchange.ToolCall{Name: c.Name, Arguments: c.Arguments})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tool calls (-want +got):\n%s", diff)
	}
}

func checkFigure(t *testing.T, name string, got exchange.Figure, want *float64) {
	t.Helper()
	switch {
	case want == nil && got.Present():
		t.Errorf("%s is %v, want it absent", name, got.Value)
	case want == nil:
	case !got.Present():
		t.Errorf("%s is absent (%s), want %v", name, got.Reason, *want)
	case math.Abs(got.Value-*want) > reportTolerance*math.Max(math.Abs(*want), 1):
		t.Errorf("%s is %v, want %v", name, got.Value, *want)
	}
}

// reportCase is the only variant of a case.
func reportCase(t *testing.T, id string) reportcases.Variant {
	t.Helper()
	cases, err := reportcases.Load()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cases, func(c reportcases.Case) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("there is no case %s", id)
	}
	return cases[i].Variants[0]
}

// TestReadBoundariesChangeNoFigure cuts a read in two: at every seventh place, and wherever a CR and its LF can part.
func TestReadBoundariesChangeNoFigure(t *testing.T) {
	for _, id := range []string{"AX-03", "AX-14", "AX-15", "AX-16"} {
		x := reportCase(t, id).Exchange()
		body := x.Response.Body.Bytes()
		want := Analyze(x)
		for at := 1; at < len(body); at++ {
			if at%7 != 0 && body[at-1] != '\r' {
				continue
			}
			got := Analyze(reportcases.Recut(x, int64(at)))
			if diff := cmp.Diff(want.Figures, got.Figures); diff != "" || got.Outcome != want.Outcome {
				t.Fatalf("%s cut at %d: outcome %s (-whole +cut):\n%s", id, at, got.Outcome, diff)
			}
		}
	}
}

// TestBufferingHop sends the stream of AX-19 through a hop that collects it.
func TestBufferingHop(t *testing.T) {
	direct := reportCase(t, "AX-19").Exchange()
	for _, buffer := range []int{4096, 8192, math.MaxInt} {
		held := heldBack(direct, buffer)
		a := Analyze(held)
		if !a.Flagged(FlagBuffered) || a.Outcome != exchange.OutcomeComplete {
			t.Errorf("buffer of %d: flags %q, outcome %s", buffer, a.Flags, a.Outcome)
		}
		wantAbsent(t, a, ReasonBuffered, TTFTMS, PrefillTPS, DecodeTPS, TPOTMS)
	}
	if a := Analyze(heldBack(direct, 0)); a.Flagged(FlagBuffered) {
		t.Error("the direct stream is called buffered")
	}
}

// heldBack delays every read until so many bytes came, as a hop with a buffer does.
func heldBack(x *exchange.Exchange, buffer int) *exchange.Exchange {
	y := *x
	y.Timeline.Reads = slices.Clone(x.Timeline.Reads)
	reads := y.Timeline.Reads
	from, held := 0, 0
	for i := range reads {
		if held += reads[i].Size; held < buffer && i < len(reads)-1 {
			continue
		}
		for ; from <= i; from++ {
			reads[from].At = reads[i].At
		}
		held = 0
	}
	return &y
}

// TestErrorKeepsItsText holds that a failed answer says why in the engine's words.
func TestErrorKeepsItsText(t *testing.T) {
	a := Analyze(reportCase(t, "AX-12").Exchange())
	if a.Cause == nil || a.Cause.Side != exchange.SideEngine || !strings.Contains(a.Cause.Text, "engine failed") {
		t.Errorf("cause %+v", a.Cause)
	}
}
