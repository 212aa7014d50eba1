package replay

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

func masker(t *testing.T, o RedactOptions) *Redactor {
	t.Helper()
	r, err := NewRedactor(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const secret = "sk-test-0123456789"

// pieces are the events of a stream that brings the secret in parts, in the words of each dialect.
var pieces = []struct{ name, contentType, body string }{
	{"chat", eventStream, say("key sk-") + say("test-") + say("0123456789") + say(" end") + chatEnd},
	{"chat, bytes escaped", eventStream, strings.ReplaceAll(say("key sk-")+say("test-")+say("0123456789 end"), "sk-", `\u0073\u006B-`)},
	{"chat, comments and CRLF", eventStream, strings.ReplaceAll(": hello\n\n"+say("sk-te")+": ping\n\nevent: x\nid: 1\n"+say("st-0123456789"), "\n", "\r\n")},
	{"two choices in turn", eventStream, `data: {"choices":[{"delta":{"content":"sk-test-"},"index":0}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"other"},"index":1}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"0123456789"}}]}` + "\n\n"},
	{"reasoning", eventStream, `data: {"choices":[{"index":0,"delta":{"reasoning_content":"sk-test-0"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"reasoning_content":"123456789"}}]}` + "\n\n"},
	{"tool arguments", eventStream, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"k\": \"sk-te"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"st-0123456789\"}"}}]}}]}` + "\n\n"},
	{"messages", eventStream, `event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"sk-test"}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"-0123456789"}}` + "\n\n"},
	{"responses", eventStream, `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"sk-test-012"}` + "\n\n" +
		`data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"3456789"}` + "\n\n" +
		`data: {"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"sk-test-0123456789"}` + "\n\n"},
	{"generate lines", "application/x-ndjson", `{"response":"sk-te","done":false}` + "\n" + `{"response":"st-0123456789","done":false}` + "\n"},
	{"list of parts", "application/json", `[{"candidates":[{"content":{"parts":[{"text":"sk-test-"}]}}]}` + ",\r\n" + `{"candidates":[{"content":{"parts":[{"text":"0123456789"}]}}]}]`},
	{"whole", "application/json", `{"choices":[{"message":{"content":"it is sk-test-\u0030123456789."}}]}`},
	{"text", "text/plain", "it is sk-test-0123456789."},
	{"a name in an object", "application/json", `{"sk-test-0123456789":1}`},
	{"cut in the last event", eventStream, say("sk-test-") + `data: {"choices":[{"index":0,"delta":{"content":"0123456789`},
}

func TestSecretsInPiecesAreMasked(t *testing.T) {
	r := masker(t, RedactOptions{Texts: []string{secret}})
	for _, p := range pieces {
		t.Run(p.name, func(t *testing.T) {
			x := recorded(0, `{}`, p.contentType, strings.SplitAfter(p.body, "\n")...)
			before := wire.Parse(x)
			got, masked, _ := r.exchange(x)
			if masked == 0 {
				t.Fatal("nothing was masked")
			}
			body := string(got.Response.Body.Bytes())
			if len(body) != len(p.body) || strings.Contains(body, "0123456789") || strings.Contains(body, "test-") {
				t.Errorf("%d bytes became %d:\n%s", len(p.body), len(body), body)
			}
			if string(x.Response.Body.Bytes()) != p.body {
				t.Error("the record itself was changed")
			}
			if diff := cmp.Diff(x.Timeline, got.Timeline, cmp.AllowUnexported(exchange.Mark{})); diff != "" {
				t.Errorf("the times changed:\n%s", diff)
			}
			after := wire.Parse(got)
			if diff := cmp.Diff(before.Events, after.Events); diff != "" || after.ParseErrors != before.ParseErrors {
				t.Errorf("the events changed:\n%s", diff)
			}
			if len(before.Choices) > 0 {
				// An escape has as many asterisks as it has bytes; a part of the secret may be in an event that was cut.
				want := strings.NewReplacer(secret, "*", "sk-test-", "*").Replace(before.Choice0().Text)
				if got := regexp.MustCompile(`\*+`).ReplaceAllString(after.Choice0().Text, "*"); got != want {
					t.Errorf("the text is %q, want %q", got, want)
				}
			}
			if problems := exchange.Problems(got); len(problems) > 0 {
				t.Error(problems)
			}
			if _, again, _ := r.exchange(got); again != 0 {
				t.Errorf("%d secrets are left", again)
			}
		})
	}
}

