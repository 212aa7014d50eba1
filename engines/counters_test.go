package engines

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestCountersOfEachEngine reads the metrics that engines serve.
func TestCountersOfEachEngine(t *testing.T) {
	reading := func(drafted, accepted int64) exchange.CounterReading {
		return exchange.CounterReading{Drafted: &drafted, Accepted: &accepted}
	}
	withTokens := func(r exchange.CounterReading, generated int64) exchange.CounterReading {
		r.Generated = &generated
		return r
	}
	for engine, tc := range map[string]struct {
		file string
		want exchange.CounterReading
	}{
		"vllm":       {"vllm-metrics", reading(300, 210)},
		"llamacpp":   {"llamacpp-metrics", withTokens(reading(120, 84), 42)},
		"tensorfold": {"tensorfold-metrics", withTokens(reading(80, 61), 900)},
		"halogen":    {"halogen-metrics", withTokens(exchange.CounterReading{}, 77)},
	} {
		s := &server{answers: map[string]played{"/metrics": probeBody(t, tc.file)}}
		got, err := builtin(t).ReadCounters(context.Background(), s, base, engine, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", engine, diff)
		}
		if len(s.asked) != 1 {
			t.Errorf("%s was asked %q", engine, s.asked)
		}
	}
}

func TestSeriesOfOneNameAreAddedUp(t *testing.T) {
	text := strings.Join([]string{
		"# TYPE vllm:spec_decode_num_draft_tokens_total counter",
		`vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="a}b {c"} 300.0`,
		`vllm:spec_decode_num_draft_tokens_total{engine="1"} 1.2e1 1767225600000`,
		"vllm:spec_decode_num_accepted_tokens_total 7",
		"vllm:spec_decode_num_drafts_total 2.5", // no count
		"vllm:generation_tokens_total",          // no value
		"vllm:spec_decode_num_accepted_tokens_total_more 9",
	}, "\n")
	s := &server{answers: map[string]played{"/metrics": {status: 200, body: text}}}
	got, err := builtin(t).ReadCounters(context.Background(), s, base, "vllm", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := exchange.CounterReading{Drafted: pointer(int64(312)), Accepted: pointer(int64(7))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCountersThatCannotBeRead(t *testing.T) {
	c := builtin(t)
	if _, err := c.ReadCounters(context.Background(), &server{}, base, "sglang", Options{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("gauges are no counters: %v", err)
	}
	if _, ok := c.Source("sglang"); ok {
		t.Error("a source of gauges is named")
	}
	if _, err := c.ReadCounters(context.Background(), &server{refuse: true}, base, "vllm", Options{}); !errors.Is(err, exchange.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := c.ReadCounters(context.Background(), &server{}, "ftp://x", "vllm", Options{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("no URL: %v", err)
	}
	got, err := c.ReadCounters(context.Background(), &server{answers: map[string]played{"/metrics": {status: 501}}}, base, "llamacpp", Options{})
	if err != nil || got.Drafts() || !got.Equal(exchange.CounterReading{}) {
		t.Errorf("an engine without metrics: %+v, %v", got, err)
	}
	for _, bad := range []CounterNames{
		{Path: "metrics", Drafted: []string{"d"}, Accepted: []string{"a"}},
		{Path: "/metrics", Accepted: []string{"a"}},
		{Path: "/metrics", Drafted: []string{"d"}},
	} {
		if (Profile{Counters: &bad}).checkCounters() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
