package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// TestSpansOfAStream holds both spans of an exchange against its record, field by field.
func TestSpansOfAStream(t *testing.T) {
	r := newRig(t, nil)
	x := wholeAnswer()
	x.Cell, x.Wave, x.Item = "c1", "w1", &exchange.PlanItem{Item: "i1"}
	r.pass(x, true)
	got := r.spans(t)
	server, client := got["server"], got["client"]
	if d := cmp.Diff(map[string]string{
		"http.request.method": "POST", "http.route": "/v1/chat/completions", "url.path": "/v1/chat/completions", "url.query": "trace=***",
		"url.scheme": "http", "server.address": "proxy.local", "server.port": "8090", "network.protocol.version": "1.1", "user_agent.original": "agent/1",
		"http.response.status_code": "200", "http.request.body.size": num(x.Request.Body.Size), "http.response.body.size": num(x.Response.Body.Size),
		"benchproxy.record.id": string(x.ID),
	}, attrsOf(server.Attributes)); d != "" {
		t.Errorf("server span (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "llama_cpp", "server.address": "10.1.2.3", "server.port": "8080",
		"http.response.status_code": "200", "network.protocol.version": "1.1",
		"benchproxy.record.id": string(x.ID), "benchproxy.run.id": string(x.Run), "benchproxy.mode": "record", "benchproxy.upstream": "engine",
		"benchproxy.engine.build": "b4711", "benchproxy.cell": "c1", "benchproxy.wave": "w1", "benchproxy.item": "i1", "benchproxy.outcome": "complete",
		"benchproxy.record.state": "stored", "benchproxy.request.hash": "h1:0123456789abcdef",
		"gen_ai.request.model": "asked", "gen_ai.request.stream": "true", "gen_ai.request.max_tokens": "9", "gen_ai.request.choice.count": "2",
		"gen_ai.request.temperature": "0.5", "gen_ai.request.top_p": "0.9", "gen_ai.request.top_k": "40", "gen_ai.request.frequency_penalty": "0.1",
		"gen_ai.request.presence_penalty": "0.2", "gen_ai.request.seed": "7", "gen_ai.request.stop_sequences": `["END"]`,
		"gen_ai.request.reasoning.level": "low", "gen_ai.output.type": "json",
		"gen_ai.response.model": "served", "gen_ai.response.id": "c-1", "gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.response.time_to_first_chunk": "0.03",
		"gen_ai.usage.input_tokens": "11", "gen_ai.usage.output_tokens": "5", "gen_ai.usage.cache_read.input_tokens": "0", "gen_ai.usage.reasoning.output_tokens": "1",
		"benchproxy.ttft": "0.04", "benchproxy.ttfa": "0.05", "benchproxy.tpot": "0.005", "benchproxy.decode.rate": "200", "benchproxy.prefill.rate": "275",
		"benchproxy.chunks": "3", "benchproxy.token_count.source": "usage", "benchproxy.flags": `["short_answer"]`,
	}, attrsOf(client.Attributes), cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.GoString(), "flags") }, cmp.Ignore())); d != "" {
		t.Errorf("client span (-want +got)\n%s", d)
	}
	if server.Name != "POST /v1/chat/completions" || client.Name != "chat asked" {
		t.Errorf("the spans are called %q and %q", server.Name, client.Name)
	}
	at := func(v int) time.Time { return wall().Add(time.Duration(v) * time.Millisecond) }
	if !server.StartTime.Equal(at(0)) || !server.EndTime.Equal(at(85)) || !client.StartTime.Equal(at(1)) || !client.EndTime.Equal(at(84)) {
		t.Errorf("server %s to %s, client %s to %s", server.StartTime, server.EndTime, client.StartTime, client.EndTime)
	}
	if server.Status.Code != codes.Unset || client.Status.Code != codes.Unset {
		t.Errorf("status %v and %v of a whole answer", server.Status, client.Status)
	}
	var events []string
	for _, e := range client.Events {
		a := attrsOf(e.Attributes)
		events = append(events, strings.TrimSpace(strings.Join([]string{strings.TrimPrefix(e.Name, "benchproxy."), e.Time.Sub(wall()).String(), a[attrElapsed], a[attrKind], a[attrChunk],
			a[ourChunks], a[attrFinishReason], a[attrEnd]}, " ")))
	}
	want := []string{"request_sent 4ms 0.001", "response_headers 20ms 0.017", "first_byte 33ms 0.03", "first_token 43ms 0.04 reasoning 1",
		"first_answer_token 53ms 0.05 content 2", "last_token 63ms 0.06   3", "finish 83ms 0.08    stop", "stream_end 84ms 0.081    stop marker"}
	if d := cmp.Diff(want, events); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
}