// TestFieldReportAX31 exports a stream that brings a secret in three events: no file of any format has it, nor a part that
// would tell it, and events and times are as they were.
func TestFieldReportAX31(t *testing.T) {
	body := pieces[0].body
	x := recorded(0, `{"messages":[{"role":"user","content":"what is `+secret+` for?"}]}`, eventStream, strings.SplitAfter(body, "\n\n")...)
	s := newShelf(x)
	o := ExportOptions{Redact: masker(t, RedactOptions{Texts: []string{secret}})}
	for _, format := range []Format{FormatJSONL, FormatHAR} {
		o.Format = format
		file, report := exported(t, s, o)
		for _, part := range []string{secret, "0123456789", "sk-", "test-"} {
			if strings.Contains(file, part) {
				t.Errorf("%s: %q is in\n%s", format, part, file)
			}
		}
		if report.Masked != 2 {
			t.Errorf("%s: %d secrets were masked", format, report.Masked)
		}
		for rec, err := range OpenFile(write(t, "f", file), FileOptions{}).Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if n := measure.Analyze(rec.Exchange).Figures[measure.TokenEvents].Value; n != 4 {
				t.Errorf("%s: %g token events", format, n)
			}
			if diff := cmp.Diff(x.Timeline.Reads, rec.Exchange.Timeline.Reads); diff != "" {
				t.Errorf("%s: the reads changed:\n%s", format, diff)
			}
		}
	}
	a, b, _ := tables(t, s, o)
	rows, _ := tableOf(t, a)
	events, _ := tableOf(t, b)
	if text := rows[0]["output_text"].String(); text != "key "+strings.Repeat("*", len(secret))+" end" {
		t.Errorf("the table has %q", text)
	}
	if len(events) != len(measure.Analyze(x).Transcript.Events) {
		t.Errorf("%d events", len(events))
	}
}

func TestTokensOfASecretAreMasked(t *testing.T) {
	body := `{"choices":[{"index":0,"token_ids":[31,32],"message":{"content":"sk-test-0123456789"},"logprobs":{"content":[` +
		`{"token":"sk-","logprob":-0.5,"bytes":[115,107,45],"top_logprobs":[{"token":"sk","logprob":-1,"bytes":null}]},` +
		`{"token":"test-0123456789","logprob":-2,"id":77,"bytes":[116]}]}}],"tokens":["sk-"],"top_logprobs":[{"sk-":-0.25,"other":-3}],"usage":{"completion_tokens":2}}`
	r := masker(t, RedactOptions{Texts: []string{secret}})
	raw := []byte(body)
	r.mask(raw, "application/json")
	var v any
	if err := json.Unmarshal(raw, &v); err != nil || len(raw) != len(body) {
		t.Fatalf("%v in\n%s", err, raw)
	}
	for _, gone := range []string{"sk-", `"sk"`, "test", "115", "107", "116", "31", "32", "77", "other"} {
		if bytes.Contains(raw, []byte(gone)) {
			t.Errorf("%s is still in\n%s", gone, raw)
		}
	}
	for _, kept := range []string{`"logprob":-0.5`, `"logprob":-2`, `-0.25`, `"completion_tokens":2`} {
		if !bytes.Contains(raw, []byte(kept)) {
			t.Errorf("%s is gone from\n%s", kept, raw)
		}
	}
	clean := []byte(`{"choices":[{"logprobs":{"content":[{"token":"a","bytes":[97]}]}}]}`)
	if r.mask(clean, "application/json") != 0 || !bytes.Contains(clean, []byte("97")) {
		t.Errorf("an answer without a secret became %s", clean)
	}
}

