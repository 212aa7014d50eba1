package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoutesAndRefusals(t *testing.T) {
	_, addr := start(t, Config{Model: "tiny", APIKey: "k", Context: 8})
	key := "Authorization: Bearer k"
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: sim\r\n" + key + "\r\n\r\n" }
	long := `{"messages":[{"role":"user","content":"1 2 3 4 5 6 7 8"}]}`
	for _, c := range []struct {
		name, raw string
		status    int
		part      string
	}{
		{"health", "GET /health HTTP/1.1\r\n\r\n", 200, `"ok"`},
		{"models", get("/v1/models"), 200, `"id":"tiny"`},
		{"no key", "GET /v1/models HTTP/1.1\r\n\r\n", 401, "authentication_error"},
		{"unknown path", get("/nope?x=1"), 404, "/nope"},
		{"wrong method", get("/v1/chat/completions"), 405, "use POST"},
		{"bad JSON", post("/v1/chat/completions", `{"messages":`, key), 400, "read request body"},
		{"no messages", post("/v1/chat/completions", `{}`, key), 400, "messages"},
		{"no prompt", post("/v1/completions", `{}`, key), 400, "prompt"},
		{"no tokens", post("/v1/completions", `{"prompt":"x","max_tokens":0}`, key), 400, "max_tokens"},
		{"long prompt", post("/v1/chat/completions", long, key), 400, "exceed_context_size_error"},
		{"tools", post("/v1/chat/completions", `{"messages":[{"content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, key, "X-Sim: tools=refused"), 400, "does not support tools"},
		{"unknown option", chat(key, "X-Sim: tfft=1s"), 400, "tfft"},
		{"scripted status", chat(key, "X-Sim: status=503"), 503, "scripted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := fetch(t, addr, c.raw)
			if resp.StatusCode != c.status || !strings.Contains(body, c.part) {
				t.Errorf("%d %s, want %d with %q", resp.StatusCode, body, c.status, c.part)
			}
			if !json.Valid([]byte(body)) {
				t.Errorf("not JSON: %q", body)
			}
		})
	}
	// What the context leaves bounds the answer.
	_, body := fetch(t, addr, post("/v1/completions", `{"prompt":"a b c"}`, key))
	if p := decode(t, body); p.Usage.Completion != 5 || p.Choices[0].Finish != "length" {
		t.Errorf("answer beyond the context: %s", body)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, text := range []string{
		"ttft", "ttft=x", "ttft=-1s", "decode=-1", "decode=NaN", "jitter=2", "answer=-1", "answer=x", "usage=sometimes", "status=200",
		"informational=200", "seed=-1", "gzip=maybe", "fault=none", "fault=reset@x", "fault=reset@-1", "framing=raw", "split=99999999999",
	} {
		var o Options
		if err := o.Set(text); err == nil {
			t.Errorf("Set(%q) accepted it", text)
		}
	}
	var o Options
	if err := o.Set("ttft=1s; decode=5 ;fault=stall@2;;"); err != nil || o.DecodeTPS != 5 || o.Fault != (Fault{FaultStall, 2}) {
		t.Errorf("%+v %v", o, err)
	}
}

// TestOptionKeysAreUnique holds that no key hides another.
func TestOptionKeysAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k] {
			t.Errorf("key %s twice", k)
		}
		seen[k] = true
	}
}

func TestGzip(t *testing.T) {
	_, addr := start(t, Config{})
	_, want := fetch(t, addr, chat())
	resp, coded := fetch(t, addr, chat("X-Sim: gzip=1"))
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("no Content-Encoding")
	}
	z, err := gzip.NewReader(strings.NewReader(coded))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil || string(got) != want {
		t.Errorf("decoded %q, %v", got, err)
	}
}

func TestRecordsOverHTTP(t *testing.T) {
	s, addr := start(t, Config{})
	fetch(t, addr, chat())
	await(t, s, Ended(1))
	get := "GET /sim/records%s HTTP/1.1\r\n\r\n"
	_, body := fetch(t, addr, fmt.Sprintf(get, ""))
	var short, long Truth
	if err := json.Unmarshal([]byte(body), &short); err != nil {
		t.Fatal(err)
	}
	if len(short.Requests) != 1 || short.Requests[0].Sent != nil || len(short.Requests[0].Writes) == 0 {
		t.Errorf("%+v", short.Requests)
	}
	_, body = fetch(t, addr, fmt.Sprintf(get, "?bytes=1"))
	if err := json.Unmarshal([]byte(body), &long); err != nil {
		t.Fatal(err)
	}
	// The reserved path left no record, and the JSON carries the whole record.
	if d := cmp.Diff(s.Records(), long.Requests); d != "" {
		t.Errorf("(-truth +JSON):\n%s", d)
	}
	resp, _ := fetch(t, addr, "DELETE /sim/records HTTP/1.1\r\n\r\n")
	if truth := s.Truth(); resp.StatusCode != 204 || len(truth.Requests) != 0 || truth.Total != 1 {
		t.Errorf("after DELETE: %d, %+v", resp.StatusCode, truth)
	}
	if resp, _ := fetch(t, addr, post("/sim/records", "", "Connection: close")); resp.StatusCode != 405 || !resp.Close {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestTruthAboutWrites(t *testing.T) {
	s, addr := start(t, Config{})
	raw, err := roundTrip(t, addr, chat("Connection: close", "X-Sim: informational=103; trailer=1; split=37"))
	if err != nil {
		t.Fatal(err)
	}
	r := only(t, s)
	if string(r.Sent) != raw || r.SentLen != len(raw) {
		t.Errorf("sent %q, received %q", r.Sent, raw)
	}
	_, streamed := fetch(t, addr, chat())
	if last := r.Writes[len(r.Writes)-1]; last.Body != len(streamed) {
		t.Errorf("%d body bytes counted, want %d", last.Body, len(streamed))
	}
	offset, tokens, at := 0, 0, int64(0)
	for i, w := range r.Writes {
		if w.Offset != offset || w.Size > 37 || w.At < at || w.Done < w.At || w.Wall-r.Wall < 0 {
			t.Fatalf("write %d: %+v", i, w)
		}
		offset, at, tokens = offset+w.Size, w.At, tokens+w.Tokens
	}
	if tokens != 4 || r.Usage.Completion != 4 || r.Usage.Prompt != 3 {
		t.Errorf("%d tokens in writes, usage %+v", tokens, r.Usage)
	}
	first, ok := r.FirstToken()
	last, ok2 := r.LastToken()
	if !ok || !ok2 || first > last {
		t.Errorf("first token %v, last %v", first, last)
	}
	if !strings.HasPrefix(raw, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.HasSuffix(raw, "0\r\nX-Sim-Trailer: end\r\n\r\n") {
		t.Errorf("raw %q", raw)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	s, addr := start(t, Config{KeepRecords: 2, KeepBytes: 10})
	for range 3 {
		fetch(t, addr, chat())
	}
	truth := await(t, s, func(t Truth) bool { return t.Total == 3 && Ended(2)(t) })
	if len(truth.Requests) != 2 || truth.Requests[0].Seq != 2 || !bytes.Equal(truth.Requests[1].Sent, []byte("HTTP/1.1 2")) {
		t.Errorf("%+v", truth.Requests)
	}
	if truth.Count("POST", "/v1/chat/completions") != 2 {
		t.Error("count")
	}
	if _, ok := (Record{}).FirstToken(); ok {
		t.Error("a first token out of nothing")
	}
	if _, ok := (Record{}).LastToken(); ok {
		t.Error("a last token out of nothing")
	}
}
