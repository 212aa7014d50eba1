package matrix

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const twoEngines = `{"engines": {"a": {"profile": "sim"}, "b": {"profile": "sim"}}, "backends": {"gpu": {}, "cpu": {"kind": "cpu"}},
	"models": {"m": {"engines": {"a": "m", "b": "m"}}}, "defaults": {"scenarios": ["text_short", "prefill_1k"], "backends": ["gpu"]}}`

// stepWords are the steps of a plan as words: a:text_short/0 is the first repeat of that cell on engine a.
func stepWords(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		var engines, turns []string
		for _, g := range s.Groups {
			engines = append(engines, p.Groups[g].Engine)
		}
		for _, t := range s.Turns {
			c := &p.Groups[t.Group].Cells[t.Cell]
			turns = append(turns, fmt.Sprintf("%s:%s/%d", c.Engine, strings.TrimSuffix(c.Scenario, "_short"), t.Repeat))
		}
		out = append(out, strings.Join(engines, "+")+" "+strings.Join(turns, " "))
	}
	return out
}

func TestOrders(t *testing.T) {
	for order, want := range map[string][]string{
		OrderEngine: {
			"a a:text/0 a:text/1 a:prefill_1k/0 a:prefill_1k/1",
			"b b:text/0 b:text/1 b:prefill_1k/0 b:prefill_1k/1",
		},
		OrderAlternate: {
			"a a:text/0 a:prefill_1k/0", "b b:text/0 b:prefill_1k/0",
			"b b:text/1 b:prefill_1k/1", "a a:text/1 a:prefill_1k/1",
		},
		OrderTogether: {"a+b a:text/0 b:text/0 b:text/1 a:text/1 a:prefill_1k/0 b:prefill_1k/0 b:prefill_1k/1 a:prefill_1k/1"},
	} {
		p := planOf(t, load(t, twoEngines, map[string]string{"order": order, "repeats": "2"}))
		if diff := cmp.Diff(want, stepWords(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
	}
}

// TestStepsMeasureEachCellAsOftenAsItSays holds it of every order, with cells that are skipped or differ in their repeats.
func TestStepsMeasureEachCellAsOftenAsItSays(t *testing.T) {
	for _, order := range []string{OrderEngine, OrderAlternate, OrderTogether} {
		p := planOf(t, load(t, twoEngines, map[string]string{
			"order": order, "repeats": "2", "backends": "gpu,cpu", "tp": "1,2", "tp-devices": "0,1", "scenarios": "text_short,loom_prefill_1k,steady_4", "concurrency": "1,2",
			"mtp": "both",
		}))
		turns := map[Turn]int{}
		for _, s := range p.Steps {
			for _, turn := range s.Turns {
				turns[turn]++
				if !slices.Contains(s.Groups, turn.Group) {
					t.Errorf("%s: a group is measured that is not up", order)
				}
			}
		}
		total := 0
		for g := range p.Groups {
			for c := range p.Groups[g].Cells {
				cell := &p.Groups[g].Cells[c]
				want := 0
				if cell.Do == DoRun {
					want = cell.Repeats
				}
				for r := range want {
					if turns[Turn{g, c, r}] != 1 {
						t.Errorf("%s: repeat %d of %s is measured %d times", order, r, cell.Name, turns[Turn{g, c, r}])
					}
				}
				total += want
			}
		}
		if total != len(turns) || total == 0 {
			t.Errorf("%s: %d turns, want %d", order, len(turns), total)
		}
	}
}

// TestEnginesThatNothingStandsBesideDoNotTakeTurns holds that a launch is repeated only for a comparison.
func TestEnginesThatNothingStandsBesideDoNotTakeTurns(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{"engines": "a", "order": OrderAlternate, "repeats": "5"}))
	if len(p.Steps) != 1 {
		t.Errorf("%d steps", len(p.Steps))
	}
}

