package measure

import (
	"math"
	"testing"
)

// TestGapTailOfManyAnswers gathers answers of 50 gaps of 20 ms, one of which has a pause of 900 ms.
func TestGapTailOfManyAnswers(t *testing.T) {
	var first, second GapTail
	add := func(g *GapTail, n int, pause float64) {
		for range n {
			s := newScript().texts(100, 20, 51).usage(10, 51)
			gaps := EventGaps(s.x, s.derive())
			if len(gaps) != 50 {
				t.Fatalf("%d gaps", len(gaps))
			}
			if pause > 0 {
				gaps[0] = pause
			}
			g.Add(gaps)
		}
	}
	if first.Tail() != nil {
		t.Error("nothing gathered has a tail")
	}
	add(&first, 1, 0)
	if tail := first.Tail(); tail.N != 50 || tail.Exchanges != 1 || tail.P50 == nil || tail.P90 != nil || tail.P99 != nil || math.Abs(*tail.Max-20) > 0.02 {
		t.Errorf("one answer: %+v; 50 gaps are too few for a p90", tail)
	}
	add(&second, 39, 0)
	add(&second, 1, 900)
	first.Merge(&second)
	first.Merge(&GapTail{})
	tail := first.Tail()
	if tail.N != 2050 || tail.Exchanges != 41 || tail.P999 != nil {
		t.Errorf("%+v", tail)
	}
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{"p50": {tail.P50, 20}, "p90": {tail.P90, 20}, "p99": {tail.P99, 20}, "max": {tail.Max, 900}} {
		if c.got == nil || math.Abs(*c.got-c.want) > c.want/1000 {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
	var empty GapTail
	empty.Merge(&second)
	if got := empty.Tail(); got.N != 2000 || second.Tail().N != 2000 {
		t.Errorf("merged into nothing: %+v", got)
	}
}

// TestNoGapsOfBrokenAnswers holds that an answer which failed, or brought no token, adds nothing to the tail.
func TestNoGapsOfBrokenAnswers(t *testing.T) {
	s := newScript().texts(100, 20, 51).usage(10, 51)
	s.x.Response.Status = 500
	if gaps := EventGaps(s.x, s.derive()); gaps != nil {
		t.Errorf("a broken answer gives %d gaps", len(gaps))
	}
	s = newScript().read(5)
	if gaps := EventGaps(s.x, s.derive()); gaps != nil {
		t.Errorf("an answer without tokens gives %d gaps", len(gaps))
	}
}
