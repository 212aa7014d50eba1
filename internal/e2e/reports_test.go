package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/measure/reportcases"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// variantScript plays the frames of a case at their instants.
func variantScript(t testing.TB, v reportcases.Variant) *sim.Script {
	t.Helper()
	end, ok := map[string]sim.Ending{
		"clean": sim.EndKeep, "keep_open": sim.EndKeep, "reset": sim.EndReset, "fin_without_last_chunk": sim.EndTruncate,
	}[v.End.How]
	if !ok {
		t.Fatalf("%s ends %q", v.Case, v.End.How)
	}
	s := &sim.Script{Status: v.Response.Status, Framing: sim.Framing(v.Response.Framing), End: end, EndAt: v.End.At}
	for _, name := range slices.Sorted(maps.Keys(v.Response.Headers)) {
		s.Headers = append(s.Headers, exchange.Header{Name: name, Value: v.Response.Headers[name]})
	}
	for _, f := range v.Frames {
		s.Steps = append(s.Steps, sim.Step{At: f.At, Data: f.Data})
	}
	return s
}

// play is one run of a variant: what the client, the record and the engine have of it.
type play struct {
	v      reportcases.Variant
	client answer
	rec    record
	engine sim.Record
	exact  *measure.Analysis // of the frames on a timeline without delay
	live   *measure.Analysis // of the record
}

// TestFieldReportsLive plays every case about a single stream through the proxy into the store.
func TestFieldReportsLive(t *testing.T) {
	cases, err := reportcases.Load()
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]*sim.Script{}
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = func(q sim.Request) *sim.Script {
			name, _, _ := strings.Cut(caseOf(q), "#")
			return scripts[name]
		}
	})
	nobody := r.front("http://"+deadAddr(t), proxy.UpstreamOptions{Name: "nobody"}, proxy.ServerOptions{})
	var variants []reportcases.Variant
	for _, c := range cases {
		if c.Elsewhere != "" {
			continue
		}
		for _, v := range c.Variants {
			variants = append(variants, v)
			if v.Response != nil {
				scripts[variantName(v)] = variantScript(t, v)
			}
		}
	}
	if len(variants) < 20 {
		t.Errorf("only %d variants", len(variants))
	}
	for _, v := range variants {
		t.Run(variantName(v), func(t *testing.T) {
			if v.RequestBytes == 0 { // a large request keeps the machine busy: it goes first
				t.Parallel()
			}
			if v.Response == nil {
				unreachable(t, r, nobody, v)
				return
			}
			undisturbed(t, func(n int) bool { return playVariant(t, r, v, n) })
		})
	}
}

func variantName(v reportcases.Variant) string { return strings.TrimSuffix(v.Case+"/"+v.Name, "/") }

// deadAddr is an address where nothing listens.
func deadAddr(t testing.TB) string {
	t.Helper()
	ln := listen(t)
	defer ln.Close()
	return ln.Addr().String()
}

// playVariant plays a variant once. What depends on bytes alone is held always; it reports whether the machine kept up
// with the stream, without which figures of time say nothing of the instrument.
func playVariant(t *testing.T, r *rig, v reportcases.Variant, n int) bool {
	t.Helper()
	name := fmt.Sprintf("%s#%d", variantName(v), n)
	x := v.Exchange()
	q := request{name: name, body: string(x.Request.Body.Bytes())}
	request := wire.ReadRequest(x.Request.Target, x.Request.Headers, x.Request.Body.Bytes()) // the same for both
	p := play{v: v, client: r.do(t, q), rec: r.stored(t, name, 0), engine: r.truth(t, name)}
	p.exact, p.live = measure.Derive(x, wire.Parse(x), request), measure.Derive(p.rec.Exchange, wire.Parse(p.rec.Exchange), request)
	p.checkContent(t)
	checkStamps(t, p.rec, p.engine)
	checkMerged(t, p.rec)
	if !p.sameFigures(t) || !p.checkTimes(t) {
		return false
	}
	p.checkExpected(t)
	return p.checkLive(t)
}

// checkContent holds bytes, counts, texts and the outcome.
func (p *play) checkContent(t *testing.T) {
	t.Helper()
	body := []byte{}
	for _, f := range p.v.Frames {
		body = append(body, f.Data...)
	}
	p.client.whole(t, p.v.Response.Status, body)
	sameBytes(t, "the recorded body", p.rec.Response.Body.Bytes(), body)
	if p.live.Outcome != p.exact.Outcome || p.rec.row.Outcome != p.exact.Outcome || p.rec.End != exchange.EndEOF {
		t.Errorf("outcome %s, row %s, end %s; want %s", p.live.Outcome, p.rec.row.Outcome, p.rec.End, p.exact.Outcome)
	}
	if diff := cmp.Diff(unread(p.exact.Transcript), unread(p.live.Transcript)); diff != "" {
		t.Errorf("transcript (-exact +live):\n%s", diff)
	}
	for _, m := range []string{
		measure.PromptTokens, measure.CompletionTokens, measure.CachedTokens, measure.ReasoningTokens, measure.TokenEvents, measure.TokensPerEvent,
	} {
		if diff := cmp.Diff(p.exact.Figures[m], p.live.Figures[m]); diff != "" {
			t.Errorf("%s (-exact +live):\n%s", m, diff)
		}
	}
	if got := p.rec.Request.Body.Size; p.v.RequestBytes > 0 && (got != p.v.RequestBytes || len(p.engine.Body) != int(got)) {
		t.Errorf("the request has %d bytes in the record and %d at the engine, want %d", got, len(p.engine.Body), p.v.RequestBytes)
	}
}

