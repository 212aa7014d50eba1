package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func named(t *testing.T, name string, m Materials) Scenario {
	t.Helper()
	s, err := Named(name, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opening(t *testing.T, s Scenario, o Options) Request {
	t.Helper()
	r, err := s.Request(o, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.ID, err)
	}
	return r
}

// matrixNames are those that the run matrix must know, with examples of forms.
var matrixNames = strings.Fields(`text_short text_long multi_turn function_call json_mode image audio video prefill_100 prefill_2k prefill_128k decode
	decode_8k agentic code_edit diffusion_text steady_1 steady_4 loom_decode loom_prefill_1k loom_prefill_2k loom_decode_2k loom_decode_32k
	loom_prefill_8k loom_prefill_16k loom_prefill_32k loom_steady_4 context_pressure_10 context_pressure_90`)

// TestNamed holds what every scenario of the matrix must be: found by its name, greedy, told apart at its beginning, and
// judged by gates that there are.
func TestNamed(t *testing.T) {
	bodies := map[string]string{}
	for _, name := range matrixNames {
		s := named(t, name, Materials{Window: 32768})
		if s.TagName() != name || s.Summary == "" || s.Turns < 1 {
			t.Errorf("%s: %+v", name, s)
		}
		if c := s.Case("c", Options{}); s.Suite == SuiteMatrix && (c.ScenarioVersion < 1 || c.Scenario != s.ID) {
			t.Errorf("%s: case %+v", name, c)
		}
		for _, c := range s.Case("c", Options{}).Checks {
			if err := gates.Validate(c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		o := Options{Nonce: "n1", Tag: name + "-c1-r0-i0", Model: "m", Stream: true}
		r := opening(t, s, o)
		body := string(r.Body)
		if body != string(opening(t, named(t, name, Materials{Window: 32768}), o).Body) {
			t.Errorf("%s: the same options do not make the same bytes", name)
		}
		if at := strings.Index(body, `[n1]\n[`); at < 0 || at > 120 || !strings.Contains(body, `"temperature":0`) {
			t.Errorf("%s: nonce at %d: %.200s", name, at, body)
		}
		if plain := string(opening(t, s, Options{}).Body); bodies[plain] != "" && !strings.HasPrefix(name, "steady") && !strings.HasPrefix(name, "loom_steady") {
			if !s.Blocking && name != "loom_decode" {
				t.Errorf("%s asks what %s asks", name, bodies[plain])
			}
		} else {
			bodies[plain] = name
		}
	}
}

func TestNamedKnowsEveryScenario(t *testing.T) {
	for _, s := range All() {
		if got := named(t, s.ID, Materials{}); got.ID != s.ID && got.TagName() != s.ID {
			t.Errorf("%s is %s", s.ID, got.ID)
		}
	}
	for _, e := range List() {
		name := strings.NewReplacer("<N>[k]", "8", "<N>", "8", "<P>", "8").Replace(e.Name)
		if _, err := Named(name, Materials{Window: 1 << 20}); (err != nil) != e.Group || e.Summary == "" || strings.Contains(e.Summary, "\n") {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

func TestNamedRefuses(t *testing.T) {
	for name, why := range map[string]string{
		"": "unknown scenario", "other": "text_short", "prefill_": "unknown", "prefill_0": "from 1", "prefill_k": "from 1", "prefill_02": "from 1", "prefill_+2": "from 1",
		"prefill_5000000": "from 1", "prefill_9999k": "from 1", "steady_0": "from 1", "steady_5k": "from 1", "steady_99999999999999999999": "from 1",
		"context_pressure_96": "from 1", "pressure_sweep": "several", "loom": "loom_decode", "Text_short": "unknown",
	} {
		if _, err := Named(name, Materials{Window: 8192}); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %s", name, err, why)
		}
	}
	if _, err := Named("context_pressure_50", Materials{}); !errors.Is(err, ErrNoWindow) {
		t.Errorf("without a window: %v", err)
	}
	if _, err := Named("context_pressure_50", Materials{Window: 1024}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("in a small window: %v", err)
	}
}

func TestExpand(t *testing.T) {
	got := Expand([]string{"context_pressure_25", "pressure_sweep", "text_short", "text_short", "what"})
	want := []string{"context_pressure_25", "context_pressure_10", "context_pressure_50", "context_pressure_75", "context_pressure_90", "text_short", "what"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, name := range Expand([]string{"loom"}) {
		named(t, name, Materials{})
	}
}

// chars is how much text the messages of a request hold.
func chars(t *testing.T, r Request) int {
	t.Helper()
	var b struct {
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range b.Messages {
		n += len(m.Content)
	}
	return n
}

// TestPrefillSizes holds that prompts have their size, up to the longest of the matrix, and begin each in a way of its own.
func TestPrefillSizes(t *testing.T) {
	for name, tokens := range map[string]int{
		"prefill_512": 512, "prefill_2k": 2048, "prefill_16k": 16384, "prefill_128k": 131072, "loom_prefill_1k": 1000, "loom_prefill_32k": 32000, "loom_decode_2k": 2000,
	} {
		s := named(t, name, Materials{})
		r := opening(t, s, Options{})
		want := float64(tokens) * charsPerToken
		if got := float64(chars(t, r)); got < want || got > want*1.01+700 || s.Prompt != tokens {
			t.Errorf("%s: %.0f characters, want about %.0f; prompt %d", name, got, want, s.Prompt)
		}
		if strings.HasPrefix(name, "prefill") && !strings.Contains(string(r.Body), fmt.Sprintf(`"content":"[prefill target=%d]\n`, tokens)) {
			t.Errorf("%s: %.120s", name, r.Body)
		}
	}
	if got := chars(t, opening(t, named(t, "prefill_128k", Materials{}), Options{})); got < 600_000 {
		t.Errorf("the longest prompt has %d characters", got)
	}
}

// TestFixedLimits holds that a limit which is part of the measurement stays, whatever the options say.
func TestFixedLimits(t *testing.T) {
	for name, want := range map[string]int{
		"prefill_2k": 8, "loom_prefill_1k": 4, "loom_decode": 300, "loom_decode_32k": 300, "loom_steady_4": 300, "steady_4": 512, "context_pressure_50": 256,
		"text_short": 99, "image": 99,
	} {
		s := named(t, name, Materials{Window: 8192})
		if got := s.MaxTokens(Options{MaxTokens: 99, Thinking: false}); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := named(t, "text_short", Materials{}).MaxTokens(Options{}); got != 128 {
		t.Errorf("text_short: %d", got)
	}
}

// TestStreams holds that steady scenarios run with as many streams as their names say, whatever the degrees.
func TestStreams(t *testing.T) {
	plan := Plan([]Scenario{named(t, "steady_6", Materials{}), named(t, "text_short", Materials{})}, []int{1, 2}, 2)
	var tags []string
	for _, m := range plan {
		tags = append(tags, m.Tag())
	}
	if len(plan) != 2*6+2*3 || !slices.Contains(tags, "steady_6-c6-r1-i5") || !slices.Contains(tags, "text_short-c2-r1-i1") {
		t.Errorf("%v", tags)
	}
	for _, name := range []string{"steady_6", "loom_decode", "loom_decode_2k"} {
		if s := named(t, name, Materials{}); !s.HalfBudget {
			t.Errorf("%s counts short answers", name)
		}
	}
	if s := named(t, "loom_prefill_2k", Materials{}); s.Repeats != 5 {
		t.Errorf("a short prefill is repeated %d times", s.Repeats)
	}
}

// TestPressure holds that the window is full to its part, at the characters per token that were found, and never over.
func TestPressure(t *testing.T) {
	for _, window := range []int{8192, 20000} {
		for _, percent := range append(Pressures(), 95) {
			for _, per := range []float64{0, 3.5} {
				m := Materials{Window: window, CharsPerToken: per}
				s := named(t, fmt.Sprintf("context_pressure_%d", percent), m)
				tokens := float64(chars(t, opening(t, s, Options{}))) / m.charsPerToken()
				full := float64(window*percent)/100 - callTokens
				if tokens > full || math.Abs(tokens-full) > 260 {
					t.Errorf("%d %% of %d at %.1f: %.0f tokens, want %.0f", percent, window, per, tokens, full)
				}
			}
		}
	}
}

func TestDiffusionIsNotStreamed(t *testing.T) {
	if f := read(t, opening(t, named(t, "diffusion_text", Materials{}), Options{Stream: true})); f.Stream || f.Options != nil {
		t.Errorf("%+v", f)
	}
}
