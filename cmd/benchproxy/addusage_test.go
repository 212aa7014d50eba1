package main

import (
	"flag"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// TestUsageIsAskedForInThePinnedDialect holds that the dialect a user pins decides whether usage is asked for, not the path.
func TestUsageIsAskedForInThePinnedDialect(t *testing.T) {
	set := flag.NewFlagSet("record", flag.ContinueOnError)
	set.Bool("add-usage", true, "")
	asked := func(pinned wire.Dialect, target, engine string) bool {
		t.Helper()
		rewrite, err := usageRewrite(cli.NewContext(nil, set, nil), string(pinned))
		if err != nil {
			t.Fatal(err)
		}
		return rewrite(&proxy.Call{Target: target, Body: []byte(`{"stream":true}`)}, exchange.Identity{Engine: engine}).Body != nil
	}
	always := ""
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Profiles() {
		if p.Requests.Usage == engines.UsageAlways {
			always = p.ID
		}
	}
	for _, tc := range []struct {
		pinned         wire.Dialect
		target, engine string
		want           bool
	}{
		{"", "/v1/chat/completions", "", true},
		{"", "/gateway/answer", "", false},
		{wire.DialectChat, "/gateway/answer", "", true},
		{wire.DialectCompletions, "/v1/chat/completions", "", true},
		{wire.DialectOllama, "/v1/chat/completions", "", false},
		{wire.DialectChat, "/v1/chat/completions", always, false},
	} {
		if got := asked(tc.pinned, tc.target, tc.engine); got != tc.want {
			t.Errorf("%q at %s of %q: asked is %v", tc.pinned, tc.target, tc.engine, got)
		}
	}
}
