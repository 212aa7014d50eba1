package engines

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		flags                             []string
	}{
		{"up", "a", "a", "", nil},
		{"up", "a", "", "", nil},
		{"up", "a", "a:latest", "", nil},
		{"up", "a", "b", "a:latest", []string{changed, differs}},
		{"up", "a", "b", "", []string{changed, differs}}, // told once, flagged on each row
		{"up", "a", "a", "b", nil},                       // what the run began with is back
		{"up", "a", "second", "a", []string{changed}},
		{"up", "a", "/models/A-Q4.gguf", "second", []string{changed}},
		{"up", "other", "x", "", []string{differs}},
		{"up", "echo", "echo", "", nil}, // a server that repeats what it is asked says nothing
		{"up2", "a", "z", "", nil},      // nothing is known of it
		{"up2", "a", "owner/z", "", nil},
		{"up2", "a", "y", "owner/z", []string{changed}},
	} {
		word := w.Observe(c.upstream, c.asked, c.answered)
		if diff := cmp.Diff(ModelWord{c.before, c.flags}, word); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
	w.Expect(exchange.Deployment{Upstream: "up", Model: pointer("a"), Models: []string{"b"}}) // the engine was restarted
	if word := w.Observe("up", "a", "b"); !slices.Equal(word.Flags, []string{changed}) {
		t.Errorf("after a restart: %+v", word)
	}
}

// TestModelWatchForgets holds that names which clients make up are not remembered without end, and those known are.
func TestModelWatchForgets(t *testing.T) {
	var w ModelWatch
	w.Observe("up", "first", "a")
	for i := range 3000 {
		w.Observe("up", sprintf("m%d", i), "x")
	}
	if n := len(w.named); n > 1024 {
		t.Errorf("%d names are held", n)
	}
	if word := w.Observe("up", "first", "b"); word.Before != "a" {
		t.Errorf("the first is forgotten: %+v", word)
	}
}
