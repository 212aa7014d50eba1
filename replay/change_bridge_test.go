package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// spokenTo are plan options that say every request in a dialect.
func spokenTo(d wire.Dialect) PlanOptions {
	return PlanOptions{Loop: LoopClosed, Changes: Changes{Bridges: []bridge.Endpoint{{Dialect: d}}}}
}

// spoken is an item of another dialect than chat.
func spoken(id, target, body string) Item {
	it := asked(id, 0, body)
	it.Target = target
	it.identify(it.Body)
	return it
}

// recordedIn is one question in each dialect that can be read.
func recordedIn() map[wire.Dialect]Item {
	return map[wire.Dialect]Item{
		wire.DialectChat:      spoken("chat", "/v1/chat/completions", `{"model":"sim","stream":true,"stream_options":{"include_usage":true},"max_tokens":12,"temperature":0,"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}`),
		wire.DialectAnthropic: spoken("anthropic", "/v1/messages", `{"model":"sim","max_tokens":12,"system":"s","messages":[{"role":"user","content":"q"}],"temperature":0,"stream":true}`),
		wire.DialectGemini:    spoken("gemini", "/v1beta/models/sim:streamGenerateContent?alt=sse", `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"maxOutputTokens":12,"temperature":0}}`),
		wire.DialectOllama:    spoken("ollama", "/api/chat", `{"model":"sim","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"options":{"num_predict":12,"temperature":0},"stream":true}`),
	}
}

// sentIn is the same question as each dialect sends it.
var sentIn = map[wire.Dialect]struct{ target, body string }{
	wire.DialectChat:      {"/v1/chat/completions", `{"model":"sim","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":12,"temperature":0}`},
	wire.DialectAnthropic: {"/v1/messages", `{"model":"sim","max_tokens":12,"system":"s","messages":[{"role":"user","content":"q"}],"temperature":0,"stream":true}`},
	wire.DialectGemini:    {"/v1beta/models/sim:streamGenerateContent?alt=sse", `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"maxOutputTokens":12,"temperature":0}}`},
	wire.DialectOllama:    {"/api/chat", `{"model":"sim","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"options":{"num_predict":12,"temperature":0},"stream":true}`},
}

