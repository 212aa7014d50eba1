package matrix

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/replay/scenario"
)

// cellCases are the vectors of names, axes and plans.
type cellCases struct {
	Format int `json:"format"`
	Cases  []struct {
		ID         string `json:"id"`
		Title      string `json:"title"`
		Area       string `json:"area"`
		Seed       string `json:"seed"`
		Confidence string `json:"confidence"`
		Notes      string `json:"notes"`
		Input      struct {
			Cells   []vectorCell `json:"cells"`
			MoEAxis struct {
				Layers  string `json:"layers"`
				Threads string `json:"threads"`
			} `json:"moe_axis"`
			PrefillIDs   []string `json:"prefill_ids"`
			LlamaContext struct {
				Configured int      `json:"configured"`
				Selected   []string `json:"selected"`
			} `json:"llama_context"`
			ValidationPlans []struct {
				Scenarios   int   `json:"scenarios"`
				Concurrency []int `json:"concurrency"`
				Repeats     int   `json:"repeats"`
			} `json:"validation_plans"`
			ToolPolicyPlan struct {
				Each        []string `json:"policies_at_each_concurrency"`
				Concurrency []int    `json:"concurrency"`
				Alone       []string `json:"concurrency_1_only"`
				Repetitions int      `json:"repetitions"`
			} `json:"tool_policy_plan"`
		} `json:"input"`
		Expected struct {
			Cells           []string `json:"cells"`
			LogOfCell3      string   `json:"log_of_cell_3"`
			MoEPoints       [][2]int `json:"moe_axis_points"`
			PrefillTargets  []int    `json:"prefill_targets"`
			LlamaContext    int      `json:"llama_context"`
			ValidationPlans []int    `json:"validation_plans"`
			ToolPolicyPlan  struct {
				Cases    int `json:"cases"`
				Requests int `json:"requests"`
			} `json:"tool_policy_plan"`
		} `json:"expected"`
	} `json:"cases"`
}

type vectorCell struct {
	Engine        string `json:"engine"`
	Backend       string `json:"backend"`
	Model         string `json:"model"`
	Scenario      string `json:"scenario"`
	MTP           bool   `json:"mtp"`
	TP            int    `json:"tp"`
	CPUMoELayers  int    `json:"cpu_moe_layers"`
	CPUMoEThreads int    `json:"cpu_moe_threads"`
	Concurrency   int    `json:"concurrency"`
}

func (v vectorCell) axes() Axes {
	return Axes{
		Engine: v.Engine, Backend: v.Backend, Model: v.Model, MTP: v.MTP, TP: v.TP, CPUMoELayers: v.CPUMoELayers, CPUMoEThreads: v.CPUMoEThreads,
	}
}

func loadCellCases(t *testing.T) cellCases {
	t.Helper()
	raw, err := os.ReadFile("testdata/cell-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var out cellCases
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if len(out.Cases) == 0 {
		t.Fatal("there are no vectors")
	}
	return out
}

func TestCellVectors(t *testing.T) {
	for _, c := range loadCellCases(t).Cases {
		in, want := c.Input, c.Expected
		var names []string
		for _, cell := range in.Cells {
			names = append(names, cell.axes().CellName(cell.Scenario, cell.Concurrency, "")+".json")
		}
		if diff := cmp.Diff(want.Cells, names); diff != "" || len(names) == 0 {
			t.Errorf("%s: names (-want +got):\n%s", c.ID, diff)
		}
		if got := in.Cells[2].axes().GroupName() + ".log"; got != want.LogOfCell3 {
			t.Errorf("log %q, want %q", got, want.LogOfCell3)
		}
		config := load(t, `{"models":{"m":{"gguf":"m.gguf"}},"defaults":{"engines":["llamacpp"],"scenarios":["text_short"]}}`,
			map[string]string{"n-cpu-moe": in.MoEAxis.Layers, "cpu-moe-threads": in.MoEAxis.Threads})
		points := offloadPoints(config.Defaults.Offload, config.Defaults.Threads)
		if diff := cmp.Diff(want.MoEPoints, points); diff != "" || len(points) == 0 {
			t.Errorf("offload points (-want +got):\n%s", diff)
		}
		var targets []int
		for _, id := range in.PrefillIDs {
			n, ok := PrefillTarget(id)
			if !ok {
				t.Errorf("%s is no prefill scenario", id)
			}
			targets = append(targets, n)
		}
		if diff := cmp.Diff(want.PrefillTargets, targets); diff != "" || len(targets) == 0 {
			t.Errorf("targets (-want +got):\n%s", diff)
		}
		if got := LlamaContext(in.LlamaContext.Configured, in.LlamaContext.Selected); got != want.LlamaContext {
			t.Errorf("context %d, want %d", got, want.LlamaContext)
		}
		for i, v := range in.ValidationPlans {
			plan := scenario.Plan(scenario.Suite(scenario.SuiteValidation)[:v.Scenarios], v.Concurrency, v.Repeats)
			if len(plan) != want.ValidationPlans[i] {
				t.Errorf("plan %d has %d cases, want %d", i, len(plan), want.ValidationPlans[i])
			}
		}
		tools := in.ToolPolicyPlan
		plan := scenario.Plan(policies(t, append(slices.Clone(tools.Each), tools.Alone...)), tools.Concurrency, tools.Repetitions)
		if len(plan) != want.ToolPolicyPlan.Cases || scenario.Requests(plan) != want.ToolPolicyPlan.Requests {
			t.Errorf("%d cases and %d requests, want %+v", len(plan), scenario.Requests(plan), want.ToolPolicyPlan)
		}
	}
}

func policies(t *testing.T, names []string) []scenario.Scenario {
	t.Helper()
	var out []scenario.Scenario
	for _, s := range scenario.Suite(scenario.SuitePolicies) {
		if slices.Contains(names, s.TagName()) {
			out = append(out, s)
		}
	}
	if len(out) != len(names) {
		t.Fatalf("%d of %d policies are there", len(out), len(names))
	}
	return out
}

// TestRecordFields holds the fields of a record that another tool reads, in its order and before ours.
func TestRecordFields(t *testing.T) {
	want := strings.Fields(`engine backend model scenario status detail prompt_tokens completion_tokens ttft_ms prefill_tps decode_tps total_wall_ms
		aggregate_decode_tps requests_ok turns turns_expected finish_reason tool_call_ok output_preview output_text tp concurrency
		cpu_moe_layers cpu_moe_threads mtp`)
	var got []string
	for _, f := range fieldsOf(reflect.TypeFor[Record]()) {
		got = append(got, f.name)
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for _, name := range []string{"decode_source", "engine_decode_tps", "usage_basis", "exchanges"} {
		if !slices.Contains(got, name) {
			t.Errorf("a record has no %s", name)
		}
	}
}