func TestRedactionOfTheRest(t *testing.T) {
	key := "sk-" + strings.Repeat("a1B2", 8)
	x := recorded(0, `{"messages":[{"role":"user","content":"use `+key+`, and hunter-22"}]}`, "application/json", `{"a":"b"}`)
	x.Request.Target += "?q=hunter-22"
	x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "X-Note", Value: "hunter-22"})
	x.Request.Head = head("POST "+x.Request.Target+" HTTP/1.1", x.Request.Headers)
	x.Response.Trailers = []exchange.Header{{Name: "X-Trail", Value: "hunter-22"}}
	x.UpstreamURL, x.Cause = "http://h/hunter-22", &exchange.Cause{Text: "hunter-22"}
	x.Interventions = []exchange.Intervention{{Kind: exchange.KindBodyChanged, From: "hunter-22", To: "x"}}
	s := newShelf(x)
	s.run.Name, s.run.Command, s.run.Labels = "hunter-22", []string{"client", "hunter-22"}, map[string]string{"a": "hunter-22"}
	r := masker(t, RedactOptions{Patterns: []string{`hunter-\d+`}})
	for _, format := range []Format{FormatJSONL, FormatHAR, FormatMooncake} {
		file, report := exported(t, s, ExportOptions{Format: format, Redact: r})
		if strings.Contains(file, "hunter-22") || strings.Contains(file, key) || report.Masked == 0 {
			t.Errorf("%s: %+v\n%s", format, report, file)
		}
		if format == FormatMooncake {
			continue
		}
		if w := load(t, file, FileOptions{}); w.Hash() != report.Workload {
			t.Errorf("%s: masked workload %s, report says %s", format, w.Hash(), report.Workload)
		}
	}
	if _, report := exported(t, s, ExportOptions{Format: FormatJSONL}); report.Suspect != 1 || report.Masked != 0 {
		t.Errorf("without redaction: %+v", report)
	}
	coded := recorded(0, "packed", "application/json", "packed")
	coded.Request.Headers = append(coded.Request.Headers, exchange.Header{Name: "Content-Encoding", Value: "gzip"})
	coded.Response.Headers = append(coded.Response.Headers, exchange.Header{Name: "Content-Encoding", Value: "br"})
	file, report := exported(t, newShelf(coded), ExportOptions{Format: FormatJSONL, Redact: r})
	if report.Withheld != 2 || strings.Contains(file, "packed") {
		t.Errorf("%+v\n%s", report, file)
	}
	if _, err := OpenFile(write(t, "f", file), FileOptions{}).Check(t.Context()); err != nil {
		t.Error(err)
	}
	for _, bad := range []RedactOptions{{Texts: []string{"abc"}}, {Patterns: []string{"("}}, {Patterns: []string{"a*"}}} {
		if _, err := NewRedactor(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// FuzzMaskingKeepsTheShape holds that masking changes no size, leaves JSON what it was, and finds nothing the second time.
func FuzzMaskingKeepsTheShape(f *testing.F) {
	for _, p := range pieces {
		f.Add(p.body, p.contentType)
	}
	f.Add(`{"a":"\ud83d\ude00sk-test-0123456789\ud800"}`, "application/json")
	f.Add(strings.Repeat("[", 2000)+`"sk-test-0123456789"`, "application/json")
	f.Add(`}}}]{"a":{"b"}:"c",`, "application/json")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		r := masker(t, RedactOptions{Texts: []string{secret}})
		raw := []byte(body)
		r.mask(raw, contentType)
		if len(raw) != len(body) || strings.Contains(string(raw), secret) {
			t.Fatalf("%q became %q", body, raw)
		}
		if json.Valid([]byte(body)) && !json.Valid(raw) {
			t.Fatalf("%q is no JSON any more: %q", body, raw)
		}
		once := string(raw)
		if n := r.mask(raw, contentType); n != 0 || string(raw) != once {
			t.Fatalf("masked again: %d in %q, then %q", n, once, raw)
		}
	})
}