func num(n int64) string {
	b := attributes{}
	b.int("n", n)
	return b[0].Value.String()
}

// TestTree holds who is whose parent, and what the engine is told.
func TestTree(t *testing.T) {
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	cases := map[string]struct {
		headers []string
		parent  string // span id of the caller, "" for none
		removed bool   // the state is taken out
	}{
		"begins":              {},
		"goes on":             {[]string{"Traceparent", theirs, "tracestate", "a=1"}, "b7ad6b7169203331", false},
		"invalid begins":      {[]string{"traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "tracestate", "a=1"}, "", true},
		"two are none":        {[]string{"traceparent", theirs, "traceparent", theirs}, "", false},
		"state without trace": {[]string{"tracestate", "a=1"}, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			x := wholeAnswer()
			for i := 0; i < len(c.headers); i += 2 {
				x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: c.headers[i], Value: c.headers[i+1]})
			}
			headers := r.pass(x, true)
			got := r.spans(t)
			server, client := got["server"], got["client"]
			if p := server.Parent; p.IsValid() != (c.parent != "") || p.IsValid() && (p.SpanID().String() != c.parent || !p.IsRemote() || p.TraceState().String() != "a=1") {
				t.Errorf("the server span's parent is %v", p)
			}
			if client.Parent.SpanID() != server.SpanContext.SpanID() || client.SpanContext.TraceID() != server.SpanContext.TraceID() {
				t.Errorf("the client span's parent is %v, the server span %v", client.Parent, server.SpanContext)
			}
			if c.parent != "" && server.SpanContext.TraceID().String() != theirs[3:35] {
				t.Errorf("the trace is %s", server.SpanContext.TraceID())
			}
			want := []exchange.Header{{Name: "traceparent", Value: "00-" + client.SpanContext.TraceID().String() + "-" + client.SpanContext.SpanID().String() + "-01"}}
			if c.removed {
				want = append(want, exchange.Header{Name: "tracestate"})
			}
			if d := cmp.Diff(want, headers); d != "" {
				t.Errorf("the engine gets (-want +got)\n%s", d)
			}
		})
	}
}

