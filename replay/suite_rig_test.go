package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// pupil is an engine that knows the answers to the built-in scenarios. wrong lets it answer something else: it is asked
// with the tag of the case and the number of the turn.
type pupil struct {
	wrong   func(tag string, turn int) *pupilSays
	loading *loadingFor // nil for an engine that is ready
}

// loadingFor is an engine that answers its first requests with 503.
type loadingFor struct {
	seen  atomic.Int32
	first int32
	after string // Retry-After, "" for none
}

func (l *loadingFor) script() *sim.Script {
	if l.seen.Add(1) > l.first {
		return nil
	}
	s := sim.BodyScript(503, "application/json", sim.FramingLength, []byte(`{"error":{"message":"loading"}}`), 0)
	if l.after != "" {
		s.Headers = append(s.Headers, exchange.Header{Name: "Retry-After", Value: l.after})
	}
	return s
}

// pupilSays is one answer of the pupil.
type pupilSays struct {
	status  int // 0 = 200
	body    string
	content string
	calls   []string // name, arguments, name, arguments ...
	tokens  int
	finish  string
}

type pupilBody struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
	Choice    json.RawMessage   `json:"tool_choice"`
	MaxTokens int               `json:"max_tokens"`
	Stream    bool              `json:"stream"`
}

const hashTables = "A hash table keeps values under keys in an array of buckets. The hash function computes an index from each key, and the value is placed " +
	"into that bucket. Two different keys may land on the same index; this is a collision, and chaining with a linked list or probing for a free slot " +
	"resolves it. When the load factor becomes too high, the array is made larger and every key is hashed once more. Look-ups take constant time on average."

// knows are the answers by scenario and turn.
func knows(name string, turn int) pupilSays {
	weather := []string{"get_weather", `{"city":"Paris","units":"celsius"}`}
	switch fmt.Sprint(name, " ", turn) {
	case "short 0":
		return pupilSays{content: "42"}
	case "short_zh 0":
		return pupilSays{content: "北京"}
	case "json 0", "json_schema 0":
		return pupilSays{content: `{"name":"Mars","moons":2,"habitable":false}`}
	case "json_unicode 0":
		return pupilSays{content: `{"city":"Zürich","greeting":"你好，世界","symbols":["☀","🚲"]}`}
	case "long_8k 0", "long_32k 0", "long_64k 0":
		return pupilSays{content: "ALPHA silver-4821\nBETA amber-7392\nGAMMA violet-1605"}
	case "multi_turn 0":
		return pupilSays{content: "OK"}
	case "multi_turn 1":
		return pupilSays{content: "juniper-5938"}
	case "agentic 0":
		return pupilSays{calls: []string{"read_invoice", `{"invoice_id":"INV-472"}`}}
	case "agentic 1":
		return pupilSays{calls: []string{"calculate_total", `{"unit_price":13.75,"quantity":5}`}}
	case "agentic 2":
		return pupilSays{content: `{"invoice_id":"INV-472","total":68.75}`}
	case "decode 0", "decode_8k 0":
		return pupilSays{content: hashTables, tokens: -1, finish: "length"}
	case "tool_round_trip 1", "none_history 1":
		return pupilSays{content: `{"city":"Paris","temperature_c":19}`}
	case "two_calls 0":
		return pupilSays{calls: append(weather, "get_weather", `{"city":"Oslo","units":"celsius"}`)}
	case "invalid_required 0":
		return refusal("tools must hold at least one tool")
	case "invalid_named 0":
		return refusal("there is no tool undeclared_weather_tool")
	case "invalid_schema 0":
		return refusal("the keyword pattern is not kept")
	}
	return pupilSays{calls: weather}
}

func refusal(message string) pupilSays {
	return pupilSays{status: 400, body: fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, message)}
}

// Handler answers every request.
func (p pupil) Handler() sim.Handler {
	return func(r sim.Request) *sim.Script {
		if p.loading != nil {
			if s := p.loading.script(); s != nil {
				return s
			}
		}
		var b pupilBody
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return sim.BodyScript(400, "application/json", sim.FramingLength, []byte(`{"error":{"message":"no JSON"}}`), 0)
		}
		var first string
		_ = json.Unmarshal(b.Messages[0].Content, &first)
		tag, turn := tagOf(first), 0
		for _, m := range b.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		name, _, _ := strings.Cut(tag, "-c")
		answer := knows(name, turn)
		if p.wrong != nil {
			if other := p.wrong(tag, turn); other != nil {
				answer = *other
			}
		}
		return answer.script(&b)
	}
}

