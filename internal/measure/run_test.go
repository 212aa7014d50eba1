package measure

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// row is the summary row of a script.
func (s *script) row() exchange.Summary { return Summarize(s.x, s.derive()) }

// filled is a script with something in every field that a row takes.
func filled() *script {
	s := newScript().texts(100, 20, 5).usage(10, 5)
	s.x.ID, s.x.Run, s.x.Seq, s.x.Upstream, s.x.Identity.Engine = "ID", "RUN", 7, "main", "llamacpp"
	s.x.Request.Body, s.x.Response.Body = exchange.NewBody([]byte("{}")), exchange.NewBody([]byte("data"))
	s.t.Model, s.t.FinishReason, s.t.ParseErrors = "answered", ref("stop"), 2
	s.x.Interventions = []exchange.Intervention{{Kind: "header_changed"}}
	return s
}

func TestSummarizeTakesEveryField(t *testing.T) {
	row := filled().row()
	if row.Version != exchange.SummaryVersion || row.ID != "ID" || row.Run != "RUN" || row.Seq != 7 || row.Upstream != "main" || row.Engine != "llamacpp" {
		t.Errorf("identity: %+v", row)
	}
	if row.Path != "/v1/chat/completions" || row.Method != "POST" || row.Dialect != "chat" || row.Status != 200 || !row.Stream {
		t.Errorf("request: %+v", row)
	}
	if row.Model != "answered" || *row.FinishReason != "stop" || row.ParseErrors != 2 || row.Outcome != exchange.OutcomeComplete || row.End != exchange.EndEOF {
		t.Errorf("answer: %+v", row)
	}
}

func TestSummarizeTakesSizesAndChanges(t *testing.T) {
	row := filled().row()
	if row.RequestBytes != 2 || row.ResponseBytes != 4 || row.RequestSum == "" || row.ResponseSum == "" || len(row.Interventions) != 1 {
		t.Errorf("bodies: %+v", row)
	}
}

func TestSummarizeNamesTheModelAskedForAndNoDialectOfAGet(t *testing.T) {
	s := filled()
	s.r.Model = "asked"
	if got := s.row().Model; got != "asked" {
		t.Errorf("model %q", got)
	}
	s.x.Request.Method = "GET"
	if got := s.row().Dialect; got != "" {
		t.Errorf("a GET has the dialect %q", got)
	}
}

func TestSummaryRowsHaveNoNullLists(t *testing.T) {
	b, err := json.Marshal(newScript().row())
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"flags", "interventions"} {
		if _, ok := m[k].([]any); !ok {
			t.Errorf("%s is %v, want a list", k, m[k])
		}
	}
}

func TestRunSummaryLeavesOutWhatIsNoSample(t *testing.T) {
	complete := func(decodeGap float64) *script { return newScript().texts(100, decodeGap, 11).usage(100, 11) }
	short := complete(1)
	short.r.MaxTokens = ref(int64(1000))
	aborted := complete(1)
	aborted.t.DialectEnd, aborted.x.End = false, exchange.EndClientGone
	failed := newScript()
	failed.x.Response.Status = 503
	models := newScript().read(3)
	models.x.Request.Method = "GET"
	single := newScript().read(300, 1).usage(100, 9)
	cutRow := complete(10).row()
	cutRow.State = exchange.StateTruncated

	rows := []exchange.Summary{
		complete(10).row(), complete(20).row(), complete(40).row(), cutRow,
		short.row(), aborted.row(), failed.row(), models.row(), single.row(),
	}
	run := RunSummary(rows)
	if run.Exchanges != 9 || run.Generated != 8 || run.Truncated != 1 {
		t.Errorf("counts: %d, %d, %d", run.Exchanges, run.Generated, run.Truncated)
	}
	if diff := cmp.Diff(map[exchange.Outcome]int{"complete": 7, "client_abort": 1, "upstream_error": 1}, run.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	decode := run.Metric(DecodeTPS)
	if decode.Summary.N != 4 || *decode.Summary.Median != 75 || decode.Basis != exchange.BasisMeasured || decode.Unit != "tok/s" {
		t.Errorf("decode: %+v", decode)
	}
	if diff := cmp.Diff(map[exchange.Reason]int{ExcludedFailed: 2, ExcludedShort: 1, ReasonSingleEvent: 1}, decode.Excluded); diff != "" {
		t.Errorf("left out of decode (-want +got):\n%s", diff)
	}
	ttft := run.Metric(TTFTMS)
	if ttft.Summary.N != 6 || *ttft.Summary.Median != 100 || *ttft.Summary.Max != 300 {
		t.Errorf("ttft: %+v", ttft)
	}
	if diff := cmp.Diff(map[exchange.Reason]int{ExcludedFailed: 2}, ttft.Excluded); diff != "" {
		t.Errorf("left out of TTFT (-want +got):\n%s", diff)
	}
	if got := run.Metric("no such metric"); got.Name != "" {
		t.Errorf("an unknown metric gave %+v", got)
	}
}

func TestRunSummaryPrefersExactCounts(t *testing.T) {
	exact := newScript().texts(100, 10, 11).usage(100, 11)
	guess := newScript().texts(100, 20, 11)
	mixed := RunSummary([]exchange.Summary{exact.row(), guess.row(), guess.row()}).Metric(DecodeTPS)
	if mixed.Basis != exchange.BasisMeasured || mixed.Summary.N != 1 || mixed.Excluded[ExcludedEstimated] != 2 {
		t.Errorf("mixed: %+v", mixed)
	}
	guessed := RunSummary([]exchange.Summary{guess.row()}).Metric(DecodeTPS)
	if guessed.Basis != exchange.BasisEstimated || guessed.Summary.N != 1 || *guessed.Summary.Median != 50 {
		t.Errorf("guessed: %+v", guessed)
	}
}

func TestRunSummaryOfNothing(t *testing.T) {
	run := RunSummary(nil)
	if len(run.Metrics) != len(runMetrics) {
		t.Fatalf("%d metrics", len(run.Metrics))
	}
	for _, m := range run.Metrics {
		if m.Summary.N != 0 || m.Summary.Median != nil || m.Summary.Absent["median"] != stat.ReasonNoSamples || m.Unit == "" {
			t.Errorf("%+v", m)
		}
	}
}

func TestRunSummaryReadsRowsOfAnOlderVersion(t *testing.T) {
	row := newScript().texts(100, 10, 11).usage(100, 11).row()
	delete(row.Metrics, TPOTMS)
	if got := RunSummary([]exchange.Summary{row}).Metric(TPOTMS); got.Excluded[ReasonNotReported] != 1 {
		t.Errorf("%+v", got)
	}
}

func TestDraftSpeedupIsOfTheMedianRate(t *testing.T) {
	row := filled().row()
	rate := row.Metrics[DecodeTPS]
	sum := RunSummary([]exchange.Summary{row})
	if f := sum.DraftSpeedup(rate.Value / 2); f.Value != 2 || f.Basis != rate.Basis {
		t.Errorf("speedup %+v, want 2 by %s", f, rate.Basis)
	}
	if f := RunSummary(nil).DraftSpeedup(50); f.Present() || f.Reason == "" {
		t.Errorf("speedup %+v of nothing", f)
	}
}
