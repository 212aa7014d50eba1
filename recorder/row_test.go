package recorder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func rowOf(t testing.TB, s exchange.Summary) []byte {
	t.Helper()
	b, err := appendRow(nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRowKeepsEveryField fills a row by reflection: a field that the codec forgets comes back empty.
func TestRowKeepsEveryField(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 300 {
		var s exchange.Summary
		fill(r, reflect.ValueOf(&s).Elem())
		s.Version = exchange.SummaryVersion
		if r.IntN(2) == 0 {
			s.Digest = exchange.NewBody([]byte(s.ID)).Sum()
		}
		got, err := decodeRow(rowOf(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, got); d != "" {
			t.Fatal(d)
		}
		for name, f := range s.Metrics { // cmp takes -0 and 0 for one number
			if math.Float64bits(f.Value) != math.Float64bits(got.Metrics[name].Value) {
				t.Fatalf("%s: %v became %v", name, f.Value, got.Metrics[name].Value)
			}
		}
	}
}

// TestRowKeepsItsJSON holds that documents of a stored row are those of the row itself: null stays null, [] stays [].
func TestRowKeepsItsJSON(t *testing.T) {
	real := smallJSON(1)
	derived := measure.Summarize(real, measure.Analyze(real))
	for name, s := range map[string]exchange.Summary{
		"empty":   {},
		"no text": {Flags: []string{}, Interventions: []exchange.Intervention{}, FinishReason: new(string), Metrics: exchange.Figures{}},
		"real":    derived,
		"digests": {Digest: "sha256:" + strings.Repeat("A", 64), RequestSum: "sha256:" + strings.Repeat("g", 64), ResponseSum: "sha256:ab"},
	} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeRow(rowOf(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, got, want)
		}
	}
}

// TestRowTablesKnowTheMetrics holds that the words of today are short in a row, and that the tables hold each once.
func TestRowTablesKnowTheMetrics(t *testing.T) {
	names, sources := map[string]bool{}, map[exchange.Figure]bool{}
	for _, n := range rowMetrics {
		names[n] = true
	}
	for _, f := range rowSources {
		sources[f] = true
	}
	if len(names) != len(rowMetrics) || len(sources) != len(rowSources) {
		t.Error("a word stands twice in its table")
	}
	for _, d := range measure.Metrics() {
		if !names[d.Name] {
			t.Errorf("metric %s is not in rowMetrics: add it at the end", d.Name)
		}
	}
	for _, why := range measure.Reasons() {
		if !sources[exchange.Figure{Reason: why}] {
			t.Errorf("reason %s is not in rowSources: add it at the end", why)
		}
	}
	// The numbers are on disk: an entry never moves.
	if rowMetrics[0] != "headers_ms" || rowMetrics[36] != "proxy_queue_ms" || rowSources[3].Reason != "not_streamed" || rowSources[28].Reason != "record_truncated" {
		t.Error("an entry of a row table has moved")
	}
}

// TestOlderRowsAreRead holds that a row without the versions of its rules is read, and says that they are not known.
func TestOlderRowsAreRead(t *testing.T) {
	x := smallJSON(1)
	s := measure.Summarize(x, measure.Analyze(x))
	if s.Rules != measure.Rules() || s.Rules.Wire < 2 || s.Rules.Measure < 2 {
		t.Fatalf("rules %+v", s.Rules)
	}
	s.Rules = exchange.Rules{} // two bytes at the end
	row := rowOf(t, s)
	for form, older := range map[byte][]byte{rulesRow: row[:len(row)-1], plannedRow: row[:len(row)-3], oldestRow: row[:len(row)-5]} {
		older = append([]byte{form}, older[1:]...)
		got, err := decodeRow(older)
		if err != nil {
			t.Fatalf("form %d: %v", form, err)
		}
		if d := cmp.Diff(s, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(exchange.Figure{}, "Unit")); d != "" {
			t.Errorf("form %d (-written +read):\n%s", form, d)
		}
		var run measure.Totals
		if run.Add(&got); run.Run().Outdated != 1 {
			t.Errorf("form %d is not told from a row of today", form)
		}
	}
}

func TestRowRefusesDamage(t *testing.T) {
	x := smallJSON(1)
	s := measure.Summarize(x, measure.Analyze(x))
	s.Cause, s.Metrics["of_tomorrow"] = &exchange.Cause{Side: exchange.SideEngine}, exchange.Figure{Value: 1.5, Basis: "guessed"}
	good := rowOf(t, s)
	for n := range good {
		if _, err := decodeRow(good[:n]); !errors.Is(err, exchange.ErrDamaged) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(good), err)
		}
	}
	newer := s
	newer.Version++
	for name, bad := range map[string][]byte{
		"a byte too many": append(bytes.Clone(good), 0),
		"newer form":      append([]byte{rowVersion + 1}, good[1:]...),
		"newer row":       rowOf(t, newer),
		"packed text":     []byte("\x00{\"schema\":1}"),
	} {
		if _, err := decodeRow(bad); !errors.Is(err, exchange.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := &fieldReader{b: []byte{1, 0xff, 1}} // a metric of a source that no table has
	if readFigures(r); r.err == nil {
		t.Error("an unknown source was read")
	}
	r = &fieldReader{b: []byte{1, 0x7f, 1}}
	if readFigures(r); r.err == nil {
		t.Error("an unknown metric was read")
	}
	r = &fieldReader{b: binary.LittleEndian.AppendUint64([]byte{1, 1, firstInTable << 1}, math.Float64bits(math.NaN()))}
	if readFigures(r); r.err == nil {
		t.Error("a number that is none was read")
	}
	r = &fieldReader{b: []byte{1, 1, (firstInTable+3)<<1 | 1}}
	if readFigures(r); r.err == nil {
		t.Error("an absent figure with a value was read")
	}
}

func TestRowWithoutNumberIsRefused(t *testing.T) {
	for _, name := range []string{"ttft_ms", "of_tomorrow"} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			s := exchange.Summary{Metrics: exchange.Figures{name: {Value: v, Basis: exchange.BasisMeasured}}}
			if _, err := appendRow(nil, &s); err == nil {
				t.Errorf("%s %v was stored", name, v)
			}
		}
	}
}

// FuzzRow holds: what decodes is coded again to something that decodes to the same.
func FuzzRow(f *testing.F) {
	x := smallJSON(1)
	f.Add(rowOf(f, measure.Summarize(x, measure.Analyze(x))))
	var s exchange.Summary
	fill(rand.New(rand.NewPCG(23, 24)), reflect.ValueOf(&s).Elem())
	s.Version = exchange.SummaryVersion
	f.Add(rowOf(f, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeRow(b)
		if err != nil {
			return
		}
		coded, err := appendRow(nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeRow(coded)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, again); d != "" {
			t.Error(d)
		}
	})
}