func TestResume(t *testing.T) {
	const flags = "text_short,prefill_1k"
	config := load(t, twoEngines, map[string]string{"engines": "a", "scenarios": flags, "concurrency": "1,2", "mtp": "off,on"})
	base := planOf(t, config)
	if n := base.Counts(); n.Run != 4 || n.Skip != 4 {
		t.Fatalf("%+v", n)
	}
	cells := base.Groups[0].Cells
	skipped := base.Groups[1].Cells
	results := map[string]Earlier{
		cells[0].Name:   {Status: StatusOK, Definition: cells[0].Definition},
		cells[1].Name:   {Status: StatusFail, Definition: cells[1].Definition},
		cells[2].Name:   {Status: StatusOK, Definition: "c1:other"},
		skipped[0].Name: {Status: StatusOK, Definition: skipped[0].Definition},
		skipped[1].Name: {Status: StatusFail},
	}
	for name, c := range map[string]struct {
		resume Resume
		want   string // of the first group, then of the second
	}{
		"all over":           {Resume{}, "run run run run skip skip skip skip"},
		"without what is ok": {Resume{SkipExisting: true}, "keep run run run keep skip skip skip"},
		"only what failed":   {Resume{OnlyFailed: true}, "leave run leave leave leave skip leave leave"},
		"both":               {Resume{SkipExisting: true, OnlyFailed: true}, "keep run leave leave keep skip leave leave"},
	} {
		p, err := NewPlan(config, PlanOptions{Results: results, Resume: c.resume})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range p.Groups {
			for j := range p.Groups[i].Cells {
				cell := &p.Groups[i].Cells[j]
				got = append(got, string(cell.Do))
				if (cell.Do == DoKeep || cell.Do == DoLeave) && (cell.Reason == "" || cell.Skip != nil) {
					t.Errorf("%s: %s is left without a reason: %+v", name, cell.Name, cell)
				}
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
		if p.Hash != base.Hash {
			t.Errorf("%s: what is left out is in the hash", name)
		}
	}
}

// TestResultsOfAnotherServer holds that an ok result is kept only as long as the server is what made it, and that the plan
// says why it is not.
func TestResultsOfAnotherServer(t *testing.T) {
	is := func(version string) *exchange.Identity {
		return &exchange.Identity{Engine: "llamacpp", Version: version}
	}
	was := Earlier{Launch: "l1:a", Build: "sha256:a", ModelFiles: "f1:a", Identity: *is("b1")}
	for _, c := range []struct {
		name, transport string
		was             Earlier
		now             *Server
		why             string
	}{
		{"the same", TransportServer, was, &Server{Launch: "l1:a", Build: "sha256:a", ModelFiles: "f1:a"}, ""},
		{"cannot be looked at", TransportServer, was, nil, ""},
		{"another build", TransportServer, was, &Server{Launch: "l1:b", Build: "sha256:b"}, "built anew"},
		{"another environment", TransportServer, was, &Server{Launch: "l1:b", Build: "sha256:a"}, "variables"},
		{"a build that cannot be read", TransportServer, was, &Server{Why: "permission denied"}, "cannot be told: permission denied"},
		{"an older result", TransportServer, Earlier{}, &Server{Launch: "l1:a"}, "does not say which build"},
		{"other weights", TransportServer, was, &Server{Launch: "l1:a", Build: "sha256:a", ModelFiles: "f1:b"}, "model files"},
		{"running, the same", TransportConnect, was, &Server{Identity: is("b1")}, ""},
		{"running, another version", TransportConnect, was, &Server{Identity: is("b2")}, "version b2, and was b1"},
		{"running, says nothing", TransportConnect, was, &Server{Identity: is("")}, ""},
		{"running, said nothing", TransportConnect, Earlier{}, &Server{Identity: is("b2")}, ""},
		{"not running", TransportConnect, was, &Server{}, ""},
	} {
		if got := c.was.changed(c.transport, c.now); c.why == "" && got != "" || !strings.Contains(got, c.why) {
			t.Errorf("%s: %q, want %q", c.name, got, c.why)
		}
	}
	config := load(t, twoEngines, map[string]string{"engines": "a", "scenarios": "text_short", "concurrency": "1,2"})
	base := planOf(t, config)
	cells := base.Groups[0].Cells
	results := map[string]Earlier{cells[0].Name: {Status: StatusOK, Definition: cells[0].Definition, Launch: "l1:a"}, cells[1].Name: {Status: StatusFail, Launch: "l1:a"}}
	for _, resume := range []Resume{{SkipExisting: true}, {OnlyFailed: true}} {
		asked := 0
		p, err := NewPlan(config, PlanOptions{Results: results, Resume: resume, Server: func(*Group) *Server { asked++; return &Server{Launch: "l1:b", Build: "sha256:b"} }})
		if err != nil {
			t.Fatal(err)
		}
		c := p.Groups[0].Cells[0]
		if c.Do != DoRun || !strings.Contains(c.Reason, "built anew") || p.Counts().Run != 2 || asked != 1 || p.Hash != base.Hash {
			t.Errorf("%+v: %+v, %+v, asked %d times", resume, c, p.Counts(), asked)
		}
	}
}

// TestPartialRunsAddUp holds that a matrix in parts gives the same cells as one at once.
func TestPartialRunsAddUp(t *testing.T) {
	results := map[string]Earlier{}
	for _, part := range []map[string]string{
		{"scenarios": "text_short"}, {"concurrency": "4"}, {"engines": "b"}, {"concurrency": "1,4"},
	} {
		p, err := NewPlan(load(t, twoEngines, part), PlanOptions{Results: results, Resume: Resume{SkipExisting: true}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Groups {
			for j := range p.Groups[i].Cells {
				c := &p.Groups[i].Cells[j]
				if was, there := results[c.Name]; there && c.Do != DoKeep {
					t.Errorf("%v: %s is measured again: %s is not %s", part, c.Name, was.Definition, c.Definition)
				}
				results[c.Name] = Earlier{Status: StatusOK, Definition: c.Definition}
			}
		}
	}
	if len(results) != 8 {
		t.Errorf("%d cells", len(results))
	}
}
