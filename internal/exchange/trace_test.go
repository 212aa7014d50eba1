package exchange

import (
	"strings"
	"testing"
)

func TestParseTraceParent(t *testing.T) {
	const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	for in, want := range map[string]string{
		"00-" + ids + "-01":                  "00-" + ids + "-01",
		" 00-" + ids + "-00\t":               "00-" + ids + "-00",
		"00-" + ids + "-03":                  "00-" + ids + "-01", // only the sampled flag is ours to pass on
		"cc-" + ids + "-01":                  "00-" + ids + "-01",
		"cc-" + ids + "-01-more":             "00-" + ids + "-01",
		"00-" + ids + "-01-more":             "",
		"cc-" + ids + "-01more":              "",
		"ff-" + ids + "-01":                  "",
		"00-" + ids:                          "",
		"00-" + ids + "-0":                   "",
		"00-" + ids + "-0g":                  "",
		"0-" + ids + "-001":                  "",
		"00-" + strings.ToUpper(ids) + "-01": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"": "",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01": "",
	} {
		c, ok := ParseTraceParent(in)
		if ok != (want != "") || ok && c.TraceParent() != want {
			t.Errorf("%q is read as %s, %v; want %q", in, c.TraceParent(), ok, want)
		}
	}
}

// FuzzTraceParent holds: what is read is written as it was, but for version, flags and what a later version has behind.
func FuzzTraceParent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Fuzz(func(t *testing.T, in string) {
		c, ok := ParseTraceParent(in)
		if !ok {
			if c != (SpanContext{}) {
				t.Fatalf("a refused value gives %+v", c)
			}
			return
		}
		out := c.TraceParent()
		if in = strings.Trim(in, " \t"); in[2:52] != out[2:52] || c.Trace.String() != out[3:35] || c.Span.String() != out[36:52] {
			t.Fatalf("%q became %q", in, out)
		}
		if again, ok := ParseTraceParent(out); !ok || again != c {
			t.Fatalf("%q is read as %+v, %v", out, again, ok)
		}
	})
}

func TestSentTrace(t *testing.T) {
	const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	list := []Intervention{
		{Kind: "header_changed", Where: SideEngine, Name: "Host", To: "x"},
		{Kind: "header_removed", Where: SideEngine, Name: "traceparent", From: "y"},
		{Kind: "header_added", Where: SideEngine, Name: "Traceparent", To: sent},
	}
	if c, ok := SentTrace(list); !ok || c.TraceParent() != sent {
		t.Errorf("got %s, %v", c.TraceParent(), ok)
	}
	if c, ok := SentTrace(list[:2]); ok {
		t.Errorf("got %s of a request without", c.TraceParent())
	}
	if (SpanID{}).String() != "" {
		t.Error("no span has a name")
	}
}
