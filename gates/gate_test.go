package gates

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestGatesTellTheirRules holds what `gate ls` and `gate explain` rest on.
func TestGatesTellTheirRules(t *testing.T) {
	all := All()
	if len(all) < 10 {
		t.Fatalf("only %d gates", len(all))
	}
	id := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	seen := map[string]bool{}
	for i, g := range all {
		switch {
		case !id.MatchString(g.ID) || seen[g.ID]:
			t.Errorf("%q is no id, or there twice", g.ID)
		case g.Version < 1 || g.judge == nil:
			t.Errorf("%s has no version or no rule", g.ID)
		case !slices.Contains([]string{"answer", "tool", "golden"}, g.Family):
			t.Errorf("%s is of family %q", g.ID, g.Family)
		case g.Summary == "" || strings.Contains(g.Summary, "\n") || len(g.Explain) < 40:
			t.Errorf("%s does not say what it does", g.ID)
		case i > 0 && all[i-1].Family+all[i-1].ID > g.Family+g.ID:
			t.Errorf("%s is out of order", g.ID)
		}
		seen[g.ID] = true
		for line := range strings.SplitSeq(g.Explain, "\n") {
			if len([]rune(line)) > 130 {
				t.Errorf("%s: a line of %d characters: %s", g.ID, len([]rune(line)), line)
			}
		}
	}
	all[0].ID = "changed"
	if _, ok := Lookup("changed"); ok {
		t.Error("a caller can change the registry")
	}
}

func TestLevels(t *testing.T) {
	for _, l := range []Level{LevelDev, LevelFast, LevelQuick, LevelFull} {
		if got, err := ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("%s: %v, %v", l, got, err)
		}
	}
	for _, word := range []string{"none", "", "Dev", "slow"} {
		if _, err := ParseLevel(word); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q: %v", word, err)
		}
	}
}

func TestJudgeRefusesWhatItDoesNotKnow(t *testing.T) {
	e := Prepare(&exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{spoken{content: "x", finish: "stop"}.exchange()}})
	for _, c := range []struct {
		check exchange.Check
		says  string
	}{
		{check("nonsense"), "gate ls"},
		{check("usage_present", `{}`), "takes no parameters"},
		{check("exact"), "text is missing"},
		{check("exact", `{"txet":"x"}`), "txet"},
		{check("exact", `{"text":5}`), "number"},
		{check("finish_reason", `{`), "JSON"},
		{check("json", `{"equality":"loose"}`), "loose"},
		{check("json", `{"duplicates":"first"}`), "first"},
		{check("json", `{"value":1e999}`), "overflows"},
		{check("json_unicode"), "value is missing"},
		{check("long_context_recall"), "codes are missing"},
		{check("long_context_recall", `{"codes":[{"label":"a"}]}`), "codes[0].code is missing"},
		{check("long_context_recall", `{"codes":[{"code":"a"},{"code":"a"}]}`), "twice"},
		{check("sustained_decode", `{"budget":0}`), "budget 0"},
		{check("sustained_decode", `{"min_chars":-1}`), "min_chars"},
		{check("sustained_decode", `{"coverage":[[]]}`), "coverage"},
	} {
		if _, _, err := Judge(e, c.check); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, want %q", c.check.Gate, c.check.Params, err, c.says)
		}
		if err := Validate(c.check); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s %s passes Validate: %v", c.check.Gate, c.check.Params, err)
		}
	}
	if err := Validate(check("json", `{"object":true}`)); err != nil {
		t.Error(err)
	}
}

// TestBrokenEvidenceIsNoPass holds that no answer gate passes what it cannot see whole.
func TestBrokenEvidenceIsNoPass(t *testing.T) {
	cut := spoken{content: "42", finish: "stop", state: exchange.StateTruncated}.exchange()
	hole := spoken{content: "42", finish: "stop"}.exchange()
	hole.Response.Body.Size++
	request := spoken{content: "42", finish: "stop"}.exchange()
	request.Request.Body.Size++
	for _, c := range []exchange.Check{check("usage_present"), check("finish_reason"), check("exact", `{"text":"42"}`), check("degenerate")} {
		for _, x := range []*exchange.Exchange{cut, hole, request} {
			if v := judged(t, c, x); v.Status != sOther || !strings.Contains(v.Reason, "not whole") {
				t.Errorf("%s: %s (%s)", c.Gate, v.Status, v.Reason)
			}
		}
		if v := judged(t, c); v.Status != sNotRun {
			t.Errorf("%s without an exchange: %s", c.Gate, v.Status)
		}
	}
}

// TestVerdictNamesItsEvidence holds that what was judged is told by content, and that judging again says the same.
func TestVerdictNamesItsEvidence(t *testing.T) {
	a, b := spoken{content: "42", finish: "stop"}.exchange(), spoken{content: "43", finish: "stop"}.exchange()
	c := check("exact", `{"text":"42"}`)
	one, two := judged(t, c, a), judged(t, c, b)
	if len(one.Evidence) != 1 || one.Evidence[0].Kind != "exchange" || one.Evidence[0].Digest == two.Evidence[0].Digest {
		t.Errorf("%+v and %+v", one.Evidence, two.Evidence)
	}
	first, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(judged(t, c, a))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(again)); diff != "" {
		t.Errorf("the same case judged twice:\n%s", diff)
	}
}

func TestSum(t *testing.T) {
	v := func(words ...exchange.VerdictStatus) (out []exchange.Verdict) {
		for _, w := range words {
			out = append(out, exchange.Verdict{Status: w})
		}
		return out
	}
	for _, c := range []struct {
		in   []exchange.Verdict
		want exchange.VerdictStatus
	}{
		{nil, sNotRun}, {v(sOK), sOK}, {v(sOK, sSkipped), sOK}, {v(sSkipped), sSkipped}, {v(sOK, sOther), sOther},
		{v(sNotRun, sOther), sNotRun}, {v(sFail, sNotRun), sFail}, {v(exchange.VerdictUnsupported, sOK), exchange.VerdictUnsupported},
	} {
		if got, _ := Sum(c.in); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
	fenced := append(v(sOK), exchange.Verdict{Status: sFail, Lenient: sOK})
	if status, lenient := Sum(fenced); status != sFail || lenient != sOK {
		t.Errorf("%s, lenient %s", status, lenient)
	}
}

// TestDefaultsTellEveryParameter holds that the parameters that gate explain prints are the ones that a check may have.
func TestDefaultsTellEveryParameter(t *testing.T) {
	for _, g := range All() {
		text := g.Defaults()
		if g.Params == nil {
			if string(text) != "null" {
				t.Errorf("%s: %s", g.ID, text)
			}
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil || len(fields) == 0 {
			t.Errorf("%s: %v %s", g.ID, err, text)
			continue
		}
		if err := json.Unmarshal(text, g.Params()); err != nil {
			t.Errorf("%s: %v", g.ID, err)
		}
	}
	near, _ := Lookup("near_tie")
	for _, name := range []string{"weights", "build", "max_age_s", "no_views", "re_recordings", "variants"} {
		if !strings.Contains(string(near.Defaults()), `"`+name+`":`) {
			t.Errorf("near_tie does not tell %s: %s", name, near.Defaults())
		}
	}
}
