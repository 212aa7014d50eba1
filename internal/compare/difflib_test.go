package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDifflibRatioIsPythons(t *testing.T) {
	b, err := os.ReadFile("testdata/similarity.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name      string   `json:"name"`
		A         string   `json:"a"`
		B         string   `json:"b"`
		Ratio     *float64 `json:"ratio"`
		Verdict   string   `json:"verdict"`
		Tolerance float64  `json:"tolerance"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 30 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		got, _ := textRatio(Answer{Text: v.A}, Answer{Text: v.B}, ratioBudget)
		switch {
		case v.Ratio == nil && got != nil:
			t.Errorf("%s: %v, want none", v.Name, *got)
		case v.Ratio == nil:
		case got == nil || math.Abs(*got-*v.Ratio) > v.Tolerance:
			t.Errorf("%s: %v, want %v", v.Name, got, *v.Ratio)
		case v.Verdict != "" && grade(*got) != v.Verdict:
			t.Errorf("%s: %q, want %q", v.Name, grade(*got), v.Verdict)
		}
	}
}

func TestGrades(t *testing.T) {
	for ratio, want := range map[float64]string{1: "high agreement", 0.9: "high agreement", 0.8999: "moderate", 0.75: "moderate", 0.7499: "low", 0.5: "low", 0.4999: "diverged", 0: "diverged"} {
		if got := grade(ratio); got != want {
			t.Errorf("%v is %q, want %q", ratio, got, want)
		}
	}
}

func TestRatioOfNothing(t *testing.T) {
	if Ratio("", "") != 1 || Ratio("", "x") != 0 || Ratio("x", "") != 0 {
		t.Error("empty texts")
	}
	if r, cost := textRatio(Answer{Text: strings.Repeat("x", longText+1)}, Answer{Text: "x"}, ratioBudget); r != nil || cost != 0 {
		t.Error("a text beyond the limit has a ratio")
	}
	if r, cost := textRatio(Answer{Text: "four"}, Answer{Text: "five"}, 15); r != nil || cost != 0 {
		t.Error("a ratio beyond the budget was made")
	}
	if r, cost := textRatio(Answer{Reasoning: "only thought"}, Answer{Text: "only thought"}, ratioBudget); r == nil || *r != 1 || cost != 144 {
		t.Error("reasoning does not stand in for a text that is missing")
	}
}

// Every ratio is within 0 and 1, a text has ratio 1 with itself, and two texts part where the first differing character is.
func FuzzAgreement(f *testing.F) {
	f.Add("the answer is 42", "the answer is 43")
	f.Add("", "x")
	f.Add(strings.Repeat("ab", 150), strings.Repeat("ba", 150))
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 2000 || !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		if r := Ratio(a, b); r < 0 || r > 1 || (r == 1) != (a == b) {
			t.Errorf("ratio of %q and %q is %v", a, b, r)
		}
		d, diverges := diverge(Answer{Text: a}, Answer{Text: b})
		if diverges != (a != b) || d.Prefix < 0 || d.Prefix > 1 {
			t.Errorf("%q and %q: %+v", a, b, d)
		}
		if x, y := []rune(a), []rune(b); diverges && (string(x[:d.Offset]) != string(y[:d.Offset]) ||
			d.Offset < min(len(x), len(y)) && x[d.Offset] == y[d.Offset]) {
			t.Errorf("%q and %q do not part at %d", a, b, d.Offset)
		}
	})
}
