package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

const morning = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":4,"messages":[{"role":"user","content":"hi"}]}`

// greeting is a streamed answer in order.
func greeting(after time.Duration) *exchange.Exchange {
	return recorded(after, morning, eventStream, say("Good "), say("morning "), say("to "), say("you."), chatEnd)
}

// judgedRun revalidates a shelf and gathers what each exchange came to.
func judgedRun(t *testing.T, s *shelf, o RevalidateOptions) (*Revalidated, []*Judged) {
	t.Helper()
	var all []*Judged
	o.Each = func(j *Judged) error { all = append(all, j); return nil }
	r, err := Revalidate(context.Background(), s, &s.run, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, all
}

func statuses(all []*Judged) (out []string) {
	for _, j := range all {
		out = append(out, string(j.Status))
	}
	return out
}

func TestRevalidateRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	refused := recorded(2*time.Second, morning, "application/json", `{"error":{"message":"slow down"}}`)
	refused.Response.Status = 429
	left := recorded(3*time.Second, morning, eventStream, say("Good "))
	left.End, left.Cause = exchange.EndClientGone, &exchange.Cause{Side: exchange.SideClient, Code: "client_gone", Text: "the client closed"}
	object := recorded(4*time.Second, strings.Replace(morning, `"max_tokens":4,`, `"max_tokens":4,"response_format":{"type":"json_object"},`, 1), eventStream,
		say("```json\n{\"a\":1}\n"), say("```"), chatEnd)
	listing := recorded(5*time.Second, "", "application/json", `{"data":[]}`)
	listing.Request.Method, listing.Request.Target = "GET", "/v1/models"
	s := newShelf(greeting(0), greeting(time.Second), refused, left, object, listing)
	s.run.Harness, s.run.Counts.Stored = "0.1", 6

	r, all := judgedRun(t, s, RevalidateOptions{Harness: "0.2"})
	if diff := cmp.Diff([]string{"ok", "ok", "fail", "skipped", "fail", ""}, statuses(all)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	if all[4].Lenient != exchange.VerdictOK || !strings.HasPrefix(all[4].Reason, "json: ") || !strings.Contains(all[2].Reason, "429") {
		t.Errorf("fenced: lenient %s (%s); refused: %s", all[4].Lenient, all[4].Reason, all[2].Reason)
	}
	if r.Recorded != 6 || r.Judged != 5 || r.Statuses[exchange.VerdictFail] != 2 || r.NewRun || !r.Complete || r.Harness != "0.2" || r.Source.Harness != "0.1" {
		t.Errorf("%+v", r)
	}
	checkDocument(t, r, all)
}

// checkDocument looks at what a document says beside its statuses.
func checkDocument(t *testing.T, r *Revalidated, all []*Judged) {
	t.Helper()
	if r.Rules != measure.Rules() || len(r.Source.Rules) != 1 || len(r.Moved) != 0 || r.ChangesTotal != 0 {
		t.Errorf("rules %v of %v; moved %v, changes %d", r.Rules, r.Source.Rules, r.Moved, r.ChangesTotal)
	}
	if r.Now.Exchanges != 2 || r.Then == nil || r.Then.Exchanges != 2 || !errors.Is(r.Verdict(), exchange.ErrGate) {
		t.Errorf("metrics of %d exchanges, verdict %v", r.Now.Exchanges, r.Verdict())
	}
	if len(all[0].Evidence) != 1 || all[0].Evidence[0].ID != string(all[0].ID) {
		t.Errorf("evidence %+v", all[0].Evidence)
	}
	if r.Gates[0].Gate > r.Gates[1].Gate || r.Gates[0].Version == 0 {
		t.Errorf("gates %+v", r.Gates)
	}
}

// TestRevalidationDoesNotDependOnWorkers holds that the same document comes of one worker and of many.
func TestRevalidationDoesNotDependOnWorkers(t *testing.T) {
	defer goleak.VerifyNone(t)
	var xs []*exchange.Exchange
	for i := range 60 {
		x := greeting(time.Duration(i) * time.Second)
		x.Wave = fmt.Sprintf("w%d", i/4)
		if i%7 == 3 {
			x.Response.Status = 500
		}
		xs = append(xs, x)
	}
	s := newShelf(xs...)
	document := func(workers int) string {
		var b bytes.Buffer
		w := NewRevalidationWriter(&b)
		r, err := Revalidate(context.Background(), s, &s.run, RevalidateOptions{Workers: workers, Each: w.Add})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.End(r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one := document(1)
	if !json.Valid([]byte(one)) {
		t.Fatal("the document is no JSON")
	}
	for _, n := range []int{2, 16} {
		if diff := cmp.Diff(one, document(n)); diff != "" {
			t.Errorf("%d workers:\n%s", n, diff)
		}
	}
}

// TestWavesAreVoidedByOneMember holds that one failing member takes the rates of its wave away, and those of no other.
func TestWavesAreVoidedByOneMember(t *testing.T) {
	var xs []*exchange.Exchange
	for i := range 6 {
		x := greeting(time.Duration(i) * time.Millisecond)
		x.ID = exchange.NewID(traceDay.Add(time.Duration(i) * time.Second))
		x.Wave = fmt.Sprintf("w%d", 1+i/2)
		xs = append(xs, x)
	}
	// It came to its end, which says that the engine gave it up.
	xs[3].Response.Body = exchange.NewBody([]byte(strings.Replace(string(xs[3].Response.Body.Bytes()), `"finish_reason":"stop"`, `"finish_reason":"error"`, 1)))
	xs[3].Timeline.Reads[4].Size++
	sealDigests(xs[3])
	s := newShelf(xs...)
	s.run.Replay = &exchange.Replay{Waves: []exchange.WaveRate{{Wave: "w1", Streams: 2}, {Wave: "w2", Streams: 2}, {Wave: "w3", Streams: 3}, {Wave: "w4", Streams: 1}}}
	r, _ := judgedRun(t, s, RevalidateOptions{})
	if len(r.Waves) != 4 {
		t.Fatalf("waves %+v", r.Waves)
	}
	for i, want := range []struct {
		eligible bool
		says     string
	}{{true, ""}, {false, "finish_reason"}, {false, "other size"}, {false, "no member"}} {
		w := r.Waves[i]
		if w.Eligible != want.eligible || !strings.Contains(w.Why, want.says) {
			t.Errorf("%s: eligible %v (%s)", w.Wave, w.Eligible, w.Why)
		}
		if f := w.Figures[measure.BatchTPS]; f.Present() != want.eligible {
			t.Errorf("%s: batch_tps %+v", w.Wave, f)
		}
	}
}

// TestScatteredWavesAreVoid holds that members which come back late are not taken for a wave of their own.
func TestScatteredWavesAreVoid(t *testing.T) {
	var xs []*exchange.Exchange
	for i := range openWaves + 3 {
		x := greeting(time.Duration(i) * time.Second)
		x.Wave = fmt.Sprintf("w%d", i)
		xs = append(xs, x)
	}
	xs[len(xs)-1].Wave = "w0"
	r, _ := judgedRun(t, newShelf(xs...), RevalidateOptions{})
	if w := r.Waves[0]; w.Wave != "w0" || w.Eligible || w.Streams != 2 || !strings.Contains(w.Why, "do not stand together") {
		t.Errorf("%+v", w)
	}
}

// TestOriginalFailuresRemain holds that no rule of today makes a success of what failed when it was recorded.
func TestOriginalFailuresRemain(t *testing.T) {
	s := newShelf(greeting(0), greeting(time.Second))
	s.rows[0].Outcome = exchange.OutcomeUpstreamTruncated
	s.rows[0].Rules = exchange.Rules{Wire: 1, Measure: 1}
	s.rows[1].Outcome = exchange.OutcomeClientAbort
	r, all := judgedRun(t, s, RevalidateOptions{})
	if diff := cmp.Diff([]string{"fail", "ok"}, statuses(all)); diff != "" || r.Remained != 1 || !strings.Contains(all[0].Reason, "upstream_truncated") {
		t.Errorf("%s: %d remained; %s", diff, r.Remained, all[0].Reason)
	}
	want := []VerdictChange{
		{ID: all[0].ID, Seq: 1, Gate: GateOutcome, Was: "upstream_truncated", WasVersion: 1, Now: "complete", NowVersion: measure.Version},
		{ID: all[1].ID, Seq: 2, Gate: GateOutcome, Was: "client_abort", WasVersion: measure.Version, Now: "complete", NowVersion: measure.Version},
	}
	if diff := cmp.Diff(want, r.Changes); diff != "" || r.ChangesTotal != 2 {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(r.Source.Rules) != 2 {
		t.Errorf("rules of the rows: %v", r.Source.Rules)
	}
}

// TestChangedMetricsAreListed holds that a figure which the rules of today derive otherwise is told with both values.
func TestChangedMetricsAreListed(t *testing.T) {
	s := newShelf(greeting(0), greeting(time.Second))
	for i := range s.rows {
		was := exchange.Figures{}
		for name, f := range s.rows[i].Metrics {
			was[name] = f
		}
		f := was[measure.DecodeTPS]
		f.Value *= 2
		was[measure.DecodeTPS] = f
		tiny := was[measure.TTFTMS]
		tiny.Value *= 1 + 1e-12
		was[measure.TTFTMS] = tiny
		delete(was, measure.WallTPS)      // a metric of newer rules
		delete(was, measure.EngineTTFTMS) // one that is absent now as well
		s.rows[i].Metrics = was
	}
	r, all := judgedRun(t, s, RevalidateOptions{})
	var names []string
	for _, m := range r.Moved {
		names = append(names, m.Metric)
		if m.Exchanges != 2 || m.Example != all[0].ID {
			t.Errorf("%+v", m)
		}
	}
	if diff := cmp.Diff([]string{measure.DecodeTPS, measure.WallTPS}, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if m := r.Moved[0]; m.Was.Value != 2*m.Now.Value {
		t.Errorf("%+v", m)
	}
}

// TestBrokenEvidenceIsNoPass holds that what cannot be read, or contradicts itself, or was cut, never passes.
func TestBrokenEvidenceIsNoPass(t *testing.T) {
	s := newShelf(greeting(0), greeting(time.Second), greeting(2*time.Second), greeting(3*time.Second))
	missing, changed, cut := s.xs[s.rows[1].ID], s.xs[s.rows[2].ID], s.xs[s.rows[3].ID]
	body := bytes.Clone(changed.Response.Body.Bytes())
	body[len(body)/2] ^= 1
	changed.Response.Body.Chunks = [][]byte{body}
	cut.State = exchange.StateTruncated
	broken := &damagedShelf{shelf: s, id: missing.ID}
	r, err := Revalidate(context.Background(), broken, &s.run, RevalidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range r.Lines {
		got = append(got, string(l.Status)+": "+l.Reason)
	}
	for i, want := range []string{"ok: ", "not_run: its evidence is missing", "incomparable: the record contradicts itself", "incomparable: "} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("exchange %d is %q, want %q", i+1, got[i], want)
		}
	}
	if r.Complete || r.Broken != 2 || !errors.Is(r.Verdict(), exchange.ErrDamaged) {
		t.Errorf("complete %v (%s), %d broken, verdict %v", r.Complete, r.Why, r.Broken, r.Verdict())
	}
}

// damagedShelf is a shelf of which one record cannot be read.
type damagedShelf struct {
	*shelf
	id exchange.ID
}

func (d *damagedShelf) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	if id == d.id {
		return nil, exchange.Summary{}, fmt.Errorf("%w: a blob is missing", exchange.ErrDamaged)
	}
	return d.shelf.Exchange(id)
}

// brokenListing is a shelf whose rows end with an error.
type brokenListing struct{ *shelf }

var errListing = errors.New("the listing broke")

func (b *brokenListing) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for row, err := range b.shelf.Summaries(run) {
			if !yield(row, err) {
				return
			}
		}
		yield(exchange.Summary{}, errListing)
	}
}

func TestRevalidationEndsWithItsErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newShelf(greeting(0), greeting(time.Second), greeting(2*time.Second))
	if _, err := Revalidate(context.Background(), &brokenListing{s}, &s.run, RevalidateOptions{}); !errors.Is(err, errListing) {
		t.Errorf("a broken listing: %v", err)
	}
	stop := errors.New("stop")
	if _, err := Revalidate(context.Background(), s, &s.run, RevalidateOptions{Workers: 1, Each: func(*Judged) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("an error of Each: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if _, err := Revalidate(ctx, s, &s.run, RevalidateOptions{}); !errors.Is(err, stop) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := Revalidate(context.Background(), s, &s.run, RevalidateOptions{Checks: []exchange.Check{{Gate: "nonsense"}}}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("an unknown gate: %v", err)
	}
	delete(s.xs, s.rows[1].ID)
	if _, err := Revalidate(context.Background(), s, &s.run, RevalidateOptions{}); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("a record that is gone: %v", err)
	}
}

func TestRevalidateRefusesRuns(t *testing.T) {
	a, b := "sha256:aa", "sha256:bb"
	s := newShelf(greeting(0))
	for name, c := range map[string]struct {
		change func(r *exchange.Run)
		o      RevalidateOptions
		kind   error
		says   string
	}{
		"never closed":    {func(r *exchange.Run) { r.State = exchange.RunOpen }, RevalidateOptions{}, exchange.ErrIncomplete, "never closed"},
		"unknown weights": {func(*exchange.Run) {}, RevalidateOptions{Weights: a}, exchange.ErrMiss, "which weights"},
		"other weights": {func(r *exchange.Run) { r.Deployments = []exchange.Deployment{{WeightsDigest: &b}} }, RevalidateOptions{Weights: a},
			exchange.ErrMiss, "weights_digest is sha256:bb, want sha256:aa"},
		"two weights": {func(r *exchange.Run) {
			r.Deployments = []exchange.Deployment{{WeightsDigest: &a}, {Weights: &exchange.Weights{Digest: b}}}
		}, RevalidateOptions{Weights: a}, exchange.ErrMiss, "sha256:aa, sha256:bb"},
		"judgment of another run": {func(*exchange.Run) {}, RevalidateOptions{Against: &EarlierJudgments{source: EvidenceSource{Run: "other"}}},
			exchange.ErrMiss, "one of run other"},
		"judgment of other weights": {func(r *exchange.Run) { r.Deployments = []exchange.Deployment{{WeightsDigest: &b}} },
			RevalidateOptions{Against: &EarlierJudgments{source: EvidenceSource{Run: s.run.ID, Weights: []string{a}}}}, exchange.ErrMiss, "weights_digest was sha256:aa, is sha256:bb"},
	} {
		run := s.run
		c.change(&run)
		judged := 0
		c.o.Each = func(*Judged) error { judged++; return nil }
		if _, err := Revalidate(context.Background(), s, &run, c.o); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || judged > 0 {
			t.Errorf("%s: %v after %d judgments", name, err, judged)
		}
	}
	run := s.run
	run.Deployments = []exchange.Deployment{{WeightsDigest: &a}}
	if r, err := Revalidate(context.Background(), s, &run, RevalidateOptions{Weights: a}); err != nil || len(r.Source.Weights) != 1 {
		t.Errorf("the same weights: %v", err)
	}
}

func TestVerdictOfRevalidation(t *testing.T) {
	count := func(words map[exchange.VerdictStatus]int, more func(*Revalidated)) *Revalidated {
		r := &Revalidated{Statuses: words, Complete: true}
		for _, n := range words {
			r.Judged += n
		}
		if more != nil {
			more(r)
		}
		return r
	}
	type words = map[exchange.VerdictStatus]int
	for name, c := range map[string]struct {
		r    *Revalidated
		want error
	}{
		"passed":     {count(words{"ok": 3, "skipped": 1}, nil), nil},
		"no such":    {count(words{"ok": 3, "unsupported": 1}, nil), nil},
		"failed":     {count(words{"ok": 3, "fail": 1, "incomparable": 1}, func(r *Revalidated) { r.Broken = 1; r.Complete = false }), exchange.ErrGate},
		"broken":     {count(words{"ok": 3, "incomparable": 1}, func(r *Revalidated) { r.Broken = 1 }), exchange.ErrDamaged},
		"unjudged":   {count(words{"ok": 3, "not_run": 1}, nil), exchange.ErrIncomplete},
		"incomplete": {count(words{"ok": 3}, func(r *Revalidated) { r.Complete = false }), exchange.ErrIncomplete},
		"nothing":    {count(words{}, nil), exchange.ErrMiss},
		"all left":   {count(words{"skipped": 2, "unsupported": 1}, nil), exchange.ErrMiss},
	} {
		if err := c.r.Verdict(); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestAttemptsThatWereFollowedAreNotJudged holds that a 503 which the engine morning to come back from is no failure of the
// item, as long as the last attempt is judged.
func TestAttemptsThatWereFollowedAreNotJudged(t *testing.T) {
	first, second, warm := greeting(0), greeting(time.Second), greeting(2*time.Second)
	first.Response.Status = 503
	first.Item, second.Item = &exchange.PlanItem{Item: "a", Turns: 1}, &exchange.PlanItem{Item: "a", Turns: 1, Attempt: 1}
	warm.Item = &exchange.PlanItem{Item: "a", Turns: 1, Warmup: true}
	s := newShelf(first, second, warm)
	s.run.Replay = &exchange.Replay{Items: exchange.ItemCounts{Retries: 1}}
	_, all := judgedRun(t, s, RevalidateOptions{})
	if diff := cmp.Diff([]string{"skipped", "ok", "skipped"}, statuses(all)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
