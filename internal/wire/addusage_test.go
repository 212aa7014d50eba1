package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const chatPath = "/v1/chat/completions"

// TestAddUsageSplices holds what each shape of a request becomes: want is the whole new body, "" for the client's own.
func TestAddUsageSplices(t *testing.T) {
	const added = `,"stream_options":{"include_usage":true}`
	cases := map[string]struct{ body, want, why string }{
		"no options":           {`{"model":"m","stream":true}`, `{"model":"m","stream":true` + added + `}`, ""},
		"spaces stay":          {" {\n  \"stream\" : true ,\r\n\t\"n\": 1.50e0\n}\n", " {\n  \"stream\" : true ,\r\n\t\"n\": 1.50e0" + added + "\n}\n", ""},
		"last value is nested": {`{"stream":true,"a":[{"}":"]"}]}`, `{"stream":true,"a":[{"}":"]"}]` + added + `}`, ""},
		"text holds the field": {`{"stream":true,"a":"\"stream_options\":{\\"}`, `{"stream":true,"a":"\"stream_options\":{\\"` + added + `}`, ""},
		"deeper options":       {`{"stream":true,"a":{"stream_options":{"include_usage":true}}}`, `{"stream":true,"a":{"stream_options":{"include_usage":true}}` + added + `}`, ""},
		"null options":         {`{"stream_options": null,"stream":true}`, `{"stream_options": {"include_usage":true},"stream":true}`, ""},
		"empty options":        {`{"stream_options":{ },"stream":true}`, `{"stream_options":{"include_usage":true },"stream":true}`, ""},
		"other options":        {`{"stream_options":{"include_obfuscation":false },"stream":true}`, `{"stream_options":{"include_obfuscation":false,"include_usage":true },"stream":true}`, ""},
		"null flag":            {`{"stream_options":{"include_usage":null,"x":1},"stream":true}`, `{"stream_options":{"include_usage":true,"x":1},"stream":true}`, ""},
		"continuous off":       {`{"stream_options":{"continuous_usage_stats":false},"stream":true}`, `{"stream_options":{"continuous_usage_stats":false,"include_usage":true},"stream":true}`, ""},

		"client asks":       {`{"stream":true,"stream_options":{"include_usage":true}}`, "", ""},
		"client forbids":    {`{"stream":true,"stream_options":{"include_usage":false}}`, "", ""},
		"not streamed":      {`{"stream":false}`, "", ""},
		"stream null":       {`{"stream":null}`, "", ""},
		"stream in a text":  {`{"a":"\"stream\":true","stream":"true"}`, "", ""},
		"stream not a bool": {`{"stream":1}`, "", ""},
		"no stream":         {`{"model":"m"}`, "", ""},
		"empty":             {``, "", ""},

		"stream twice":      {`{"stream":true,"stream":true}`, "", "repeated_field"},
		"options twice":     {`{"stream":true,"stream_options":{},"stream_options":{}}`, "", "repeated_field"},
		"flag twice":        {`{"stream":true,"stream_options":{"include_usage":null,"include_usage":true}}`, "", "repeated_field"},
		"options a list":    {`{"stream":true,"stream_options":[]}`, "", "stream_options_is_no_object"},
		"options a text":    {`{"stream":true,"stream_options":"{}"}`, "", "stream_options_is_no_object"},
		"escaped name":      {`{"stream":true,"stream_\u006fptions":{}}`, "", "escaped_field_name"},
		"escaped flag":      {`{"stream":true,"stream_options":{"include\u005fusage":false}}`, "", "escaped_field_name"},
		"continuous":        {`{"stream":true,"stream_options":{"continuous_usage_stats":true}}`, "", "continuous_usage"},
		"broken JSON":       {`{"stream":true,`, "", "not_a_json_object"},
		"two values":        {`{"stream":true} {}`, "", "not_a_json_object"},
		"a list":            {`[{"stream":true}]`, "", "not_a_json_object"},
		"byte order mark":   {"\ufeff" + `{"stream":true}`, "", "not_a_json_object"},
		"not streamed, odd": {`{"stream":false,"stream_options":7}`, "", ""},
	}
	for name, c := range cases {
		body := []byte(c.body)
		got := AddUsage(DialectOf(chatPath), nil, body)
		if string(got.Body) != c.want {
			t.Errorf("%s: got\n%s want\n%s", name, got.Body, c.want)
		}
		if string(body) != c.body {
			t.Errorf("%s: the client's body was written into", name)
		}
		switch {
		case c.want != "":
			checkSplice(t, name, c.body, got)
		case c.why == "" && got.Notes != nil:
			t.Errorf("%s: notes %+v", name, got.Notes)
		case c.why != "":
			if d := cmp.Diff([]exchange.Intervention{UsageNotAsked(c.why)}, got.Notes); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// checkSplice holds that the note alone makes the new body of the old one.
func checkSplice(t *testing.T, name, body string, got UsageAsk) {
	t.Helper()
	x := &exchange.Exchange{Request: exchange.Request{Body: exchange.NewBody([]byte(body))}, Interventions: got.Notes}
	sent, ok := exchange.SentRequest(x)
	if !ok || !bytes.Equal(sent.Body.Bytes(), got.Body) {
		t.Errorf("%s: the note %+v gives %q, want %q", name, got.Notes, sent.Body.Bytes(), got.Body)
	}
	if v := got.Notes[0]; body[v.Offset:v.Offset+v.Length] != v.From || v.Reason != usageReason {
		t.Errorf("%s: note %+v", name, v)
	}
}

func TestAddUsageLeavesAlone(t *testing.T) {
	body := []byte(`{"model":"m","stream":true,"prompt":"x"}`)
	header := func(name, value string) []exchange.Header { return []exchange.Header{{Name: name, Value: value}} }
	cases := map[string]struct {
		target  string
		headers []exchange.Header
		why     string
		asked   bool
	}{
		"chat":                {"/v1/chat/completions", nil, "", true},
		"chat with a query":   {"/openai/deployments/d/chat/completions?api-version=1", nil, "", true},
		"completions":         {"/v1/completions", nil, "", true},
		"identity":            {"/v1/completions", header("content-encoding", "Identity"), "", true},
		"bearer":              {"/v1/completions", header("Authorization", "Bearer AWS4-x"), "", true},
		"gzip":                {"/v1/completions", header("content-encoding", "gzip"), "content_coding", false},
		"AWS signature":       {"/v1/completions", header("Authorization", "AWS4-HMAC-SHA256 Credential=x"), "signed", false},
		"digest":              {"/v1/completions", header("Content-Digest", "sha-256=:x:"), "signed", false},
		"Responses":           {"/v1/responses", nil, "", false},
		"Messages":            {"/v1/messages", nil, "", false},
		"Ollama":              {"/api/chat", nil, "", false},
		"llama.cpp native":    {"/completion", nil, "", false},
		"something else":      {"/v1/models", nil, "", false},
		"signed, but no chat": {"/v1/responses", header("Digest", "x"), "", false},
	}
	for name, c := range cases {
		got := AddUsage(DialectOf(c.target), c.headers, body)
		if (got.Body != nil) != c.asked {
			t.Errorf("%s: got %q", name, got.Body)
		}
		if !c.asked && c.why == "" && got.Notes != nil || c.why != "" && (len(got.Notes) != 1 || got.Notes[0].Reason != c.why) {
			t.Errorf("%s: notes %+v, want reason %q", name, got.Notes, c.why)
		}
	}
	if got := AddUsage(DialectOf(chatPath), nil, append(body, make([]byte, maxValue)...)); got.Body != nil || got.Notes[0].Reason != "body_too_large" {
		t.Errorf("a huge body: %+v", got.Notes)
	}
}

// FuzzAddUsage: a request that was changed says all that it said before, and asks for usage; nothing else is different.
func FuzzAddUsage(f *testing.F) {
	for _, s := range []string{
		`{"stream":true}`, `{"stream":true,"stream_options":null}`, `{"stream_options":{"a":[1,{}]},"stream":true}`, ` {"a":"\\\"","stream":true , "b":-1e5 }`,
		`{"stream":true,"stream_options":{"include_usage":null}}`, `{"stream":true,"stream":false}`, `{"":{"stream":true}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := AddUsage(DialectOf(chatPath), nil, body)
		if got.Body == nil {
			return
		}
		checkSplice(t, "fuzz", string(body), got)
		var before, after map[string]any
		if json.Unmarshal(body, &before) != nil || json.Unmarshal(got.Body, &after) != nil {
			t.Fatalf("%q became %q", body, got.Body)
		}
		options, _ := before["stream_options"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["include_usage"] = true
		before["stream_options"] = options
		if d := cmp.Diff(before, after); d != "" {
			t.Fatalf("%q became %q:\n%s", body, got.Body, d)
		}
		if again := AddUsage(DialectOf(chatPath), nil, got.Body); again.Body != nil {
			t.Fatalf("asked twice: %q", again.Body)
		}
	})
}
