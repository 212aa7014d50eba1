package engines

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	w.Expect("up", "a")
	for i, c := range []struct {
		upstream, asked, answered, before string
		changed                           bool
	}{
		{"up", "a", "a", "a", false},
		{"up", "a", "", "", false},
		{"up", "a", "a:latest", "a", false},
		{"up", "a", "b", "a:latest", true},
		{"up", "a", "b", "b", false},
		{"up", "other", "x", "", false},
		{"up2", "a", "z", "", false},
	} {
		before, changed := w.Observe(c.upstream, c.asked, c.answered)
		if before != c.before || changed != c.changed {
			t.Errorf("%d: %q, %v; want %q, %v", i, before, changed, c.before, c.changed)
		}
	}
}
