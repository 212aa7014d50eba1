package measure

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// definitionsVector is what a recomputation apart from this code makes of a capture by the rules of each tool; null is no number.
type definitionsVector struct {
	Capture string
	Figures map[string]map[string]*float64 // by set and figure
}

// TestDefinitionsOfCaptures holds the figures of every set against those that were computed apart, from the bytes and receive
// stamps of answers of real engines: with thinking, with a tool call, of a single event, without any token, and cancelled.
func TestDefinitionsOfCaptures(t *testing.T) {
	raw, err := os.ReadFile("testdata/definitions.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []definitionsVector
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, v := range vectors {
		x := wiretest.LoadCapture(t, v.Capture).Exchange()
		a := Analyze(x)
		for _, set := range Sets() {
			row := set.Measure(x, a.Transcript)
			for _, rule := range set.Rules {
				want, got := v.Figures[set.Name][rule.Figure], row.Figures[rule.Figure]
				compared++
				switch {
				case want == nil && !got.Present():
				case want == nil || !got.Present():
					t.Errorf("%s, %s: %s is %+v, computed apart %v", v.Capture, set.Name, rule.Figure, got, number(want))
				case math.Abs(got.Value-*want) > 1e-9*math.Abs(*want):
					t.Errorf("%s, %s: %s is %v, computed apart %v", v.Capture, set.Name, rule.Figure, got.Value, *want)
				}
			}
			for figure := range v.Figures[set.Name] {
				if !slices.ContainsFunc(set.Rules, func(r SetRule) bool { return r.Figure == figure }) {
					t.Errorf("%s: the vector has %s, for which there is no rule", set.Name, figure)
				}
			}
		}
		if len(v.Figures) != len(Sets()) {
			t.Errorf("%s has %d sets", v.Capture, len(v.Figures))
		}
	}
	if compared < 350 {
		t.Errorf("only %d figures were compared", compared)
	}
}

func number(v *float64) any {
	if v == nil {
		return "none"
	}
	return *v
}