// TestFailures holds what spans say of exchanges that did not come to their end.
func TestFailures(t *testing.T) {
	ended := func(end exchange.End, code, text string) func(*exchange.Exchange) {
		return func(x *exchange.Exchange) {
			x.End, x.Cause = end, &exchange.Cause{Side: exchange.SideEngine, Code: code, Text: text}
		}
	}
	never := func(end exchange.End, code, text string) func(*exchange.Exchange) {
		return func(x *exchange.Exchange) {
			ended(end, code, text)(x)
			x.Response = exchange.Response{}
			x.Timeline = exchange.Timeline{Wall: wall(), Accepted: exchange.MarkAt(0), RequestRead: exchange.MarkAt(ms), ClientDone: exchange.MarkAt(5 * ms)}
		}
	}
	status := func(code int) func(*exchange.Exchange) {
		return func(x *exchange.Exchange) { x.Response.Status = code }
	}
	cases := map[string]struct {
		edit           func(*exchange.Exchange)
		server, client string // error.type
		serverFails    bool
		clientFails    bool
		status         string // of the server span
	}{
		"reset":    {ended(exchange.EndReset, "reset", "connection reset by peer"), "connection_reset", "connection_reset", true, true, "200"},
		"short":    {ended(exchange.EndShort, "eof", "ended early"), "upstream_eof", "upstream_eof", true, true, "200"},
		"no end":   {func(*exchange.Exchange) {}, "upstream_eof", "upstream_eof", true, true, "200"},
		"left":     {ended(exchange.EndClientGone, "client_gone", "left"), "client_disconnected", "", false, false, "200"},
		"timeout":  {ended(exchange.EndTimeout, "body_timeout", "i/o timeout"), "timeout", "timeout", true, true, "200"},
		"shutdown": {ended(exchange.EndShutdown, "shutdown", "stopped"), "_OTHER", "_OTHER", true, true, "200"},
		"panic":    {ended(exchange.EndReset, "panic", "oh"), "_OTHER", "_OTHER", true, true, "200"},
		"refused":  {never(exchange.EndConnectFailed, "connect", "dial: connection refused"), "connection_refused", "connection_refused", true, true, "502"},
		"no route": {never(exchange.EndConnectFailed, "connect", "dial: i/o timeout"), "timeout", "timeout", true, true, "502"},
		"no name":  {never(exchange.EndConnectFailed, "connect", "no such host"), "_OTHER", "_OTHER", true, true, "502"},
		"no head":  {never(exchange.EndTimeout, "header_timeout", "i/o timeout"), "timeout", "timeout", true, true, "504"},
		"503":      {status(503), "503", "503", true, true, "503"},
		"404":      {status(404), "404", "404", false, true, "404"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			x := streamed(`{"model":"m","stream":true}`, delta(`{"content":"a"}`))
			c.edit(x)
			r.pass(x, true)
			got := r.spans(t)
			server, client := got["server"], got["client"]
			sa, ca := attrsOf(server.Attributes), attrsOf(client.Attributes)
			if sa["error.type"] != c.server || ca["error.type"] != c.client {
				t.Errorf("error.type is %q and %q", sa["error.type"], ca["error.type"])
			}
			if (server.Status.Code == codes.Error) != c.serverFails || (client.Status.Code == codes.Error) != c.clientFails {
				t.Errorf("status is %v and %v", server.Status, client.Status)
			}
			if sa["http.response.status_code"] != c.status {
				t.Errorf("the server span says %q", sa["http.response.status_code"])
			}
			last := client.Events[len(client.Events)-1]
			if (last.Name == eventException) != (c.client != "") {
				t.Errorf("the last event is %s", last.Name)
			}
			if client.EndTime.Before(client.StartTime) || server.EndTime.Before(client.EndTime) || server.StartTime.After(client.StartTime) {
				t.Errorf("server %s to %s, client %s to %s", server.StartTime, server.EndTime, client.StartTime, client.EndTime)
			}
		})
	}
}

// TestErrorInsideAStream holds the one failure that only the bytes tell.
func TestErrorInsideAStream(t *testing.T) {
	r := newRig(t, nil)
	r.pass(streamed(`{"model":"m","stream":true}`, delta(`{"content":"a"}`), `{"error":{"message":"out of memory, key sk-aaaaaaaaaaaaaaaaaaaaaaaa","type":"server_error"}}`), false)
	client := r.spans(t)["client"]
	a := attrsOf(client.Attributes)
	if a["error.type"] != "stream_error" || a["gen_ai.response.finish_reasons"] != `["error"]` || client.Parent.IsValid() {
		t.Errorf("the span says %v below %v", a, client.Parent)
	}
	if d := client.Status.Description; !strings.Contains(d, "out of memory") || strings.Contains(d, "sk-a") {
		t.Errorf("the status says %q", d)
	}
}

// TestOtherPaths holds the spans of what generates nothing, and of methods and paths that no name may have.
func TestOtherPaths(t *testing.T) {
	for target, want := range map[string][2]string{
		"GET /v1/models":                        {"GET /v1/models", "GET"},
		"GET /a/b/c?x=1":                        {"GET", "GET"},
		"BREW /v1/models":                       {"HTTP /v1/models", "HTTP"},
		"POST /v1/embeddings":                   {"POST /v1/embeddings", "embeddings m"},
		"POST /v1/completions":                  {"POST /v1/completions", "text_completion m"},
		"POST /api/generate":                    {"POST /api/generate", "text_completion m"},
		"POST /v1/messages":                     {"POST /v1/messages", "chat m"},
		"POST /v1beta/models/g:generateContent": {"POST /{version}/models/{model}:generateContent", "generate_content m"},
		"POST /prefix/v1/chat/completions":      {"POST", "chat m"},
	} {
		t.Run(target, func(t *testing.T) {
			r := newRig(t, nil)
			x := streamed(`{"model":"m"}`)
			x.Request.Method, x.Request.Target, _ = strings.Cut(target, " ")
			x.Response.Headers = nil
			r.pass(x, true)
			got := r.spans(t)
			if got["server"].Name != want[0] || got["client"].Name != want[1] {
				t.Errorf("the spans are called %q and %q", got["server"].Name, got["client"].Name)
			}
		})
	}
}