func tagOf(prompt string) string {
	_, rest, _ := strings.Cut(prompt, "[validation ")
	tag, _, _ := strings.Cut(rest, "]")
	return tag
}

func (a pupilSays) script(b *pupilBody) *sim.Script {
	if a.body != "" || a.status != 0 {
		return sim.BodyScript(a.status, "application/json", sim.FramingLength, []byte(a.body), 0)
	}
	tokens, finish := a.tokens, a.finish
	if tokens == 0 {
		tokens = 5
	}
	if tokens < 0 {
		tokens = b.MaxTokens
	}
	var calls []map[string]any
	for i := 0; i < len(a.calls); i += 2 {
		calls = append(calls, map[string]any{"index": i / 2, "id": fmt.Sprintf("call_%d", i/2+1), "type": "function",
			"function": map[string]any{"name": a.calls[i], "arguments": a.calls[i+1]}})
		finish = "tool_calls"
	}
	if finish == "" {
		finish = "stop"
	}
	s := &sim.Script{Status: 200, Framing: sim.FramingChunked}
	s.Headers = sim.BodyScript(200, "text/event-stream", sim.FramingChunked, nil, 0).Headers
	at := 10 * time.Millisecond
	event := func(v any) {
		data, _ := json.Marshal(v)
		s.Steps = append(s.Steps, sim.Step{At: at, Data: []byte("data: " + string(data) + "\n\n")})
		at += 10 * time.Millisecond
	}
	chunk := func(delta map[string]any, finish any) {
		event(map[string]any{"id": "x", "object": "chat.completion.chunk", "model": "pupil",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	half := len(a.content) / 2
	for half > 0 && half < len(a.content) && a.content[half]&0xc0 == 0x80 {
		half++
	}
	for _, part := range []string{a.content[:half], a.content[half:]} {
		if part != "" {
			chunk(map[string]any{"content": part}, nil)
		}
	}
	if calls != nil {
		chunk(map[string]any{"tool_calls": calls}, nil)
	}
	chunk(map[string]any{}, finish)
	event(map[string]any{"id": "x", "object": "chat.completion.chunk", "choices": []any{}, "usage": map[string]any{"prompt_tokens": 100, "completion_tokens": tokens}})
	s.Steps = append(s.Steps, sim.Step{At: at, Data: []byte("data: [DONE]\n\n")})
	return s
}

// heard is what a suite came to in a bubble.
type heard struct {
	suite *Suite
	sink  *records
	waves []*SuiteWave
	err   error
}

// suiteRig is an engine in memory on a fake clock.
type suiteRig struct {
	pupil pupil
	until time.Duration // when the suite is told to stop; 0 = never
	why   error
	dead  bool
}

func (r suiteRig) play(t *testing.T, o SuiteOptions, check func(t *testing.T, h *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &heard{sink: &records{}}
		next := o.Wave
		o.Wave = func(w *SuiteWave) error {
			h.waves = append(h.waves, w)
			if next != nil {
				return next(w)
			}
			return nil
		}
		var err error
		if h.suite, err = NewSuite(o); err != nil {
			t.Fatal(err)
		}
		h.sink.tally = h.suite.Tally()
		engine, ln := sim.New(sim.Config{Handler: r.pupil.Handler()}), sim.NewPipeListener()
		ended := make(chan error, 1)
		go func() { ended <- engine.Serve(ln) }()
		if r.dead {
			_ = ln.Close()
		}
		up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: "http://engine", Dial: ln.Dial})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if r.until > 0 {
			var free context.CancelFunc
			ctx, free = context.WithTimeoutCause(ctx, r.until, r.why)
			defer free()
		}
		h.err = h.suite.Run(ctx, Target{proxy.NewSession(proxy.SessionOptions{Mode: "gate", Sink: h.sink}), up})
		check(t, h)
		for _, end := range []func() error{up.Close, engine.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err != nil && !r.dead {
			t.Error(err)
		}
	})
}

// validation are the options of a suite as validate sends it.
func validation(suite string, names ...string) SuiteOptions {
	var of []scenario.Scenario
	for _, s := range scenario.Suite(suite) {
		for _, name := range names {
			if s.TagName() == name {
				of = append(of, s)
			}
		}
		if names == nil {
			of = append(of, s)
		}
	}
	return SuiteOptions{Members: scenario.Plan(of, []int{1, 4}, 1), Options: scenario.Options{Model: "pupil", Stream: true}}
}
