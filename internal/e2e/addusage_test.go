package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// askForUsage is what the flag --add-usage makes of exchanges.
func askForUsage(c *proxy.Call, _ exchange.Identity) proxy.Rewrite {
	ask := wire.AddUsage(wire.DialectOf(c.Target), c.Headers, c.Body)
	if ask.Body == nil {
		return proxy.Rewrite{Notes: ask.Notes}
	}
	return proxy.Rewrite{Body: ask.Body, Notes: ask.Notes, Answer: func() proxy.Filter { return wire.NewUsageFilter() }}
}

// TestAddedUsageIsNotSeen holds that a client gets from the proxy what it gets from the engine itself, whatever the stream
// is like, and that the record has the usage that the engine sent.
func TestAddedUsageIsNotSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rigOptions) { o.server.Rewrite = askForUsage })
	const plain = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true`
	bodies := map[string]string{
		"chat": plain + "}", "two choices": plain + `,"n":2}`, "logprobs": plain + `,"logprobs":true,"top_logprobs":2}`,
		"tools":           plain + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`,
		"options":         plain + `,"stream_options":{"include_obfuscation":false}}`,
		"completions":     `{"model":"m","max_tokens":9,"prompt":"hi","stream":true}`,
		"completions, n2": `{"model":"m","max_tokens":9,"prompt":"hi","stream":true,"n":2}`,
	}
	options := map[string]string{
		"default": "", "reasoning": "reasoning=4", "byte by byte": "split=1", "cut anywhere": "split=37", "merged": "merge=5", "all at once": "merge=1000",
		"pings": "ping=5ms; ttft=12ms", "trailer": "trailer=1", "no keep-alive": "keepalive=close", "early role": "early_role=1",
		"usage at the finish": "usage=finish", "none": "usage=none",
		"error": "fault=error@4", "error, then the end": "fault=error_done@4", "cut cleanly": "fault=clean_cut@5", "no last chunk": "fault=no_last_chunk@5",
		"half an event": "fault=truncate_event@5", "half a chunk": "fault=truncate_chunk@5", "no JSON": "fault=garbage@4", "bad chunk": "fault=bad_chunk@5",
	}
	for bodyName, body := range bodies {
		for optionName, option := range options {
			t.Run(bodyName+", "+optionName, func(t *testing.T) {
				t.Parallel()
				q := request{name: bodyName + "/" + optionName, body: body, headers: []string{"X-Sim: ttft=1ms; decode=5000; " + option}}
				if strings.HasPrefix(bodyName, "completions") {
					q.target = "/v1/completions"
				}
				direct := dial(t, strings.TrimPrefix(r.url, "http://")).send(q).answer(http.MethodPost, 0)
				got := r.do(t, q)
				sameBytes(t, "answer", got.body, direct.body)
				if (got.err == nil) != (direct.err == nil) {
					t.Errorf("the proxy's answer ends with %v, the engine's with %v", got.err, direct.err)
				}
				checkAsked(t, r.stored(t, q.name, 0), option)
			})
		}
	}
}

// checkAsked holds that the record has both sides, and reported usage where the stream came so far.
func checkAsked(t *testing.T, rec record, option string) {
	t.Helper()
	if sent, ok := exchange.SentRequest(rec.Exchange); !ok || !strings.Contains(string(sent.Body.Bytes()), `"include_usage":true`) || rec.row.SentKey == "" || rec.row.SentKey == rec.row.Key {
		t.Errorf("sent as %q under %q and %q", sent.Body.Bytes(), rec.row.Key, rec.row.SentKey)
	}
	if strings.HasPrefix(option, "fault") || strings.HasPrefix(option, "usage") {
		return
	}
	removed := 0
	for _, v := range rec.Interventions {
		if v.Kind == "response_removed" && v.Name == "usage" {
			removed++
		}
	}
	if removed != 1 || rec.row.UsageEstimate || !rec.row.Metrics["prompt_tokens"].Present() {
		t.Errorf("%d removals, usage estimated %v, interventions %+v", removed, rec.row.UsageEstimate, rec.Interventions)
	}
}
