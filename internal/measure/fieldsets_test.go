package measure

import (
	"math"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// roleThenText is an answer whose role comes at 900 ms and five tokens from 2200 ms on, 20 ms apart.
func roleThenText() *script {
	s := newScript()
	s.read(900, 0).texts(2200, 20, 5)
	return s
}

// thinking is an answer of 100 events of reasoning from 1175 ms and 10 of text from 2200 ms on, 10 ms apart, after a role at 45.
func thinking() *script {
	s := newScript()
	s.read(45, 0)
	for i := range 100 {
		s.read(1175+10*float64(i), wire.KindReasoning)
	}
	return s.texts(2200, 10, 10)
}

// bundled is an answer of 100 events 14 ms apart from 200 ms on, four tokens each.
func bundled() *script { return newScript().texts(200, 14, 100) }

func withCompletion(s *script, n, prompt int64) *script {
	s.t.Usage = &wire.Usage{Prompt: &prompt, Completion: &n}
	return s
}

func toolCallOnly() *script {
	s := newScript()
	s.read(52, 0)
	for i := range 9 {
		s.read(400+10*float64(i), wire.KindTool)
	}
	return s
}

// TestLoadGenerators holds what each tool makes of the same answers: those on which they are known to part.
func TestLoadGenerators(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		name, set, figure string
		s                 *script
		want              float64
	}{
		{"role first", "vllm", TTFTMS, withCompletion(roleThenText(), 5, 5000), 900},
		{"role first", "aiperf", TTFTMS, withCompletion(roleThenText(), 5, 5000), 2200},
		{"role first", "guidellm", TTFTMS, withCompletion(roleThenText(), 5, 5000), 2200},
		{"role first", "inference-perf", TTFTMS, withCompletion(roleThenText(), 5, 5000), 2200},
		{"role first", "otel", TTFTMS, withCompletion(roleThenText(), 5, 5000), 900},
		{"role first", "vllm", TPOTMS, withCompletion(roleThenText(), 5, 5000), (2280 - 900) / 4.0},
		{"role first", "guidellm", TPOTMS, withCompletion(roleThenText(), 5, 5000), 2280 / 5.0},
		{"role first", "inference-perf", SetNTPOTMS, withCompletion(roleThenText(), 5, 5000), 2280 / 5.0},
		{"role first", "aiperf", DecodeTPS, withCompletion(roleThenText(), 5, 5000), 50},
		{"thinking", "vllm", TTFTMS, withCompletion(thinking(), 110, 9), 45},
		{"thinking", "aiperf", TTFTMS, withCompletion(thinking(), 110, 9), 1175},
		{"thinking", "aiperf", AnswerTTFTMS, withCompletion(thinking(), 110, 9), 2200},
		{"thinking", "inference-perf", TTFTMS, withCompletion(thinking(), 110, 9), 2200},
		{"bundled", "vllm", SetITLMS, withCompletion(bundled(), 400, 9), 14},
		{"bundled", "aiperf", SetITLMS, withCompletion(bundled(), 400, 9), 99 * 14 / 399.0},
		{"bundled", "guidellm", SetITLMS, withCompletion(bundled(), 400, 9), 99 * 14 / 399.0},
		{"bundled", "otel", SetITLMS, withCompletion(bundled(), 400, 9), 14},
		{"tool call only", "vllm", TTFTMS, withCompletion(toolCallOnly(), 12, 9), 52},
		{"tool call only", "inference-perf", TTFTMS, withCompletion(toolCallOnly(), 12, 9), none},
		{"tool call only", "aiperf", TTFTMS, withCompletion(toolCallOnly(), 12, 9), 400},
		{"no usage", "aiperf", SetITLMS, bundled(), none},
		{"no usage", "guidellm", TPOTMS, bundled(), none},
		{"one token", "vllm", TPOTMS, withCompletion(newScript().texts(10, 1, 1), 1, 9), none},
	} {
		for _, set := range Sets() {
			if set.Name != c.set {
				continue
			}
			r := set.Measure(c.s.x, c.s.t)
			f := r.Figures[c.figure]
			if c.want == none && f.Present() || c.want != none && math.Abs(f.Value-c.want) > 1e-6 {
				t.Errorf("%s, %s: %s is %+v, want %v", c.name, c.set, c.figure, f, c.want)
			}
		}
	}
}

// TestSetsSayWhatTheyMean holds that every figure of a rule is one its set gives, that no set is without rules, and that a
// failed exchange gives none of a rate.
func TestSetsSayWhatTheyMean(t *testing.T) {
	good, bad := withCompletion(roleThenText(), 5, 50), withCompletion(roleThenText(), 5, 50)
	bad.x.Response.Status = 500
	for _, set := range Sets() {
		r := set.Measure(good.x, good.t)
		if len(set.Rules) == 0 || r.Set != set.Name {
			t.Errorf("%s: %d rules, row of %q", set.Name, len(set.Rules), r.Set)
		}
		for _, rule := range set.Rules {
			if f, ok := r.Figures[rule.Figure]; !ok || f.Unit == "" || rule.Formula == "" {
				t.Errorf("%s: rule of %s, figure %+v", set.Name, rule.Figure, f)
			}
		}
		for name, f := range set.Measure(bad.x, bad.t).Figures {
			if f.Present() && (name == TPOTMS || name == SetITLMS || name == DecodeTPS || name == SetNTPOTMS) {
				t.Errorf("%s: %s of a failure is %+v", set.Name, name, f)
			}
		}
		for _, empty := range []*script{newScript(), {x: &exchange.Exchange{}, t: &wire.Transcript{}}} {
			for name, f := range set.Measure(empty.x, empty.t).Figures {
				if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
					t.Errorf("%s: %s of nothing is %v", set.Name, name, f.Value)
				}
			}
		}
	}
	if len(OwnRules()) != 7 {
		t.Errorf("own rules: %v", OwnRules())
	}
}
