package compare

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func ref[T any](v T) *T { return &v }

func deployed(s *Side, change func(d *exchange.Deployment)) {
	d := exchange.Deployment{Upstream: "u", Identity: exchange.Identity{Engine: "llamacpp"},
		Fingerprint: &exchange.Fingerprint{Known: map[string]string{"engine": "llamacpp", "slots": "4"}, Unknown: []string{"device"}}}
	change(&d)
	s.Run.Deployments = append(s.Run.Deployments, d)
}

func checkNamed(t *testing.T, r *Report, name string) Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(k Check) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("nobody asked %q", name)
	}
	return r.Checks[i]
}

func TestRunsThatAreNotComparable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(a, b *Side)
		want   exchange.Reason
	}{
		{"open", func(a, _ *Side) { a.Run.State = exchange.RunOpen }, ReasonIncomplete},
		{"incomplete", func(_, b *Side) { b.Run.State = exchange.RunIncomplete }, ReasonIncomplete},
		{"missed its schedule", func(_, b *Side) { b.Run.Replay = &exchange.Replay{Invalid: "lag p99 9 s"} }, ReasonSchedule},
		{"other driver", func(a, b *Side) {
			a.Run.Replay, b.Run.Replay = &exchange.Replay{Driver: "closed"}, &exchange.Replay{Driver: "rate"}
		}, ReasonDriver},
		{"other digest", func(a, b *Side) {
			deployed(a, func(d *exchange.Deployment) { d.WeightsDigest = ref("sha256:1") })
			deployed(b, func(d *exchange.Deployment) { d.WeightsDigest = ref("sha256:2") })
		}, ReasonWeights},
		{"other quantization", func(a, b *Side) {
			deployed(a, func(d *exchange.Deployment) { d.Quantization = ref("Q4_K_M") })
			deployed(b, func(d *exchange.Deployment) { d.Quantization = ref("Q8_0") })
		}, ReasonWeights},
		{"other size", func(a, b *Side) {
			deployed(a, func(d *exchange.Deployment) { d.Parameters = ref(int64(7e9)) })
			deployed(b, func(d *exchange.Deployment) { d.Parameters = ref(int64(8e9)) })
		}, ReasonWeights},
		{"silent CPU", func(_, b *Side) { deployed(b, func(d *exchange.Deployment) { d.CPUFallback = true }) }, ReasonFallback},
		{"changed within the run", func(a, _ *Side) {
			deployed(a, func(*exchange.Deployment) {})
			deployed(a, func(d *exchange.Deployment) { d.Fingerprint.Known["slots"] = "8" })
		}, ReasonChanged},
		{"two engines in one run", func(a, _ *Side) { a.Entries[3].Row.Upstream = "other" }, ReasonUpstreams},
		{"four at once", func(_, b *Side) {
			for i := range b.Entries {
				e := &b.Entries[i]
				e.sent -= 9.5 * float64(i)
			}
		}, ReasonConcurrency},
		{"a request that one side lacks", func(_, b *Side) { b.Entries = b.Entries[1:] }, ReasonUnpaired},
	} {
		a, b := side("a", 8, 100, 50), side("b", 8, 100, 50)
		c.change(a, b)
		r := mustCompare(t, a, b, Options{})
		if diff := cmp.Diff([]exchange.Reason{c.want}, r.Refused); diff != "" {
			t.Errorf("%s: refused for\n%s", c.name, diff)
		}
		for _, m := range r.Metrics {
			if m.Verdict != Incomparable || m.Ratio != nil || !slices.Contains(m.Reasons, c.want) {
				t.Errorf("%s: %s is %+v", c.name, m.Name, m)
			}
		}
		if lifted := mustCompare(t, a, b, Options{Accept: []exchange.Reason{c.want}}); len(lifted.Refused) > 0 || !lifted.Comparable() {
			t.Errorf("%s: accepted, but refused for %v", c.name, lifted.Refused)
		}
	}
}

func TestWhatIsToldButForbidsNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		check  string
		answer string
		change func(a, b *Side)
	}{
		{"no digest", "weights", Unknown, func(a, b *Side) { deployed(a, func(*exchange.Deployment) {}) }},
		{"proven weights", "weights", Same, func(a, b *Side) {
			for _, s := range []*Side{a, b} {
				deployed(s, func(d *exchange.Deployment) { d.WeightsDigest = ref("sha256:1") })
			}
		}},
		{"other tokenizer", "prompt tokens", Differs, func(_, b *Side) { b.Entries[0].figure(measure.PromptTokens, 51) }},
		{"cache not reported", "cache state", Unknown, func(_, b *Side) { b.Entries[0].absent(measure.CachedTokens, measure.ReasonNotReported) }},
		{"other stamps", "stamp clock", Differs, func(_, b *Side) { b.Entries[0].clock = exchange.ClockRead }},
		{"other version", "harness", Differs, func(_, b *Side) { b.Run.Harness = "newer" }},
		{"other seed", "request bodies", Differs, func(_, b *Side) { b.Entries[0].Request["seed"], b.Entries[0].Row.SentKey = "7", "h1:7" }},
		{"several models, as asked for", "engine unchanged", Same, func(a, _ *Side) {
			a.Entries[1].Row.Model = "second"
			deployed(a, func(*exchange.Deployment) {})
			deployed(a, func(d *exchange.Deployment) { d.Why, d.Fingerprint.Known["slots"] = exchange.ReadAtAnswer, "8" })
		}},
		{"interleaved", "interleaved", Same, func(a, b *Side) {
			a.Run.Replay, b.Run.Replay = &exchange.Replay{Group: "g"}, &exchange.Replay{Group: "g"}
		}},
		{"open loop", "concurrency", Differs, func(a, b *Side) {
			a.Run.Replay, b.Run.Replay = &exchange.Replay{Schedule: &exchange.Schedule{}}, &exchange.Replay{Schedule: &exchange.Schedule{}}
			for i := range b.Entries {
				b.Entries[i].sent -= 9.5 * float64(i)
			}
		}},
	} {
		a, b := side("a", 8, 100, 50), side("b", 8, 100, 50)
		c.change(a, b)
		r := mustCompare(t, a, b, Options{})
		if k := checkNamed(t, r, c.check); k.Answer != c.answer || k.Forbids != "" || len(r.Refused) > 0 {
			t.Errorf("%s: %+v, refused %v", c.name, k, r.Refused)
		}
	}
}

func TestOtherPromptTokensStandBesideTheVerdict(t *testing.T) {
	a, b := side("a", 8, 100, 50), side("b", 8, 125, 40)
	for i := range b.Entries {
		b.Entries[i].figure(measure.PromptTokens, 60)
	}
	r := mustCompare(t, a, b, Options{})
	if m := of(t, r, measure.TTFTMS); m.Verdict != Worse || !slices.Equal(m.Reasons, []exchange.Reason{ReasonPrompts}) {
		t.Errorf("%+v", m)
	}
	if m := of(t, r, measure.DecodeTPS); m.Verdict != Worse || m.Reasons != nil {
		t.Errorf("%+v", m)
	}
	if k := checkNamed(t, r, "prompt tokens"); k.Detail != "8 pairs differ, 8 by more than 5 %: candidate / reference is 1.2 in their middle" {
		t.Errorf("%+v", k)
	}
}

func TestDeploymentFieldsAreListed(t *testing.T) {
	a, b := side("a", 2, 100, 50), side("b", 2, 100, 50)
	deployed(a, func(*exchange.Deployment) {})
	deployed(b, func(d *exchange.Deployment) { d.Fingerprint.Known["slots"] = "8" })
	want := Deployments{Same: []string{"engine"}, Differs: []FieldDifference{{"slots", "4", "8"}}, Unknown: []string{"device"}}
	if diff := cmp.Diff(want, mustCompare(t, a, b, Options{}).Deployments); diff != "" {
		t.Error(diff)
	}
}
