package scenario

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/gates"
)

func names(of []Scenario) (out []string) {
	for _, s := range of {
		out = append(out, s.ID)
	}
	return out
}

// TestLevels holds what each level asks, and that a stronger one asks all that a weaker one does.
func TestLevels(t *testing.T) {
	for window, want := range map[int]struct{ dev, fast, quick, full int }{
		0: {15, 27, 27, 27}, 131072: {15, 27, 28, 29}, 65536: {15, 27, 28, 29}, 40960: {15, 27, 28, 29}, 8192: {14, 23, 24, 25}, 2048: {13, 21, 22, 23}, 512: {12, 20, 21, 22},
	} {
		dev, fast, quick, full := Level("dev", window), Level("fast", window), Level("quick", window), Level("full", window)
		if len(dev) != want.dev || len(fast) != want.fast || len(quick) != want.quick || len(full) != want.full {
			t.Errorf("window %d: %d, %d, %d and %d", window, len(dev), len(fast), len(quick), len(full))
		}
		for _, pair := range [][2][]Scenario{{dev, fast}, {fast, quick}, {quick, full}} {
			for _, id := range names(pair[0]) {
				if !slices.Contains(names(pair[1]), id) {
					t.Errorf("window %d: %s is not asked at the stronger level", window, id)
				}
			}
		}
		for _, s := range full {
			for _, c := range s.Case(s.ID, Options{}).Checks {
				if err := gates.Validate(c); err != nil {
					t.Errorf("%s: %v", s.ID, err)
				}
			}
			r, err := s.Request(Options{}, nil)
			if tokens := float64(len(r.Body)) / charsPerToken; err != nil || window > 0 && tokens > float64(window) {
				t.Errorf("%s has %.0f tokens, the window %d; %v", s.ID, tokens, window, err)
			}
		}
	}
}

// TestLevelRequests holds that what is compared is greedy, short, and asks for log-probabilities.
func TestLevelRequests(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Suite(SuiteLevels) {
		body := string(request(t, s.ID, Options{}).Body)
		for _, want := range []string{`"max_tokens":64`, `"temperature":0`, `"logprobs":true,"top_logprobs":5`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s: %.200s", s.ID, want, body)
			}
		}
		if seen[body] {
			t.Errorf("%s asks what another one asks", s.ID)
		}
		seen[body] = true
	}
	if body := string(request(t, "short", Options{}).Body); strings.Contains(body, "logprobs") {
		t.Errorf("the validation asks for log-probabilities: %s", body)
	}
}

// TestNeedle holds that a document of any size hides its code once, where it says.
func TestNeedle(t *testing.T) {
	for _, tokens := range []int{1, 500, 1 << 10, 100 << 10} {
		for _, depth := range []float64{0, 0.5, 1} {
			s := Needle(tokens, depth)
			r, err := s.Request(Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var b struct{ Messages []struct{ Content string } }
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Fatal(err)
			}
			text := b.Messages[0].Content
			at := float64(strings.Index(text, "marble-2750")) / float64(len(text))
			if strings.Count(text, "marble-2750") != 1 || tokens >= 1<<10 && (at < depth-0.1 || at > depth+0.1) {
				t.Errorf("%s: at %.2f", s.ID, at)
			}
			if size := float64(len(text)) / charsPerToken; tokens >= 1<<10 && (size < float64(tokens) || size > 1.25*float64(tokens)) {
				t.Errorf("%s has %.0f tokens", s.ID, size)
			}
		}
	}
}
