package exchange

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

// TestRowIsWrittenAsJSONWould holds the row to what encoding/json makes of the same fields, byte for byte.
func TestRowIsWrittenAsJSONWould(t *testing.T) {
	names := []string{"ttft_ms", "decode_tps", "a", "event_gap_p50_ms", "né", `"quoted"`, "a<b", ""}
	values := []float64{0, 1, 1.5, -2.25, 1e-6, 9.9e-7, 1e20, 1e21, 123456.789, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1)}
	for range 500 {
		s := Summary{ID: "01JQ0000000000000000000000", Model: "m", Flags: []string{"buffered"}, Metrics: Figures{}}
		for _, name := range names {
			switch rand.IntN(3) {
			case 0:
				s.Metrics[name] = Figure{Value: values[rand.IntN(len(values))], Basis: BasisMeasured}
			case 1:
				s.Metrics[name] = Absent("ms", "not_streamed")
			}
		}
		got, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(struct {
			plainSummary
			figuresJSON
		}{plainSummary(s), s.Metrics.split()})
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("row is\n%s, want\n%s", got, want)
		}
	}
}

func TestRowWithoutNumberIsRefused(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		s := Summary{Metrics: Figures{"ttft_ms": {Value: v, Basis: BasisMeasured}}}
		if b, err := s.MarshalJSON(); err == nil {
			t.Errorf("%v is written as %s", v, b)
		}
	}
}
