package stat

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLoadOfOverlappingSpans(t *testing.T) {
	near := cmpopts.EquateApprox(0, 1e-9)
	for _, c := range []struct {
		name  string
		spans []Span
		want  Load
	}{
		{"one", []Span{{Start: 2, End: 6}}, Load{Peak: 1, Mean: 1, Whole: Window{2, 6}, Steady: Window{2, 6}, Drain: 1}},
		{"ramp, steady, drain", []Span{{Start: 0, End: 10}, {Start: 2, End: 8}}, Load{
			Peak: 2, Mean: 1.6, Whole: Window{0, 10}, Steady: Window{2, 8}, Ramp: 0.2, Drain: 0.8}},
		{"one replaces another without a gap", []Span{{Start: 0, End: 4}, {Start: 4, End: 10}}, Load{
			Peak: 1, Mean: 1, Whole: Window{0, 10}, Steady: Window{0, 10}, Ramp: 0, Drain: 0.6}},
		{"a whole set replaces another", []Span{{Start: 0, End: 4}, {Start: 0, End: 4}, {Start: 4, End: 8}, {Start: 4, End: 10}}, Load{
			Peak: 2, Mean: 1.8, Whole: Window{0, 10}, Steady: Window{0, 8}, Ramp: 0, Drain: 0.6}},
		{"the longest of two steady stretches", []Span{{Start: 0, End: 2}, {Start: 3, End: 10}}, Load{
			Peak: 1, Mean: 0.9, Whole: Window{0, 10}, Steady: Window{3, 10}, Ramp: 0.3, Drain: 0.7}},
		{"empty spans do not count", []Span{{Start: 0, End: 0}, {Start: 1, End: 2}, {Start: 5, End: 4}}, Load{
			Peak: 1, Mean: 1, Whole: Window{1, 2}, Steady: Window{1, 2}, Drain: 1}},
	} {
		got, ok := LoadOf(c.spans)
		if diff := cmp.Diff(c.want, got, near); !ok || diff != "" {
			t.Errorf("%s: %v\n%s", c.name, ok, diff)
		}
	}
	if _, ok := LoadOf([]Span{{Start: 1, End: 1}}); ok {
		t.Error("no work has a load")
	}
}

func TestRateSpreadsTheWeight(t *testing.T) {
	spans := []Span{{Start: 0, End: 10, Weight: 100}, {Start: 2, End: 8, Weight: 60}}
	for _, c := range []struct {
		w    Window
		want float64
	}{{Window{0, 10}, 16}, {Window{2, 8}, 20}, {Window{8, 12}, 5}, {Window{3, 3}, 0}, {Window{5, 3}, 0}} {
		if got := Rate(spans, c.w); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("rate in %+v is %v, want %v", c.w, got, c.want)
		}
	}
}

func TestShareOf(t *testing.T) {
	if s := ShareOf(0, 0); s.Share != nil || s.Interval != nil {
		t.Errorf("a share of nothing: %+v", s)
	}
	// Wilson's interval of 8 of 10 is 0.4902 to 0.9433 in the textbooks.
	s := ShareOf(8, 10)
	if *s.Share != 0.8 || math.Abs(s.Interval.Lo-0.4902) > 1e-4 || math.Abs(s.Interval.Hi-0.9433) > 1e-4 {
		t.Errorf("8 of 10: %v %+v", *s.Share, *s.Interval)
	}
	for _, whole := range []int{1, 5, 100} {
		for _, part := range []int{0, whole} {
			if s := ShareOf(part, whole); s.Interval.Lo < 0 || s.Interval.Hi > 1 || s.Interval.Lo > *s.Share || s.Interval.Hi < *s.Share {
				t.Errorf("%d of %d: %+v", part, whole, *s.Interval)
			}
		}
	}
}
