package engines

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func TestPickModel(t *testing.T) {
	many := make([]string, 25)
	for i := range many {
		many[i] = sprintf("m%d", i)
	}
	for _, c := range []struct {
		d     exchange.Deployment
		asked string
		want  string
		says  string
	}{
		{exchange.Deployment{Model: pointer("a")}, "b", "b", ""},
		{exchange.Deployment{Model: pointer("a"), Models: []string{"a", "c"}}, "", "a", ""},
		{exchange.Deployment{}, "", "", "lists no model"},
		{exchange.Deployment{Models: []string{"a", "c"}}, "", "", "name one of a, c"},
		{exchange.Deployment{Models: many}, "", "", "m19 and 5 more"},
	} {
		got, err := PickModel(&c.d, c.asked)
		if got != c.want || (err != nil) != (c.says != "") {
			t.Errorf("%+v, %q: %q, %v", c.d, c.asked, got, err)
		}
		if err != nil && (!errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("got %v, want a usage error that says %q", err, c.says)
		}
	}
}

func TestModelWatch(t *testing.T) {
	var w ModelWatch
	w.Expect(exchange.Deployment{Upstream: "up", Model: pointer("a"), ModelRoot: pointer("A-Q4.gguf"), Models: []string{"a", "second"}})
	const changed, differs = FlagModelChanged, FlagModelDiffers
	for i, c := range []struct {
		upstream, asked, answered, before string
		first                             bool
		flags                             []string
	}{
		{"up", "a", "a", "", false, nil},
		{"up", "a", "", "", false, nil},
		{"up", "a", "a:latest", "", false, nil},
		{"up", "a", "b", "a:latest", false, []string{changed, differs}},
		{"up", "a", "b", "", false, []string{changed, differs}}, // told once, flagged on each row
		{"up", "a", "a", "b", false, nil},                       // what the run began with is back
		{"up", "a", "second", "a", false, []string{changed}},
		{"up", "a", "/models/A-Q4.gguf", "second", false, []string{changed}},
		{"up", "other", "x", "", true, []string{differs}},
		{"up", "echo", "echo", "", true, nil}, // a server that repeats what it is asked says nothing
		{"up2", "a", "z", "", true, nil},      // nothing is known of it
		{"up2", "a", "owner/z", "", false, nil},
		{"up2", "a", "y", "owner/z", false, []string{changed}},
	} {
		word := w.Observe(Answered{Upstream: c.upstream, Asked: c.asked, Model: c.answered})
		if diff := cmp.Diff(ModelWord{Before: c.before, First: c.first, Flags: c.flags}, word); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
	w.Expect(exchange.Deployment{Upstream: "up", Model: pointer("a"), Models: []string{"b"}}) // the engine was restarted
	if word := w.Observe(Answered{Upstream: "up", Asked: "a", Model: "b"}); !slices.Equal(word.Flags, []string{changed}) {
		t.Errorf("after a restart: %+v", word)
	}
}

// TestModelWatchForgets holds that names which clients make up are not remembered without end, and those known are.
func TestModelWatchForgets(t *testing.T) {
	var w ModelWatch
	w.Observe(Answered{Upstream: "up", Asked: "first", Model: "a"})
	for i := range 3000 {
		w.Observe(Answered{Upstream: "up", Asked: sprintf("m%d", i), Model: "x"})
	}
	if n := len(w.named); n > 1024 {
		t.Errorf("%d names are held", n)
	}
	if word := w.Observe(Answered{Upstream: "up", Asked: "first", Model: "b"}); word.Before != "a" {
		t.Errorf("the first is forgotten: %+v", word)
	}
}

// TestFlagsOfARunAreDerivedAgain holds that what a run keeps is enough to flag its answers as they were flagged when they
// came, in any order, and that an answer is held to what was served when it came.
func TestFlagsOfARunAreDerivedAgain(t *testing.T) {
	c := builtin(t)
	begin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	first := exchange.Deployment{Upstream: "up", ReadAt: at(0), Why: exchange.ReadAtStart, Models: []string{"a"}, Model: pointer("a"), Identity: exchange.Identity{Engine: "vllm"}}
	again := first
	again.ReadAt, again.Why, again.Models, again.Model = at(100), exchange.ReadAtRestart, []string{"b"}, pointer("b")
	front := first
	front.Upstream, front.Engine = "front", "litellm"
	var w ModelWatch
	run := exchange.Run{}
	var want [][]string
	var seen []Answered
	observe := func(a Answered) {
		word := w.Observe(a)
		if word.First {
			run.Models = append(run.Models, exchange.ModelNamed{Upstream: a.Upstream, Asked: a.Asked, Named: a.Model})
		}
		want, seen = append(want, word.Flags), append(seen, a)
	}
	describe := func(d exchange.Deployment) {
		run.Deployments = append(run.Deployments, d)
		if c.NamesModels(d) {
			w.Expect(d)
		}
	}
	observe(Answered{"up", "x", "y", at(-5)}) // before anything was read
	describe(first)
	describe(front)
	describe(exchange.Deployment{Upstream: "up", ReadAt: at(1), Why: exchange.ReadAtAnswer, Model: pointer("z")})
	observe(Answered{"up", "a", "a", at(1)})
	observe(Answered{"up", "a", "b", at(2)})
	observe(Answered{"up", "x", "a", at(3)})
	observe(Answered{"front", "a", "own-name", at(4)})
	observe(Answered{"up", "a", "", at(5)})
	describe(again)
	observe(Answered{"up", "a", "b", at(101)})
	observe(Answered{"up", "q", "a", at(102)})
	for i := len(seen) - 1; i >= 0; i-- {
		if got := c.ModelsOf(&run).Flags(seen[i]); !slices.Equal(got, want[i]) {
			t.Errorf("%+v: derived again %q, when it came %q", seen[i], got, want[i])
		}
	}
	if !slices.Equal(want[2], []string{FlagModelChanged, FlagModelDiffers}) || want[6] == nil || want[0] != nil {
		t.Errorf("flags %q", want)
	}
	x := &exchange.Exchange{Upstream: "up"}
	x.Timeline.Wall, x.Timeline.BodyEnd = at(7), exchange.MarkAt(2_000_000_000)
	if got := AnsweredBy(x, "a", "b"); got != (Answered{"up", "a", "b", at(9)}) {
		t.Errorf("%+v", got)
	}
}

func TestServes(t *testing.T) {
	d := exchange.Deployment{Models: []string{"a", "owner/b"}, ModelRoot: pointer("/models/c.gguf")}
	for model, want := range map[string]bool{"a": true, "a:latest": true, "b": true, "c": true, "d": false, "": false} {
		if Serves(&d, model) != want {
			t.Errorf("%q served: %v", model, !want)
		}
	}
	if !Serves(&exchange.Deployment{}, "x") {
		t.Error("an engine that lists nothing refuses everything")
	}
}
