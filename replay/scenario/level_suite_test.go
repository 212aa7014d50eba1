package scenario

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func familiesOf(cases []LevelCase) map[string]int {
	n := map[string]int{}
	for _, c := range cases {
		n[c.Family]++
	}
	return n
}

// TestLevelPlans holds what each level asks of an engine of which all is known.
func TestLevelPlans(t *testing.T) {
	on := true
	drafts := Drafts{On: &on, OffFields: json.RawMessage(`{"draft":false}`)}
	want := map[string]map[string]int{
		"dev": {FamilyConsistency: 1, FamilyPrompts: 12, FamilyDocuments: 2, FamilySampling: 1, FamilySpeculation: 6, FamilyAgent: 5, FamilyVision: 2,
			FamilyNeedle: 1, FamilyLimit: 1},
		"fast": {FamilyConsistency: 1, FamilyPrompts: 20, FamilyDocuments: 6, FamilyVision: 6},
		"quick": {FamilyConsistency: 2, FamilyPrompts: 20, FamilyDocuments: 6, FamilySampling: 1, FamilySpeculation: 16, FamilyAgent: 8, FamilyVision: 7,
			FamilyNeedle: 2, FamilyLimit: 1},
		"full": {FamilyConsistency: 2, FamilyPrompts: 20, FamilyDocuments: 6, FamilySampling: 1, FamilySpeculation: 16, FamilyAgent: 8, FamilyVision: 7,
			FamilyNeedle: 3, FamilyLimit: 1, FamilyPrefill: 1},
	}
	for level, families := range want {
		o := LevelOptions{Level: level, Window: 131072, Drafts: drafts, Thinking: true}
		if families[FamilyVision] == 7 {
			o.Images = []Image{{Name: "own", Bytes: []byte("GIF8")}}
		}
		cases, gaps, err := LevelPlan(o)
		if err != nil || len(gaps) > 0 {
			t.Fatalf("%s: %v %v", level, gaps, err)
		}
		if diff := cmp.Diff(families, familiesOf(cases)); diff != "" {
			t.Errorf("%s: %s", level, diff)
		}
		seen := map[string]bool{}
		var long []string
		for _, c := range cases {
			if seen[c.ID] || !c.Blocking {
				t.Errorf("%s: %s is there twice, or is streamed", level, c.ID)
			}
			seen[c.ID] = true
			if c.Long {
				long = append(long, c.ID)
			}
			for _, check := range c.Case(c.ID, Options{}).Checks {
				if err := gates.Validate(check); err != nil {
					t.Errorf("%s: %v", c.ID, err)
				}
			}
		}
		if level == "full" != (len(long) == 2) {
			t.Errorf("%s: what may be put off is %v", level, long)
		}
	}
}

// TestGateLevels holds which levels run which gates, and that nothing but the plans says so: a gate that stands here is one
// that a plan asks for, and the other way round.
func TestGateLevels(t *testing.T) {
	all, most := []string{"dev", "fast", "quick", "full"}, []string{"dev", "quick", "full"}
	want := map[string][]string{
		"finish_reason": all, "usage_present": all, "degenerate": all, "near_tie": all, "consistency": all, "vision": all,
		"sampling": most, "speculative_lossless": most, "agent_turns": most, "needle": most, "over_limit": most, "determinism": {"quick", "full"},
	}
	got := map[string][]string{}
	for _, g := range gates.All() {
		if levels := GateLevels(g.ID); levels != nil {
			got[g.ID] = levels
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if GateLevels("prefill") != nil || GateLevels("") != nil {
		t.Error("a gate that is none has levels")
	}
}

// TestLevelGaps holds that what is left out of a level is named with the reason.
func TestLevelGaps(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		o    LevelOptions
		want []string
	}{
		"nothing known": {LevelOptions{Level: "dev"}, []string{"speculation speculative_lossless: it is not known whether the engine drafts",
			"agent agent_turns: behind thinking: it is not known", "limit over_limit: the size of the context is not known"}},
		"no drafts":  {LevelOptions{Level: "dev", Window: 1 << 17, Thinking: true, Drafts: Drafts{On: &off}}, []string{"speculation speculative_lossless: the engine does not draft"}},
		"no way off": {LevelOptions{Level: "dev", Window: 1 << 17, Thinking: true, Drafts: Drafts{On: &on}}, []string{"speculation speculative_lossless: the engine drafts, and it is not known how"}},
		"bad fields": {LevelOptions{Level: "dev", Window: 1 << 17, Thinking: true, Drafts: Drafts{OffFields: json.RawMessage(`{`)}},
			[]string{"speculation speculative_lossless: the fields that turn drafts off are no JSON object"}},
		"by launch": {LevelOptions{Level: "dev", Window: 1 << 17, Thinking: true, Drafts: Drafts{OffVariant: "--draft-max 0"}}, nil},
		"small": {LevelOptions{Level: "dev", Window: 2048, Thinking: true, Drafts: Drafts{On: &off}},
			[]string{"speculation speculative_lossless: the engine does not draft", "documents near_tie: document_2k does not fit", "needle needle: needle_16384_50 does not fit"}},
		"full without a window": {LevelOptions{Level: "full", Thinking: true, Drafts: Drafts{On: &off}}, []string{"speculation speculative_lossless: the engine does not draft",
			"limit over_limit: the size", "needle needle: half the context", "needle needle: the full context", "prefill usage_present: the full context"}},
	} {
		_, gaps, err := LevelPlan(c.o)
		if err != nil || len(gaps) != len(c.want) {
			t.Errorf("%s: %v %v", name, gaps, err)
			continue
		}
		for i, g := range gaps {
			if text := g.Family + " " + g.Gate + ": " + g.Why; !strings.HasPrefix(text, c.want[i]) {
				t.Errorf("%s: %s, want %s", name, text, c.want[i])
			}
		}
	}
	if _, _, err := LevelPlan(LevelOptions{Level: "none"}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("a level that is none: %v", err)
	}
}

// TestTogether holds that requests that run together rest on no answer, and differ.
func TestTogether(t *testing.T) {
	s := together()
	var bodies []string
	for n := range s.Turns {
		r, err := s.Request(Options{Model: "m"}, make([]Answer, n))
		if err != nil || r.Turn != n || slices.Contains(bodies, string(r.Body)) {
			t.Fatalf("request %d: %d, %v: %s", n, r.Turn, err, r.Body)
		}
		bodies = append(bodies, string(r.Body))
	}
	if _, err := s.Request(Options{}, make([]Answer, s.Turns)); !errors.Is(err, ErrOver) {
		t.Errorf("behind the last: %v", err)
	}
}
