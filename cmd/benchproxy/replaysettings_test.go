package main

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestSettingsOfAReplayInWords(t *testing.T) {
	half := 0.5
	for want, p := range map[string]exchange.Replay{
		"closed": {Driver: "closed"}, // of the time before settings were kept
		"rate, 4 a second, poisson arrivals, at most 4096 at once, 5 retries of a 503": {Driver: "rate",
			Settings: exchange.ReplaySettings{Targets: 1, Concurrency: 4096, Rate: 4, Arrivals: "poisson", Repeats: 1, Retries: 5}},
		"recorded, speed 0.5, gaps of at most 1000 ms, at most 8 at once, 0 retries of a 503": {Driver: "recorded",
			Settings: exchange.ReplaySettings{Targets: 1, Concurrency: 8, Speed: &half, MaxGapMS: 1000, Repeats: 1}},
		"waves, 8 at a time, 2 targets in turns, 3 repeats, seeds kept, live history, at most 9 requests, for 2.5 s, 0 retries of a 503": {Driver: "waves",
			Settings: exchange.ReplaySettings{Targets: 2, Concurrency: 8, Repeats: 3, KeepSeed: true, LiveHistory: true, MaxRequests: 9, DurationMS: 2500}},
	} {
		if got := driverText(&p); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for want, p := range map[string]exchange.PlanItem{
		"q, repeat 3": {Item: "q", Turns: 1, Repeat: 2},
		"q, turn 2 of 5 of conversation c, repeat 1, attempt 2 after a 503": {Item: "q", Conversation: "c", Turn: 1, Turns: 5, Attempt: 1},
		"q, warm-up 2, in no figure of the run":                             {Item: "q", Turns: 1, Repeat: 1, Warmup: true},
	} {
		if got := itemText(&p); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if itemText(nil) != "" || originText(nil) != "" || replayRows(nil) != nil {
		t.Error("what is not there is told")
	}
}
