package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// plain answers every request with one JSON body.
func plain(body string) func(*rigOptions) {
	return func(o *rigOptions) {
		o.engine.Handler = sim.Always(sim.BodyScript(200, "application/json", sim.FramingLength, []byte(body), 0))
	}
}

// TestRR06RR07AX24Keys: requests of one meaning have one key, any difference of meaning another one, on the whole path; the
// raw bytes keep a digest of their own.
func TestRR06RR07AX24Keys(t *testing.T) {
	const base = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"temperature":0`
	bodies := map[string]string{
		"a":                 base + `}`,
		"reordered":         `{ "temperature": 0, "messages": [{"content":"hi","role":"user"}], "stream": true, "model": "m" }`,
		"printed":           "{\n\t\"model\": \"m\",\n\t\"stream\": true,\r\n\t\"temperature\": 0,\n\t\"messages\": [{\"role\": \"user\", \"content\": \"h\\u0069\"}]\n}\n",
		"changed_prompt":    strings.Replace(base, "hi", "hi!", 1) + `}`,
		"number_spelling":   base + `.0}`,
		"number_as_text":    strings.Replace(base, `"temperature":0`, `"temperature":"0"`, 1) + `}`,
		"big_seed":          base + `,"seed":9007199254740993}`,
		"big_seed_plus_one": base + `,"seed":9007199254740992}`,
		"null":              base + `,"seed":null}`,
		"max_tokens":        base + `,"max_tokens":7}`,
		"unknown_field":     base + `,"engine_knob":7}`,
		"array_order":       base + `,"stop":["a","b"]}`,
		"other_order":       base + `,"stop":["b","a"]}`,
	}
	same := map[string]string{"reordered": "a", "printed": "a"} // name -> whose key it shares
	r := newRig(t, plain(`{"z":1,"a":2}`))
	rows := map[string]exchange.Summary{}
	for name, body := range bodies {
		r.do(t, request{name: name, body: body}).whole(t, 200, []byte(`{"z":1,"a":2}`))
	}
	for name, body := range bodies {
		x := r.stored(t, name, 0)
		sameBytes(t, "the recorded request", x.Request.Body.Bytes(), []byte(body))
		rows[name] = x.row
	}
	for a, ra := range rows {
		if raw := exchange.NewBody([]byte(bodies[a])).Sum(); ra.RequestSum != raw {
			t.Errorf("%s: digest of the raw request %s, want %s", a, ra.RequestSum, raw)
		}
		if !strings.HasPrefix(ra.Key, canon.Scheme) || ra.Digest == "" {
			t.Errorf("%s: key %q, digest %q", a, ra.Key, ra.Digest)
		}
		for b, rb := range rows {
			want := a == b || same[a] == b || same[b] == a || same[a] != "" && same[a] == same[b]
			if got := ra.Key == rb.Key; got != want {
				t.Errorf("%s and %s share a key: %v, want %v", a, b, got, want)
			}
		}
	}
	takes, err := r.store.Lookup(&exchange.Request{Method: "POST", Target: "/v1/chat/completions", Body: exchange.NewBody([]byte(bodies["printed"]))})
	if err != nil || len(takes) != 3 {
		t.Errorf("a request of the same meaning finds %d takes, %v; want 3", len(takes), err)
	}
}

// TestAX25TakesAreKeptInOrder: one request answered three times has three records under one key, in order.
func TestAX25TakesAreKeptInOrder(t *testing.T) {
	answers := []string{"alpha", "beta", "alpha"}
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = func(q sim.Request) *sim.Script { return timed(0, sse(delta(answers[q.Seq-1])), sse(stop, "[DONE]")) }
	})
	for range answers {
		r.do(t, chat("take"))
	}
	key := r.stored(t, "take", len(answers)-1).row.Key
	takes, err := r.store.Takes(key)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, take := range takes {
		x, row, err := r.store.Exchange(take.ID)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, measure.Analyze(x).Transcript.Choice0().Text)
		if take.Run != r.run.ID || take.Seq != uint64(i+1) || row.Key != key {
			t.Errorf("take %d: %+v, key %s", i, take, row.Key)
		}
	}
	if diff := cmp.Diff(answers, got); diff != "" {
		t.Errorf("takes (-sent +kept):\n%s", diff)
	}
	var doc struct{ Takes []json.RawMessage }
	if err := json.Unmarshal(fetch(t, r, "/api/v1/keys/"+key), &doc); err != nil || len(doc.Takes) != len(answers) {
		t.Errorf("the admin listener has %d takes, %v", len(doc.Takes), err)
	}
}

// TestOddBodiesAreKeyedByTheirBytes: what is no JSON, or JSON without a certain meaning, goes through untouched and has a
// key of its raw bytes, which the row says.
func TestOddBodiesAreKeyedByTheirBytes(t *testing.T) {
	r := newRig(t, plain(`{}`))
	bodies := []string{
		`{"a":1`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, "\x00\xff not text", `{"a":"` + "\xff" + `"}`, `{"a":"\ud800"}`,
		strings.Repeat("[", 10_000), `{"a":1}x`, "nul", `"lone`,
	}
	keys := map[string]int{}
	for i, body := range bodies {
		name := fmt.Sprint("odd", i)
		r.do(t, request{name: name, body: body}).whole(t, 200, []byte(`{}`))
		engine := r.truth(t, name)
		sameBytes(t, "the engine's request", engine.Body, []byte(body))
	}
	for i, body := range bodies {
		x := r.stored(t, fmt.Sprint("odd", i), 0)
		sameBytes(t, "the recorded request", x.Request.Body.Bytes(), []byte(body))
		if !strings.Contains(fmt.Sprint(x.row.Flags), "raw_key") {
			t.Errorf("%.40q has the flags %q", body, x.row.Flags)
		}
		if was, ok := keys[x.row.Key]; ok {
			t.Errorf("%.40q has the key of %.40q", body, bodies[was])
		}
		keys[x.row.Key] = i
	}
}
