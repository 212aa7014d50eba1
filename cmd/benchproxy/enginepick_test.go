package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines/launch"
)

// measuredBuild is one that decodes and reads at these rates; 0 is not measured.
func measuredBuild(tag string, decode, prefill float64) picked {
	rate := func(v float64) *sampled {
		if v == 0 {
			return nil
		}
		return sampledOf([]float64{v})
	}
	return picked{Build: launch.Build{Path: "/b/" + tag, Tag: tag}, Decode: rate(decode), Prefill: rate(prefill)}
}

func TestRank(t *testing.T) {
	fallback := measuredBuild("fell", 500, 500)
	fallback.Fallback = true
	for name, c := range map[string]struct {
		list    []picked
		want    string
		verdict string
	}{
		"by decode":           {[]picked{measuredBuild("a", 50, 900), measuredBuild("b", 100, 1)}, "b a", "Use /b/b: b; it decodes 100 % faster than the next, a."},
		"a tie by prefill":    {[]picked{measuredBuild("a", 100, 10), measuredBuild("b", 98, 20), measuredBuild("c", 90, 99)}, "b a c", "Use /b/b: b; it decodes as fast as a (within 3 %), and reads prompts faster."},
		"a tie of both":       {[]picked{measuredBuild("a", 100, 20), measuredBuild("b", 100, 20)}, "a b", "Use /b/a: a; it decodes as fast as b (within 3 %)."},
		"just no tie":         {[]picked{measuredBuild("a", 100, 99), measuredBuild("b", 103.1, 1)}, "b a", "Use /b/b: b; it decodes 3 % faster than the next, a."},
		"no evidence":         {[]picked{measuredBuild("a", 0, 0), measuredBuild("b", 1, 0), measuredBuild("c", 0, 900)}, "b", "Use /b/b: b; there is no other to compare it with."},
		"a chain of ties":     {[]picked{measuredBuild("a", 100, 1), measuredBuild("b", 98, 2), measuredBuild("c", 96, 3)}, "b a c", ""},
		"one without prefill": {[]picked{measuredBuild("a", 100, 0), measuredBuild("b", 99, 5)}, "b a", ""},
		"on the CPU instead":  {[]picked{fallback, measuredBuild("b", 1, 1)}, "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rank(c.list)
			var got []string
			for i, b := range c.list {
				if b.Rank > 0 {
					got = append(got, b.Tag)
				}
				if b.Rank > 0 && b.Rank != i+1 {
					t.Errorf("%s has rank %d and place %d", b.Tag, b.Rank, i+1)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.verdict != "" {
				if diff := cmp.Diff(c.verdict, pickVerdict(c.list)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPickedTexts(t *testing.T) {
	s := sampledOf([]float64{3, 1, 2})
	var none *sampled
	got := []string{s.median(), s.span(), none.median(), none.span(), share(s, s), share(none, s), share(s, none), shortVersion("Version: 9 (abc)"), shortVersion("0.11"), cited(&picked{Build: launch.Build{Path: "/x"}})}
	want := []string{"2.0", "1.0-3.0, n=3", "-", "-", "100 %", "-", "-", "9 (abc)", "0.11", "/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
