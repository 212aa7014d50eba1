package proxy

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestPrefixAndTarget holds how the path of an upstream and that of a request become one. A version is there once.
func TestPrefixAndTarget(t *testing.T) {
	for _, tc := range []struct{ prefix, target, want string }{
		{"", "/v1/models", "/v1/models"},
		{"/base", "/v1/models?a=/v1", "/base/v1/models?a=/v1"},
		{"/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1", "/v1", "/v1"},
		{"/v1", "/v1?x=1", "/v1?x=1"},
		{"/v1", "/", "/v1/"},
		{"/v1", "/chat/completions", "/v1/chat/completions"},
		{"/v1", "/v1beta/models/m:generateContent", "/v1/v1beta/models/m:generateContent"},
		{"/v1", "/v10/models", "/v1/v10/models"},
		{"/v1", "/api/v1/chat", "/v1/api/v1/chat"},
		{"/v1", "/chat?next=/v1/x", "/v1/chat?next=/v1/x"},
		{"/v1beta", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"},
		{"/openai/v1", "/v1/models", "/openai/v1/models"},
		{"/openai/v1", "/openai/v1/models", "/openai/v1/models"},
		{"/openai/v1", "/openai/models", "/openai/v1/openai/models"},
		{"/a/openai/v1", "/openai/v1/models", "/a/openai/v1/models"},
		{"/v1/v1", "/v1/v1/models", "/v1/v1/models"},
		{"/tenants/v1", "/v1/v1/models", "/tenants/v1/v1/models"},
		// What is no version may be there twice.
		{"/api", "/api/chat", "/api/api/chat"},
		{"/v", "/v/models", "/v/v/models"},
		{"/vision", "/vision/models", "/vision/vision/models"},
		{"/v1-x", "/v1-x/models", "/v1-x/v1-x/models"},
		{"/V1", "/V1/models", "/V1/V1/models"},
	} {
		if got := joined(tc.prefix, tc.target); got != tc.want {
			t.Errorf("%q and %q are %q, want %q", tc.prefix, tc.target, got, tc.want)
		}
	}
}

// TestJoiningIsRecorded holds that a path that changed is in the record, and that one that did not is no intervention.
func TestJoiningIsRecorded(t *testing.T) {
	for _, tc := range []struct{ prefix, to string }{{"/v1", ""}, {"/openai/v1", "/openai/v1/models"}, {"/base", "/base/v1/models"}} {
		u, err := NewUpstream(UpstreamOptions{URL: "http://engine" + tc.prefix})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range buildHead(u, &Call{Method: "GET", Target: "/v1/models", Headers: []exchange.Header{{Name: "Host", Value: "engine"}}}).notes {
			if n.Kind == "target_changed" {
				got = n.To
			}
		}
		if got != tc.to {
			t.Errorf("%s: the record says %q, want %q", tc.prefix, got, tc.to)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}
