package replay

import (
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/replay/scenario"
)

// TestSuiteLoopIsOver holds that a conversation which is answered before its last planned turn is whole, and that the turns
// it did not need are in no wave.
func TestSuiteLoopIsOver(t *testing.T) {
	cases, _, err := scenario.LevelPlan(scenario.LevelOptions{Level: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cases, func(c scenario.LevelCase) bool { return c.ID == "agent_weather" })
	says := []pupilSays{
		{calls: []string{"get_weather", `{"city":"Oslo","units":"celsius"}`, "get_weather", `{"city":"Cairo","units":"celsius"}`}},
		{content: "Cairo, at 33 degrees."},
	}
	o := SuiteOptions{Members: scenario.Plan([]scenario.Scenario{cases[i].Scenario}, []int{1, 2}, 1), Options: scenario.Options{Model: "pupil"}, Unjudged: true}
	rig := suiteRig{pupil: pupil{wrong: func(tag string, turn int) *pupilSays {
		if tag == "agent_weather-c2-r0-i1" {
			turn = 1 // it answers at once
		}
		return &says[turn]
	}}}
	rig.play(t, o, func(t *testing.T, h *heard) {
		if h.err != nil {
			t.Fatal(h.err)
		}
		r := h.suite.Report(h.err)
		if r.Items.Complete != 3 || r.Items.Partial+r.Items.Unsent+r.Items.Broken+r.Items.Failed != 0 || r.Incomplete != "" || r.Items.Requests != 5 {
			t.Errorf("%+v: %s", r.Items, r.Incomplete)
		}
		streams := map[string]int{}
		for _, w := range r.Waves {
			streams[w.Wave] = w.Streams
			if w.Failed > 0 {
				t.Errorf("wave %s has %d failed members", w.Wave, w.Failed)
			}
		}
		if len(streams) != 4 || streams["agent_weather-c2-r0/1"] != 2 || streams["agent_weather-c2-r0/2"] != 1 {
			t.Errorf("%v", streams)
		}
		for _, c := range r.Cases {
			if want := map[bool]int{true: 1, false: 2}[c.ID == "agent_weather-c2-r0-i1"]; c.Judged != want {
				t.Errorf("%s was judged by %d turns", c.ID, c.Judged)
			}
		}
	})
}