// unread is a transcript without the reads that brought its events, which depend on the machine.
func unread(t *wire.Transcript) *wire.Transcript {
	c := *t
	c.Events = slices.Clone(t.Events)
	for i := range c.Events {
		c.Events[i].Read = 0
	}
	return &c
}

// sameFigures reports whether the live record has the figures of the exact one and lacks the others for the same reasons.
// A machine that held the stream up turns it into bursts, which rightly have other figures.
func (p *play) sameFigures(t *testing.T) (same bool) {
	t.Helper()
	same = true
	for name, e := range p.exact.Figures {
		f := p.live.Figures[name]
		if (e.Present() != f.Present() || e.Reason != f.Reason || e.Basis != f.Basis) && !machineBound(name) {
			t.Logf("%s is %+v, want it as %+v", name, f, e)
			same = false
		}
	}
	return same
}

// sent is when the engine wrote the last of the first n body bytes, in ns since t0 of the exchange.
func (p *play) sent(t *testing.T, n int64) int64 {
	t.Helper()
	t0, ok := p.rec.Timeline.SendStart.NS()
	if !ok {
		t.Fatal("the request was not sent")
	}
	return writeOf(t, p.engine, int(n)).Wall - wallOf(p.rec, t0)
}

// checkTimes holds each time of the record against the engine's own write: never before it, and at most liveBound
// after, which it reports. Rates have the window between two such times; their count of tokens must come out exactly.
func (p *play) checkTimes(t *testing.T) (kept bool) {
	t.Helper()
	kept = true
	events := p.live.Transcript.Events
	first := func(kinds wire.Kind) int64 {
		for _, e := range events {
			if e.Kinds&kinds != 0 {
				return e.End
			}
		}
		return 0
	}
	ends := map[string]int64{
		measure.FirstByteMS: 1, measure.TTFTMS: first(^wire.Kind(0)), measure.AnswerTTFTMS: first(wire.KindAnswer),
		measure.TotalWallMS: p.rec.Response.Body.Size,
	}
	for _, e := range events {
		if e.Kinds != 0 {
			ends[measure.LastTokenMS] = e.End
		}
	}
	if len(events) > 0 {
		ends[measure.FirstEventMS] = events[0].End
	}
	for name, end := range ends {
		if got := p.live.Figures[name]; got.Present() {
			kept = within(t, name, time.Duration(got.Value*1e6)-time.Duration(p.sent(t, end))) && kept
		}
	}
	window := p.live.Figures[measure.LastTokenMS].Value - p.live.Figures[measure.TTFTMS].Value
	if d := p.live.Figures[measure.DecodeTPS]; d.Present() {
		tokens := p.live.Figures[measure.CompletionTokens].Value - 1
		if got := d.Value * window / 1e3; math.Abs(got-tokens) > 1e-6*tokens {
			t.Errorf("decode rate %v over %v ms makes %v tokens, want %v", d.Value, window, got, tokens)
		}
	}
	if f := p.live.Figures[measure.PrefillTPS]; f.Present() {
		prompt := p.live.Figures[measure.PromptTokens].Value
		if got := f.Value * p.live.Figures[measure.TTFTMS].Value / 1e3; math.Abs(got-prompt) > 1e-6*prompt {
			t.Errorf("prefill rate %v makes %v tokens, want %v", f.Value, got, prompt)
		}
	}
	return kept
}

// checkExpected holds what the case itself says.
func (p *play) checkExpected(t *testing.T) {
	t.Helper()
	want := p.v.Expect
	for name, why := range want.Absent {
		if f := p.live.Figures[name]; f.Present() || f.Reason != why {
			t.Errorf("%s is %+v, want absent for %s", name, f, why)
		}
	}
	for _, flag := range want.Flags {
		if !p.live.Flagged(flag) || !slices.Contains(p.rec.row.Flags, flag) {
			t.Errorf("flag %s is missing in %q", flag, p.live.Flags)
		}
	}
	if p.live.Flagged(measure.FlagBuffered) != p.exact.Flagged(measure.FlagBuffered) {
		t.Errorf("flags %q, want %q", p.live.Flags, p.exact.Flags)
	}
	if want.HTTPStatus > 0 && p.client.StatusCode != want.HTTPStatus {
		t.Errorf("status %d, want %d", p.client.StatusCode, want.HTTPStatus)
	}
	if want.PeakAtLeast > 0 {
		// The slack is what liveBound may take off a window of one second.
		if peak, decode := p.live.Figures[measure.Peak1sTPS].Value, p.live.Figures[measure.DecodeTPS].Value; peak < want.PeakAtLeast*decode*0.75 {
			t.Errorf("peak %v, decode %v", peak, decode)
		}
	}
	if want.ToolCalls != nil {
		var got []exchange.ToolCall
		for _, c := range p.live.Transcript.Choice0().ToolCalls {
			got = append(got, exchange.ToolCall{Name: c.Name, Arguments: c.Arguments})
		}
		if diff := cmp.Diff(want.ToolCalls, got); diff != "" {
			t.Errorf("tool calls (-want +got):\n%s", diff)
		}
	}
}