// TestContent holds that texts are told only when asked for, bounded and without credentials.
func TestContent(t *testing.T) {
	const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	for word, want := range map[string][2]bool{"": {}, "NO_CONTENT": {}, "nonsense": {}, "true": {true, false}, "span_only": {true, false}, "EVENT_ONLY": {false, true}, "SPAN_AND_EVENT": {true, true}} {
		t.Run(word, func(t *testing.T) {
			r := newRig(t, nil, name, word)
			r.pass(wholeAnswer(), true)
			got := r.spans(t)
			a := attrsOf(got["client"].Attributes)
			event := ""
			for _, e := range got["client"].Events {
				if e.Name == eventContent {
					event = attrsOf(e.Attributes)[aiOutputMessages]
				}
			}
			if (a[aiInputMessages] != "") != want[0] || (a[aiOutputMessages] != "") != want[0] || (event != "") != want[1] {
				t.Errorf("the span says %q and %q, the event %q", a[aiInputMessages], a[aiOutputMessages], event)
			}
			if strings.Contains(a[aiInputMessages], "sk-a") {
				t.Errorf("a key is told: %s", a[aiInputMessages])
			}
			if want[0] && a[aiOutputMessages] != `[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"ab"}],"finish_reason":"stop"}]` {
				t.Errorf("the answer is told as %s", a[aiOutputMessages])
			}
		})
	}
}

// TestContentForms holds the forms of requests, and that long ones are cut.
func TestContentForms(t *testing.T) {
	for body, want := range map[string]string{
		`{"prompt":"p"}`:       `[{"role":"user","parts":[{"type":"text","content":"p"}]}]`,
		`{"prompt":["p","q"]}`: `[{"role":"user","parts":[{"type":"text","content":"p"}]},{"role":"user","parts":[{"type":"text","content":"q"}]}]`,
		`{"input":"i"}`:        `[{"role":"user","parts":[{"type":"text","content":"i"}]}]`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`: `[{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"f","arguments":"{}"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"1","result":"r"}]}]`,
		`{"messages":"no list"}`:          `[{"role":"user","parts":[{"type":"text","content":"no list"}]}]`,
		`{"messages":[1,2]}`:              "",
		`{"reasoning":"on","prompt":"p"}`: `[{"role":"user","parts":[{"type":"text","content":"p"}]}]`,
		`not json`:                        "",
	} {
		x := streamed(body)
		if got := attrsOf(contentOf(x, measure.Analyze(x)))[aiInputMessages]; got != want {
			t.Errorf("%s is told as %s, want %s", body, got, want)
		}
	}
	x := streamed(`{"prompt":"` + strings.Repeat("é", maxContent) + `","system":"s"}`)
	a := attrsOf(contentOf(x, measure.Analyze(x)))
	if n := len(a[aiInputMessages]); n > maxContent+200 || n < maxContent || !strings.Contains(a[aiInputMessages], "…") || a[aiSystem] == "" {
		t.Errorf("a long prompt is told in %d bytes, the system as %q", n, a[aiSystem])
	}
}

// TestAddress holds how the address of an engine is told.
func TestAddress(t *testing.T) {
	for at, want := range map[string][2]string{
		"http://h:81/base": {"h", "81"}, "http://h": {"h", "80"}, "https://h/x": {"h", "443"}, "http://[::1]:8080": {"::1", "8080"}, "http://[::1]": {"::1", "80"},
		"unix:/run/e.sock": {"/run/e.sock", ""}, "unix:e.sock": {"e.sock", ""}, "http://%zz": {"", ""}, "": {"", ""},
	} {
		var a attributes
		a.upstream(at)
		got := attrsOf(a)
		if got[serverAddress] != want[0] || got[serverPort] != want[1] {
			t.Errorf("%s is at %q, port %q", at, got[serverAddress], got[serverPort])
		}
	}
}