// TestSaidInEveryDialect sends what was recorded in each dialect to an engine that speaks another one: the bytes are those
// written by hand, the answer is read, and the record says what was done.
func TestSaidInEveryDialect(t *testing.T) {
	for from, it := range recordedIn() {
		for to, want := range sentIn {
			it := it
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				it.Headers = append(slices.Clone(it.Headers), exchange.Header{Name: "Anthropic-Beta", Value: "b"}, exchange.Header{Name: "X-Keep", Value: "1"})
				rig{engine: steady}.play(t, &Workload{Items: []Item{it}}, spokenTo(to), func(t *testing.T, p *played) {
					if r := p.report(t); r.Items.Complete != 1 || r.Items.Requests != 1 {
						t.Fatalf("items %+v", r.Items)
					}
					x := p.records[0].measured()[0]
					body := want.body
					if from == to {
						body = string(it.Body) // untouched
					}
					if diff := cmp.Diff(body, string(x.Request.Body.Bytes())); diff != "" || x.Request.Target != want.target {
						t.Errorf("%s: %s", x.Request.Target, diff)
					}
					a := measure.Analyze(x)
					if a.Transcript.Dialect != to || a.Figures[measure.CompletionTokens].Value != 10 || a.Transcript.Choice0().Text == "" {
						t.Errorf("the answer is %s, %q", a.Transcript.Dialect, a.Transcript.Choice0().Text)
					}
					if x.Origin == nil || x.Origin.Exchange != it.Origin.Exchange {
						t.Errorf("origin %+v", x.Origin)
					}
					if diff := cmp.Diff(wantedKinds(from, to), kinds(x)); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// wantedKinds are the interventions of a translation, as name and new value.
func wantedKinds(from, to wire.Dialect) []string {
	if from == to {
		return nil
	}
	out := []string{KindDialect + " body " + string(to), KindTargetSet + " target " + sentIn[to].target, KindHeaderUnset + " Anthropic-Beta "}
	if to == wire.DialectAnthropic {
		out = append(out, KindHeaderSet+" anthropic-version 2023-06-01")
	}
	return out
}

// kinds are what a plan changed of a request.
func kinds(x *exchange.Exchange) []string {
	var out []string
	for _, n := range x.Interventions {
		if strings.HasPrefix(n.Kind, "planned_") {
			out = append(out, n.Kind+" "+n.Name+" "+n.To)
		}
	}
	return out
}

func TestLossesAreListedAndRefused(t *testing.T) {
	w := &Workload{}
	for i := range 3 {
		w.Items = append(w.Items, spoken(fmt.Sprint("r", i), "/v1/chat/completions",
			fmt.Sprintf(`{"model":"m","max_tokens":9,"seed":%d,"messages":[{"role":"user","content":"a","name":"x"},{"role":"user","content":"b","name":"y"}]}`, i)))
	}
	w.Items = append(w.Items, spoken("e", "/v1/embeddings", `{"input":"x"}`), Item{ID: "g", Method: "GET", Target: "/v1/models", At: AtUnknown})
	o := spokenTo(wire.DialectAnthropic)
	o.Targets = []string{"cloud"}
	err := planOf(t, w, o).Check()
	want := `plan workload: usage: not all that is asked for can be said to the target:
  messages[].name: the bridge does not know this field, for cloud (item r0 and 2 more)
  seed: anthropic has no place for it, for cloud (item r0 and 2 more)
  request: a request to /v1/embeddings cannot be translated, for cloud (item e)`
	if !errors.Is(err, exchange.ErrUsage) || !errors.Is(err, ErrLossy) || err.Error() != want {
		t.Errorf("err = %v\nwant %s", err, want)
	}
	o.Changes.Lossy = true
	p := planOf(t, w, o)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	d, err := p.draft(&p.jobs[0], 0)
	if err != nil || string(d.body) != `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}` {
		t.Errorf("%v, %s", err, d.body)
	}
	if n := len(slices.DeleteFunc(d.notes, func(n exchange.Intervention) bool { return n.Kind != KindNotCarried })); n != 3 {
		t.Errorf("%d losses in the record", n)
	}
}

func TestWhatIsUnderstoodIsLeft(t *testing.T) {
	o := spokenTo(wire.DialectChat)
	o.Changes.Bridges[0].Keeps = []wire.Dialect{wire.DialectAnthropic}
	var w Workload
	for _, it := range recordedIn() {
		w.Items = append(w.Items, it)
	}
	p := planOf(t, &w, o)
	for i := range p.jobs {
		d, err := p.draft(&p.jobs[i], 0)
		id := p.jobs[i].turns[0].ID
		if translated := id == "gemini" || id == "ollama"; err != nil || d.translated != translated {
			t.Errorf("%s: translated %t, %v", id, d.translated, err)
		}
	}
}

// TestEachTargetIsSpokenToInItsDialect also asks for another model and a nonce, which are put into what is sent.
func TestEachTargetIsSpokenToInItsDialect(t *testing.T) {
	o := spokenTo(wire.DialectGemini)
	o.Targets = []string{"a", "b"}
	o.Changes.Bridges = append(o.Changes.Bridges, bridge.Endpoint{})
	o.Changes.Model, o.Nonce, o.Warmup = "other", true, 1
	rig{engine: steady}.play(t, &Workload{Items: []Item{recordedIn()[wire.DialectChat]}}, o, func(t *testing.T, p *played) {
		if p.err != nil {
			t.Fatal(p.err)
		}
		for i, want := range []string{"/v1beta/models/other:streamGenerateContent?alt=sse", "/v1/chat/completions"} {
			for _, x := range p.records[i].xs {
				if x.Request.Target != want || measure.Analyze(x).Outcome != exchange.OutcomeComplete || !strings.Contains(string(x.Request.Body.Bytes()), `"[`) {
					t.Errorf("%s, warm-up %t: %s", x.Request.Target, x.Item.Warmup, x.Request.Body.Bytes())
				}
				if m := wire.RequestOf(x).Model; m != "other" {
					t.Errorf("model %q", m)
				}
			}
		}
	})
}

// refusing answers 400 with a message to the requests whose body has a field. It takes a moment for it: requests that are
// sent together are all under way when the first one is refused.
func refusing(field, body string, count *atomic.Int32) sim.Config {
	c := steady
	c.Handler = func(req sim.Request) *sim.Script {
		if !strings.Contains(string(req.Body), `"`+field+`"`) {
			return nil
		}
		count.Add(1)
		return &sim.Script{Status: 400, Framing: sim.FramingLength, HeadAt: 10 * time.Millisecond, Steps: []sim.Step{{At: 10 * time.Millisecond, Data: []byte(body)}},
			Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}}
	}
	return c
}

const (
	limitRefused    = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
	limitTooLarge   = `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 12. This model's maximum context length is 8 tokens, use less instead.","type":"BadRequestError","code":400}}`
	samplingRefused = "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`temperature` is deprecated for this model.\"}}"
	samplingRange   = `{"type":"error","error":{"type":"invalid_request_error","message":"temperature: Input should be less than or equal to 1"}}`
)

// TestLimitIsLearned holds that an endpoint says once what it calls the output limit, in the warm-up if there is one, and
// that the request which taught it is sent again as an exchange of its own.
func TestLimitIsLearned(t *testing.T) {
	for _, warmups := range []int{0, 1} {
		var refused atomic.Int32
		w := many(3, 0, 12)
		rig{engine: refusing("max_tokens", limitRefused, &refused)}.play(t, w, PlanOptions{Loop: LoopClosed, Warmup: warmups}, func(t *testing.T, p *played) {
			want := exchange.ItemCounts{Planned: 3, Complete: 3, Requests: 4, Retries: 1}
			if warmups == 1 {
				want = exchange.ItemCounts{Planned: 3, Complete: 3, Requests: 3, Warmups: 2}
			}
			if r := p.report(t); r.Items != want || refused.Load() != 1 {
				t.Errorf("items %+v, want %+v; refused %d", r.Items, want, refused.Load())
			}
			xs := p.records[0].measured()
			last := xs[len(xs)-1]
			if b := string(last.Request.Body.Bytes()); !strings.Contains(b, `"max_completion_tokens":12`) || strings.Contains(b, `"max_tokens"`) {
				t.Errorf("the last one is %s", b)
			}
			if diff := cmp.Diff([]string{KindFieldRemoved + " max_tokens ", KindFieldSet + " max_completion_tokens 12"}, kinds(last)); diff != "" {
				t.Error(diff)
			}
			if pr := p.driver.Progress(); pr.Ended != 3 || pr.Failed != 0 {
				t.Errorf("progress %+v", pr)
			}
		})
	}
}

// TestRequestsInFlightLearnToo holds for requests that were sent before the first refusal came.
func TestRequestsInFlightLearnToo(t *testing.T) {
	var refused atomic.Int32
	rig{engine: refusing("max_tokens", limitRefused, &refused)}.play(t, many(4, 0, 12), PlanOptions{Loop: LoopWaves, Concurrency: 4}, func(t *testing.T, p *played) {
		if r := p.report(t); r.Items.Complete != 4 || r.Items.Requests != 8 || r.Items.Retries != 4 {
			t.Errorf("items %+v", r.Items)
		} else if len(r.Waves) != 1 || r.Waves[0].Streams != 4 || r.Waves[0].Failed != 4 || r.Waves[0].Figures[measure.BatchTPS].Reason != measure.ReasonMemberFailed {
			t.Errorf("members that were sent again did not run together: %+v", r.Waves)
		}
	})
}

// TestWavesAfterALessonAreWhole holds that a refusal costs the wave in which it came, at each target, and no later one.
func TestWavesAfterALessonAreWhole(t *testing.T) {
	var refused atomic.Int32
	o := PlanOptions{Loop: LoopWaves, Concurrency: 4, Targets: []string{"a", "b"}}
	rig{engine: refusing("max_tokens", limitRefused, &refused)}.play(t, many(12, 0, 12), o, func(t *testing.T, p *played) {
		if p.err != nil {
			t.Fatal(p.err)
		}
		sent := 0
		for i := range p.records {
			r := p.driver.Report(i)
			sent += r.Items.Requests
			if r.Items.Complete != 12 || r.Items.Failed != 0 {
				t.Errorf("items %+v", r.Items)
			}
			for _, w := range r.Waves {
				whole := w.Figures[measure.BatchTPS].Present()
				if whole != (w.Failed == 0) {
					t.Errorf("wave %s of %d, %d failed: %+v", w.Wave, w.Streams, w.Failed, w.Figures)
				}
			}
			if last := r.Waves[len(r.Waves)-1]; last.Failed != 0 || len(r.Waves) < 3 {
				t.Errorf("waves %+v", r.Waves)
			}
		}
		if n := int(refused.Load()); sent != 24+n || n < 2 || n > 8 {
			t.Errorf("%d requests, %d refused", sent, n)
		}
	})
}

// TestWaveWithAMemberThatWasNeverSent holds that it is told as void.
func TestWaveWithAMemberThatWasNeverSent(t *testing.T) {
	rig{engine: steady}.play(t, many(2, 0, 10), PlanOptions{Loop: LoopWaves, Concurrency: 2}, func(t *testing.T, p *played) {
		half := newTally(p.plan, 0)
		x := p.records[0].measured()[0]
		half.Add(x, measure.Analyze(x))
		w := half.waveRates()
		if len(w) != 1 || w[0].Streams != 2 || w[0].Failed != 1 || w[0].Figures[measure.AggregateDecodeTPS].Present() {
			t.Errorf("%+v", w)
		}
	})
}

func TestSamplingIsDroppedAfterARefusal(t *testing.T) {
	var refused atomic.Int32
	w := &Workload{}
	for i := range 3 {
		w.Items = append(w.Items, asked(fmt.Sprint("r", i), 0, fmt.Sprintf(`{"model":"sim","max_tokens":12,"temperature":0,"top_p":0.5,"messages":[{"role":"user","content":"q%d"}]}`, i)))
	}
	rig{engine: refusing("temperature", samplingRefused, &refused)}.play(t, w, spokenTo(wire.DialectAnthropic), func(t *testing.T, p *played) {
		if r := p.report(t); r.Items.Complete != 3 || r.Items.Requests != 4 || refused.Load() != 1 {
			t.Errorf("items %+v, refused %d", r.Items, refused.Load())
		}
		for _, x := range p.records[0].measured()[1:] {
			dropped := 0
			for _, n := range x.Interventions {
				if n.Reason == reasonLearned && n.Kind == KindFieldRemoved {
					dropped++
				}
			}
			if dropped != 2 || strings.Contains(string(x.Request.Body.Bytes()), "top_p") {
				t.Errorf("%d dropped from %s", dropped, x.Request.Body.Bytes())
			}
		}
	})
}

// TestOtherRefusalsTeachNothing holds that a value which is refused, and not its name, is a failed item and no more. So is
// a field of a request that was not translated, unless it may be lossy.
func TestOtherRefusalsTeachNothing(t *testing.T) {
	chat, messages := recordedIn()[wire.DialectChat], recordedIn()[wire.DialectAnthropic]
	for name, tc := range map[string]struct {
		it    Item
		field string
		body  string
		lossy bool
		sent  int
	}{
		"too large":                    {chat, "max_tokens", limitTooLarge, false, 1},
		"out of range":                 {messages, "temperature", samplingRange, true, 1},
		"as recorded":                  {messages, "temperature", samplingRefused, false, 1},
		"as recorded, but lossy":       {messages, "temperature", samplingRefused, true, 2},
		"a dialect that has no lesson": {chat, "temperature", samplingRefused, true, 1},
		"no reason":                    {chat, "max_tokens", `{}`, false, 1},
		"another field":                {chat, "max_tokens", `{"error":{"message":"unknown field max_completion_tokensX"}}`, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var refused atomic.Int32
			o := PlanOptions{Loop: LoopClosed, Changes: Changes{Lossy: tc.lossy}}
			rig{engine: refusing(tc.field, tc.body, &refused)}.play(t, &Workload{Items: []Item{tc.it}}, o, func(t *testing.T, p *played) {
				if r := p.report(t); r.Items.Requests != tc.sent || r.Items.Complete != tc.sent-1 || r.Incomplete != "" {
					t.Errorf("items %+v", r.Items)
				}
			})
		})
	}
}

// TestLiveHistoryInEveryDialect replays a conversation in which a tool was called to an engine of each dialect. The next
// turn holds what the engine answered, in its own words, with the ids it gave.
func TestLiveHistoryInEveryDialect(t *testing.T) {
	for d, want := range map[wire.Dialect][]string{
		wire.DialectChat:      {`"role":"tool","tool_call_id":"call_`, `"content":"sunny"`},
		wire.DialectAnthropic: {`{"type":"thinking","thinking":"`, `"signature":"`, `{"type":"tool_use","id":"call_`, `"tool_use_id":"call_`, `"content":"sunny"`},
		wire.DialectGemini:    {`"thought":true`, `"functionCall":{"id":"call_`, `"functionResponse":{"id":"call_`, `{"output":"sunny"}`},
		wire.DialectOllama:    {`"thinking":"`, `"tool_name":"get_weather"`, `"tool_call_id":"call_`, `"content":"sunny"`},
	} {
		t.Run(string(d), func(t *testing.T) {
			o := spokenTo(d)
			o.LiveHistory = true
			w := toolTalk(exchange.Header{Name: "X-Sim", Value: "reasoning=4"})
			rig{engine: steady}.play(t, w, o, func(t *testing.T, p *played) {
				if r := p.report(t); r.Items.Complete != 1 || r.Items.Requests != 2 {
					t.Fatalf("items %+v", r.Items)
				}
				xs := p.records[0].measured()
				body := string(xs[1].Request.Body.Bytes())
				for _, text := range want {
					if !strings.Contains(body, text) {
						t.Errorf("the second turn has no %s: %s", text, body)
					}
				}
				if strings.Contains(body, "call_recorded") {
					t.Errorf("the second turn has an id of the record: %s", body)
				}
				said, err := bridge.Answer(d, xs[0], measure.Analyze(xs[0]).Transcript)
				if err != nil || !strings.Contains(body, string(said.Message)) {
					t.Errorf("%v; the second turn does not hold %s: %s", err, said.Message, body)
				}
				if !json.Valid([]byte(body)) {
					t.Errorf("not JSON: %s", body)
				}
			})
		})
	}
}
