package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestParseBoundRefuses(t *testing.T) {
	for _, bad := range []string{"", "decode_tps", "decode_tps<", "decode_tps<x", "decode_tps==1", "decode_tps!=1", "<1", "speed<1", "decode_tps=fast",
		"decode_tps=incomparable", "failed=worse", "decode_tps<1 and ttft_ms>1", "decode_tps<1.2.3", "DECODE_TPS<1", "decode_tps<-1"} {
		if _, err := ParseBound(bad); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParseBound("speed<1"); !strings.Contains(err.Error(), "decode_tps") || !strings.Contains(err.Error(), "prefix_agreement") {
		t.Errorf("the error does not name what there is: %v", err)
	}
}

func TestBoundsAreJudged(t *testing.T) {
	r := mustCompare(t, side("a", 12, 100, 50), replayOf(side("b", 12, 125, 40), "a"), Options{})
	for text, violated := range map[string]bool{
		"decode_tps<0.95": true, "decode_tps < 95%": true, "decode_tps<0.5": false, "decode_tps<=.95": true, "ttft_ms>1.1": true, "ttft_ms >= 110 %": true,
		"ttft_ms>2": false, "decode_tps=worse": true, "decode_tps=better": false, "failed>0": false, "failed>=0": true, "identical<1": false,
		"prefix_agreement<0.9": false, "difflib_ratio<=1": true, "unpaired>0": false,
	} {
		b, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.judge(r); got.Violated != violated || got.Value == nil || len(got.Reasons) > 0 {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestABoundWithoutANumberSaysWhy(t *testing.T) {
	a, b := side("a", 12, 100, 50), side("b", 12, 125, 40)
	b.Run.State = exchange.RunOpen
	for text, why := range map[string]exchange.Reason{"decode_tps<0.95": ReasonIncomplete, "decode_tps=worse": ReasonIncomplete} {
		bound, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		r := mustCompare(t, a, b, Options{Bounds: []Bound{bound}})
		if got := r.Bounds[0]; got.Violated || got.Value != nil || len(got.Reasons) != 1 || got.Reasons[0] != why {
			t.Errorf("%s: %+v", text, got)
		}
	}
	bound, err := ParseBound("identical<1")
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.judge(mustCompare(t, a, replayOf(side("b", 3, 100, 50), "z"), Options{})); got.Value != nil || got.Reasons[0] != ReasonNoPairs {
		t.Errorf("nothing in common: %+v", got)
	}
}

// An engine that fails where it is slow leaves only fast answers to be compared.
func TestNewFailuresCountBesideEveryBound(t *testing.T) {
	speed, err := ParseBound("decode_tps<0.95")
	if err != nil {
		t.Fatal(err)
	}
	own, err := ParseBound("failed>8")
	if err != nil {
		t.Fatal(err)
	}
	failing := func(s *Side) *Side {
		for i := range s.Entries {
			if i%3 == 0 {
				s.Entries[i].Row.Outcome = exchange.OutcomeUpstreamError
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		reference *Side
		bounds    []Bound
		violated  []string
	}{
		"only the candidate fails": {side("a", 24, 100, 50), []Bound{speed}, []string{"newly_failed>0"}},
		"both fail":                {failing(side("a", 24, 100, 50)), []Bound{speed}, nil},
		"the user allows it":       {side("a", 24, 100, 50), []Bound{speed, own}, nil},
		"no bound, no judgment":    {side("a", 24, 100, 50), nil, nil},
	} {
		r := mustCompare(t, c.reference, failing(replayOf(side("b", 24, 80, 60), "a")), Options{Bounds: c.bounds})
		var violated []string
		for _, b := range r.Bounds {
			if b.Violated {
				violated = append(violated, b.Bound)
			}
			if b.Implied && (b.Value == nil || b.Bound != "newly_failed>0") {
				t.Errorf("%s: implied: %+v", name, b)
			}
		}
		if !slices.Equal(violated, c.violated) {
			t.Errorf("%s: violated %v, want %v", name, violated, c.violated)
		}
	}
}

// Five pairs can never come out as a difference: a bound on the verdict must not pass for that.
func TestABoundOnAVerdictNeedsTakesEnoughForOne(t *testing.T) {
	for text, open := range map[string]bool{"decode_tps=worse": true, "decode_tps=indistinguishable": true, "decode_tps<0.95": false} {
		bound, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		got := bound.judge(mustCompare(t, side("a", 5, 100, 50), side("b", 5, 125, 40), Options{}))
		if got.Violated == open || (got.Value == nil) != open || open && (len(got.Reasons) != 1 || got.Reasons[0] != ReasonTooFew) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