// machineBound reports whether a figure is there depends on the speed of the machine: whether events that the engine
// wrote at one instant came in one read, or a stream of a second lasted one.
func machineBound(name string) bool {
	return strings.HasPrefix(name, "event_gap_") || name == measure.Peak1sTPS || name == measure.HeadersMS
}

// checkLive holds what only a live run can settle; it reports whether the client was served in time.
func (p *play) checkLive(t *testing.T) (kept bool) {
	t.Helper()
	kept = true
	for key, raw := range p.v.Expect.Live {
		number := struct{ Min, Max, About, Tolerance float64 }{}
		_ = json.Unmarshal(raw, &number) // a bare value leaves it zero
		switch key {
		case "client_added_ttft_ms_max", "client_ttft_ms_minus_server":
			// The case's own 2 ms are for an idle machine: what the proxy adds there is for its benches.
			for i, at := range p.tokenArrivals(t) {
				kept = within(t, "a token at the client", time.Duration(at.UnixNano()-p.tokenWrites(t)[i])) && kept
			}
		case "client_events_per_read_max":
			arrivals := p.tokenArrivals(t)
			kept = len(slices.Compact(slices.Clone(arrivals))) == len(arrivals) && string(raw) == "1" && kept
		case "client_event_span_ms":
			at := p.tokenArrivals(t)
			span := float64(at[len(at)-1].Sub(at[0])) / 1e6
			kept = math.Abs(span-number.About) <= number.Tolerance+float64(liveBound)/1e6 && kept
		case "recorded_reads":
			kept = float64(len(p.rec.Timeline.Reads)) >= number.Min && kept
		case "client_body_sha256_equals_sent", "replay_bytes_equal": // held by checkContent for every case
		case "artifact", "artifact_complete_or_marked_cut":
			p.checkArtifact(t)
		case "gate": // judged from the same record, by a package of its own
		default:
			t.Errorf("nothing holds the expectation %s", key)
		}
	}
	return kept
}

// tokenArrivals are when the client had each token event.
func (p *play) tokenArrivals(t *testing.T) (at []time.Time) {
	t.Helper()
	for _, e := range p.live.Transcript.Events {
		if e.Kinds != 0 {
			at = append(at, p.client.arrived(t, int(e.End)))
		}
	}
	return at
}

// tokenWrites are when the engine wrote each token event, in Unix ns.
func (p *play) tokenWrites(t *testing.T) (at []int64) {
	t.Helper()
	for _, e := range p.live.Transcript.Events {
		if e.Kinds != 0 {
			at = append(at, writeOf(t, p.engine, int(e.End)).Wall)
		}
	}
	return at
}

// checkArtifact holds that the record is all there is to know.
func (p *play) checkArtifact(t *testing.T) {
	t.Helper()
	x := p.rec.Exchange
	if len(x.Request.Head) == 0 || !x.Request.Body.Whole() || !x.Response.Body.Whole() || x.State != exchange.StateStored {
		t.Errorf("the record is %s: request %d of %d bytes, response %d of %d", x.State,
			x.Request.Body.Kept, x.Request.Body.Size, x.Response.Body.Kept, x.Response.Body.Size)
	}
	if x.Response.Status != p.v.Response.Status || len(x.Response.Head) == 0 {
		t.Errorf("status %d, head %q", x.Response.Status, x.Response.Head)
	}
}

// unreachable is the variant where nothing listens: the client is told, and the record has the request and the cause.
func unreachable(t *testing.T, r *rig, addr string, v reportcases.Variant) {
	t.Helper()
	name := variantName(v)
	c := dial(t, addr)
	a := c.send(chat(name)).answer("POST", 0)
	x := r.stored(t, name, 0)
	if a.StatusCode != 502 || !bytes.Contains(a.body, []byte(`"engine_unreachable"`)) || !bytes.Contains(a.body, []byte(`"nobody\" at`)) {
		t.Errorf("the client got %d %s", a.StatusCode, a.body)
	}
	if x.End != exchange.EndConnectFailed || x.row.Outcome != v.Expect.Outcome || x.Cause == nil || x.Cause.Code != "connect" {
		t.Errorf("sealed as %s, %+v, outcome %s", x.End, x.Cause, x.row.Outcome)
	}
	sameBytes(t, "the recorded request", x.Request.Body.Bytes(), []byte(chatBody))
	if f := x.row.Metrics[measure.TTFTMS]; f.Present() || f.Reason == "" {
		t.Errorf("ttft of an engine that is not there: %+v", f)
	}
}
